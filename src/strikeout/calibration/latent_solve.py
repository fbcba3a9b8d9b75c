"""The latent parameters of all groups at their best, each a search in one dimension, all of them side by side.

    symbol  meaning
    x       the latent parameter, one number per group
    T       normal equations, one row per group; ``curvature`` and ``score`` are the places of the latent one's in it
    to      where a group looks next

A group that has settled is not looked at again, and no group can feel another: side by side is quicker, not different.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strikeout.calibration.loop import EDGE
from strikeout.kernels.arrays import Floats, Mask, Rows

Evaluate = Callable[[Rows, Floats], Floats]  # groups, by number, and a value for each: T, a row for each

# A latent parameter is at its best once a Gauss-Newton step moves it by less than this share of itself. The first
# order of that step is added to the equations of the shared parameters, so what is left is of the order of its square.
SETTLED = 1e-8
# Or once it lowers the group's cost by less than this share: far from the optimum residuals are large, Gauss-Newton is
# slow, and there is nothing to be gained from digits that the next theta changes.
NEGLIGIBLE = 1e-8
PASSES = 80  # at one theta; from cold starts 5 to 8 are taken, later on one or two
# Reweighted least squares approaches an optimum at which most residuals are outliers by a constant share per pass.
# After this many passes steps are doubled each time, until the score changes its sign, and then it bisects.
PATIENCE = 16
FACTOR = 3.0  # one step moves a positive latent parameter by this factor at most


@dataclass(frozen=True)
class Line:
    """Where a latent parameter may go, and where the normal equations have what is known of it; the cost is last."""

    lower: float
    upper: float
    curvature: int
    score: int
    is_edge: bool = False  # the lower bound represents zero

    def towards(self, x: Floats, step: Floats) -> Floats:
        """Return where a step leads, within the bounds and not too far; all the way once it is cut short next to an
        edge."""
        to: Floats = np.minimum(np.maximum(x + step, self.lower), self.upper)
        if self.lower < 0.0:
            return to
        cut: Floats = np.minimum(np.maximum(to, x / FACTOR), x * FACTOR)
        if not self.is_edge:
            return cut
        return np.where((to < cut) & (cut < EDGE * self.lower), self.lower, cut)

    def held(self, x: Floats, T: Floats) -> Mask:
        """Return where it cannot move: on a bound that the cost pushes against, or no price moves with it."""
        g = T[:, self.score]
        on_bound = ((x <= self.lower) & (g < 0.0)) | ((x >= self.upper) & (g > 0.0))
        return on_bound | ~(T[:, self.curvature] > 0.0)


def settled(
    evaluate: Evaluate,
    begin: Floats,
    line: Line,
    *,
    rounding: Floats,
    negligible: float,
    small: float = SETTLED,
    patience: int | None = None,
) -> tuple[Floats, Floats] | None:
    """Return the latent parameters of least cost and the equations there; None if a group has no price at the start.

    Gauss-Newton from ``begin``; a step that does not lower the cost is cut to a quarter.

    Args:
        rounding: of one residual of a group, times the root of its quotes: costs closer than that makes them are equal.
        negligible: a step that promises less than this share of the cost is not taken.
        small: nor one that moves the parameter by less than this share of itself.
        patience: passes after which steps grow, and a group is bisected; None under squared loss, where convergence is
            quadratic and a score that does not fall to half is rounding.
    """
    x = begin.copy()
    T = evaluate(np.arange(len(x)), x)
    if not np.isfinite(T[:, -1]).all():
        return None
    left, fresh, to = np.arange(len(x)), np.ones(len(x), bool), x.copy()
    below, above = np.full(len(x), -np.inf), np.full(len(x), np.inf)  # where the score leads up, and down
    with np.errstate(divide="ignore", invalid="ignore"):
        for number in range(PASSES):
            new = left[fresh[left]]
            here, at = T[new], x[new]
            score = here[:, line.score]
            step = score / here[:, line.curvature]
            if patience is not None:
                step = float(1 << max(number - patience, 0)) * step
            is_small = (np.abs(step) <= small * np.abs(at)) | (step * score <= negligible * here[:, -1])
            to[new] = np.where(is_small | line.held(at, here), at, line.towards(at, step))
            if patience is not None and number >= patience:
                between = left[(to[left] != x[left]) & np.isfinite(below[left]) & np.isfinite(above[left])]
                middle = 0.5 * (below[between] + above[between])
                is_done = above[between] - below[between] <= small * np.abs(middle)
                to[between] = np.where(is_done, x[between], middle)
            left = left[to[left] != x[left]]  # settled, or cut to nothing
            if not len(left):
                break
            trial, before = evaluate(left, to[left]), T[left]
            cost, score = before[:, -1], trial[:, line.score]
            if patience is not None:
                below[left] = np.maximum(below[left], np.where(score > 0.0, to[left], -np.inf))
                above[left] = np.minimum(above[left], np.where(score > 0.0, np.inf, to[left]))
            blur = 2.0 * rounding[left] * np.sqrt(cost)
            taken = trial[:, -1] <= cost + blur
            # Neither the cost nor the score falls any further: what is left is rounding.
            is_level = np.abs(score) >= 0.5 * np.abs(before[:, line.score])
            exhausted = taken & (cost - trial[:, -1] <= blur) & is_level
            better, worse = left[taken], left[~taken]
            x[better], T[better] = to[better], trial[taken]
            to[worse] = x[worse] + 0.25 * (to[worse] - x[worse])
            fresh[left] = taken
            left = left[~exhausted] if patience is None else left
    return x, T
