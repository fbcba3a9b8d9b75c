"""Quotes at the door of a book: which are new, which are there already, which may not come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.forwards import underived
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes

COLUMNS = ("forward", "strike", "expiry", "discount", "is_call")
Erased = Callable[[Quotes], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Arrival:
    """What came, row by row: ``new`` quotes go in; the others stay out and are counted, the erased ones by name."""

    new: Quotes
    repeated: int  # in the book, the same to the bit
    set_aside: int  # forgotten before and the same: they stay forgotten until they are restored
    erased: Names  # erased before: refused
    clashes: tuple[str, ...] = ()  # in the book with other values

    @property
    def count(self) -> int:
        """How many quotes arrived."""
        return len(self.new) + self.repeated + self.set_aside + len(self.erased)


def sort_out(arriving: Quotes, held: Quotes, aside: Quotes, *, is_erased: Erased) -> Arrival:
    """Each arriving quote told apart by its id and its content; the books are not changed.

    Forwards that are derived say nothing of a quote itself, so all have stand-ins here, those that go in too.

    Raises:
        UsageError: the quotes are features for a custom model, which a book does not keep.
        RefusedError: an id is in the book with other values. One of the two is wrong, and nothing here can say which.
    """
    arrival = told_apart(arriving, held, aside, is_erased=is_erased)
    refuse_clashes(arrival.clashes, len(arriving))
    return arrival


def told_apart(arriving: Quotes, held: Quotes, aside: Quotes, *, is_erased: Erased) -> Arrival:
    """As ``sort_out``, but ids that are in the book with other values are only named.

    Raises:
        UsageError: the quotes are features for a custom model, which a book does not keep.
    """
    if not isinstance(arriving.contracts, Contracts):
        raise UsageError("A book keeps quotes of options; these are features for a model of your own.")
    arriving, held, aside = underived(arriving), underived(held), underived(aside)
    known = np.isin(arriving.ids, held.ids)
    struck = np.isin(arriving.ids, aside.ids)
    clashes = (*_clashes(arriving, held, known), *_clashes(arriving, aside, struck))
    # A copy of a large book is not made for nothing.
    rest = arriving[~(known | struck)] if known.any() or struck.any() else arriving
    gone = is_erased(rest)
    return Arrival(rest[~gone] if gone.any() else rest, int(known.sum()), int(struck.sum()), rest.ids[gone], clashes)


def refuse_clashes(names: Sequence[str], arrived: int) -> None:
    """Nothing, where there are no such names.

    Raises:
        RefusedError: so many of those that arrived are in the book with other values.
    """
    if names:
        names = sorted(names)
        raise RefusedError(
            f"{len(names):,} of the {arrived:,} quotes have ids that are in the book with other values: "
            f"{', '.join(map(repr, names[:3]))}{', ...' if len(names) > 3 else ''}. Nothing was imported. "
            "Forget or erase the old ones first, or give the new ones other ids.",
            count=len(names),
            ids=names,
        )


def _clashes(arriving: Quotes, book: Quotes, known: NDArray[np.bool_]) -> list[str]:
    if not known.any():
        return []
    again = arriving[known]
    again, there = again[np.argsort(again.ids)], book.only(again.ids)
    differs: list[str] = again.ids[_differs(again, there[np.argsort(there.ids)])].tolist()
    return differs


def _differs(first: Quotes, second: Quotes) -> NDArray[np.bool_]:
    """Row by row, to the bit; labels that both have are compared as text."""
    found = np.zeros(len(first), bool)
    for name in COLUMNS:
        found |= getattr(first.contracts, name) != getattr(second.contracts, name)
    found |= (first.observed != second.observed) | (first.weight != second.weight)
    found |= ~((first.spread == second.spread) | (np.isnan(first.spread) & np.isnan(second.spread)))
    for name in first.labels.keys() & second.labels.keys():
        found |= first.labels[name].astype(str) != second.labels[name].astype(str)
    return found
