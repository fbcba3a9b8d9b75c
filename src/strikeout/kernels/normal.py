"""The normal distribution and the complementary error function, to about two units in the last place, far tails too.

    x   a standard normal value, any shape
    z   an argument of erfc; the two are linked by z = -x / sqrt(2)
    E   erfcx(z) = exp(z^2) erfc(z), between 0 and 1 for z >= 0: what is left of erfc when its size is taken out

Everything depends on one polynomial: (1 + 2 z) E(z) is tame on the whole half-line (between 1 and 1.29), and after
y = (z - 3.5) / (z + 3.5) a polynomial of degree 23 in y holds it to 4e-17. The variable and the factor 1 + 2 z are
those of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (Math. Comp. 36, 1981); the
coefficients are our own, by Chebyshev interpolation in 40 digits (tests/kernels/test_normal.py derives them again).

Elementwise throughout: a value never depends on its neighbours. Nothing raises; not-a-number in, not-a-number out.

Student's distribution with a whole number of degrees of freedom.
"""

from __future__ import annotations

from math import inf, pi

import numpy as np
from numpy.typing import ArrayLike

from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import native
from strikeout.kernels.elementary import atan2, sqrt

CENTRE = 3.5  # the z at which y = 0; near 3.5 the coefficients fall fastest
COEFFICIENTS = (
    1.2423492448711544,
    -0.14000918013761943,
    -0.010555596332221952,
    0.09751909515326224,
    -0.11508959816001958,
    0.08798315382467885,
    -0.0488233258310565,
    0.019099330945601945,
    -0.004215019878405747,
    -0.00030226790250868746,
    0.0005643842605299897,
    -0.00012151232760165049,
    -4.2781721628905614e-05,
    2.4260839884956625e-05,
    2.3272968965569266e-06,
    -3.814933907984698e-06,
    -4.3051702801470573e-08,
    6.025096057081062e-07,
    -8.641744973204816e-09,
    -9.711971328975727e-08,
    6.778448793564802e-10,
    1.3911592311296799e-08,
    5.811094619015422e-11,
    -1.2155186967957756e-09,
)  # of y^0, y^1, ... y^23

_ERFCX = np.array(COEFFICIENTS)

SQRT_HALF = 0.7071067811865476
INVERSE_SQRT_TWO_PI = 0.3989422804014327
HALLEY_STEPS = 3  # of third order, from 4.5e-4 times up to 38, the slope of ln of the tail: the third ends at rounding


def cdf(x: ArrayLike) -> Floats:
    """Return the probability that a standard normal value is at most x.

    >>> float(cdf(0.0))
    0.5
    """
    module, x = native(), np.asarray(x, np.float64)
    if module is None:
        return cdf_twin(x)
    out = np.empty(x.shape)
    module.normal_cdf(np.ascontiguousarray(x).reshape(-1), _ERFCX, CENTRE, out.reshape(-1))
    return out


def cdf_twin(x: Floats) -> Floats:
    """``cdf`` without compiled code, and its definition: what is compiled has these bits."""
    with np.errstate(all="ignore"):
        # Not erfc(-x / sqrt(2)): rounding that quotient costs x^2 units in the last place of the tail.
        tail = 0.5 * _gaussian(x) * erfcx_right(np.abs(x) * SQRT_HALF)
        return np.where(x > 0, 1.0 - tail, tail)


def density(x: ArrayLike) -> Floats:
    """Return the standard normal density exp(-x^2 / 2) / sqrt(2 pi).

    >>> float(density(0.0))
    0.3989422804014327
    """
    module, x = native(), np.asarray(x, np.float64)
    if module is None:
        return density_twin(x)
    out = np.empty(x.shape)
    module.normal_density(np.ascontiguousarray(x).reshape(-1), out.reshape(-1))
    return out


def density_twin(x: Floats) -> Floats:
    """``density`` without compiled code, and its definition."""
    with np.errstate(all="ignore"):
        return _gaussian(x) * INVERSE_SQRT_TWO_PI


def quantile(p: ArrayLike) -> Floats:
    """Return the standard normal value x with probability p of being at most x; -inf at 0, inf at 1.

    Right to about 2e-15 of max(1, |x|). Abramowitz and Stegun's formula 26.2.23 (off by 4.5e-4), then Halley's steps on
    the tail, which is never found as one minus something.

    >>> float(quantile(0.5)), round(float(quantile(0.975)), 12)
    (0.0, 1.95996398454)
    """
    p = np.asarray(p, np.float64)
    q = np.where(p < 0.5, p, 1.0 - p)
    with np.errstate(all="ignore"):
        t = np.sqrt(-2.0 * elementary.log(q))
        above, below = (0.010328 * t + 0.802853) * t + 2.515517, ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1.0
        x = np.maximum(t - above / below, 0.0)
        for _ in range(HALLEY_STEPS):
            u = (cdf(-x) - q) / density(x)
            x = x + np.where(np.isfinite(u), u / (1.0 - 0.5 * x * u), 0.0)
        x = np.where(q == 0.5, 0.0, np.where(q == 0.0, np.inf, x))
        return np.where((p >= 0.0) & (p <= 1.0), np.where(p < 0.5, -x, x), np.nan)


def erfcx_right(z: Floats) -> Floats:
    """Return erfcx(z) for z >= 0: one polynomial, one branch."""
    y = 1.0 - 2.0 * CENTRE / (z + CENTRE)  # this form and not (z - c) / (z + c): it is right at infinity too
    total = COEFFICIENTS[-1] * y
    for coefficient in COEFFICIENTS[-2:0:-1]:
        total += coefficient
        total *= y
    total += COEFFICIENTS[0]
    total /= 1.0 + 2.0 * z
    return total


def _gaussian(z: Floats) -> Floats:
    """exp(-z^2 / 2) to the last place: z^2 rounded once would cost z^2 units of it.

    W. J. Cody's device: z = u + v with u a multiple of 1/16, so that u^2 is exact, and z^2 = u^2 + v (z + u).
    """
    z = np.minimum(np.abs(z), 64.0)  # exp(-64^2 / 2) is already 0
    u = np.rint(16.0 * z) / 16.0
    whole: Floats = elementary.exp(-0.5 * u * u) * elementary.exp(-0.5 * ((z - u) * (z + u)))
    return whole


LARGE = 1000  # degrees of freedom beyond which the normal quantile is right to three digits


def probability_within(t: float, freedom: int) -> float:
    """Return the probability that a Student variable lies within -t and t, by its finite sum of cosines.

    Abramowitz and Stegun, 26.7.3 and 26.7.4.

    >>> round(probability_within(1.0, 1), 12), round(probability_within(2.2281388520, 10), 9)
    (0.5, 0.95)
    """
    theta = float(atan2(t, sqrt(float(freedom))))
    square = freedom / (freedom + t * t)  # cos^2
    sine = t / float(sqrt(freedom + t * t))
    if freedom % 2:
        term, total = float(sqrt(square)), 0.0
        for k in range(1, (freedom - 1) // 2 + 1):
            total += term
            term *= square * (2.0 * k) / (2.0 * k + 1.0)
        return 2.0 / pi * (theta + sine * total)
    term, total = 1.0, 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= square * (2.0 * k - 1.0) / (2.0 * k)
    return sine * total


def two_sided(level: float, freedom: int) -> float:
    """Return t such that a Student variable lies within -t and t with this probability.

    >>> round(two_sided(0.95, 10), 6), round(two_sided(0.95, 10**6), 3)
    (2.228139, 1.96)
    """
    if freedom > LARGE:
        return float(quantile(0.5 + 0.5 * level))
    if freedom < 1:
        return inf
    low, high = 0.0, 1.0
    while probability_within(high, freedom) < level:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if probability_within(middle, freedom) < level else (low, middle)
    return 0.5 * (low + high)
