"""Check a Gauss-Newton step: where it leads, how well that is determined, and whether it stays in bounds.

    symbol     meaning                                                                          shape
    H, G       curvature and score of the retained quotes at the reference; cost there
    d          the step, H d = G                                                                p
    solved     the upper triangle, row by row, of (H, G; G', cost), then d                      (p+1)(p+2)/2 + p
    limits     of each parameter: reference, size, error beyond which it is free, bounds        5, p
    freedom    quotes less parameters
    inflation  of a variance by the other parameters, [H^-1]_ii H_ii, from which on they cannot be distinguished
    far        a step is near if it moves no parameter by more than this share of its size
    s^2        variance of a weighted residual: (cost - G'd) / freedom after a step that is near, else cost / freedom

Nothing is raised. A step that is not a number is not near, and outside.
"""

from __future__ import annotations

from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.compiled import native
from strikeout.kernels.symmetric import inverse_twin

Floats = NDArray[np.float64]


class Judged(NamedTuple):
    """``reference + d``; ``s sqrt([H^-1]_ii)``; whether d is near; numbers of parameters not determined, not in bounds.

    A parameter is free if others can imitate it, if there are no more quotes than parameters, or, where the step is
    near, if its standard error is beyond its limit: farther away the noise is not known.
    """

    values: list[float]
    errors: list[float]
    is_near: bool
    free: list[int]
    outside: list[int]


def judged(solved: Floats, limits: Floats, freedom: int, *, inflation: float, far: float) -> Judged:
    """Return the step judged. One call of the kernel: it takes less time than the step itself."""
    module = native()
    if module is None:
        return judged_twin(solved, limits, freedom, inflation=inflation, far=far)
    return Judged(*module.judged(solved, limits, freedom, inflation, far))


def judged_twin(solved: Floats, limits: Floats, freedom: int, *, inflation: float, far: float) -> Judged:
    """``judged`` without compiled code, and its definition."""
    p = limits.size // 5
    numbers = solved.tolist()
    reference, size, beyond, low, high = limits.reshape(5, p).tolist()
    d, A, at, taken, is_near = numbers[-p:], [[0.0] * p for _ in range(p)], 0, 0.0, True
    for i in range(p):
        for j in range(i, p):
            A[i][j] = A[j][i] = numbers[at]
            at += 1
        taken += numbers[at] * d[i]
        at += 1
        change = abs(d[i])
        share = change / size[i] if size[i] > 0.0 else 0.0 if change == 0.0 else inf
        is_near = is_near and isfinite(share) and share <= far
    unscaled = inverse_twin(A)
    cost = numbers[at] - taken if is_near else numbers[at]
    noise = inf if freedom <= 0 else (0.0 if cost < 0.0 else cost) / freedom
    found = Judged([], [], is_near, [], [])
    for i in range(p):
        each, value = unscaled[i][i], reference[i] + d[i]
        variance = each * noise
        error = sqrt(variance) if variance >= 0.0 else inf
        found.values.append(value)
        found.errors.append(error)
        # As many quotes as parameters, or fewer, are met whatever the parameters are worth: nothing is known of them.
        is_lost = freedom <= 0 or not each * A[i][i] < inflation
        if is_lost or (is_near and not error <= beyond[i]):
            found.free.append(i)
        if not low[i] < value < high[i]:
            found.outside.append(i)
    return found
