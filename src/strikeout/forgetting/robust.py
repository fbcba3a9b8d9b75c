"""One step under Huber's loss done right: weights decided again by the retained quotes, curvature with psi'."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError
from strikeout.kernels.symmetric import solve
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.losses import TUNING, Huber, robust_scale
from strikeout.statistics.objective import objective_of


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
