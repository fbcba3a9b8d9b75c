"""Small symmetric positive definite systems, the same bits everywhere.

    symbol  meaning                                             shape
    A       symmetric, positive definite: a curvature           p x p, rows of floats
    d       Jacobi scaling, d_i = A_ii ** -0.5                  p
    S       d A d, unit diagonal; damping is added to it here   p x p
    L       lower Cholesky factor of S + damping * I            p rows of 1 .. p floats

Plain floats in a fixed order, because a BLAS or a fused multiply-add may change the last bit, and parameters solved
from a curvature have to be reproducible. The compiled kernel has the same operations in the same order.
Nothing is raised: what cannot be solved comes back as not-a-number.

The Gauss-Newton step of an exact state, solved in integers: every digit of it is right.

    symbol      meaning                                                                  shape
    sums        upper triangle of (H, G; G', cost), row by row, as Python integers       (p + 1) (p + 2) / 2
    exponents   H_ij is its integer times 2^-(e_i + e_j); the last exponent is G's       p + 1
    A           (H, G) under elimination; its pivots are the leading minors of H         p x (p + 1)

Doubles lose as many digits as the condition number of H has: of NIST's Bennett5, 3e9 after scaling, a step keeps
seven. Bareiss' elimination divides without remainder, so nothing is lost. About 50 microseconds for five parameters.
Bareiss (1968), "Sylvester's identity and multistep integer-preserving Gaussian elimination".

Check a Gauss-Newton step: where it leads, how well that is determined, and whether it stays in bounds.

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

from collections.abc import Sequence
from math import inf, isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np

from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.compiled import native

Matrix = Sequence[Sequence[float]]
Vector = Sequence[float]

NEGLIGIBLE = 2.0**-60  # of the largest entry: what is off the diagonal below that moves no eigenvalue
SWEEPS = 60  # far more than any matrix needs: each one squares what is off the diagonal


def factor(A: Matrix, damping: float = 0.0) -> tuple[list[float], list[list[float]]]:
    """Return the scaling d and the factor L of ``d A d + damping * I``; not-a-number from the first bad pivot on.

    A row whose diagonal is zero gets d = 0 and a unit pivot: the system does not determine it.
    """
    module = native()
    if module is not None and type(A) is list:
        found: tuple[list[float], list[list[float]]] = module.symmetric_factor(A, damping)
        return found
    return factor_twin(A, damping)


def factor_twin(A: Matrix, damping: float = 0.0) -> tuple[list[float], list[list[float]]]:
    """``factor`` without compiled code, and its definition."""
    d = [1.0 / sqrt(row[i]) if row[i] > 0.0 else (0.0 if row[i] == 0.0 else nan) for i, row in enumerate(A)]
    unit = 1.0 + damping
    L: list[list[float]] = []
    for i, row in enumerate(A):
        di, pivot = d[i], unit
        out: list[float] = []
        for j, Lj in enumerate(L):
            t = row[j] * di * d[j]
            for k, a in enumerate(out):
                t -= a * Lj[k]
            t /= Lj[j]
            out.append(t)
            pivot -= t * t
        out.append(sqrt(pivot) if pivot > 0.0 else nan)
        L.append(out)
    return d, L


def solve(A: Matrix, b: Vector, damping: float = 0.0) -> list[float]:
    """x with ``(A + damping * diag(A)) x = b``."""
    d, L = factor(A, damping)
    z = forward(d, L, b)
    for i in range(len(z) - 1, -1, -1):
        row = L[i]
        x = z[i] = z[i] / row[i]
        for j in range(i):
            z[j] -= row[j] * x
    return [d[i] * x for i, x in enumerate(z)]


def length(A: Matrix, b: Vector, damping: float = 0.0) -> float:
    """``sqrt(b' (A + damping * diag(A))^-1 b)``: the length of b in the metric of the inverse."""
    module = native()
    if module is not None and type(A) is list and type(b) is list:
        found: float = module.symmetric_length(A, b, damping)
        return found
    d, L = factor(A, damping)
    total = 0.0
    for z in forward(d, L, b):
        total += z * z
    return sqrt(total)


def inverse(A: Matrix) -> list[list[float]]:
    """``A^-1``, exactly symmetric; not-a-number throughout where A is not numerically positive definite."""
    module = native()
    if module is not None and type(A) is list:
        found: list[list[float]] = module.symmetric_inverse(A)
        return found
    return inverse_twin(A)


def inverse_twin(A: Matrix) -> list[list[float]]:
    """``inverse`` without compiled code, and its definition."""
    p = len(A)
    d, L = factor_twin(A)
    if any(di == 0.0 for di in d):
        return [[nan] * p for _ in range(p)]
    # Column j of L^-1 times d_j; it is zero above row j.
    columns = [forward_twin(d, L, [1.0 if i == j else 0.0 for i in range(p)]) for j in range(p)]
    out = [[0.0] * p for _ in range(p)]
    for i, a in enumerate(columns):
        for j in range(i, p):
            b, t = columns[j], 0.0
            for k in range(j, p):
                t += a[k] * b[k]
            out[i][j] = out[j][i] = t
    return out


def inverses(A: Floats) -> Floats:
    """``inverse`` of each of many matrices, (g, p, p)."""
    module = native()
    if module is None:
        return inverses_twin(A)
    out = np.empty(A.size)
    module.symmetric_inverses(np.ascontiguousarray(A, float).reshape(-1), A.shape[-1], out)
    return out.reshape(A.shape)


def inverses_twin(A: Floats) -> Floats:
    """``inverses`` without compiled code: the operations of ``inverse_twin``, on all matrices at once."""
    g, p, _ = A.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        d = np.where(diagonal > 0.0, 1.0 / np.sqrt(diagonal), np.where(diagonal == 0.0, 0.0, nan))
        L, columns, out = np.zeros(A.shape), np.zeros(A.shape), np.empty(A.shape)
        for i in range(p):
            pivot = np.ones(g)
            for j in range(i):
                t = A[:, i, j] * d[:, i] * d[:, j]
                for k in range(j):
                    t = t - L[:, i, k] * L[:, j, k]
                t = t / L[:, j, j]
                L[:, i, j], pivot = t, pivot - t * t
            L[:, i, i] = np.where(pivot > 0.0, np.sqrt(pivot), nan)
        for j in range(p):
            for i in range(p):
                t = d[:, i] * (1.0 if i == j else 0.0)
                for k in range(i):
                    t = t - L[:, i, k] * columns[:, j, k]
                columns[:, j, i] = t / L[:, i, i]
        for i in range(p):
            for j in range(i, p):
                t = np.zeros(g)
                for k in range(j, p):
                    t = t + columns[:, i, k] * columns[:, j, k]
                out[:, i, j] = out[:, j, i] = t
    out[(d == 0.0).any(axis=1)] = nan
    return out


def eigenvalues(A: Floats) -> Floats:
    """Eigenvalues, ascending, of each of many symmetric matrices, (..., p, p), as they are: not scaled.

    By Jacobi rotations, good to rounding of the largest one; not-a-number if an entry is not finite.
    """
    module = native()
    if module is None:
        return eigenvalues_twin(A)
    out = np.empty(A.shape[:-1]).reshape(-1)
    module.symmetric_eigenvalues(np.ascontiguousarray(A, float).reshape(-1), A.shape[-1], out)
    return out.reshape(A.shape[:-1])


def eigenvalues_twin(A: Floats) -> Floats:
    """``eigenvalues`` without compiled code, all matrices at once, and its definition."""
    p = A.shape[-1]
    S = np.array(A, float).reshape(-1, p, p)
    bad = ~np.isfinite(S).all(axis=(1, 2))
    S[bad] = 0.0
    small = NEGLIGIBLE * np.abs(S).max(axis=(1, 2), initial=0.0)
    for _ in range(SWEEPS):
        moved = False
        for i in range(p - 1):
            for j in range(i + 1, p):
                off = S[:, i, j].copy()
                turns = np.abs(off) > small
                if turns.any():
                    moved = True
                    _turn(S, i, j, off, turns)
        if not moved:
            break
    values = np.sort(np.diagonal(S, axis1=1, axis2=2), axis=1)
    values[bad] = nan
    return values.reshape(A.shape[:-1])


def _turn(S: Floats, i: int, j: int, off: Floats, turns: Mask) -> None:
    """Rotate each matrix whose entry (i, j) is not negligible; the lower triangle is not used."""
    with np.errstate(over="ignore"):
        tau = (S[:, j, j] - S[:, i, i]) / (2.0 * np.where(turns, off, 1.0))
        t = np.where(tau >= 0.0, 1.0, -1.0) / (np.abs(tau) + np.sqrt(1.0 + tau * tau))
    t = np.where(turns, t, 0.0)
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = t * c
    S[:, i, i] -= t * off
    S[:, j, j] += t * off
    S[:, i, j] = np.where(turns, 0.0, off)
    for k in range(S.shape[-1]):
        if k not in (i, j):
            at, to = (min(i, k), max(i, k)), (min(j, k), max(j, k))
            a, b = S[:, at[0], at[1]].copy(), S[:, to[0], to[1]].copy()
            S[:, at[0], at[1]], S[:, to[0], to[1]] = c * a - s * b, s * a + c * b


def dot(a: Vector, b: Vector) -> float:
    """``a'b``, from the first to the last. Not ``sum``, which adds with a correction from Python 3.12 on."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def eigen(A: Matrix) -> tuple[list[float], list[list[float]]]:
    """Return eigenvalues, ascending, of the scaled ``d A d``, and their unit eigenvectors (one per row)."""
    p = len(A)
    d, _ = factor(A)
    S = [[1.0 if i == j else A[i][j] * d[i] * d[j] for j in range(p)] for i in range(p)]
    V = [[1.0 if i == j else 0.0 for j in range(p)] for i in range(p)]
    for _ in range(30):
        if all(abs(S[i][j]) <= 1e-17 for i in range(p) for j in range(i)):
            break
        for i in range(p - 1):
            for j in range(i + 1, p):
                _rotate(S, V, i, j)
    order = sorted(range(p), key=lambda i: S[i][i])
    return [S[i][i] for i in order], [[V[k][i] for k in range(p)] for i in order]


def condition(A: Matrix) -> float:
    """Largest over smallest eigenvalue of the Jacobi-scaled A: how hard it is to distinguish the parameters."""
    values, _ = eigen(A)
    if not values or values[0] != values[0]:
        return nan
    return values[-1] / values[0] if values[0] > 0.0 else inf


def forward(d: Vector, L: Matrix, b: Vector) -> list[float]:
    """z with ``L z = d b``."""
    module = native()
    if module is not None and type(L) is list and type(b) is list:
        found: list[float] = module.symmetric_forward(d, L, b)
        return found
    return forward_twin(d, L, b)


def forward_twin(d: Vector, L: Matrix, b: Vector) -> list[float]:
    """``forward`` without compiled code, and its definition."""
    z: list[float] = []
    for i, row in enumerate(L):
        t = d[i] * b[i]
        for j, x in enumerate(z):
            t -= row[j] * x
        z.append(t / row[i])
    return z


def _rotate(S: list[list[float]], V: list[list[float]], i: int, j: int) -> None:
    off = S[i][j]
    if abs(off) <= 1e-300:
        return
    tau = (S[j][j] - S[i][i]) / (2.0 * off)
    t = (1.0 if tau >= 0.0 else -1.0) / (abs(tau) + sqrt(1.0 + tau * tau))
    c = 1.0 / sqrt(1.0 + t * t)
    s = t * c
    for k in range(len(S)):
        a, b = S[k][i], S[k][j]
        S[k][i], S[k][j] = c * a - s * b, s * a + c * b
        a, b = V[k][i], V[k][j]
        V[k][i], V[k][j] = c * a - s * b, s * a + c * b
    for k in range(len(S)):
        a, b = S[i][k], S[j][k]
        S[i][k], S[j][k] = c * a - s * b, s * a + c * b
    S[i][j] = S[j][i] = 0.0


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
