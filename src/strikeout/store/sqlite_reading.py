"""Read a book from its file. The checksum and the tag of every row are checked before it is used.

``faults`` checks every byte: SQLite's own check, then the checksums of every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import RefusedError, StrikeoutError
from strikeout.kernels.arrays import Mask
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes
from strikeout.store import store
from strikeout.store.bookfile import Connection, damaged, translate_errors
from strikeout.store.checksums import MARKS, PARTS, QUOTES, Seal, Sealer, Tally, checksum, chunk_sum, mark_sum
from strikeout.store.chunks import Chunk, decoded, quotes_of, retained_of
from strikeout.store.shard_keys import LOCKED, ShardKeys
from strikeout.store.store import PAGE_KINDS, SHARD_DATA, Counts, PageKind, ShardData, check_page_kind, check_shard_data
from strikeout.text import many

TOGETHER = 400  # chunks read together by `quote_chunks`
AT_ONCE = 500  # names per query; the smallest limit of SQLite in use is 999


def key(name: str) -> bytes:
    """Return an id as the tables store it; bytes sort as the code points of the text."""
    return name.encode("utf-8", "surrogatepass")


def text(name: bytes) -> str:
    """Return the id that a key encodes."""
    return name.decode("utf-8", "surrogatepass")


class SqliteReading:
    """The read methods of a book in a file; ``Reading`` documents each of them."""

    def __init__(
        self, connection: Connection, sealer: Sealer | None, keys: ShardKeys | None = None, tally: Tally | None = None
    ) -> None:
        self._connection = connection
        self._path = connection.path
        self.sealer = sealer  # None without the key of the book: then tags are not checked
        self._keys = keys  # of an encrypted book
        self._tally = tally  # of a transaction, which writes its seal at the end

    def quotes(self, *, struck: bool | None = False) -> Quotes:
        if struck is True:
            return self.named([text(name) for (name,) in self.rows("SELECT id FROM marks")])
        if struck is None:
            return quotes_of([chunk for _, chunk in self._chunks()])
        marks = self._marks_by_chunk()
        return retained_of([_without(chunk, marks.get(number)) for number, chunk in self._chunks()])

    def quote_chunks(self) -> Iterator[Quotes]:
        marks = self._marks_by_chunk()
        chunks = self._chunks()
        while some := list(islice(chunks, TOGETHER)):
            quotes = quotes_of([_without(chunk, marks.get(number)) for number, chunk in some])
            if len(quotes):
                yield quotes

    def named(self, ids: ArrayLike) -> Quotes:
        homes = self.shards_of(ids)
        return quotes_of([_only(self.chunk(number), names) for number, names in by_chunk(homes)])

    def known(self, ids: ArrayLike) -> Mask:
        names = as_names(ids)
        if not self.seal().held:
            return np.zeros(len(names), bool)
        asked = names.tolist()
        homes = self.homes(asked)
        return np.array([name in homes for name in asked], bool)

    def struck(self) -> dict[str, int]:
        marks = self._typed("SELECT id, entry FROM marks ORDER BY id", bytes, int)
        return {text(name): entry for name, entry in marks}

    def counts(self) -> Counts:
        seal = self.seal()
        return Counts(retained=seal.held - seal.marked, struck=seal.marked)

    def shards(self) -> dict[int, int]:
        return dict(self._typed("SELECT number, count FROM chunks ORDER BY number", int, int))

    def shards_of(self, ids: ArrayLike) -> dict[str, int]:
        asked = store.distinct(ids)
        homes = self.homes(asked)
        store.refuse_unknown([name for name in asked if name not in homes], asked=len(asked))
        return homes

    def members(self, shard: int) -> tuple[str, ...]:
        return tuple(self.chunk(shard).ids)

    def shard_data(self, shard: int, what: ShardData) -> bytes | None:
        check_shard_data(what)
        for found, tag, data in self.rows(f"SELECT sum, tag, data FROM {what} WHERE shard = ?", (shard,)):
            self._hold(checksum(what, shard, data), found, tag, f"the stored data of shard {shard} ({what})")
            return bytes(data) if self._keys is None else self._keys.opened(data, place=f"{what} {shard}")
        return None

    def shards_with(self, what: ShardData) -> tuple[int, ...]:
        check_shard_data(what)
        return tuple(shard for (shard,) in self.rows(f"SELECT shard FROM {what} ORDER BY shard"))

    def page(self, kind: PageKind, name: str) -> bytes | None:
        check_page_kind(kind)
        for found, tag, data in self.rows("SELECT sum, tag, data FROM pages WHERE kind = ? AND name = ?", (kind, name)):
            self._hold(checksum(kind, name, data), found, tag, f"the page {name!r} of kind {kind!r}")
            if self._keys is not None and kind in LOCKED:
                return self._keys.opened(data, place=f"page {kind} {name}")
            return bytes(data)
        return None

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        check_page_kind(kind)
        question = "SELECT name FROM pages WHERE kind = ? ORDER BY name"
        return tuple(name for (name,) in self._typed(question, str, values=(kind,)))

    def entries(self) -> tuple[bytes, ...]:
        version, kept = self._connection.version(), self._connection.entries
        if version is not None and kept is not None and kept[0] == version:
            return kept[1]
        found = self._entries()
        # A commit after the version was read makes these entries newer than it: the next call reads them again.
        self._connection.entries = None if version is None else (version, found)
        return found

    def _entries(self) -> tuple[bytes, ...]:
        read: list[bytes] = []
        for number, found, data in self.rows("SELECT number, sum, data FROM entries ORDER BY number"):
            if number != len(read) or found != checksum("entry", number, data):
                raise damaged(self._path, f"entry {len(read)} of the ledger is not as it was written")
            read.append(bytes(data))
        return tuple(read)

    def contents(self) -> str:
        if self.sealer is None:
            raise RefusedError(f"{self._path} was opened without its key, so it cannot be compared with its ledger.")
        return self.sealer.total(self.sums() or {})

    def sums(self) -> dict[str, int] | None:
        """Return the keyed sums over the rows; None without the key."""
        if self._tally is not None:
            return self._tally.sums
        for (stored,) in self._typed("SELECT sums FROM seal", bytes):
            return None if self.sealer is None else self.sealer.unmasked(stored)
        raise damaged(self._path, "the seal is missing")

    def rows(self, question: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Return the rows of an SQL query."""
        answer = self._connection.execute(question, values)
        with translate_errors(self._path):
            yield from answer

    def _typed(self, question: str, *types: type, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Return rows of columns that no checksum covers, with their types checked.

        Damage can turn a number into text or null.
        """
        for row in self.rows(question, values):
            if tuple(map(type, row)) != types:
                raise damaged(self._path, f"a row is not as it was written ({question.partition(' FROM ')[2]})")
            yield row

    def homes(self, names: Sequence[str]) -> dict[str, int]:
        """Return those of these names that the book holds, each with its chunk."""
        if not self.seal().held:
            return {}
        found: dict[str, int] = {}
        for begin in range(0, len(names), AT_ONCE):
            asked = [key(name) for name in names[begin : begin + AT_ONCE]]
            marks = ", ".join("?" * len(asked))
            question = f"SELECT id, chunk FROM names WHERE id IN ({marks})"
            found |= {text(name): chunk for name, chunk in self._typed(question, bytes, int, values=asked)}
        return found

    def chunk(self, number: int) -> Chunk:
        """Return the chunk with this number."""
        for count, *row in self.rows("SELECT count, sum, tag, data FROM chunks WHERE number = ?", (number,)):
            return self._whole(number, count, *row)
        raise damaged(self._path, f"chunk {number} of the quotes is missing")

    def seal(self) -> Seal:
        """Return the counts and the sum over all checksums."""
        if self._tally is not None:
            return self._tally.seal
        for total, *counts in self._typed("SELECT total, rows, held, marked FROM seal", bytes, int, int, int):
            return Seal(total, *counts)
        raise damaged(self._path, "the seal is missing")

    def _chunks(self) -> Iterator[tuple[int, Chunk]]:
        for number, *row in self.rows("SELECT number, count, sum, tag, data FROM chunks ORDER BY number"):
            yield number, self._whole(number, *row)

    def _whole(self, number: int, count: int, found: bytes, tag: bytes, data: bytes) -> Chunk:
        self._hold(chunk_sum(number, count, data), found, tag, f"chunk {number} of the quotes")
        return self.unlocked(number, data)

    def unlocked(self, number: int, data: bytes) -> Chunk:
        """Return the chunk in these bytes, whose checksum was compared."""
        return decoded(data if self._keys is None else self._keys.opened(data, place=f"chunk {number}"))

    def _marks_by_chunk(self) -> dict[int, set[str]]:
        marks: dict[int, set[str]] = {}
        for name, chunk in self._typed("SELECT id, chunk FROM marks JOIN names USING (id)", bytes, int):
            marks.setdefault(chunk, set()).add(text(name))
        return marks

    def _hold(self, row: bytes, found: bytes, tag: bytes, what: str) -> None:
        fault = self.fault(row, found, tag)
        if fault is not None:
            raise damaged(self._path, f"{what} {fault}")

    def fault(self, row: bytes, found: bytes, tag: bytes) -> str | None:
        """Return what is wrong with a row, given its checksum and the sum and tag stored with it; None if valid."""
        if found != row:
            return "is not as it was written"
        if self.sealer is not None and tag != self.sealer.tag(row):
            return "was changed without the book's key"
        return None


def by_chunk(homes: dict[str, int]) -> Iterable[tuple[int, set[str]]]:
    """Return the names in every chunk, in the order of the chunks."""
    grouped: dict[int, set[str]] = {}
    for name, chunk in homes.items():
        grouped.setdefault(chunk, set()).add(name)
    return sorted(grouped.items())


def _only(chunk: Chunk, names: set[str]) -> Chunk:
    return chunk.only(np.array([name in names for name in chunk.ids], bool))


def _without(chunk: Chunk, names: set[str] | None) -> Chunk:
    return chunk if names is None else chunk.only(np.array([name not in names for name in chunk.ids], bool))


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
