"""The one step on very small remainders: what the linearization adds to its fit error, and what conditioning adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError, RefusedError
from strikeout.paper.cache import Cache, fast
from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Remainder:
    """Medians over random remainders of one size; RMSE on the retained quotes, in currency.

    ``step`` is the fit error after the paper's step, ``worst`` its largest, ``refit`` that of the least-squares
    parameters. ``linear`` is the fit error that the linearization itself predicts for the step: the paper's first
    mechanism is the distance from it to ``step``. ``rounding`` is the fit error between the step solved in floating
    point and the same system solved in integers: its second mechanism. ``outside`` is the share of steps that lead out
    of the model.
    """

    quotes: int
    condition: float
    refit: float
    linear: float
    step: float
    worst: float
    rounding: float
    outside: float


def remainders(calibration: Calibration, *, counts: Sequence[int], runs: int, seed: int) -> Iterator[Remainder]:
    """Keep ``counts`` quotes at random, ``runs`` times each, and forget all others by the paper's step."""
    quotes, model = calibration.quotes, calibration.model
    cache = Cache(quotes, model=model, theta_ref=calibration.parameters)
    exact = Cache(quotes, model=model, theta_ref=calibration.parameters, exact=True)
    rng = np.random.default_rng(seed)
    for count in counts:
        found = [_one(cache, exact, np.sort(rng.choice(len(quotes), count, replace=False))) for _ in range(runs)]
        values = np.array(found)
        inside = np.isfinite(values[:, 3])
        condition, refit, linear, step, rounding = (
            float(np.median(column[inside])) if inside.any() else inf for column in values.T
        )
        worst = float(values[inside, 3].max()) if inside.any() else inf
        outside = float(np.mean(~inside))
        yield Remainder(count, condition, refit, linear, step, worst, rounding, outside)


def _one(cache: Cache, exact: Cache, kept: NDArray[np.intp]) -> tuple[float, float, float, float, float]:
    """Return the condition of H', then the RMSE of the refit, the linear prediction, the step and its rounding."""
    gone, quotes = cache.kept(kept), cache.quotes[kept]
    found = fast(cache, gone)
    d = found.theta - cache.theta_ref
    price, J = cache.model.linearize(cache.theta_ref, quotes.contracts)
    linear = _rms(quotes.observed - price - J @ d)
    ridge = cache.ridge * np.eye(len(d))
    condition = float(np.linalg.cond(found.H + ridge))
    try:
        step = _rmse(cache, found.theta, quotes)
    except ParameterError:
        step = inf
    rounding = _rms(J @ (found.theta - fast(exact, gone).theta))
    try:
        refit = calibrate(quotes, cache.model).rmse
    except RefusedError:
        refit = np.nan
    return condition, refit, linear, step, rounding


def _rmse(cache: Cache, theta: Floats, quotes: Quotes) -> float:
    return _rms(quotes.observed - cache.model.price(theta, quotes.contracts))


def _rms(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))
