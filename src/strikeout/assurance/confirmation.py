"""A refit without some quotes, and how it ended: what ``influence(confirm=...)`` compares one step with."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from strikeout.calibration.calibrate import calibrate_as
from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.quotes.names import Names

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes


class Confirmation(StrEnum):
    """How a refit without a group ended."""

    REFITTED = "refitted"
    WITHOUT_SLICES = "refitted-without-slices"  # the rest of a slice was struck out too: it gave no forward any more
    NOT_CONVERGED = "not-converged"
    UNIDENTIFIED = "unidentified"  # too few quotes are left for the parameters
    REFUSED = "refused"


def refit_without(calibration: Calibration, ids: Names) -> tuple[Calibration | None, Confirmation]:
    """Return a calibration of the same kind without these quotes, None if there is none, and how the refit ended.

    The same kind, plain or panel: a move is between parameters of the same name.

    If the quotes that stay of a slice give no forward, as the in-the-money quotes of an expiry whose out-of-the-money
    quotes are struck out, they are struck out too.
    """
    status = Confirmation.REFITTED
    try:
        try:
            left = calibration.book.without(ids)
        except RefusedError as error:
            if "slices" not in error.facts:
                raise
            left, status = _without_slices(calibration.book, ids, error), Confirmation.WITHOUT_SLICES
        after = calibrate_as(left, calibration.asked, calibration.settings, calibration.panel)
    except UnidentifiedError:
        return None, Confirmation.UNIDENTIFIED
    except RefusedError:
        return None, Confirmation.REFUSED
    return (after, status) if after.converged else (None, Confirmation.NOT_CONVERGED)


def _without_slices(book: Quotes, ids: Names, error: RefusedError) -> Quotes:
    return book.without(np.union1d(np.asarray(ids).astype(str), np.asarray(error.ids).astype(str)))
