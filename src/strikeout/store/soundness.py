"""Whether every byte of a book is as it was written: SQLite's own check, then ours over every row."""

from __future__ import annotations

from collections.abc import Iterator

from strikeout.errors import StrikeoutError
from strikeout.store.sealing import Seal, checksum, chunk_sum, mark_sum
from strikeout.store.sqlite_reading import SqliteReading, key
from strikeout.store.store import LEAVINGS, SHELVES
from strikeout.wording import many

MOST = 20  # sentences; a file that is damaged all over needs no more


def faults(book: SqliteReading) -> list[str]:
    """What is wrong, a sentence each; empty where all is as it was written."""
    found: list[str] = []
    try:
        for sentence in _faults(book):
            found.append(sentence)
            if len(found) == MOST:
                break
    except StrikeoutError as error:
        found.append(error.sentence)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        # Damage can turn a number into a text and a length into nonsense; whatever then fails, it is damage.
        found.append(f"A row cannot be read: {error}.")
    return found


def _faults(book: SqliteReading) -> Iterator[str]:
    yield from (f"SQLite: {line}." for (line,) in book.rows(f"PRAGMA integrity_check({MOST})") if line != "ok")
    yield from (
        f"A row of {table} refers to a row of {other} that is not there."
        for table, _, other, _ in book.rows("PRAGMA foreign_key_check")
    )
    kept, seal, homes = book.seal(), Seal(), {}
    for number, count, data, row in book.rows("SELECT number, count, data, sum FROM chunks ORDER BY number"):
        if row != chunk_sum(number, count, data):
            yield f"Chunk {number} of the quotes is not as it was written."
            continue
        ids = book.unlocked(number, data).ids
        homes.update(dict.fromkeys(map(key, ids), number))
        seal = seal.with_row(row).counting(held=count)
    named = dict(book.rows("SELECT id, chunk FROM names"))
    if named != homes:
        odd = len(named.items() ^ homes.items())
        yield f"The index of names and the quotes differ in {many(odd, 'row')}."
    for name, entry in book.rows("SELECT id, entry FROM marks"):
        seal = seal.with_row(mark_sum(name, homes.get(name, -1), entry)).counting(marked=1)
    for what in LEAVINGS:
        for shard, data, row in book.rows(f"SELECT shard, data, sum FROM {what}"):
            if row != checksum(what, shard, data):
                yield f"What is kept of the {what} of shard {shard} is not as it was written."
            seal = seal.with_row(row)
    for shelf, name, data, row in book.rows("SELECT shelf, name, data, sum FROM pages"):
        if shelf not in SHELVES or row != checksum(shelf, name, data):
            yield f"The page {name!r} on the shelf {shelf!r} is not as it was written."
        seal = seal.with_row(row)
    last = -1
    for number, data, row in book.rows("SELECT number, data, sum FROM entries ORDER BY number"):
        if number != last + 1 or row != checksum("entry", number, data):
            yield f"Entry {last + 1} of the ledger is not as it was written."
        seal, last = seal.with_row(row), number
    if seal != kept:
        yield (
            f"The rows are not those that were sealed: {seal.rows:,} rows, {seal.held:,} quotes and {seal.marked:,} "
            f"marks are there; {kept.rows:,}, {kept.held:,} and {kept.marked:,} were written."
        )
    if any(due for (due,) in book.rows("SELECT scrub FROM seal")):
        yield "An erasure was not finished: old bytes may still be in the file. Open the book for writing once."
