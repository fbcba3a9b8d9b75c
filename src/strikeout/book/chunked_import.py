"""Quotes at the door of a book, piece by piece: what is counted on the way, and what has to be asked at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from strikeout.book.import_filter import Erased, told_apart
from strikeout.book.records import known_in
from strikeout.quotes.forwards import is_derived, refitted
from strikeout.quotes.quotes import Quotes
from strikeout.store.store import Reading

if TYPE_CHECKING:
    from strikeout.quotes.spill import SliceSpill


class NothingNew(Exception):  # noqa: N818 - it tells of something found, not of an error
    """All that came is in the book already."""


class Door:
    """Lets new quotes in and counts the others. Quotes whose forwards rest on their slices are remembered, on disk.

    Args:
        folder: on whose disk; the one for temporary files where not given.
    """

    def __init__(self, is_erased: Erased, *, folder: Path | None = None) -> None:
        self._is_erased = is_erased
        self._folder = folder
        self._slices: SliceSpill | None = None
        self.count = self.imported = self.repeated = self.set_aside = 0
        self.erased: list[str] = []
        self.clashes: list[str] = []
        self.entry: int | None = None

    def let_in(self, store: Reading, pieces: Iterable[Quotes]) -> Iterator[Quotes]:
        """The new quotes among these."""
        struck = store.struck()
        for piece in pieces:
            held, aside = known_in(store, piece, struck=struck)
            arrival = told_apart(piece, held, aside, is_erased=self._is_erased)
            self.count += len(piece)
            self.repeated += arrival.repeated
            self.set_aside += arrival.set_aside
            self.erased += arrival.erased.tolist()
            self.clashes += arrival.clashes
            if len(arrival.new) and not self.clashes:  # a clash refuses all; the others are only looked for
                self._remember(arrival.new)
                yield arrival.new

    def refuse_without_forward(self, store: Reading, *, held: int) -> None:
        """Nothing, where every slice of the book that got new quotes has a forward.

        Args:
            store: the book with the new quotes in it, after the ``held`` ones that were there.

        Raises:
            RefusedError: one has none.
        """
        if self._slices is None:
            return
        for piece in store.pieces() if held else ():
            old = piece[:held]
            held -= len(old)
            self._slices.add(old[is_derived(old)], only_known=True)
            if not held:
                break
        for quotes in self._slices.parts():
            refitted(quotes, np.ones(len(quotes), bool))

    def _remember(self, new: Quotes) -> None:
        rests = is_derived(new)
        if rests.any():
            from strikeout.quotes.spill import SliceSpill

            self._slices = self._slices or SliceSpill(self._folder)
            self._slices.add(new[rests])

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._slices is not None:
            self._slices.close()
