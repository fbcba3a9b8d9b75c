"""Losses: a residual is charged its square, or less than its square beyond a threshold (Huber, soft-L1, Cauchy, Tukey).

A loss sees weighted residuals ``e = sqrt(w) r`` and gives arrays: what they cost (rho, scaled so that a small
residual costs e^2), how they pull (psi = rho'/2), how they stiffen (psi') and their weight in iteratively reweighted
least squares (psi / e). With u = e / c, c the threshold:

    loss      cost                             psi                 psi'                       c / scale
    huber     e^2, or c (2 |e| - c) beyond c   e, or c beyond      1, or 0 beyond             1.345
    soft-l1   2 c^2 (sqrt(1 + u^2) - 1)        e / sqrt(1 + u^2)   (1 + u^2)^(-3/2)           1.2871
    cauchy    c^2 ln(1 + u^2)                  e / (1 + u^2)       (1 - u^2) / (1 + u^2)^2    2.3849
    tukey     c^2 / 3 (1 - (1 - u^2)^3)        e (1 - u^2)^2       (1 - u^2) (1 - 5 u^2)      4.6851
              c^2 / 3 beyond c                 0 beyond            0 beyond

Each constant gives 95 % of the efficiency of least squares if the noise is normal (a test computes them again). The
pull of the last two falls again for large residuals (they redescend), so their cost has several optima.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Protocol, runtime_checkable

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats
from strikeout.kernels.elementary import log1p
from strikeout.text import Argument

# The median absolute deviation of a normal variable, in standard deviations, is 1 / 1.4826.
NORMAL_MAD = 1.482602218505602
SQUARED = "squared"


class Loss(Protocol):
    """Charges weighted residuals."""

    @property
    def name(self) -> str: ...

    def cost(self, e: Floats) -> Floats: ...

    def pull(self, e: Floats) -> Floats: ...

    def stiffness(self, e: Floats) -> Floats: ...


@runtime_checkable
class RobustLoss(Loss, Protocol):
    """A loss that charges large residuals less than their square."""

    @property
    def threshold(self) -> float: ...

    def weight(self, e: Floats) -> Floats: ...


@dataclass(frozen=True)
class Squared:
    """Every residual is charged its square."""

    name: str = SQUARED

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

    def weight(self, e: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.minimum(1.0, self.threshold / np.abs(e))


@dataclass(frozen=True)
class SoftL1:
    """A smooth form of Huber's loss: squared for small residuals, linear for large ones."""

    threshold: float
    name: str = "soft-l1"

    def cost(self, e: Floats) -> Floats:
        # sqrt(1 + u^2) - 1 without the cancellation of small u
        return 2.0 * e * e / (1.0 + self._root(e))

    def pull(self, e: Floats) -> Floats:
        return e / self._root(e)

    def stiffness(self, e: Floats) -> Floats:
        root = self._root(e)
        return 1.0 / (root * root * root)

    def weight(self, e: Floats) -> Floats:
        return 1.0 / self._root(e)

    def _root(self, e: Floats) -> Floats:
        u = e / self.threshold
        return np.sqrt(1.0 + u * u)


@dataclass(frozen=True)
class Cauchy:
    """The negative log-likelihood of Cauchy's distribution: a large residual costs the logarithm of its square."""

    threshold: float
    name: str = "cauchy"

    def cost(self, e: Floats) -> Floats:
        return np.asarray(self.threshold * self.threshold * log1p(self._square(e)))

    def pull(self, e: Floats) -> Floats:
        return e / (1.0 + self._square(e))

    def stiffness(self, e: Floats) -> Floats:
        weight = 1.0 / (1.0 + self._square(e))
        return weight * (2.0 * weight - 1.0)

    def weight(self, e: Floats) -> Floats:
        return 1.0 / (1.0 + self._square(e))

    def _square(self, e: Floats) -> Floats:
        u = e / self.threshold
        return u * u


@dataclass(frozen=True)
class Tukey:
    """Tukey's biweight: beyond the threshold every residual costs the same and does not pull."""

    threshold: float
    name: str = "tukey"

    def cost(self, e: Floats) -> Floats:
        # (1 - (1 - v)^3) / 3 without the cancellation of small v = u^2
        u = e / self.threshold
        v = np.minimum(u * u, 1.0)
        return self.threshold * self.threshold * v * (1.0 - v + v * v / 3.0)

    def pull(self, e: Floats) -> Floats:
        left = self._left(e)
        return e * (left * left)

    def stiffness(self, e: Floats) -> Floats:
        left = self._left(e)
        return left * (5.0 * left - 4.0)

    def weight(self, e: Floats) -> Floats:
        left = self._left(e)
        return left * left

    def _left(self, e: Floats) -> Floats:
        """Return 1 - u^2, not below zero."""
        u = e / self.threshold
        return np.maximum(1.0 - u * u, 0.0)


@dataclass(frozen=True)
class Reweighted:
    """A robust loss as a search sees it: the curvature is that of reweighted least squares.

    It is never negative, and a step with it never overshoots the cost of a model that is linear in its parameters.
    psi' of a loss that redescends is negative for large residuals.
    """

    loss: RobustLoss

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def threshold(self) -> float:
        return self.loss.threshold

    def cost(self, e: Floats) -> Floats:
        return self.loss.cost(e)

    def pull(self, e: Floats) -> Floats:
        return self.loss.pull(e)

    def stiffness(self, e: Floats) -> Floats:
        return self.loss.weight(e)

    def weight(self, e: Floats) -> Floats:
        return self.loss.weight(e)


# The threshold in robust standard deviations, by name; see the table above.
TUNINGS = {"huber": 1.345, "soft-l1": 1.2870992242661911, "cauchy": 2.3849471193621575, "tukey": 4.685064948543376}
TUNING = TUNINGS["huber"]
_KINDS: dict[str, Callable[[float], RobustLoss]] = {"huber": Huber, "soft-l1": SoftL1, "cauchy": Cauchy, "tukey": Tukey}
NAMES = (SQUARED, *_KINDS)
REDESCENDING = frozenset({"cauchy", "tukey"})


@dataclass(frozen=True)
class AskedLoss:
    """What ``loss=`` of ``calibrate`` asks for: a kind, and the scale of a residual; None to measure it.

    >>> AskedLoss.of("tukey:0.02")
    AskedLoss(kind='tukey', scale=0.02)
    """

    kind: str
    scale: float | None = None

    @staticmethod
    def of(text: str) -> AskedLoss:
        """Return what a text asks for: "squared", or one of the others with or without its scale: "huber:0.02"."""
        kind, colon, scale = text.partition(":") if isinstance(text, str) else (text, "", "")
        if kind not in NAMES or (colon and kind == SQUARED):
            raise UsageError(
                Argument("loss", text), f" is unknown. Use one of {', '.join(NAMES)}, or with a scale: huber:0.02."
            )
        try:
            value = float(scale) if colon else None
        except ValueError:
            value = -1.0
        if value is not None and not (value > 0.0 and isfinite(value)):
            raise UsageError(
                Argument("loss", text), ": the scale of a residual is a number above zero. Give huber:0.02, or huber."
            )
        return AskedLoss(kind, value)

    @property
    def is_robust(self) -> bool:
        return self.kind != SQUARED

    @property
    def redescends(self) -> bool:
        """Whether large residuals pull less than smaller ones, so that there may be several optima."""
        return self.kind in REDESCENDING

    @property
    def tuning(self) -> float:
        """The threshold over the scale of a residual."""
        return TUNINGS[self.kind]

    def at(self, threshold: float) -> RobustLoss:
        """Return the loss with this threshold."""
        return _KINDS[self.kind](threshold)


LEAST_SQUARES = AskedLoss(SQUARED)


def loss_with(text: str, threshold: float | None) -> Loss:
    """Return the loss that a calibration ended with, from the text of its settings and its threshold.

    >>> loss_with("huber:0.02", 0.0269)
    Huber(threshold=0.0269, name='huber')
    """
    return Squared() if threshold is None else AskedLoss.of(text).at(threshold)


def redescends(loss: Loss) -> bool:
    """Return whether large residuals pull less than smaller ones."""
    return loss.name in REDESCENDING


def robust_scale(e: Floats) -> float:
    """Return the standard deviation of the bulk: 1.4826 times the median of ``|e|``, which half the residuals cannot
    move."""
    return NORMAL_MAD * float(np.median(np.abs(e)))


def noise_variance(loss: Loss, e: Floats, free: int) -> float:
    """Return the variance s^2 of a weighted residual for which ``s^2 H^-1`` is the covariance of the parameters.

    Squared loss: ``sum e^2 / (n - p)``. Otherwise the sandwich for independent residuals, with H built from psi':
    ``sum psi^2 / (n - p) / mean(psi')``. Not-a-number if nothing is left to estimate it from.
    """
    pull, stiff = loss.pull(e), float(np.mean(loss.stiffness(e)))
    if len(e) <= free or stiff <= 0.0:
        return float("nan")
    return float(np.add.reduce(pull * pull)) / (len(e) - free) / stiff
