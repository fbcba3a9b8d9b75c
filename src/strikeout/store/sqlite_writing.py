"""Change a book in its file within one transaction. The cost depends on the rows changed, not on the book."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError
from strikeout.quotes.quotes import Quotes
from strikeout.store import id_lookup
from strikeout.store.bookfile import Connection
from strikeout.store.checksums import MARKS, QUOTES, Seal, Sealer, Tally, checksum, chunk_sum, mark_sum
from strikeout.store.chunks import CHUNK, Chunk, chunk_of, chunks_of, encoded, in_chunks, refuse_other_kind
from strikeout.store.shard_keys import HEAD, LOCKED, ShardKeys, key_name
from strikeout.store.sqlite_reading import SqliteReading, by_chunk, key
from strikeout.store.store import LEAVINGS, Leaving, Shelf, Told, is_left, on_shelf


class SqliteWriting(SqliteReading):
    """The write methods of a book in a file; ``Writing`` documents each of them."""

    def __init__(self, connection: Connection, sealer: Sealer, keys: ShardKeys | None = None) -> None:
        super().__init__(connection, sealer, keys)
        self._write = sealer
        self._tally = Tally(super().seal(), sealer=sealer, sums=super().sums())
        self.erased = False

    def seal(self) -> Seal:
        return self._tally.seal

    def sums(self) -> dict[str, int] | None:
        return self._tally.sums

    def settle(self) -> None:
        """Write the seal, once at the end of a transaction."""
        seal, sums = self._tally.seal, self._write.masked(self._tally.sums or {})
        change = "UPDATE seal SET total = ?, rows = ?, held = ?, marked = ?, sums = ?"
        self._each(change, [(seal.total, seal.rows, seal.held, seal.marked, sums)])

    def add(self, quotes: Quotes) -> None:
        first = next(self.rows("SELECT min(number), max(number) FROM chunks"))
        refuse_other_kind(None if first[0] is None else self.chunk(first[0]).kind, quotes)
        id_lookup.refuse_present(list(self.homes(quotes.ids.tolist())), given=len(quotes))
        number = 0 if first[1] is None else first[1] + 1
        names: list[tuple[bytes, int]] = []
        for chunk in chunks_of(quotes):
            names += [(key(name), number) for name in chunk.ids]
            self._keep_chunk(number, chunk)
            number += 1
        # Sorted names fill the B-tree from left to right.
        self._each("INSERT INTO names VALUES (?, ?)", sorted(names))
        self._tally.count(held=len(quotes))

    def add_all(self, pieces: Iterable[Quotes], *, told: Told | None = None) -> int:
        from strikeout.quotes.spill import ExternalSort, Spill

        first = next(self.rows("SELECT min(number), max(number) FROM chunks"))
        kind = None if first[0] is None else self.chunk(first[0]).kind
        number, count = 0 if first[1] is None else first[1] + 1, 0
        with Spill(self._path.parent) as scratch:
            runs = ExternalSort(scratch)
            for some in in_chunks(self._unknown(pieces), CHUNK):
                refuse_other_kind(kind, some[0])
                names: list[bytes] = []
                homes: list[int] = []
                for quotes in some:
                    chunk = chunk_of(quotes)
                    kind, count = kind or chunk.kind, count + len(chunk)
                    names += map(key, chunk.ids)
                    homes += [number] * len(chunk)
                    self._keep_chunk(number, chunk)
                    number += 1
                runs.add(names, homes)
            # Sorted, as in `add`: names in the order of the file would rewrite pages of the B-tree many times.
            for names, homes in runs.runs():
                id_lookup.refuse_present([a.decode() for a, b in pairwise(names) if a == b], given=count)
                self._each("INSERT INTO names VALUES (?, ?)", zip(names, homes, strict=True))
                if told is not None:
                    told(names)
        self._tally.count(held=count)
        return count

    def _unknown(self, pieces: Iterable[Quotes]) -> Iterator[Quotes]:
        for quotes in pieces:
            if self.seal().held:
                id_lookup.refuse_present(list(self.homes(quotes.ids.tolist())), given=len(quotes))
            yield quotes

    def strike(self, ids: ArrayLike, *, entry: int) -> None:
        homes = self.shards_of(ids)
        id_lookup.refuse_struck(self._marked(list(homes)), asked=len(homes))
        self._each("INSERT INTO marks VALUES (?, ?)", [(key(name), entry) for name in sorted(homes)])
        self._tally.come(MARKS, (mark_sum(key(name), chunk, entry) for name, chunk in homes.items()))
        self._tally.count(marked=len(homes))

    def unstrike(self, ids: ArrayLike) -> None:
        asked = id_lookup.distinct(ids)
        marked = set(self._marked(asked))
        id_lookup.refuse_retained([name for name in asked if name not in marked], asked=len(asked))
        self._unmark(asked)

    def erase(self, ids: ArrayLike) -> None:
        homes = self.shards_of(ids)
        for what in LEAVINGS:
            self.unleave(what, sorted(set(homes.values())))
        self._unmark(self._marked(list(homes)))
        self._each("DELETE FROM names WHERE id = ?", [(key(name),) for name in homes])
        for number, names in by_chunk(homes):
            chunk = self.chunk(number)
            self._tally.go(QUOTES, (old for (old,) in self.rows("SELECT sum FROM chunks WHERE number = ?", (number,))))
            left = chunk.only(np.array([name not in names for name in chunk.ids], bool))
            if len(left):
                self._keep_chunk(number, left)
            else:
                self._each("DELETE FROM chunks WHERE number = ?", [(number,)])
        self._tally.count(held=-len(homes))
        self._each("UPDATE seal SET scrub = 1", [()])
        self.erased = True

    def leave(self, shard: int, what: Leaving, data: bytes) -> None:
        is_left(what)
        heads = self.rows("SELECT substr(data, 1, ?) FROM chunks WHERE number = ?", (HEAD, shard))
        head = next((head for (head,) in heads), None)
        if head is None:
            raise UsageError(f"There is no shard {shard} in the book.", shard=shard)
        if self._keys is not None:
            # Under the key of the quotes themselves: if that key is destroyed, these data become unreadable too.
            data = self._keys.sealed(data, place=f"{what} {shard}", under=key_name(head))
        self._unleave(what, shard)
        row = checksum(what, shard, data)
        change = f"INSERT OR REPLACE INTO {what} VALUES (?, ?, ?, ?)"
        self._each(change, [(shard, row, self._write.tag(row), bytes(data))])
        self._tally.come(what, [row])

    def unleave(self, what: Leaving, shards: Iterable[int]) -> None:
        is_left(what)
        for shard in shards:
            self._unleave(what, shard)
            self._each(f"DELETE FROM {what} WHERE shard = ?", [(shard,)])

    def put(self, shelf: Shelf, name: str, data: bytes) -> None:
        on_shelf(shelf, name)
        if self._keys is not None and shelf in LOCKED:
            data = self._keys.sealed(data, place=f"page {shelf} {name}")
        self._unshelve(shelf, name)
        row = checksum(shelf, name, data)
        change = "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)"
        self._each(change, [(shelf, name, row, self._write.tag(row), bytes(data))])
        self._tally.come(shelf, [row])

    def remove(self, shelf: Shelf, name: str) -> None:
        on_shelf(shelf)
        self._unshelve(shelf, name)
        self._each("DELETE FROM pages WHERE shelf = ? AND name = ?", [(shelf, name)])

    def append(self, data: bytes) -> int:
        if not data:
            raise UsageError("An entry of the ledger has at least one byte; none were given.")
        ((number,),) = self.rows("SELECT coalesce(max(number) + 1, 0) FROM entries")
        row = checksum("entry", number, data)
        self._each("INSERT INTO entries VALUES (?, ?, ?)", [(number, row, bytes(data))])
        self._tally.come("entries", [row])
        return int(number)

    def _marked(self, names: Sequence[str]) -> list[str]:
        marks = (next(self.rows("SELECT 1 FROM marks WHERE id = ?", (key(name),)), None) for name in names)
        return [name for name, mark in zip(names, marks, strict=True) if mark is not None]

    def _unmark(self, names: Sequence[str]) -> None:
        question = "SELECT chunk, entry FROM marks JOIN names USING (id) WHERE id = ?"
        homes = {name: next(self.rows(question, (key(name),))) for name in names}
        self._tally.go(MARKS, (mark_sum(key(name), *home) for name, home in homes.items()))
        self._tally.count(marked=-len(names))
        self._each("DELETE FROM marks WHERE id = ?", [(key(name),) for name in names])

    def _keep_chunk(self, number: int, chunk: Chunk) -> None:
        data = encoded(chunk)
        data = data if self._keys is None else self._keys.sealed(data, place=f"chunk {number}")
        row = chunk_sum(number, len(chunk), data)
        change = "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?)"
        self._each(change, [(number, len(chunk), row, self._write.tag(row), data)])
        self._tally.come(QUOTES, [row])

    def _unshelve(self, shelf: Shelf, name: str) -> None:
        question = "SELECT sum FROM pages WHERE shelf = ? AND name = ?"
        self._tally.go(shelf, [old for (old,) in self.rows(question, (shelf, name))])

    def _unleave(self, what: Leaving, shard: int) -> None:
        self._tally.go(what, [old for (old,) in self.rows(f"SELECT sum FROM {what} WHERE shard = ?", (shard,))])

    def _each(self, change: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(change, rows)
