"""A store in memory, for experiments and tests. It has the same interface and ends with the process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import BusyError, UsageError
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes
from strikeout.store import store
from strikeout.store.checksums import MARKS, QUOTES, UNKEYED, Sealer, Tally, checksum, chunk_sum, mark_sum
from strikeout.store.chunks import CHUNK, Chunk, chunk_of, encoded, quotes_of, refuse_other_kind, retained_of
from strikeout.store.store import (
    Counts,
    OnAdded,
    PageKind,
    Reading,
    ShardData,
    Writing,
    check_page_kind,
    check_shard_data,
)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A state of a book. A change makes a new snapshot and leaves the old one as it was."""

    sealer: Sealer
    chunks: dict[int, Chunk] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    marks: dict[str, int] = field(default_factory=dict)
    data_by_shard: dict[tuple[str, int], bytes] = field(default_factory=dict)
    stored_pages: dict[tuple[str, str], bytes] = field(default_factory=dict)
    ledger: tuple[bytes, ...] = ()

    def quotes(self, *, struck: bool | None = False) -> Quotes:
        if struck is None:
            return quotes_of(list(self.chunks.values()))
        if struck:
            return quotes_of(list(self.chosen(self.marks.keys()).values()))
        return retained_of(list(self.chosen(self.held - self.marks.keys()).values()))

    def quote_chunks(self) -> Iterator[Quotes]:
        for chunk in self.chosen(self.held - self.marks.keys()).values():
            if len(chunk):
                yield quotes_of([chunk])

    def named(self, ids: ArrayLike) -> Quotes:
        return quotes_of(list(self.chosen(set(self.asked(ids))).values()))

    def known(self, ids: ArrayLike) -> NDArray[np.bool_]:
        return np.array([name in self.held for name in as_names(ids).tolist()], bool)

    def struck(self) -> dict[str, int]:
        return dict(sorted(self.marks.items()))

    def counts(self) -> Counts:
        return Counts(retained=len(self.held) - len(self.marks), struck=len(self.marks))

    def shards(self) -> dict[int, int]:
        return {number: len(chunk) for number, chunk in self.chunks.items()}

    def shards_of(self, ids: ArrayLike) -> dict[str, int]:
        asked = set(self.asked(ids))
        return {name: number for number, chunk in self.chunks.items() for name in chunk.ids if name in asked}

    def members(self, shard: int) -> tuple[str, ...]:
        return tuple(self.chunks[shard].ids)

    def shard_data(self, shard: int, what: ShardData) -> bytes | None:
        check_shard_data(what)
        return self.data_by_shard.get((what, shard))

    def shards_with(self, what: ShardData) -> tuple[int, ...]:
        check_shard_data(what)
        return tuple(sorted(shard for kind, shard in self.data_by_shard if kind == what))

    def page(self, kind: PageKind, name: str) -> bytes | None:
        check_page_kind(kind)
        return self.stored_pages.get((kind, name))

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        check_page_kind(kind)
        return tuple(sorted(name for where, name in self.stored_pages if where == kind))

    def entries(self) -> tuple[bytes, ...]:
        return self.ledger

    def contents(self) -> str:
        """Return the keyed digest of everything except the ledger."""
        tally = Tally(sealer=self.sealer)
        chunks = self.chunks.items()
        tally.add(QUOTES, (chunk_sum(number, len(chunk), _digest(chunk)) for number, chunk in chunks))
        tally.add(MARKS, (mark_sum(name.encode("utf-8", "surrogatepass"), 0, at) for name, at in self.marks.items()))
        for (what, shard), data in self.data_by_shard.items():
            tally.add(what, [checksum(what, shard, data)])
        for (kind, name), data in self.stored_pages.items():
            tally.add(kind, [checksum(kind, name, data)])
        return self.sealer.total(tally.sums or {})

    def asked(self, ids: ArrayLike) -> list[str]:
        """Return these ids if all of them are in the book.

        Raises:
            UnknownIdError: an id is not in the book, or is given twice.
        """
        asked = store.distinct(ids)
        store.refuse_unknown([name for name in asked if name not in self.held], asked=len(asked))
        return asked

    def chosen(self, names: Set[str]) -> dict[int, Chunk]:
        """Return the quotes with these ids, chunk by chunk."""
        kept = {number: np.array([name in names for name in chunk.ids], bool) for number, chunk in self.chunks.items()}
        return {number: self.chunks[number].only(mask) for number, mask in kept.items()}


_digests: WeakKeyDictionary[Chunk, bytes] = WeakKeyDictionary()


def _digest(chunk: Chunk) -> bytes:
    """Return the digest of a chunk, computed once, since a chunk does not change."""
    if chunk not in _digests:
        _digests[chunk] = blake2b(encoded(chunk)).digest()
    return _digests[chunk]


class Transaction:
    """The next snapshot of a book while it is being made; ``Writing`` documents each method."""

    def __init__(self, begun: Snapshot) -> None:
        self.snapshot = begun

    @property
    def now(self) -> Reading:
        return self.snapshot

    def add(self, quotes: Quotes) -> None:
        now = self.snapshot
        refuse_other_kind(next((chunk.kind for chunk in now.chunks.values()), None), quotes)
        store.refuse_present(quotes.ids[now.known(quotes.ids)].tolist(), given=len(quotes))
        if len(quotes):
            held = now.held | set(quotes.ids.tolist())
            chunks = (chunk_of(quotes[begin : begin + CHUNK]) for begin in range(0, len(quotes), CHUNK))
            new = dict(enumerate(chunks, start=max(now.chunks, default=-1) + 1))
            self.snapshot = replace(now, chunks=now.chunks | new, held=held)

    def add_all(self, chunks: Iterable[Quotes], *, on_added: OnAdded | None = None) -> int:
        before = self.snapshot.held
        for quotes in chunks:
            self.add(quotes)
        new = sorted(name.encode("utf-8", "surrogatepass") for name in self.snapshot.held - before)
        if on_added is not None and new:
            on_added(new)
        return len(new)

    def strike(self, ids: ArrayLike, *, entry: int) -> None:
        now = self.snapshot
        asked = now.asked(ids)
        store.refuse_struck([name for name in asked if name in now.marks], asked=len(asked))
        self.snapshot = replace(now, marks={**now.marks, **dict.fromkeys(asked, entry)})

    def unstrike(self, ids: ArrayLike) -> None:
        now = self.snapshot
        asked = store.distinct(ids)
        store.refuse_retained([name for name in asked if name not in now.marks], asked=len(asked))
        self.snapshot = replace(now, marks={name: entry for name, entry in now.marks.items() if name not in set(asked)})

    def erase(self, ids: ArrayLike) -> None:
        now = self.snapshot
        gone, touched = set(now.asked(ids)), set(now.shards_of(ids).values())
        self.snapshot = replace(
            now,
            chunks={number: chunk for number, chunk in now.chosen(now.held - gone).items() if len(chunk)},
            data_by_shard={key: data for key, data in now.data_by_shard.items() if key[1] not in touched},
            held=now.held - gone,
            marks={name: entry for name, entry in now.marks.items() if name not in gone},
        )

    def put_shard_data(self, shard: int, what: ShardData, data: bytes) -> None:
        check_shard_data(what)
        if shard not in self.snapshot.chunks:
            raise UsageError(f"There is no shard {shard} in the book.", shard=shard)
        self.snapshot = replace(
            self.snapshot, data_by_shard={**self.snapshot.data_by_shard, (what, shard): bytes(data)}
        )

    def remove_shard_data(self, what: ShardData, shards: Iterable[int]) -> None:
        check_shard_data(what)
        gone = {(what, shard) for shard in shards}
        left = {key: data for key, data in self.snapshot.data_by_shard.items() if key not in gone}
        self.snapshot = replace(self.snapshot, data_by_shard=left)

    def put(self, kind: PageKind, name: str, data: bytes) -> None:
        check_page_kind(kind, name)
        self.snapshot = replace(self.snapshot, stored_pages={**self.snapshot.stored_pages, (kind, name): bytes(data)})

    def remove(self, kind: PageKind, name: str) -> None:
        check_page_kind(kind)
        left = {key: data for key, data in self.snapshot.stored_pages.items() if key != (kind, name)}
        self.snapshot = replace(self.snapshot, stored_pages=left)

    def append(self, data: bytes) -> int:
        if not data:
            raise UsageError("An entry of the ledger has at least one byte; none were given.")
        self.snapshot = replace(self.snapshot, ledger=(*self.snapshot.ledger, bytes(data)))
        return len(self.snapshot.ledger) - 1


class MemoryStore:
    """A ``Store`` in memory.

    >>> from strikeout import paper
    >>> store = MemoryStore()
    >>> with store.writing() as transaction:
    ...     transaction.add(paper.quotes("small"))
    >>> store.now.counts()
    Counts(retained=540, struck=0)
    """

    def __init__(self, *, key: bytes = UNKEYED) -> None:
        self._snapshot = Snapshot(Sealer(key))
        self._busy = False

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        yield self._snapshot

    @contextmanager
    def settled(self) -> Iterator[Reading]:
        with self.reading() as book:
            yield book

    @contextmanager
    def scrubbed(self) -> Iterator[Reading]:
        with self.reading() as book:
            yield book

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        if self._busy:
            raise BusyError("The book is being written already. End that transaction first; nothing was changed.")
        self._busy = True
        try:
            transaction = Transaction(self._snapshot)
            yield transaction
            self._snapshot = transaction.snapshot
        finally:
            self._busy = False

    @property
    def now(self) -> Reading:
        return self._snapshot

    def faults(self) -> list[str]:
        return []

    def files(self) -> tuple[Path, ...]:
        return ()

    def close(self) -> None:
        pass
