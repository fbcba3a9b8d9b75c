"""When a step is negligible: in standard errors, or against rounding.

symbol  meaning
reach   sqrt(G' H^-1 G): the length of the Gauss-Newton step in the metric of the curvature. Over the standard
        deviation of a weighted residual it is that step in standard errors, whatever the parameters' units
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

from strikeout.calibration.termination import Termination

TOLERANCE = 1e-8  # standard errors

# Rounding of one residual relative to discount * forward. A pricing kernel that chooses its nodes by theta jumps by
# about this much, so costs closer than that makes them cannot be told apart, and the score has to judge a step.
JITTER = 1e-13
# A reach this small against the size of the quotes is their own rounding: residuals that vanish end here.
ROUNDING = 2e-16
# Where no step helps any more, a reach below this many standard errors is taken for rounding.
SMALL = 1e-5


@dataclass(frozen=True)
class Yardstick:
    """What the cost of a problem can resolve.

    Args:
        freedom: quotes less free parameters.
        magnitude: the size of what is summed (``Objective.magnitude``).
        noise: standard deviation of a weighted residual, where the cost is no estimate of it.
        tolerance: in standard errors.
    """

    freedom: int
    magnitude: float
    noise: float | None = None
    tolerance: float = TOLERANCE

    def standard_errors(self, reach: float, cost: float) -> float:
        """A reach in standard errors; zero where both are zero."""
        noise = self._noise(cost)
        return reach / noise if noise > 0.0 else (0.0 if reach == 0.0 else float("inf"))

    def blur(self, cost: float) -> float:
        """A fall of the cost that rounding could have made."""
        jitter = JITTER * self.magnitude
        return 1e-14 * cost + 2.0 * jitter * sqrt(cost if cost > 0.0 else 0.0) + jitter * jitter

    def ended(self, reach: float, cost: float) -> Termination | None:
        """Converged, not finite, or None: go on."""
        if not isfinite(cost):
            return Termination.NOT_FINITE
        if reach <= self.tolerance * self._noise(cost):
            return Termination.CONVERGED
        return Termination.CONVERGED_TO_ROUNDING if reach <= ROUNDING * self.magnitude else None

    def resolved(self, reach: float, cost: float) -> Termination:
        """No step helps any more: converged if what is left is rounding, else stalled."""
        rounding = reach <= SMALL * self._noise(cost) or reach <= JITTER * self.magnitude
        return Termination.CONVERGED_TO_ROUNDING if rounding else Termination.STALLED

    def _noise(self, cost: float) -> float:
        # A cost read out of subtracted moments may lie below zero by its rounding.
        return self.noise if self.noise is not None else sqrt((cost if cost > 0.0 else 0.0) / self.freedom)
