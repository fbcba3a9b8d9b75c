"""Student's distribution with a whole number of degrees of freedom."""

from __future__ import annotations

from math import inf, pi

from strikeout.kernels.elementary import atan2, sqrt
from strikeout.kernels.normal import quantile as normal_quantile

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
        return float(normal_quantile(0.5 + 0.5 * level))
    if freedom < 1:
        return inf
    low, high = 0.0, 1.0
    while probability_within(high, freedom) < level:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if probability_within(middle, freedom) < level else (low, middle)
    return 0.5 * (low + high)
