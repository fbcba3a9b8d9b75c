"""Check that every byte of a book is as it was written: SQLite's own check, then checksums of every row."""

from __future__ import annotations

from collections.abc import Iterator

from strikeout.errors import StrikeoutError
from strikeout.store.checksums import MARKS, PARTS, QUOTES, Tally, checksum, chunk_sum, mark_sum
from strikeout.store.sqlite_reading import SqliteReading, key
from strikeout.store.store import PAGE_KINDS, SHARD_DATA
from strikeout.text import many

MOST = 20  # messages; more would not help with a file that is damaged throughout


def faults(book: SqliteReading) -> list[str]:
    """Return one message per fault; empty if everything is as it was written."""
    found: list[str] = []
    try:
        for sentence in _faults(book):
            found.append(sentence)
            if len(found) == MOST:
                break
    except StrikeoutError as error:
        found.append(error.sentence)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        # Damage can turn a number into text and a length into any number, so any of these errors means damage.
        found.append(f"A row cannot be read: {error}.")
    return found


def _faults(book: SqliteReading) -> Iterator[str]:
    yield from (f"SQLite: {line}." for (line,) in book.rows(f"PRAGMA integrity_check({MOST})") if line != "ok")
    yield from (
        f"A row of {table} refers to a row of {other} that is not there."
        for table, _, other, _ in book.rows("PRAGMA foreign_key_check")
    )
    kept, sums, homes = book.seal(), book.sums(), {}
    tally = Tally(sealer=book.sealer)
    for number, count, row, tag, data in book.rows("SELECT number, count, sum, tag, data FROM chunks ORDER BY number"):
        fault = book.fault(chunk_sum(number, count, data), row, tag)
        if fault is not None:
            yield f"Chunk {number} of the quotes {fault}."
        if row != chunk_sum(number, count, data):
            continue
        homes.update(dict.fromkeys(map(key, book.unlocked(number, data).ids), number))
        tally.add(QUOTES, [row])
        tally.count(held=count)
    named = dict(book.rows("SELECT id, chunk FROM names"))
    if named != homes:
        odd = len(named.items() ^ homes.items())
        yield f"The index of names and the quotes differ in {many(odd, 'row')}."
    marks = [mark_sum(name, homes.get(name, -1), entry) for name, entry in book.rows("SELECT id, entry FROM marks")]
    tally.add(MARKS, marks)
    tally.count(marked=len(marks))
    for what in SHARD_DATA:
        for shard, row, tag, data in book.rows(f"SELECT shard, sum, tag, data FROM {what}"):
            fault = book.fault(checksum(what, shard, data), row, tag)
            if fault is not None:
                yield f"The stored data of shard {shard} ({what}) {fault}."
            tally.add(what, [row])
    for kind, name, row, tag, data in book.rows("SELECT kind, name, sum, tag, data FROM pages"):
        fault = book.fault(checksum(kind, name, data), row, tag)
        if fault is not None or kind not in PAGE_KINDS:
            yield f"The page {name!r} of kind {kind!r} {fault or 'has an unknown kind'}."
        tally.add(kind, [row])
    last = -1
    for number, row, data in book.rows("SELECT number, sum, data FROM entries ORDER BY number"):
        if number != last + 1 or row != checksum("entry", number, data):
            yield f"Entry {last + 1} of the ledger is not as it was written."
        tally.add("entries", [row])
        last = number
    seal = tally.seal
    if seal != kept:
        yield (
            f"The rows are not those that were sealed: {seal.rows:,} rows, {seal.held:,} quotes and {seal.marked:,} "
            f"marks are there; {kept.rows:,}, {kept.held:,} and {kept.marked:,} were written."
        )
    if sums is not None and tally.sums is not None:
        odd_parts = [part for part in PARTS if sums[part] != tally.sums[part]]
        if odd_parts:
            which = ", ".join(odd_parts)
            yield f"Rows were changed, removed or restored without the book's key, in: {which}."
    if any(due for (due,) in book.rows("SELECT scrub FROM seal")):
        yield "An erasure was not finished: old bytes may still be in the file. Open the book for writing once."
