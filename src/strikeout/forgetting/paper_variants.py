"""The paper's step, and its variants in floating point: rank-one Cholesky downdates, and one step under Huber's loss.

Rank-one downdates of a Cholesky factor, for comparison: what floating point makes of the same subtraction.

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

from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError
from strikeout.forgetting.downdate import downdate
from strikeout.kernels.symmetric import factor, solve
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.losses import TUNING, Huber, robust_scale
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.objective import objective_of
from strikeout.statistics.system import FootprintBlocks, OneStep
from strikeout.statistics.weights import Weighting


def paper_step(calibration: Calibration, ids: ArrayLike, *, free: tuple[int, ...] | None = None) -> OneStep:
    """Return one step from the calibrated parameters without these quotes, with 1e-6 on the diagonal of H.

        (H' + 1e-6 I) (theta' - theta) = G',    H' = H - sum over F of psi_i,    G' = G - sum over F of u_i

    ``strikeout.paper.fast`` with exact sums gives the same bits. The reference was fitted to the quotes that are struck
    out, so the step equals the paper's one-step "retrain" and not a refit.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a quote is too large to be counted exactly.
    """
    footprints = paper_footprints(calibration, calibration.settings.weights)
    return downdate(FootprintBlocks.of(footprints), ids, ridge="paper", free=free)


def paper_footprints(calibration: Calibration, weights: Weighting) -> Footprints:
    """Return the footprints at the least-squares parameters, where the paper linearizes.

    Raises:
        RefusedError: a quote is too large to be counted exactly.
    """
    return footprints_of(
        calibration.quotes,
        calibration.model,
        calibration.parameters,
        residual=calibration.settings.residual,
        weights=weights,
    )


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


def huber_step(calibration: Calibration, ids: ArrayLike) -> dict[str, float]:
    """Return where one Gauss-Newton step under Huber's loss leads without these quotes, from the parameters found.

    The threshold is measured again on the retained residuals, every quote is placed inside or outside of it again, and
    the curvature counts those inside fully and those outside not at all, which is the second derivative. Beside it:
    ``paper.Cache(weights=...)``, which keeps the weights of before and counts them in the curvature too.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: the retained quotes do not determine the step.
    """
    model, how = calibration.model, calibration.settings
    objective, _ = objective_of(calibration.quotes.without(ids), residual=how.residual, weights=how.weights)
    theta = np.array(list(calibration.parameters.values()))
    residual, _ = rows(objective, model, theta)
    width = TUNING * robust_scale(objective.root_weight * residual)
    free = [i for i, name in enumerate(model.parameters.names) if name not in calibration.fixed]
    system = linearize(objective.with_loss(Huber(width)), model, theta.tolist()).rows
    change = np.array(solve([[system[i][j] for j in free] for i in free], [system[-1][i] for i in free]))
    if not np.isfinite(change).all():
        raise RefusedError(
            f"The {len(objective):,} retained quotes do not determine a step under Huber's loss. Forget fewer.",
            count=len(objective),
        )
    theta[free] += change
    return calibration.model.parameters.named(theta)
