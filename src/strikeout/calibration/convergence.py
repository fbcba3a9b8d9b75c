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

# A reach below this share of the rounding of the residuals is as good as zero: residuals that vanish end here.
NOTHING = 2e-3
# If no step helps any more, a reach below this many standard errors is taken for rounding.
SMALL = 1e-5


@dataclass(frozen=True)
class Convergence:
    """What the cost of a problem can resolve.

    Args:
        freedom: quotes less free parameters.
        rounding: the length of the rounding errors of all weighted residuals (``Objective.rounding``).
        noise: standard deviation of a weighted residual, if the cost does not estimate it.
        tolerance: in standard errors.
    """

    freedom: int
    rounding: float
    noise: float | None = None
    tolerance: float = TOLERANCE

    def standard_errors(self, reach: float, cost: float) -> float:
        """Return a reach in standard errors; zero if both are zero."""
        noise = self._noise(cost)
        return reach / noise if noise > 0.0 else (0.0 if reach == 0.0 else float("inf"))

    def blur(self, cost: float) -> float:
        """Return a fall of the cost that rounding could have made."""
        return 1e-14 * cost + 2.0 * self.rounding * sqrt(cost if cost > 0.0 else 0.0) + self.rounding * self.rounding

    def ended(self, reach: float, cost: float) -> Termination | None:
        """Converged, not finite, or None: go on."""
        if not isfinite(cost):
            return Termination.NOT_FINITE
        if reach <= self.tolerance * self._noise(cost):
            return Termination.CONVERGED
        return Termination.CONVERGED_TO_ROUNDING if reach <= NOTHING * self.rounding else None

    def resolved(self, reach: float, cost: float) -> Termination:
        """No step helps any more: converged if what is left is rounding, else stalled."""
        # A reach is the length of the residuals along their sensitivities: rounding errors of the residuals add at most
        # their own length to it.
        is_rounding = reach <= SMALL * self._noise(cost) or reach <= self.rounding
        return Termination.CONVERGED_TO_ROUNDING if is_rounding else Termination.STALLED

    def _noise(self, cost: float) -> float:
        # A cost read out of subtracted moments may lie below zero by its rounding.
        return self.noise if self.noise is not None else sqrt((cost if cost > 0.0 else 0.0) / self.freedom)
