"""Whether a converged fit is far worse than a smooth curve through each expiry.

All starts of a search can end in one wrong valley. The fit then misses the quotes by a smooth function of the strike,
many times the noise. A model that the market does not follow misses it smoothly too, so a large misfit proves nothing:
it only asks for more starts.

  symbol  meaning                                                     shape
  k       ln(strike / forward), ascending within a slice              (n,)
  x       k / sqrt(k^2 + (2 s)^2), s the at-the-money deviation       (n,)
  r       residual; of prices, over discount * forward                (n,)
  w       weight of r^2                                               (n,)

Per slice r is fitted by orthogonal polynomials in x (Forsythe, 1957): x is linear in k at the money and flat far from
it, as differences between two smiles are. The sums are NumPy's pairwise ones, in canonical order, so the answer follows
from the set of quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts, Features
from strikeout.statistics.linearize import residuals
from strikeout.statistics.objective import Objective

Floats = NDArray[np.float64]

# Times the variance that smooth curves leave. The one wrong valley known has 700, Heston on most real days 1 to 50.
FAR = 200.0
TERMS = 9  # polynomials per slice at most, and at most one for two strikes
FEWEST = 4  # quotes per expiry, on average, for a curve through an expiry to mean anything
PART = 65_536  # rows looked at together, but for a larger slice
SPARE = 8  # degrees of freedom that the curves must leave
ROOT_TWO_PI = 2.5066282746310002


def far_from_smooth(objective: Objective, model: Model, theta: Floats, free: int) -> bool:
    """Return True if the mean squared residual is `FAR` times what smooth curves through the expiries leave.

    Args:
        free: number of parameters that were fitted.
    """
    if isinstance(objective.book, Features):
        return False
    layout = objective.contracts.slices
    if len(objective) < FEWEST * len(layout.expiries):
        return False
    total, left, used = 0.0, 0.0, 0
    for part in _parts(objective):
        x, r, w = _smile(part, model, theta)
        total += float(np.add.reduce(w * r * r))
        unexplained, terms = _smoothed(x, part.contracts.slices.offsets, r, w)
        left, used = left + unexplained, used + terms
    spare, rounding = len(objective) - used, 10.0 * objective.rounding
    if spare < SPARE:
        return False
    mean = total / max(len(objective) - free, 1)
    return mean > FAR * max(left / spare, rounding * rounding)


def _parts(objective: Objective) -> Iterator[Objective]:
    """Yield the objective in runs of whole slices, up to `PART` rows or one slice each, to bound the memory."""
    offsets = objective.contracts.slices.offsets
    if len(objective) <= PART:
        yield objective
        return
    begin = 0
    while begin < len(objective):
        end = int(
            offsets[max(np.searchsorted(offsets, begin + PART, "right") - 1, np.searchsorted(offsets, begin) + 1)]
        )
        yield replace(objective, order=objective.order[begin:end])
        begin = end


def _smile(objective: Objective, model: Model, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Return x, r and w of the table above, in canonical order."""
    contracts, weight = objective.contracts, objective.weight
    residual = residuals(objective, model, theta)
    if objective.residual == "price":
        residual, weight = residual / contracts.scale, weight * contracts.scale * contracts.scale
    layout = contracts.slices
    at_the_money = Contracts(forward=1.0, strike=1.0, expiry=layout.expiries, discount=1.0, is_call=True)
    deviation = np.repeat(ROOT_TWO_PI * model.price(theta, at_the_money), np.diff(layout.offsets))
    x = layout.k / np.sqrt(layout.k * layout.k + 4.0 * deviation * deviation)
    return x, layout.sorted(residual), layout.sorted(weight)


def _smoothed(x: Floats, offsets: NDArray[np.int64], r: Floats, w: Floats) -> tuple[float, int]:
    """Return the sum of w r^2 that polynomials in x leave, slice by slice, and the number of polynomials."""
    begin, count = offsets[:-1], np.diff(offsets)
    of = np.repeat(np.arange(len(count)), count)  # slice of each row
    is_new = np.ones(len(x))
    is_new[1:] = (x[1:] != x[:-1]) | (of[1:] != of[:-1])
    terms = np.minimum(np.add.reduceat(is_new, begin) // 2.0, TERMS)
    polynomial, last, last_norm = np.ones_like(x), np.zeros_like(x), np.ones(len(count))
    for degree in range(int(terms.max(initial=0.0))):
        weighted = w * polynomial
        norm = np.add.reduceat(weighted * polynomial, begin)
        is_used = (degree < terms) & (norm > 0.0)
        norm = np.where(is_used, norm, 1.0)
        share = np.where(is_used, np.add.reduceat(weighted * r, begin) / norm, 0.0)
        r = r - share[of] * polynomial
        centre = np.add.reduceat(weighted * polynomial * x, begin) / norm
        following = (x - centre[of]) * polynomial - (norm / last_norm)[of] * last
        following = np.where(is_used[of], following, 0.0)  # a slice with no term left stays out of the next ones
        polynomial, last, last_norm = following, polynomial, norm
    return float(np.add.reduce(w * r * r)), int(terms.sum())
