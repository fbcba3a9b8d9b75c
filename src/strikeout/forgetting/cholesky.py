"""Rank-one downdates of a Cholesky factor, for comparison: what floating point makes of the same subtraction.

    symbol  meaning
    L       lower Cholesky factor of [[H, G], [G', cost]], Jacobi-scaled
    a       a footprint, as doubles: sqrt(w) (J, r)

Each quote costs p^2 operations and leaves its rounding behind; the exact state costs as much and leaves nothing. The
rotations are those of LINPACK's DCHDD (hyperbolic, in the mixed form).
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import RefusedError
from strikeout.kernels.symmetric import factor
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations

Floats = NDArray[np.float64]


def cholesky_downdate(footprints: Footprints, equations: NormalEquations, ids: ArrayLike) -> Floats:
    """Return the Gauss-Newton step of ``downdate`` by one rank-one Cholesky downdate a quote, in floating point.

    Raises:
        UnknownIdError: an id without a footprint, or one given twice.
        RefusedError: rounding left no positive definite factor.
    """
    d, factor_rows = factor([list(row) for row in equations.system().rows])
    if not all(scale > 0.0 and row[-1] > 0.0 for scale, row in zip(d, factor_rows, strict=True)):
        raise RefusedError("The curvature before forgetting is not positive definite. Fix parameters.")
    size, scale = len(d), np.array(d)
    L = np.array([row + [0.0] * (size - len(row)) for row in factor_rows])
    rows = np.ldexp(footprints.rows[footprints.places(ids)].astype(float), -footprints.schema.grid) * scale
    for number, row in enumerate(rows):
        a = row.copy()
        for k in range(size):
            rest = (L[k, k] - a[k]) * (L[k, k] + a[k])
            if not rest > 0.0:
                raise RefusedError(
                    f"Rounding left no positive definite factor after {number} of {len(rows)} quotes. Use downdate, "
                    "which is exact.",
                    quotes=number,
                )
            r = sqrt(rest)
            c, s = r / L[k, k], a[k] / L[k, k]
            L[k, k] = r
            L[k + 1 :, k] = (L[k + 1 :, k] - s * a[k + 1 :]) / c
            a[k + 1 :] = c * a[k + 1 :] - s * L[k + 1 :, k]
    step = L[-1, :-1].copy()
    for k in range(size - 2, -1, -1):
        step[k] /= L[k, k]
        step[:k] -= L[k, :k] * step[k]
    answer: Floats = step * scale[:-1] / scale[-1]
    return answer
