"""The paper's bound on one relinearization, with its unstated constants worked out and measured.

    symbol   meaning
    J, r     rows of sqrt(w) dm/dtheta and sqrt(w) (observed - m) at the reference
    d        the Gauss-Newton step there;  d+ the next one, at reference + d
    L        Lipschitz constant of J from the reference along the step
    lambda   smallest eigenvalue of J'J

With E = J(reference + d) - J and R = r(reference + d) - r + J d we have ||E|| <= L ||d||, ||R|| <= L ||d||^2 / 2, and
the score there is E'(r - J d) + (J + E)'R, since J'(r - J d) = 0. Hence, wherever the curvature changes by less than
lambda / 2,

    ||d+|| <= (2 L / lambda) ||r|| ||d|| + (L / lambda) (||J|| + L ||d||) ||d||^2.

The first constant is the paper's C1. It leaves C2 open, and its proof has the sign of J d turned round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.assurance.bounds import Bound, spectral_norm
from strikeout.kernels.products import gram, inner, norm
from strikeout.kernels.symmetric import eigenvalues, solve
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import Objective, Residual, objective_of
from strikeout.statistics.weights import WeightRule

Floats = NDArray[np.float64]
POINTS = 8  # along the step, where the Lipschitz constant is measured


def relinearization(
    quotes: Quotes,
    model: Model,
    *,
    reference: Sequence[float],
    weights: WeightRule | ArrayLike = "given",
    residual: Residual = "price",
    scaled: bool = False,
) -> Bound:
    """Return the length of the second Gauss-Newton step over these quotes, bounded from the first alone.

    ``scaled`` takes all norms in the parameters times the norm of their column of J, which have no units.
    The Lipschitz constant is measured at a few points along the step, so it is a lower estimate of the true one.

    Raises:
        UsageError, RefusedError, UnidentifiedError: as ``calibrate``, of the quotes and the weights.
        ParameterError: the reference, or where the step leads, is not a point of the model.
    """
    objective, _ = objective_of(quotes, residual=residual, weights=weights)
    start = np.array(reference, float)
    unit = np.ones(len(start))
    if scaled:
        unit = 1.0 / _lengths(_weighted(objective, model, start, unit)[1])
    r, J = _weighted(objective, model, start, unit)
    d = _step(r, J)
    size = norm(d)
    ahead = [
        (t, _weighted(objective, model, start + t * unit * d, unit)) for t in (n / POINTS for n in range(1, POINTS + 1))
    ]
    lipschitz = max(spectral_norm(there[1] - J) / (t * size) for t, there in ahead) if size else 0.0
    largest, smallest = spectral_norm(J), float(eigenvalues(gram(J, J))[0])
    shift = lipschitz * size
    first = 2.0 * lipschitz / smallest * norm(r) * size
    second = lipschitz / smallest * (largest + shift) * size * size
    return Bound(
        "relinearization",
        first + second,
        "at most",
        "a curvature that changes by less than half its smallest eigenvalue",
        shift * (2.0 * largest + shift) <= 0.5 * smallest,
        norm(_step(*ahead[-1][1])),
    )


def _step(r: Floats, J: Floats) -> Floats:
    """Return the least-squares solution of ``J d = r``, once more on what it leaves: as good as an orthogonal
    method's."""
    H = gram(J, J).tolist()
    d = np.array(solve(H, gram(J, r[:, None])[:, 0].tolist()))
    rest = r - inner(J, d)
    return np.asarray(d + np.array(solve(H, gram(J, rest[:, None])[:, 0].tolist())))


def _lengths(J: Floats) -> Floats:
    return np.sqrt(np.diag(gram(J, J)))


def _weighted(objective: Objective, model: Model, theta: Floats, unit: Floats) -> tuple[Floats, Floats]:
    residuals, jacobian = rows(objective, model, theta)
    return objective.root_weight * residuals, objective.root_weight[:, None] * jacobian * unit
