"""Where a book lives: what can be kept, read, struck out and erased, whatever keeps it.

    store.reading()   one moment of the book, for several reads that belong together
    store.writing()   one transaction: all of it or nothing; one writer at a time
    store.quotes() .. single reads, each of the moment it is made

Five kinds of things are kept: quotes, in the order they came; which of them are struck out, and by which entry of the
ledger; what the quotes of a shard leave behind, bytes that go when one of them is erased; pages, bytes with a name on a
shelf; and the entries of the ledger, which are only ever added.

A shard is some quotes that came one after the other: what is read at once, and encrypted under one key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.quotes.quotes import Quotes

Shelf = Literal["calibration", "certificate", "erased", "plan", "request", "setting", "state"]
Told = Callable[[Sequence[bytes]], None]
SHELVES: tuple[Shelf, ...] = get_args(Shelf)
Leaving = Literal["footprints", "states"]  # what the quotes of a shard leave behind
LEAVINGS: tuple[Leaving, ...] = get_args(Leaving)
ENCRYPTION = "encryption"  # the setting of an encrypted book: the name its keys know it by


@dataclass(frozen=True)
class Counts:
    """How many quotes a book retains, and how many it holds that are struck out."""

    retained: int
    struck: int


class Reading(Protocol):
    """What can be read of a book."""

    def quotes(self, *, struck: bool | None = False) -> Quotes:
        """The retained quotes in the order they came; with ``struck=True`` the others, with ``None`` all.

        Forwards that are derived are never kept: the retained quotes come with those found from them alone, the others
        with stand-ins (see ``quotes.forwards``).

        Raises:
            DamagedBookError: bytes are not those that were written.
            RefusedError: a slice of the retained quotes gives no forward.
        """
        ...

    def pieces(self) -> Iterator[Quotes]:
        """The retained quotes in the order they came, some at a time; stand-ins for forwards that are derived.

        Raises:
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def named(self, ids: ArrayLike) -> Quotes:
        """The quotes with these ids, struck out or not, in the order they came. Does not read the others, and so has
        stand-ins for forwards that are derived.

        Raises:
            UnknownIdError: an id that the book does not hold, or one given twice.
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def known(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Of each id, whether the book holds a quote of that name, struck out or not.

        Raises:
            UsageError: the ids are no text.
        """
        ...

    def struck(self) -> dict[str, int]:
        """The ids that are struck out, in the order of the ids, each with the number of the entry that struck it out.

        Raises:
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def counts(self) -> Counts:
        """How many quotes are retained, and how many are struck out.

        Raises:
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def shards(self) -> dict[int, int]:
        """The numbers of the shards in the order they came, each with how many quotes it holds, struck out or not.

        Raises:
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def shards_of(self, ids: ArrayLike) -> dict[str, int]:
        """Of each of these ids the number of the shard it is in. Does not read the quotes.

        Raises:
            UnknownIdError: an id that the book does not hold, or one given twice.
        """
        ...

    def members(self, shard: int) -> tuple[str, ...]:
        """The ids of a shard in the order they came, struck out or not.

        Raises:
            DamagedBookError: it is missing, or bytes are not those that were written.
        """
        ...

    def left(self, shard: int, what: Leaving) -> bytes | None:
        """What is kept of what the quotes of a shard leave behind; None where nothing is.

        Raises:
            UsageError: nothing of that name is kept of a shard.
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def shards_with(self, what: Leaving) -> tuple[int, ...]:
        """The shards of which this is kept, in order.

        Raises:
            UsageError: nothing of that name is kept of a shard.
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def page(self, shelf: Shelf, name: str) -> bytes | None:
        """The page of this name on this shelf; None where there is none.

        Raises:
            UsageError: there is no such shelf.
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def pages(self, shelf: Shelf) -> tuple[str, ...]:
        """The names of the pages on a shelf, sorted.

        Raises:
            UsageError: there is no such shelf.
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def entries(self) -> tuple[bytes, ...]:
        """The entries of the ledger, in the order they were appended.

        Raises:
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def contents(self) -> str:
        """What stands for all that is kept but the ledger, as it was added up when it was written, under the key of the
        store: 64 hexadecimal digits. ``faults`` adds it up again.

        Raises:
            RefusedError: the key is not known.
            DamagedBookError: it is missing.
        """
        ...


class Writing(Reading, Protocol):
    """What can be changed in a transaction. Reads see what the transaction has changed so far."""

    def add(self, quotes: Quotes) -> None:
        """Keeps these quotes after those that are there.

        Raises:
            UsageError: an id is in the book already, or the quotes are of another kind (options, or other features).
        """
        ...

    def add_all(self, pieces: Iterable[Quotes], *, told: Told | None = None) -> int:
        """Keeps the quotes of all pieces as ``add`` would keep them at once, one piece in memory at a time.

        Args:
            told: called with the names that were added, from the lowest to the highest, some at a time.

        Raises:
            UsageError: an id is in the book already or there twice, or the quotes are of another kind.
        """
        ...

    def strike(self, ids: ArrayLike, *, entry: int) -> None:
        """Marks the quotes with these ids as struck out by this entry of the ledger.

        Raises:
            UnknownIdError: an id that the book does not hold, one given twice, or one that is struck out already.
        """
        ...

    def unstrike(self, ids: ArrayLike) -> None:
        """Marks the quotes with these ids as retained again.

        Raises:
            UnknownIdError: an id that is not struck out, or one given twice.
        """
        ...

    def erase(self, ids: ArrayLike) -> None:
        """Takes the quotes with these ids away, struck out or not, and all that is kept of what their shards leave
        behind. Once the transaction is done nothing of them is left in the store's files; pages and entries are the
        caller's to remove.

        Raises:
            UnknownIdError: an id that the book does not hold, or one given twice.
        """
        ...

    def leave(self, shard: int, what: Leaving, data: bytes) -> None:
        """Keeps what the quotes of a shard leave behind, in the place of what was there.

        Raises:
            UsageError: there is no such shard, or nothing of that name is kept of one.
        """
        ...

    def unleave(self, what: Leaving, shards: Iterable[int]) -> None:
        """Takes that away of these shards; nothing where there is none.

        Raises:
            UsageError: nothing of that name is kept of a shard.
        """
        ...

    def put(self, shelf: Shelf, name: str, data: bytes) -> None:
        """Keeps a page under this name, in the place of the one that had it.

        Raises:
            UsageError: there is no such shelf, or the name is empty.
        """
        ...

    def remove(self, shelf: Shelf, name: str) -> None:
        """Takes a page away; nothing where there is none.

        Raises:
            UsageError: there is no such shelf.
        """
        ...

    def append(self, data: bytes) -> int:
        """Adds an entry to the ledger and gives back its number: 0 for the first.

        Raises:
            UsageError: the entry is empty.
        """
        ...


class Store(Reading, Protocol):
    """A book that lasts."""

    def reading(self) -> AbstractContextManager[Reading]:
        """One moment of the book: what others write meanwhile is not seen. Never blocks a writer.

        Raises:
            DamagedBookError: bytes are not those that were written.
        """
        ...

    def settled(self) -> AbstractContextManager[Reading]:
        """Read one snapshot that is wholly in the store's file and does not change there meanwhile.

        Raises:
            BusyError: another process reads or writes. Nothing was changed.
        """
        ...

    def writing(self) -> AbstractContextManager[Writing]:
        """A transaction: kept as a whole when the block ends, and not at all when it raises.

        Raises:
            BusyError: another is writing. Nothing was changed.
        """
        ...

    def faults(self) -> list[str]:
        """What is wrong with the stored bytes, a sentence each; empty where all are as they were written.

        Raises:
            nothing: a file that cannot be read at all is a fault too.
        """
        ...

    def files(self) -> tuple[Path, ...]:
        """The files the store keeps, those that are there now."""
        ...

    def close(self) -> None:
        """Lets go of the files. What was written stays."""
        ...


def on_shelf(shelf: str, name: str | None = None) -> None:
    """Nothing, where there is such a shelf and the name, if given, is not empty.

    Raises:
        UsageError: otherwise.
    """
    if shelf not in SHELVES:
        raise UsageError(f"There is no shelf {shelf!r}; the shelves are {', '.join(SHELVES)}.", shelf=shelf)
    if name is not None and not name:
        raise UsageError(f"A page on the shelf {shelf!r} needs a name.", shelf=shelf)


def is_left(what: str) -> None:
    """Nothing, where this is kept of shards.

    Raises:
        UsageError: otherwise.
    """
    if what not in LEAVINGS:
        raise UsageError(f"Of a shard {' and '.join(LEAVINGS)} are kept, not {what!r}.", what=what)
