"""Forwards that depend on other quotes of a book: checks before quotes are added to moments or removed from them."""

from __future__ import annotations

import numpy as np

from strikeout.errors import RefusedError
from strikeout.quotes.forwards import as_given, is_derived, touched_by
from strikeout.quotes.joining import join
from strikeout.quotes.quotes import Quotes
from strikeout.text import many


def whole_slices(held: Quotes, gone: Quotes) -> Quotes:
    """Return quotes to be removed with the forwards they have in the book, as they are in its moments.

    Raises:
        RefusedError: forwards of retained quotes depend on removed ones. Moments cannot be refitted.
    """
    if not is_derived(gone).any():
        return gone
    left = int(np.count_nonzero(touched_by(held, np.isin(held.ids, gone.ids))))
    if left:
        raise RefusedError(
            f"The forwards of {many(left, 'quote')} that would stay depend on those to be removed, and a book that is "
            "calibrated through moments cannot refit them. Remove whole slices, or calibrate the book through quotes.",
            count=left,
        )
    return as_given(held.only(gone.ids))


def new_slices(held: Quotes, new: Quotes) -> Quotes:
    """Return quotes to be added with the forwards they will have in the book.

    Raises:
        RefusedError: forwards of quotes held would change with them, or a slice gives none.
    """
    if not is_derived(new).any():
        return new
    both = join(held, new)
    left = int(np.count_nonzero(touched_by(both, np.isin(both.ids, new.ids))))
    if left:
        raise RefusedError(
            f"The forwards of {many(left, 'quote')} of the book would change with the added ones, and a book that is "
            "calibrated through moments cannot refit them. Calibrate the book through quotes first.",
            count=left,
        )
    return as_given(both.only(new.ids))
