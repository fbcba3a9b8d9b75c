"""The interface of a store: read, add, strike out and erase the contents of a book, in a file or in memory.

    store.reading()      one snapshot of the book, for several reads that belong together
    store.writing()      one transaction, committed completely or not at all; one writer at a time
    store.now.quotes()   single reads, each of the current snapshot

A store holds five kinds of things: quotes, in the order they were added; which of them are struck out, and by which
entry of the ledger; footprints and states per shard, which are removed when one of its quotes is erased; pages, which
are bytes with a kind and a name; and the entries of the ledger, which are only ever appended.

A shard is a number of quotes that were added one after the other. They are read together and encrypted under one key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol, get_args

from numpy.typing import ArrayLike

from strikeout.errors import UnknownIdError, UsageError
from strikeout.kernels.arrays import Mask
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes
from strikeout.text import Advice, Mention, agreeing, many, part

PageKind = Literal["calibration", "certificate", "erased", "plan", "request", "setting", "state"]
OnAdded = Callable[[Sequence[bytes]], None]
PAGE_KINDS: tuple[PageKind, ...] = get_args(PageKind)
ShardData = Literal["footprints", "states"]  # what is stored per shard, computed from its quotes
SHARD_DATA: tuple[ShardData, ...] = get_args(ShardData)
ENCRYPTION = "encryption"  # the setting of an encrypted book: the name of the book in its key file


@dataclass(frozen=True)
class Counts:
    """The numbers of retained and of struck-out quotes."""

    retained: int
    struck: int


class Reading(Protocol):
    """The read methods of a book.

    Bytes that are not those that were written raise DamagedBookError; an id that the book does not hold, or one given
    twice, UnknownIdError; an unknown page kind or shard data, UsageError.
    """

    def quotes(self, *, struck: bool | None = False) -> Quotes:
        """Return the retained quotes in the order they were added; with ``struck=True`` the others, with ``None`` all.

        Derived forwards are never stored: those of the retained quotes are refitted from these alone, the other quotes
        have placeholders (see ``quotes.forwards``).
        """
        ...

    def quote_chunks(self) -> Iterator[Quotes]:
        """Return the retained quotes in order, some at a time, with placeholders for derived forwards."""
        ...

    def named(self, ids: ArrayLike) -> Quotes:
        """Return the quotes with these ids, struck out or not, in the order they were added.

        Other quotes are not read, so derived forwards are placeholders.
        """
        ...

    def known(self, ids: ArrayLike) -> Mask:
        """Return for each id whether the book holds a quote with it, struck out or not."""
        ...

    def struck(self) -> dict[str, int]:
        """Return the ids that are struck out, sorted, each with the number of the entry that struck it out."""
        ...

    def counts(self) -> Counts:
        """Return how many quotes are retained, and how many are struck out."""
        ...

    def shards(self) -> dict[int, int]:
        """Return the numbers of the shards in order, each with its number of quotes, struck out or not."""
        ...

    def shards_of(self, ids: ArrayLike) -> dict[str, int]:
        """Return for each of these ids the number of its shard. Does not read the quotes."""
        ...

    def members(self, shard: int) -> tuple[str, ...]:
        """Return the ids of a shard in the order they were added, struck out or not."""
        ...

    def shard_data(self, shard: int, what: ShardData) -> bytes | None:
        """Return the footprints or states that are stored for a shard; None if there are none."""
        ...

    def shards_with(self, what: ShardData) -> tuple[int, ...]:
        """Return the shards that have stored footprints or states, in order."""
        ...

    def page(self, kind: PageKind, name: str) -> bytes | None:
        """Return the page of this kind and name; None if there is none."""
        ...

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        """Return the names of the pages of a kind, sorted."""
        ...

    def entries(self) -> tuple[bytes, ...]:
        """Return the entries of the ledger, in the order they were appended."""
        ...

    def contents(self) -> str:
        """Return the keyed digest of everything except the ledger, 64 hexadecimal digits.

        It is computed from the sums that are stored with each transaction; ``faults`` recomputes them.
        """
        ...


class Writing(Protocol):
    """The write methods of a transaction."""

    @property
    def now(self) -> Reading:
        """The book with what the transaction has changed so far."""
        ...

    def add(self, quotes: Quotes) -> None:
        """Append these quotes."""
        ...

    def add_all(self, chunks: Iterable[Quotes], *, on_added: OnAdded | None = None) -> int:
        """Append the quotes of all chunks, with one chunk in memory at a time, and return how many were added.

        Args:
            ``on_added``: called with the ids that were added, in ascending order, some at a time.
        """
        ...

    def strike(self, ids: ArrayLike, *, entry: int) -> None:
        """Mark the quotes with these ids as struck out by this entry of the ledger."""
        ...

    def unstrike(self, ids: ArrayLike) -> None:
        """Mark the quotes with these ids as retained again."""
        ...

    def erase(self, ids: ArrayLike) -> None:
        """Erase the quotes with these ids, struck out or not, and the footprints and states of their shards.

        After the transaction the store's files contain none of their bytes. The caller must remove pages that depend on
        them.
        """
        ...

    def put_shard_data(self, shard: int, what: ShardData, data: bytes) -> None:
        """Store the footprints or states of a shard, and replace earlier ones."""
        ...

    def remove_shard_data(self, what: ShardData, shards: Iterable[int]) -> None:
        """Remove the footprints or states of these shards, if there are any."""
        ...

    def put(self, kind: PageKind, name: str, data: bytes) -> None:
        """Store a page, and replace an earlier one of the same kind and name."""
        ...

    def remove(self, kind: PageKind, name: str) -> None:
        """Remove a page, if it exists."""
        ...

    def append(self, data: bytes) -> int:
        """Append an entry to the ledger and return its number, 0 for the first."""
        ...


class Store(Protocol):
    """The storage of a book."""

    @property
    def now(self) -> Reading:
        """The book as it is at each read."""
        ...

    def reading(self) -> AbstractContextManager[Reading]:
        """Read one snapshot of the book, without later writes of others. Never blocks a writer."""
        ...

    def settled(self) -> AbstractContextManager[Reading]:
        """Read one snapshot that is wholly in the store's file and does not change there meanwhile."""
        ...

    def scrubbed(self) -> AbstractContextManager[Reading]:
        """Read one snapshot in which no erasure is unfinished, if that is possible.

        An erasure commits first and rewrites the file then. If it was interrupted between the two, the file is
        rewritten before the snapshot is taken; if another process is rewriting it now, that is waited for. If the book
        is opened without its key, another process keeps an old snapshot or the disk is full, the snapshot is as it is,
        and ``faults`` reports it.
        """
        ...

    def writing(self) -> AbstractContextManager[Writing]:
        """Begin a transaction. It is committed when the block ends, and rolled back if the block raises."""
        ...

    def faults(self) -> list[str]:
        """Return one message per fault of the stored bytes; empty if all are as they were written.

        Never raises for damage: a file that cannot be read at all is a fault too.
        """
        ...

    def files(self) -> tuple[Path, ...]:
        """Return the files of the store that exist now."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


def check_page_kind(kind: str, name: str | None = None) -> None:
    """Raise UsageError if the page kind is unknown or its name is empty."""
    if kind not in PAGE_KINDS:
        raise UsageError(f"There is no page kind {kind!r}; the kinds are {', '.join(PAGE_KINDS)}.", kind=kind)
    if name is not None and not name:
        raise UsageError(f"A page of kind {kind!r} needs a name.", kind=kind)


def check_shard_data(what: str) -> None:
    """Raise UsageError if this is not stored per shard."""
    if what not in SHARD_DATA:
        raise UsageError(f"Stored per shard are {' and '.join(SHARD_DATA)}, not {what!r}.", what=what)


IS = ("is", "are")


def distinct(ids: ArrayLike) -> list[str]:
    """Return the requested ids in the order given."""
    asked: list[str] = as_names([ids] if isinstance(ids, str) else ids).tolist()
    if len(set(asked)) < len(asked):
        ordered = sorted(asked)
        twice = sorted({a for a, b in pairwise(ordered) if a == b})
        raise UnknownIdError(
            f"{many(len(twice), 'id')} {agreeing(len(twice), 'was', 'were')} given more than once: {_few(twice)}. "
            "Give each id once.",
            ids=twice,
        )
    return asked


def refuse_unknown(odd: Sequence[str], *, asked: int) -> None:
    """Raise UnknownIdError if an id is not in the book."""
    _refuse(odd, f"{part(len(odd), asked, 'id', verb=IS)} not in this book", Advice.TAKE_IDS, ".")


def refuse_struck(odd: Sequence[str], *, asked: int) -> None:
    """Raise UnknownIdError if an id is struck out already."""
    _refuse(odd, f"{part(len(odd), asked, 'id', verb=IS)} struck out already", "Leave them out.")


def refuse_retained(odd: Sequence[str], *, asked: int) -> None:
    """Raise UnknownIdError if an id is not struck out."""
    _refuse(odd, f"{part(len(odd), asked, 'id', verb=IS)} not struck out", "Leave them out.")


def refuse_present(odd: Sequence[str], *, given: int) -> None:
    """Raise UsageError if an id is in the book already."""
    if odd:
        raise UsageError(
            f"{len(odd):,} of the {given:,} quotes have ids that are in the book already: {_few(odd)}. "
            "Leave them out, or give the new ones other ids.",
            ids=list(odd),
        )


def _refuse(odd: Sequence[str], what: str, *remedy: str | Mention) -> None:
    if odd:
        raise UnknownIdError(f"{what}: {_few(odd)}. ", *remedy, ids=list(odd))


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
