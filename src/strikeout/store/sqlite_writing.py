"""Changing a book in its file, inside one transaction. What a change costs is what it touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError
from strikeout.quotes.quotes import Quotes
from strikeout.store import asking
from strikeout.store.bookfile import Connection
from strikeout.store.chunks import CHUNK, chunk_of, chunks_of, encoded, in_chunks, refuse_other_kind
from strikeout.store.sealing import Seal, checksum, chunk_sum, mark_sum
from strikeout.store.shard_keys import HEAD, LOCKED, ShardKeys, key_name
from strikeout.store.sqlite_reading import SqliteReading, by_chunk, key
from strikeout.store.store import LEAVINGS, Leaving, Shelf, Told, is_left, on_shelf


class SqliteWriting(SqliteReading):
    """What can be changed in a book in a file; see ``Writing`` for what each verb promises."""

    def __init__(self, connection: Connection, keys: ShardKeys | None = None) -> None:
        super().__init__(connection, keys)
        self.erased = False

    def add(self, quotes: Quotes) -> None:
        first = next(self.rows("SELECT min(number), max(number) FROM chunks"))
        refuse_other_kind(None if first[0] is None else self.chunk(first[0]).kind, quotes)
        asking.refuse_present(list(self.homes(quotes.ids.tolist())), given=len(quotes))
        seal, number = self.seal(), 0 if first[1] is None else first[1] + 1
        names: list[tuple[bytes, int]] = []
        for chunk in chunks_of(quotes):
            names += [(key(name), number) for name in chunk.ids]
            seal = self._keep_chunk(number, len(chunk), encoded(chunk), seal)
            number += 1
        # In order: a million names that come sorted fill the tree from left to right.
        self._each("INSERT INTO names VALUES (?, ?)", sorted(names))
        self._seal(seal.counting(held=len(quotes)))

    def add_all(self, pieces: Iterable[Quotes], *, told: Told | None = None) -> int:
        from strikeout.quotes.name_runs import NameRuns
        from strikeout.quotes.scratch import Scratch

        first = next(self.rows("SELECT min(number), max(number) FROM chunks"))
        kind = None if first[0] is None else self.chunk(first[0]).kind
        seal, number, count = self.seal(), 0 if first[1] is None else first[1] + 1, 0
        with Scratch(self._path.parent) as scratch:
            runs = NameRuns(scratch)
            for some in in_chunks(self._unknown(pieces), CHUNK):
                refuse_other_kind(kind, some[0])
                names: list[bytes] = []
                homes: list[int] = []
                for quotes in some:
                    chunk = chunk_of(quotes)
                    kind, count = kind or chunk.kind, count + len(chunk)
                    names += map(key, chunk.ids)
                    homes += [number] * len(chunk)
                    seal = self._keep_chunk(number, len(chunk), encoded(chunk), seal)
                    number += 1
                runs.add(names, homes)
            # In order, as in `add`: names that come as the file has them would have the tree written many times over.
            for names, homes in runs.runs():
                asking.refuse_present([a.decode() for a, b in pairwise(names) if a == b], given=count)
                self._each("INSERT INTO names VALUES (?, ?)", zip(names, homes, strict=True))
                if told is not None:
                    told(names)
        self._seal(seal.counting(held=count))
        return count

    def _unknown(self, pieces: Iterable[Quotes]) -> Iterator[Quotes]:
        for quotes in pieces:
            if self.seal().held:
                asking.refuse_present(list(self.homes(quotes.ids.tolist())), given=len(quotes))
            yield quotes

    def strike(self, ids: ArrayLike, *, entry: int) -> None:
        homes = self.shards_of(ids)
        asking.refuse_struck(self._marked(list(homes)), asked=len(homes))
        seal = self.seal()
        for name, chunk in homes.items():
            seal = seal.with_row(mark_sum(key(name), chunk, entry))
        self._each("INSERT INTO marks VALUES (?, ?)", [(key(name), entry) for name in sorted(homes)])
        self._seal(seal.counting(marked=len(homes)))

    def unstrike(self, ids: ArrayLike) -> None:
        asked = asking.distinct(ids)
        marked = set(self._marked(asked))
        asking.refuse_retained([name for name in asked if name not in marked], asked=len(asked))
        self._unmark(asked)

    def erase(self, ids: ArrayLike) -> None:
        homes = self.shards_of(ids)
        for what in LEAVINGS:
            self.unleave(what, sorted(set(homes.values())))
        self._unmark(self._marked(list(homes)))
        self._each("DELETE FROM names WHERE id = ?", [(key(name),) for name in homes])
        seal = self.seal()
        for number, names in by_chunk(homes):
            chunk = self.chunk(number)
            (old,) = next(self.rows("SELECT sum FROM chunks WHERE number = ?", (number,)))
            left = chunk.only(np.array([name not in names for name in chunk.ids], bool))
            seal = seal.without_row(old)
            if len(left):
                seal = self._keep_chunk(number, len(left), encoded(left), seal)
            else:
                self._each("DELETE FROM chunks WHERE number = ?", [(number,)])
        self._seal(seal.counting(held=-len(homes)))
        self._each("UPDATE seal SET scrub = 1", [()])
        self.erased = True

    def leave(self, shard: int, what: Leaving, data: bytes) -> None:
        is_left(what)
        heads = self.rows("SELECT substr(data, 1, ?) FROM chunks WHERE number = ?", (HEAD, shard))
        head = next((head for (head,) in heads), None)
        if head is None:
            raise UsageError(f"There is no shard {shard} in the book.", shard=shard)
        if self._keys is not None:
            # Under the key of the quotes themselves: whatever destroys that makes all of this unreadable too.
            data = self._keys.sealed(data, place=f"{what} {shard}", under=key_name(head))
        row = checksum(what, shard, data)
        seal = self._without_left(what, shard).with_row(row)
        self._each(f"INSERT OR REPLACE INTO {what} VALUES (?, ?, ?)", [(shard, bytes(data), row)])
        self._seal(seal)

    def unleave(self, what: Leaving, shards: Iterable[int]) -> None:
        is_left(what)
        for shard in shards:
            seal = self._without_left(what, shard)
            self._each(f"DELETE FROM {what} WHERE shard = ?", [(shard,)])
            self._seal(seal)

    def put(self, shelf: Shelf, name: str, data: bytes) -> None:
        on_shelf(shelf, name)
        if self._keys is not None and shelf in LOCKED:
            data = self._keys.sealed(data, place=f"page {shelf} {name}")
        row = checksum(shelf, name, data)
        seal = self._without_page(shelf, name).with_row(row)
        self._each("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?)", [(shelf, name, bytes(data), row)])
        self._seal(seal)

    def remove(self, shelf: Shelf, name: str) -> None:
        on_shelf(shelf)
        seal = self._without_page(shelf, name)
        self._each("DELETE FROM pages WHERE shelf = ? AND name = ?", [(shelf, name)])
        self._seal(seal)

    def append(self, data: bytes) -> int:
        if not data:
            raise UsageError("An entry of the ledger has at least one byte; none were given.")
        ((number,),) = self.rows("SELECT coalesce(max(number) + 1, 0) FROM entries")
        row = checksum("entry", number, data)
        self._each("INSERT INTO entries VALUES (?, ?, ?)", [(number, bytes(data), row)])
        self._seal(self.seal().with_row(row))
        return int(number)

    def _marked(self, names: Sequence[str]) -> list[str]:
        marks = (next(self.rows("SELECT 1 FROM marks WHERE id = ?", (key(name),)), None) for name in names)
        return [name for name, mark in zip(names, marks, strict=True) if mark is not None]

    def _unmark(self, names: Sequence[str]) -> None:
        seal = self.seal()
        for name in names:
            question = "SELECT chunk, entry FROM marks JOIN names USING (id) WHERE id = ?"
            ((chunk, entry),) = self.rows(question, (key(name),))
            seal = seal.without_row(mark_sum(key(name), chunk, entry))
        self._each("DELETE FROM marks WHERE id = ?", [(key(name),) for name in names])
        self._seal(seal.counting(marked=-len(names)))

    def _keep_chunk(self, number: int, count: int, data: bytes, seal: Seal) -> Seal:
        data = data if self._keys is None else self._keys.sealed(data, place=f"chunk {number}")
        row = chunk_sum(number, count, data)
        self._each("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?)", [(number, count, data, row)])
        return seal.with_row(row)

    def _without_page(self, shelf: str, name: str) -> Seal:
        seal = self.seal()
        for (old,) in self.rows("SELECT sum FROM pages WHERE shelf = ? AND name = ?", (shelf, name)):
            seal = seal.without_row(old)
        return seal

    def _without_left(self, what: Leaving, shard: int) -> Seal:
        seal = self.seal()
        for (old,) in self.rows(f"SELECT sum FROM {what} WHERE shard = ?", (shard,)):
            seal = seal.without_row(old)
        return seal

    def _seal(self, seal: Seal) -> None:
        change = "UPDATE seal SET total = ?, rows = ?, held = ?, marked = ?"
        self._each(change, [(seal.total, seal.rows, seal.held, seal.marked)])

    def _each(self, change: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(change, rows)
