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
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations

Floats = NDArray[np.float64]


def cholesky_downdate(footprints: Footprints, equations: NormalEquations, ids: ArrayLike) -> Floats:
    """The Gauss-Newton step of ``downdate`` by one rank-one Cholesky downdate a quote, in floating point.

    Raises:
        UnknownIdError: an id without a footprint, or one given twice.
        RefusedError: rounding left no positive definite factor.
    """
    A = np.array(equations.system().rows)
    size = len(A)
    scale = 1.0 / np.sqrt(np.diag(A))
    rows = np.ldexp(footprints.rows[footprints.places(ids)].astype(float), -footprints.schema.grid) * scale
    try:
        L = np.linalg.cholesky(A * np.outer(scale, scale))
    except np.linalg.LinAlgError as error:
        raise RefusedError("The curvature before forgetting is not positive definite. Fix parameters.") from error
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
    step: Floats = np.linalg.solve(L[:-1, :-1].T, L[-1, :-1]) * scale[:-1] / scale[-1]
    return step
