"""Two of Heston's variances on bent contours: the shape of a slice whose law is a sum of two.

    ln cf = ln cf_1 + ln cf_2

Each part falls like a Gaussian's as long as u is below its rate (1/T + kappa) / sigma, and exponentially beyond:

    -ln |cf(u)| ~ 2 g (Re sqrt(1 - 2 i rho y + (1 - rho^2) y^2) - 1),    y = u / rate

The sum of the two gives the end, the frequency at which |cf| has fallen to exp(-LEVEL). A part moves k* only if it has
left its Gaussian range by then: a variance with a small vol of vol has its own k* far beyond all strikes, does not move
the kink of the other, and smooths it to about LEVEL / end. So each k* counts by y^2 / (1 + y^2) at the end, and the
width of cells is limited by that smoothness.

Over 2,000 draws from the bounds with correlations of 0.8 to 0.999 in size, contours and the line agree to 2e-13 of the
forward; over 300 ordinary ones to 3e-13.

native/double_heston.hpp is the same, compiled; the two agree to rounding. Strikes that have no contour are priced on
the line (affine.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from strikeout.kernels import contours, heston_cf, heston_twin
from strikeout.kernels.arrays import Complexes, Floats
from strikeout.kernels.contours import LEVEL

VERSION = 1  # of the shape: another one moves the last bits of a price
STEPS = 8  # of the search for the end, after which it is known to half a per cent
SMOOTH = 1.5  # times LEVEL / end: as far as cells may treat the slice as smooth
FARTHEST = 1e150


def rows(theta: Floats, parts: heston_twin.Parts) -> Floats:
    """Return out-of-the-money value over the discounted forward, and its derivatives: ``(11, n)``.

    Not-a-number if a strike has no contour.
    """
    return heston_twin.rows_of(DoubleHeston(theta), parts, 11)


@dataclass(frozen=True, eq=False)
class DoubleHeston:
    """The law of two variances; theta is the first one's parameters, then the second one's."""

    theta: Floats

    def shape(self, t: float) -> contours.Shape:
        first, second = (contours.heston_part(t, tuple(part.tolist())) for part in self._parts)
        variance = first.variance + second.variance
        end = sqrt(2.0 * LEVEL / variance)
        while _decay(end, first) + _decay(end, second) < LEVEL and end < FARTHEST:
            end *= 2.0
        below = 0.5 * end
        for _ in range(STEPS):
            middle = 0.5 * (below + end)
            is_short = _decay(middle, first) + _decay(middle, second) < LEVEL
            below, end = (middle, end) if is_short else (below, middle)
        both = contours.Part(
            variance=variance,
            rate=0.0,
            rho=max(first.rho, second.rho, key=abs),
            kstar=_weighed(end, first) + _weighed(end, second),
            g=max(first.g, second.g),
            decay=LEVEL / end,
            core=min(first.core + second.core, SMOOTH * (LEVEL / end)),
        )
        return contours.shape_of(t, both)

    def log_mgf(self, p: Floats, T: Floats) -> Floats:
        first, second = (heston_cf.log_mgf(p, T, part) for part in self._parts)
        return first + second

    def log_cf(self, z: Complexes, q: Complexes, T: Complexes) -> tuple[Complexes, Complexes]:
        (first, by_first), (second, by_second) = (heston_cf.log_cf(z, q, T, part) for part in self._parts)
        return first + second, np.concatenate([by_first, by_second])

    @property
    def _parts(self) -> tuple[Floats, Floats]:
        return self.theta[:5], self.theta[5:]


def _decay(u: float, part: contours.Part) -> float:
    y = u / max(part.rate, 1e-300)
    re, im = 1.0 + (1.0 - part.rho * part.rho) * (y * y), 2.0 * part.rho * y
    return 2.0 * part.g * (sqrt(0.5 * (sqrt(re * re + im * im) + re)) - 1.0)


def _weighed(end: float, part: contours.Part) -> float:
    y = part.rate / end
    return part.kstar / (1.0 + y * y)
