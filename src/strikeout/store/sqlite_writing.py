"""Change a book in its file within one transaction. The cost depends on the rows changed, not on the book."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError
from strikeout.quotes.quotes import Quotes
from strikeout.store import store
from strikeout.store.bookfile import Connection
from strikeout.store.checksums import MARKS, QUOTES, Sealer, Tally, checksum, chunk_sum, mark_sum
from strikeout.store.chunks import CHUNK, Chunk, chunk_of, encoded, in_chunks, refuse_other_kind
from strikeout.store.shard_keys import HEAD, LOCKED, ShardKeys, key_name
from strikeout.store.sqlite_reading import SqliteReading, by_chunk, key
from strikeout.store.store import SHARD_DATA, OnAdded, PageKind, ShardData, check_page_kind, check_shard_data

if TYPE_CHECKING:
    from strikeout.quotes.spill import ExternalSort, Spill

IN_MEMORY = 1 << 17  # names that are sorted in memory; more are spilled to disk


class SqliteWriting:
    """The write methods of a book in a file; ``Writing`` documents each of them."""

    def __init__(self, connection: Connection, sealer: Sealer, keys: ShardKeys | None) -> None:
        self._connection, self._sealer, self._keys = connection, sealer, keys
        begun = SqliteReading(connection, sealer, keys)
        self._tally = Tally(begun.seal(), sealer=sealer, sums=begun.sums())
        self.now = SqliteReading(connection, sealer, keys, self._tally)
        self.erased = False

    def settle(self) -> None:
        """Write the seal, once at the end of a transaction."""
        seal, sums = self._tally.seal, self._sealer.masked(self._tally.sums or {})
        change = "UPDATE seal SET total = ?, rows = ?, held = ?, marked = ?, sums = ?"
        self._each(change, [(seal.total, seal.rows, seal.held, seal.marked, sums)])

    def add(self, quotes: Quotes) -> None:
        self.add_all([quotes])

    def add_all(self, chunks: Iterable[Quotes], *, on_added: OnAdded | None = None) -> int:
        first = next(self.now.rows("SELECT min(number), max(number) FROM chunks"))
        kind = None if first[0] is None else self.now.chunk(first[0]).kind
        number, count = 0 if first[1] is None else first[1] + 1, 0
        with SortedNames(self._connection.path.parent) as sort:
            for some in in_chunks(self._unknown(chunks), CHUNK):
                refuse_other_kind(kind, some[0])
                for quotes in some:
                    chunk = chunk_of(quotes)
                    kind, count = kind or chunk.kind, count + len(chunk)
                    sort.add(chunk.ids, number)
                    self._keep_chunk(number, chunk)
                    number += 1
            # Sorted names fill the B-tree from left to right; in the order of the file they would rewrite its pages
            # many times.
            for names, homes in sort.runs():
                store.refuse_present([a.decode() for a, b in pairwise(names) if a == b], given=count)
                self._each("INSERT INTO names VALUES (?, ?)", zip(names, homes, strict=True))
                if on_added is not None:
                    on_added(names)
        self._tally.count(held=count)
        return count

    def _unknown(self, chunks: Iterable[Quotes]) -> Iterator[Quotes]:
        for quotes in chunks:
            if self.now.seal().held:
                store.refuse_present(list(self.now.homes(quotes.ids.tolist())), given=len(quotes))
            yield quotes

    def strike(self, ids: ArrayLike, *, entry: int) -> None:
        homes = self.now.shards_of(ids)
        store.refuse_struck(self._marked(list(homes)), asked=len(homes))
        self._each("INSERT INTO marks VALUES (?, ?)", [(key(name), entry) for name in sorted(homes)])
        self._tally.add(MARKS, (mark_sum(key(name), chunk, entry) for name, chunk in homes.items()))
        self._tally.count(marked=len(homes))

    def unstrike(self, ids: ArrayLike) -> None:
        asked = store.distinct(ids)
        marked = set(self._marked(asked))
        store.refuse_retained([name for name in asked if name not in marked], asked=len(asked))
        self._unmark(asked)

    def erase(self, ids: ArrayLike) -> None:
        homes = self.now.shards_of(ids)
        for what in SHARD_DATA:
            self.remove_shard_data(what, sorted(set(homes.values())))
        self._unmark(self._marked(list(homes)))
        self._each("DELETE FROM names WHERE id = ?", [(key(name),) for name in homes])
        for number, names in by_chunk(homes):
            chunk = self.now.chunk(number)
            self._tally.remove(
                QUOTES, (old for (old,) in self.now.rows("SELECT sum FROM chunks WHERE number = ?", (number,)))
            )
            left = chunk.only(np.array([name not in names for name in chunk.ids], bool))
            if len(left):
                self._keep_chunk(number, left)
            else:
                self._each("DELETE FROM chunks WHERE number = ?", [(number,)])
        self._tally.count(held=-len(homes))
        # A number that no earlier erasure had: finishing that one does not mark this one as finished.
        self._each("UPDATE seal SET scrub = (SELECT ifnull(max(number) + 1, 0) + 1 FROM entries)", [()])
        self.erased = True

    def put_shard_data(self, shard: int, what: ShardData, data: bytes) -> None:
        check_shard_data(what)
        heads = self.now.rows("SELECT substr(data, 1, ?) FROM chunks WHERE number = ?", (HEAD, shard))
        head = next((head for (head,) in heads), None)
        if head is None:
            raise UsageError(f"There is no shard {shard} in the book.", shard=shard)
        if self._keys is not None:
            # Under the key of the quotes themselves: if that key is destroyed, these data become unreadable too.
            data = self._keys.sealed(data, place=f"{what} {shard}", under=key_name(head))
        self._untally_shard_data(what, shard)
        row = checksum(what, shard, data)
        change = f"INSERT OR REPLACE INTO {what} VALUES (?, ?, ?, ?)"
        self._each(change, [(shard, row, self._sealer.tag(row), bytes(data))])
        self._tally.add(what, [row])

    def remove_shard_data(self, what: ShardData, shards: Iterable[int]) -> None:
        check_shard_data(what)
        for shard in shards:
            self._untally_shard_data(what, shard)
            self._each(f"DELETE FROM {what} WHERE shard = ?", [(shard,)])

    def put(self, kind: PageKind, name: str, data: bytes) -> None:
        check_page_kind(kind, name)
        if self._keys is not None and kind in LOCKED:
            data = self._keys.sealed(data, place=f"page {kind} {name}")
        self._untally_page(kind, name)
        row = checksum(kind, name, data)
        change = "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)"
        self._each(change, [(kind, name, row, self._sealer.tag(row), bytes(data))])
        self._tally.add(kind, [row])

    def remove(self, kind: PageKind, name: str) -> None:
        check_page_kind(kind)
        self._untally_page(kind, name)
        self._each("DELETE FROM pages WHERE kind = ? AND name = ?", [(kind, name)])

    def append(self, data: bytes) -> int:
        if not data:
            raise UsageError("An entry of the ledger has at least one byte; none were given.")
        ((number,),) = self.now.rows("SELECT coalesce(max(number) + 1, 0) FROM entries")
        row = checksum("entry", number, data)
        self._each("INSERT INTO entries VALUES (?, ?, ?)", [(number, row, bytes(data))])
        self._tally.add("entries", [row])
        return int(number)

    def _marked(self, names: Sequence[str]) -> list[str]:
        marks = (next(self.now.rows("SELECT 1 FROM marks WHERE id = ?", (key(name),)), None) for name in names)
        return [name for name, mark in zip(names, marks, strict=True) if mark is not None]

    def _unmark(self, names: Sequence[str]) -> None:
        question = "SELECT chunk, entry FROM marks JOIN names USING (id) WHERE id = ?"
        homes = {name: next(self.now.rows(question, (key(name),))) for name in names}
        self._tally.remove(MARKS, (mark_sum(key(name), *home) for name, home in homes.items()))
        self._tally.count(marked=-len(names))
        self._each("DELETE FROM marks WHERE id = ?", [(key(name),) for name in names])

    def _keep_chunk(self, number: int, chunk: Chunk) -> None:
        data = encoded(chunk)
        data = data if self._keys is None else self._keys.sealed(data, place=f"chunk {number}")
        row = chunk_sum(number, len(chunk), data)
        change = "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?)"
        self._each(change, [(number, len(chunk), row, self._sealer.tag(row), data)])
        self._tally.add(QUOTES, [row])

    def _untally_page(self, kind: PageKind, name: str) -> None:
        question = "SELECT sum FROM pages WHERE kind = ? AND name = ?"
        self._tally.remove(kind, [old for (old,) in self.now.rows(question, (kind, name))])

    def _untally_shard_data(self, what: ShardData, shard: int) -> None:
        self._tally.remove(what, [old for (old,) in self.now.rows(f"SELECT sum FROM {what} WHERE shard = ?", (shard,))])

    def _each(self, change: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(change, rows)


class SortedNames:
    """Names and the chunk each is in, sorted: in memory, or on disk if there are many.

    Args:
        folder: for the spilled names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Two plain lists: a tuple per name would cost as much as sorting them.
        self._names: list[bytes] = []
        self._chunks: list[int] = []
        self._spill: Spill | None = None
        self._sort: ExternalSort | None = None

    def add(self, names: Sequence[str], chunk: int) -> None:
        """Add the names of a chunk."""
        self._names += map(key, names)
        self._chunks += [chunk] * len(names)
        if len(self._names) > IN_MEMORY:
            from strikeout.quotes.spill import ExternalSort, Spill

            if self._sort is None:
                self._spill = Spill(self._folder)
                self._sort = ExternalSort(self._spill)
            self._to_disk(self._sort)

    def runs(self) -> Iterator[tuple[Sequence[bytes], Sequence[int]]]:
        """Yield all names with their chunks: each run in order, and every run above the one before."""
        if self._sort is None:
            both = sorted(zip(self._names, self._chunks, strict=True))
            names, chunks = zip(*both, strict=True) if both else ((), ())
            yield names, chunks
            return
        self._to_disk(self._sort)
        yield from self._sort.runs()

    def _to_disk(self, sort: ExternalSort) -> None:
        if self._names:
            sort.add(self._names, self._chunks)
            self._names, self._chunks = [], []

    def __enter__(self) -> SortedNames:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spill is not None:
            self._spill.close()
