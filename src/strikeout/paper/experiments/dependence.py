"""Does what was forgotten still show? The forgotten values are altered, the retained quotes are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from strikeout.calibration.calibrate import calibrate
from strikeout.errors import ParameterError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.paper_variants import paper_step
from strikeout.forgetting.refine import refine
from strikeout.models.heston import Heston
from strikeout.paper.cache import Cache, fast, relinearize
from strikeout.paper.experiments.feeds import apart
from strikeout.quotes.quotes import Quotes


@dataclass(frozen=True)
class Dependence:
    """The forgotten quotes made wrong by a share of their price, then forgotten.

    ``moved``: how far that alone moves the paper's answer, worst parameter, in standard errors of the refit.
    ``is_same``: whether ``forget`` gives the same bits as with the values unaltered.
    """

    altered_by: float
    moved: float
    is_same: bool


def dependence(book: Quotes, *, alterations: Sequence[float], days: int) -> list[Dependence]:
    """Return a block of days altered by each share, and struck out.

    Raises:
        RefusedError: the retained quotes do not determine the parameters.
    """
    model = Heston()
    bad = block(book, days)
    ids = book.ids[bad]
    refit = calibrate(book.without(ids), model)
    plain = calibrate(book, model)
    theirs, ours = paper_step(plain, ids).parameters, forget(plain, ids=ids).parameters
    out = []
    for share in alterations:
        altered = calibrate(book.with_observed(book.observed * np.where(bad, 1.0 + share, 1.0)), model)
        there = paper_step(altered, ids).parameters
        moved = max(abs(there[name] - theirs[name]) / refit.standard_errors[name] for name in theirs)
        out.append(Dependence(share, moved, forget(altered, ids=ids).parameters == ours))
    return out


@dataclass(frozen=True)
class Relinearized:
    """Distances from the refit, worst parameter, in its standard errors, after one strike-out of a bad feed.

    ``one_step`` does nothing more. From where it ended, ``touched`` takes a second step with the touched shards
    linearized again, as the paper does, ``all_retained`` one with every retained quote linearized again. ``refined`` is
    ``refine``, which begins at a robust reference. Infinite if the answer is not a point of the model.
    """

    altered_by: float
    one_step: float
    touched: float
    all_retained: float
    refined: float


def relinearized(book: Quotes, *, alterations: Sequence[float], days: int, shard_days: int = 10) -> list[Relinearized]:
    """Strike out, then relinearize once, the touched shards alone or all retained quotes.

    Raises:
        RefusedError: the retained quotes do not determine the parameters.
    """
    model = Heston()
    bad = block(book, days)
    ids = book.ids[bad]
    refit = calibrate(book.without(ids), model)
    out = []
    for share in alterations:
        altered = calibrate(book.with_observed(book.observed * np.where(bad, 1.0 + share, 1.0)), model)
        cache = Cache(altered.quotes, model=model, theta_ref=altered.parameters, shards=f"day:{shard_days}")
        first = fast(cache, ids).parameters
        try:
            partly = apart(relinearize(cache, ids, affected_only=True).parameters, refit)
            wholly = apart(relinearize(cache, ids).parameters, refit)
        except ParameterError:
            partly = wholly = inf
        refined = apart(refine(altered, ids).parameters, refit)
        out.append(Relinearized(share, apart(first, refit), partly, wholly, refined))
    return out


def block(book: Quotes, days: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the quotes of some days in a row, a third into the book."""
    day = book.labels["day"]
    begin = int(day.max() + 1) // 3
    return np.asarray((day >= begin) & (day < begin + days))
