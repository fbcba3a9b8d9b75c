"""The Feller condition, ``2 mean_reversion long_variance >= vol_of_vol^2``: variance never touches zero.

    symbol  meaning
    omega   vol_of_vol / sqrt(2 mean_reversion long_variance); the condition is omega <= 1
    c_k     derivative of the parameter that omega replaces, by free coordinate k

To enforce it, omega takes the place of vol_of_vol (of mean_reversion where vol_of_vol is fixed), and the condition is
a plain upper bound: a search that ends on it ends at a true constrained optimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

MEAN_REVERSION, LONG_VARIANCE, VOL_OF_VOL = "mean_reversion", "long_variance", "vol_of_vol"
CHOICES = ("warn", "enforce", "ignore")
NAMES = (MEAN_REVERSION, LONG_VARIANCE, VOL_OF_VOL)


def feller_ratio(parameters: Mapping[str, float]) -> float | None:
    """``2 mean_reversion long_variance / vol_of_vol^2``, at least one where the condition holds; None without these."""
    if not all(name in parameters for name in NAMES):
        return None
    sigma = parameters[VOL_OF_VOL]
    return 2.0 * parameters[MEAN_REVERSION] * parameters[LONG_VARIANCE] / (sigma * sigma)


@dataclass(frozen=True)
class FellerShare:
    """omega in the place of one parameter; the numbers are places in the parameter vector."""

    mean_reversion: int
    long_variance: int
    vol_of_vol: int
    replaced: int  # vol_of_vol, or mean_reversion

    def omega(self, theta: Sequence[float]) -> float:
        return theta[self.vol_of_vol] / sqrt(2.0 * theta[self.mean_reversion] * theta[self.long_variance])

    def value(self, theta: Sequence[float], omega: float) -> float:
        """Return the replaced parameter, given the others and omega."""
        if self.replaced == self.vol_of_vol:
            return omega * sqrt(2.0 * theta[self.mean_reversion] * theta[self.long_variance])
        sigma = theta[self.vol_of_vol]
        return sigma * sigma / (2.0 * theta[self.long_variance] * omega * omega)

    def slopes(self, theta: Sequence[float], omega: float) -> dict[int, float]:
        """Return the derivatives c_k of the replaced parameter; its own place holds the one by omega."""
        x = theta[self.replaced]
        if self.replaced == self.vol_of_vol:
            return {
                self.mean_reversion: 0.5 * x / theta[self.mean_reversion],
                self.long_variance: 0.5 * x / theta[self.long_variance],
                self.replaced: x / omega,
            }
        return {self.long_variance: -x / theta[self.long_variance], self.replaced: -2.0 * x / omega}
