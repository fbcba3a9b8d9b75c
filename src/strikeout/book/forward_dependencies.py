"""Forwards that rest on other quotes of a book: what has to be asked before quotes come or go."""

from __future__ import annotations

import numpy as np

from strikeout.errors import RefusedError
from strikeout.quotes.forwards import Refit, as_given, is_derived, refits, touched_by
from strikeout.quotes.joining import join
from strikeout.quotes.quotes import Quotes
from strikeout.wording import many


def refits_without(held: Quotes, gone: Quotes) -> tuple[Refit, ...]:
    """The slices of the quotes held whose forwards will be others without some of them.

    Raises:
        RefusedError: what is left of a slice gives no forward.
    """
    if not len(gone) or not is_derived(gone).any():
        return ()
    return refits(held, held.without(gone.ids))


def refuse_without_forward(held: Quotes, new: Quotes) -> None:
    """Nothing, where the slices of the book all have a forward once these quotes are in it.

    Raises:
        RefusedError: one has none.
    """
    if is_derived(new).any():
        join(held, new)


def whole_slices(held: Quotes, gone: Quotes) -> Quotes:
    """Quotes that go, with the forwards they have in the book: what its moments were taken of.

    Raises:
        RefusedError: quotes stay behind whose forwards rest on those that go. Moments cannot be refitted.
    """
    if not is_derived(gone).any():
        return gone
    left = int(np.count_nonzero(touched_by(held, np.isin(held.ids, gone.ids))))
    if left:
        raise RefusedError(
            f"The forwards of {many(left, 'quote')} that would stay rest on those that go, and a book that is "
            "calibrated through moments cannot refit them. Let whole slices go, or calibrate the book through quotes.",
            count=left,
        )
    return as_given(held.only(gone.ids))


def new_slices(held: Quotes, new: Quotes) -> Quotes:
    """Quotes that come, with the forwards they will have in the book.

    Raises:
        RefusedError: forwards of quotes held would change with them, or a slice gives none.
    """
    if not is_derived(new).any():
        return new
    both = join(held, new)
    left = int(np.count_nonzero(touched_by(both, np.isin(both.ids, new.ids))))
    if left:
        raise RefusedError(
            f"The forwards of {many(left, 'quote')} of the book would change with those that come, and a book that is "
            "calibrated through moments cannot refit them. Calibrate the book through quotes first.",
            count=left,
        )
    return as_given(both.only(new.ids))
