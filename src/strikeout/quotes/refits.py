"""Which slices had their forward found anew, and what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strikeout.quotes.forwards import is_derived
from strikeout.quotes.slices import slice_name, slice_numbers

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


@dataclass(frozen=True)
class Refit:
    """A slice whose forward was found anew since quotes of it went or came."""

    name: str
    forward: tuple[float, float]  # before and after
    discount: tuple[float, float]

    def __str__(self) -> str:
        (f, g), (d, e) = self.forward, self.discount
        return f"{self.name}: forward {f:.8g} -> {g:.8g}, discount {d:.6f} -> {e:.6f}"


def refits(before: Quotes, after: Quotes) -> tuple[Refit, ...]:
    """The slices with quotes in both books whose forward or discount differs in a bit, and the numbers."""
    if not (is_derived(before).any() or is_derived(after).any()):
        return ()
    both = np.intersect1d(before.ids, after.ids)
    old, new = before.only(both), after.only(both)
    old, new = old[np.argsort(old.ids)], new[np.argsort(new.ids)]
    a, b = old.contracts, new.contracts
    moved = np.flatnonzero((a.forward != b.forward) | (a.discount != b.discount))
    if not moved.size:
        return ()
    part = new[moved]
    _, first = slice_numbers(part.labels, part.contracts.expiry)
    return tuple(
        Refit(
            slice_name(part.labels, float(b.expiry[moved[n]]), row=int(n)),
            (float(a.forward[moved[n]]), float(b.forward[moved[n]])),
            (float(a.discount[moved[n]]), float(b.discount[moved[n]])),
        )
        for n in np.sort(first).tolist()
    )
