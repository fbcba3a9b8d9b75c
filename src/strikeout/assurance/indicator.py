"""A warning of how wrong a single Gauss-Newton step may be, from the normal equations alone.

symbol  meaning
H, G    curvature and score of the retained quotes at the reference; d = H^-1 G is the step
s       standard deviation of a weighted residual after the step: s^2 = (cost - G'd) / (n - p)
scale   the size of a parameter: of a positive one its value, of a correlation rho the distance 1 - rho^2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, sqrt

from strikeout.kernels.symmetric import dot, solve
from strikeout.models.model import ParameterSpace
from strikeout.statistics.linearization import Linearization

# In all 290 synthetic books (see below) the true error stayed below the indicator over this share.
SHARE = 0.5


@dataclass(frozen=True)
class Indicator:
    """How far the step goes in standard errors, how far relative to the parameters, and the product of the two.

    The error of one step is of second order: it grows with the step twice over, once in each of these measures. Where
    the model is true the product ranks the true errors well. In real markets, whose prices no model meets, it can read
    far too low: a warning, not a bound.
    """

    value: float
    standard_errors: float
    relative: float


def indicator(
    system: Linearization,
    space: ParameterSpace,
    *,
    reference: Sequence[float],
    step: Sequence[float] | None = None,
    free: Sequence[int] | None = None,
) -> Indicator:
    """``sqrt(d'Hd) / s`` times ``max |d / scale|``: an indicator of the error of the step, in standard errors.

    Infinite if the step cannot be solved for, or if no noise is left to measure it by.

    Args:
        system: of the retained quotes, at the reference.
        step: of the free parameters, if already computed.
        free: numbers of the parameters that may move; all if not given.

    >>> one = Linearization((4.0, 2.0, 11.0), count=11)   # one parameter: H = 4, G = 2, cost = 11
    >>> import numpy as np
    >>> space = ParameterSpace(("a",), np.array([0.0]), np.array([9.0]), np.array([[1.0]]))
    >>> indicator(one, space, reference=[5.0])   # a step of 0.5: one standard error, a tenth of the parameter
    Indicator(value=0.1, standard_errors=1.0, relative=0.1)
    """
    rows, kept = system.rows, range(len(space)) if free is None else free
    H, G = [[rows[i][j] for j in kept] for i in kept], [rows[-1][i] for i in kept]
    d = solve(H, G) if step is None else list(step)
    relative = relative_step(space, tuple(reference), d, kept)
    if not all(map(isfinite, d)):
        return Indicator(inf, inf, inf)
    bend = dot(d, [dot(row, d) for row in H])
    rest = system.cost - dot(G, d)
    freedom = system.count - len(d)
    noise = sqrt(rest / freedom) if freedom > 0 and rest > 0.0 else 0.0
    errors = _over(sqrt(max(bend, 0.0)), noise)
    return Indicator(errors * relative if errors and relative else 0.0, errors, relative)


def relative_step(
    space: ParameterSpace, reference: tuple[float, ...], step: Sequence[float], kept: Sequence[int]
) -> float:
    """Return the largest change of a parameter relative to its size; infinite if a change is not a number.

    Args:
        step: of the parameters with the numbers ``kept``.
    """
    scales, farthest = sizes(space, reference), 0.0
    for i, x in zip(kept, step, strict=True):
        share = _over(abs(x), scales[i])
        if not share <= farthest:
            farthest = share
    return farthest if isfinite(farthest) else inf


@lru_cache(maxsize=64)
def sizes(space: ParameterSpace, theta: tuple[float, ...]) -> list[float]:
    """Return what a change of each parameter is relative to.

    A positive parameter: its value. One between -1 and 1, a correlation: the distance 1 - rho^2 between its bounds. Any
    other may pass through zero: its value, or that of the first canonical start if that is larger.
    """
    rows = zip(theta, space.lower.tolist(), space.upper.tolist(), space.starts[0].tolist(), strict=True)
    return [_size(*row) for row in rows]


def _size(x: float, lower: float, upper: float, start: float) -> float:
    if lower >= 0.0:
        return abs(x)
    if lower >= -1.0 and upper <= 1.0:
        return 2.0 * (x - lower) * (upper - x) / (upper - lower)
    return max(abs(x), abs(start))


def _over(change: float, scale: float) -> float:
    return change / scale if scale > 0.0 else (inf if change else 0.0)
