"""Whether a converged fit is far worse than a smooth curve through each expiry.

All starts of a search can end in one wrong valley. The fit then misses the quotes by a smooth function of the strike,
many times the noise. A model that the market does not follow misses it smoothly too, so a large misfit proves nothing:
it only asks for more starts.

  symbol  meaning                                                     shape
  k       ln(strike / forward), ascending within a slice              (n,)
  x       k / sqrt(k^2 + (2 s)^2), s the at-the-money deviation       (n,)
  r       residual; of prices, over discount * forward                (n,)
  w       weight of r^2                                               (n,)

Per slice r is fitted by orthogonal polynomials in x (kernels/smooth_curves.py): x is linear in k at the money and flat
far from it, as differences between two smiles are. Rows are in canonical order, so the answer follows from the set of
quotes. Moments give the sums of such a fit without a quote: sums over quotes are weighted sums over nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from strikeout.kernels import smooth_curves
from strikeout.kernels.arrays import Floats, Rows
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts, Features
from strikeout.statistics.linearize import residuals
from strikeout.statistics.objective import Objective
from strikeout.statistics.quadrature import Quadrature

# Times the variance that smooth curves leave. The one wrong valley known has 700, Heston on most real days 1 to 50.
FAR = 200.0
TERMS = 9  # polynomials per slice at most, and at most one for two strikes
FEWEST = 4  # quotes per expiry, on average, for a curve through an expiry to mean anything
PART = 65_536  # rows looked at together, but for a larger slice
SPARE = 8  # degrees of freedom that the curves must leave
ROOT_TWO_PI = 2.5066282746310002


def far_from_smooth(posed: Sequence[tuple[Objective, Floats]], model: Model, free: int) -> bool:
    """Return True if the mean squared residual is `FAR` times what smooth curves through the expiries leave.

    Args:
        posed: quotes and the parameters that were fitted to them; of a panel, those of each group.
        free: number of parameters that were fitted, in all groups.
    """
    count = sum(len(objective) for objective, _ in posed)
    if any(isinstance(objective.book, Features) for objective, _ in posed):
        return False
    if count < FEWEST * sum(len(objective.contracts.slices.expiries) for objective, _ in posed):
        return False
    total, left, used = 0.0, 0.0, 0
    for objective, theta in posed:
        for part in _parts(objective):
            x, r, w = _smile(part, model, theta)
            total += float(np.add.reduce(w * r * r))
            unexplained, terms = smooth_curves.unexplained(x, part.contracts.slices.offsets, r, w, TERMS)
            left, used = left + unexplained, used + terms
    return _is_far(total, left, count, used, free, max(objective.rounding for objective, _ in posed))


def moments_far_from_smooth(end: Quadrature, cost: float, counts: Rows, model: Model, theta: Floats, free: int) -> bool:
    """``far_from_smooth`` from moments with one slice per expiry.

    Args:
        cost: at theta.
        counts: of the quotes of each expiry, in ascending order of the expiries.
    """
    if end.count < FEWEST * len(counts):
        return False
    nodes = end.nodes
    layout = nodes.slices
    at_the_money = model.price(theta, _at_the_money(layout.expiries.tobytes()))
    deviation = np.repeat(ROOT_TWO_PI * at_the_money, np.diff(layout.offsets))
    x = layout.k / np.sqrt(layout.k * layout.k + 4.0 * deviation * deviation)
    linear = end.linear - end.quadratic * (model.price(theta, nodes) - end.centre)
    explained, used = smooth_curves.explained(
        x, layout.offsets, layout.sorted(linear), layout.sorted(end.quadratic), np.minimum(counts // 2, TERMS)
    )
    return _is_far(cost, max(cost - explained, end.smallest), end.count, used, free, end.rounding)


def _is_far(total: float, left: float, count: int, used: int, free: int, rounding: float) -> bool:
    """Return whether the mean square is `FAR` times what curves of ``used`` terms leave, and rounding explains less."""
    spare = count - used
    if spare < SPARE:
        return False
    return total / max(count - free, 1) > FAR * max(left / spare, 100.0 * rounding * rounding)


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
    at_the_money = model.price(theta, _at_the_money(layout.expiries.tobytes()))
    deviation = np.repeat(ROOT_TWO_PI * at_the_money, np.diff(layout.offsets))
    x = layout.k / np.sqrt(layout.k * layout.k + 4.0 * deviation * deviation)
    return x, layout.sorted(residual), layout.sorted(weight)


@lru_cache(maxsize=16)
def _at_the_money(expiries: bytes) -> Contracts:
    """Return one option per expiry. Kept, with its layout: the books of a fleet have the same expiries day by day."""
    return Contracts(forward=1.0, strike=1.0, expiry=np.frombuffer(expiries), discount=1.0, is_call=True)
