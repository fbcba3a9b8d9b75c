"""What moments cost: how far a calibration from them is from one of the quotes themselves."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from strikeout.calibration.calibration import Calibration
from strikeout.errors import UsageError
from strikeout.kernels.symmetric import inverse, solve
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.statistics.weights import Weighting

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


def interpolation_error(calibration: Calibration, quotes: Quotes, *, weights: Weighting | None = None) -> float:
    """How far a calibration from moments is from the optimum of the quotes themselves, in standard errors.

    Measured on the book: the largest component of the next Gauss-Newton step of the quotes' own problem, each over its
    standard error there. Zero but for rounding where the basis resolves the model's prices.

    Args:
        quotes: the ones the moments were taken from.
        weights: as the moments were taken; the rule of that name where not given.

    Raises:
        UsageError: weights of your own that are not given here, or another number of quotes.
        RefusedError: a quote lacks what the weighting needs.
    """
    if weights is None and calibration.weights == "own":
        raise UsageError("interpolation_error: the moments were taken with weights of your own. Give them again.")
    objective, _ = objective_of(quotes, weights=weights or calibration.weights)
    if len(objective) != calibration.count:
        raise UsageError(
            f"interpolation_error: the calibration knows {calibration.count} quotes and {len(objective)} were given. "
            "Give those that the moments were taken from."
        )
    names = calibration.model.parameters.names
    theta = [calibration.parameters[name] for name in names]
    suited = getattr(calibration.model, "suited", None)
    model = calibration.model if suited is None else suited(quotes.contracts)
    rows = linearize(objective, model, theta).rows
    kept = [i for i, name in enumerate(names) if name not in calibration.fixed and name not in calibration.on_bound]
    curvature = [[rows[i][j] for j in kept] for i in kept]
    step, unscaled = solve(curvature, [rows[-1][i] for i in kept]), inverse(curvature)
    noise = sqrt(rows[-1][-1] / (len(objective) - len(kept)))
    return max(abs(s) / (noise * sqrt(unscaled[n][n])) for n, s in enumerate(step))
