"""How a residual is charged: squared, or squared up to a threshold and linear beyond it (Huber).

A loss sees weighted residuals ``e = sqrt(w) r`` and gives three arrays: what they cost (rho, scaled so that a small
residual costs e^2), how they pull (psi = rho'/2) and how they stiffen (psi').
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Huber's constant: 95 % of the efficiency of least squares when the noise is normal after all.
TUNING = 1.345
# The median absolute deviation of a normal variable, in standard deviations, is 1 / 1.4826.
NORMAL_MAD = 1.482602218505602


class Loss(Protocol):
    """Charges weighted residuals."""

    @property
    def name(self) -> str: ...

    def cost(self, e: Floats) -> Floats: ...

    def pull(self, e: Floats) -> Floats: ...

    def stiffness(self, e: Floats) -> Floats: ...


@dataclass(frozen=True)
class Squared:
    """Every residual is charged its square."""

    name: str = "squared"

    def cost(self, e: Floats) -> Floats:
        return e * e

    def pull(self, e: Floats) -> Floats:
        return e

    def stiffness(self, e: Floats) -> Floats:
        return np.ones_like(e)


@dataclass(frozen=True)
class Huber:
    """A residual is charged its square up to ``threshold`` and linearly beyond.

    The stiffness is psi' (one inside, zero outside), the true second derivative. Weighting the outliers' rows by
    ``threshold / |e|`` instead would overstate how well they determine the parameters.
    """

    threshold: float
    name: str = "huber"

    def cost(self, e: Floats) -> Floats:
        size = np.abs(e)
        return np.where(size <= self.threshold, e * e, self.threshold * (2.0 * size - self.threshold))

    def pull(self, e: Floats) -> Floats:
        return np.clip(e, -self.threshold, self.threshold)

    def stiffness(self, e: Floats) -> Floats:
        return (np.abs(e) <= self.threshold).astype(float)


def robust_scale(e: Floats) -> float:
    """The standard deviation of the bulk: 1.4826 times the median of ``|e|``, which half the residuals cannot move."""
    return NORMAL_MAD * float(np.median(np.abs(e)))


def noise_variance(loss: Loss, e: Floats, free: int) -> float:
    """The variance s^2 of a weighted residual for which ``s^2 H^-1`` is the covariance of the parameters.

    Squared loss: ``sum e^2 / (n - p)``. Otherwise the sandwich for independent residuals, with H built from psi':
    ``sum psi^2 / (n - p) / mean(psi')``. Not-a-number if nothing is left to estimate it from.
    """
    pull, stiff = loss.pull(e), float(np.mean(loss.stiffness(e)))
    if len(e) <= free or stiff <= 0.0:
        return float("nan")
    return float(np.add.reduce(pull * pull)) / (len(e) - free) / stiff
