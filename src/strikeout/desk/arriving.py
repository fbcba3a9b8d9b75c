"""Quotes at the door of a book: which are new, which are there already, which may not come back."""

from __future__ import annotations

from collections.abc import Callable
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
    if not isinstance(arriving.contracts, Contracts):
        raise UsageError("A book keeps quotes of options; these are features for a model of your own.")
    arriving, held, aside = underived(arriving), underived(held), underived(aside)
    known = np.isin(arriving.ids, held.ids)
    struck = np.isin(arriving.ids, aside.ids)
    _refuse_clashes(arriving, held, known)
    _refuse_clashes(arriving, aside, struck)
    rest = arriving[~(known | struck)]
    gone = is_erased(rest)
    return Arrival(rest[~gone], int(known.sum()), int(struck.sum()), rest.ids[gone])


def _refuse_clashes(arriving: Quotes, book: Quotes, known: NDArray[np.bool_]) -> None:
    if not known.any():
        return
    again = arriving[known]
    again, there = again[np.argsort(again.ids)], book.only(again.ids)
    differs = _differs(again, there[np.argsort(there.ids)])
    if differs.any():
        names = again.ids[differs]
        raise RefusedError(
            f"{len(names):,} of the {len(arriving):,} quotes have ids that are in the book with other values: "
            f"{', '.join(map(repr, names[:3].tolist()))}{', ...' if len(names) > 3 else ''}. Nothing was imported. "
            "Forget or erase the old ones first, or give the new ones other ids.",
            count=len(names),
            ids=names.tolist(),
        )


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
