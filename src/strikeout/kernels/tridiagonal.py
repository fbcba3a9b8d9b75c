"""Symmetric positive definite systems with three diagonals, in time linear in their size and in a fixed order.

    symbol  meaning                                             shape
    a       the diagonal                                        n
    b       beside it: b_i couples i and i + 1                  n - 1
    R       right-hand sides, a row an unknown                  n x m
    d       pivots from the top, d_i = a_i - b_(i-1)^2 / d_(i-1)
    e       pivots from the bottom

Nothing is raised: what is not positive definite comes back as not-a-number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def solve(a: Floats, b: Floats, R: Floats) -> Floats:
    """X with ``A X = R``."""
    d = _pivots(a, b)
    X = np.array(R, float)
    for i in range(1, len(a)):
        X[i] = X[i] - (b[i - 1] / d[i - 1]) * X[i - 1]
    X[-1:] = X[-1:] / d[-1:, None]
    for i in range(len(a) - 2, -1, -1):
        X[i] = (X[i] - b[i] * X[i + 1]) / d[i]
    return X


def inverse_diagonal(a: Floats, b: Floats) -> Floats:
    """Return the diagonal of the inverse: ``1 / (d_i + e_i - a_i)``, each from the pivots above and below it."""
    d, e = _pivots(a, b), _pivots(a[::-1], b[::-1])[::-1]
    out: Floats = 1.0 / (d + e - a)
    return out


def _pivots(a: Floats, b: Floats) -> Floats:
    d = np.empty(len(a))
    last = np.inf
    for i, x in enumerate(a.tolist()):
        pivot = x - (b[i - 1] * b[i - 1] / last if i else 0.0)
        d[i] = last = pivot if pivot > 0.0 else np.nan
    return d
