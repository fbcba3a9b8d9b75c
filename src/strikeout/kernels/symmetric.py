"""Small symmetric positive definite systems, the same bits everywhere.

    symbol  meaning                                             shape
    A       symmetric, positive definite: a curvature           p x p, rows of floats
    d       Jacobi scaling, d_i = A_ii ** -0.5                  p
    S       d A d, unit diagonal; damping is added to it here   p x p
    L       lower Cholesky factor of S + damping * I            p rows of 1 .. p floats

Plain floats in a fixed order, because a BLAS or a fused multiply-add may change the last bit, and parameters solved
from a curvature have to be reproducible. The compiled kernel has the same operations in the same order.
Nothing is raised: what cannot be solved comes back as not-a-number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, inf, nan, sqrt

from strikeout.kernels.compiled import native

Matrix = Sequence[Sequence[float]]
Vector = Sequence[float]


def factor(A: Matrix, damping: float = 0.0) -> tuple[list[float], list[list[float]]]:
    """The scaling d and the factor L of ``d A d + damping * I``; not-a-number from the first bad pivot on.

    A row whose diagonal is zero gets d = 0 and a unit pivot: nothing is known about it, and nothing is said.
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
    z = _forward(d, L, b)
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
    for z in _forward(d, L, b):
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


def dot(a: Vector, b: Vector) -> float:
    """``a'b``, from the first to the last. Not ``sum``, which adds with a correction from Python 3.12 on."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def eigen(A: Matrix, sweeps: int = 30) -> tuple[list[float], list[list[float]]]:
    """Eigenvalues, ascending, of the scaled ``d A d`` and their unit eigenvectors (one a row), by Jacobi rotations."""
    p = len(A)
    d, _ = factor(A)
    S = [[1.0 if i == j else A[i][j] * d[i] * d[j] for j in range(p)] for i in range(p)]
    V = [[1.0 if i == j else 0.0 for j in range(p)] for i in range(p)]
    for _ in range(sweeps):
        if all(abs(S[i][j]) <= 1e-17 for i in range(p) for j in range(i)):
            break
        for i in range(p - 1):
            for j in range(i + 1, p):
                _rotate(S, V, i, j)
    order = sorted(range(p), key=lambda i: S[i][i])
    return [S[i][i] for i in order], [[V[k][i] for k in range(p)] for i in order]


def condition(A: Matrix) -> float:
    """Largest over smallest eigenvalue of the Jacobi-scaled A: how far the parameters are from being told apart."""
    values, _ = eigen(A)
    if not values or values[0] != values[0]:
        return nan
    return values[-1] / values[0] if values[0] > 0.0 else inf


def _forward(d: Vector, L: Matrix, b: Vector) -> list[float]:
    """z with ``L z = d b``."""
    module = native()
    if module is not None and type(L) is list and type(b) is list:
        found: list[float] = module.symmetric_forward(d, L, b)
        return found
    return forward_twin(d, L, b)


def forward_twin(d: Vector, L: Matrix, b: Vector) -> list[float]:
    """``_forward`` without compiled code, and its definition."""
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
    t = (1.0 if tau >= 0.0 else -1.0) / (abs(tau) + hypot(1.0, tau))
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
