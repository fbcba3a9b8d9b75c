"""How far a step may be trusted: a state machine with two moves, and nothing else in it."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST = 1e-15
FIRST_GROWTH = 4.0


@dataclass(frozen=True)
class Damping:
    """The damping of Levenberg-Marquardt, ``H + value * D``, and how fast it grows when steps fail.

    A step that lowers the cost about as promised divides the damping by up to 50, so that the last steps are
    Gauss-Newton's; one that delivers less keeps or raises it; one that fails multiplies it, twice as fast each time
    in a row. The first success after a failure divides it by 3 at most: what just failed is not tried again at once.

    >>> Damping().after_success(gain=1.0).value < Damping().value < Damping().after_failure().value
    True
    """

    value: float = 1e-3
    growth: float = FIRST_GROWTH

    def after_success(self, gain: float) -> Damping:
        """``gain`` is the fall of the cost over the fall that was promised."""
        if gain > 0.9:
            factor = 0.02
        elif gain > 0.5:
            factor = 0.2
        elif gain > 0.2:
            factor = 1.0
        else:
            factor = 4.0
        if self.growth > FIRST_GROWTH:
            factor = max(factor, 0.3)
        return Damping(max(self.value * factor, SMALLEST))

    def after_failure(self) -> Damping:
        return Damping(max(self.value, 1e-6) * self.growth, self.growth * 2.0)


@dataclass(frozen=True)
class WaryDamping:
    """Damping for starts from afar: begins as large as the curvature, and no success divides it by more than 3.

    Nielsen (1999), "Damping parameter in Marquardt's method": the factor follows the gain smoothly, so that a step
    which delivers half of what it promised changes nothing.

    >>> WaryDamping().after_success(gain=0.5).value == WaryDamping().value
    True
    """

    value: float = 1.0
    growth: float = 2.0

    def after_success(self, gain: float) -> WaryDamping:
        """``gain`` is the fall of the cost over the fall that was promised."""
        beyond = 2.0 * gain - 1.0
        return WaryDamping(max(self.value * max(1.0 / 3.0, 1.0 - beyond * beyond * beyond), SMALLEST))

    def after_failure(self) -> WaryDamping:
        return WaryDamping(self.value * self.growth, self.growth * 2.0)
