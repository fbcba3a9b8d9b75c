"""The paper's own variants, by name and for comparison only: each is shown beside what this package does instead.

One step with the ridge 1e-6 I, from the least-squares parameters; Huber weights fixed where they were; relinearizing
the touched shards alone. `docs/explanation/forgetting.md` says how far each of them is from the refit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.errors import UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.kernels.symmetric import solve
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.normal_equations import PAPER_RIDGE
from strikeout.statistics.objective import objective_of
from strikeout.statistics.system import FootprintBlocks, OneStep
from strikeout.statistics.weights import Weighting, weights_of


def paper_step(calibration: Calibration, ids: ArrayLike) -> OneStep:
    """The paper's fast operator: one step from the calibrated parameters, with 1e-6 on every diagonal.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a quote is too large to be counted exactly.
    """
    footprints = _footprints(calibration, calibration.settings.weights)
    return downdate(FootprintBlocks.of(footprints), ids, ridge="paper")


def paper_huber_step(calibration: Calibration, ids: ArrayLike) -> OneStep:
    """The paper's robust variant: weights ``threshold / |e|`` decided once, with the quotes that are struck out.

    They stand in curvature and score alike, and nobody decides them again. ``robust.huber_step`` does.

    Raises:
        UsageError: the calibration has no Huber threshold.
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a quote is too large to be counted exactly.
    """
    if calibration.threshold is None:
        raise UsageError('paper_huber_step takes a calibration of Huber\'s loss: calibrate(..., loss="huber").')
    quotes, how = calibration.quotes, calibration.settings
    weight, _ = weights_of(quotes, how.weights)
    objective, _ = objective_of(quotes, residual=how.residual, weights=how.weights)
    residual, _ = rows(objective, calibration.model, np.array(list(calibration.parameters.values())))
    size = np.zeros(len(quotes))
    size[objective.order] = np.abs(objective.root_weight * residual)
    fixed = np.where(size > calibration.threshold, calibration.threshold / np.maximum(size, 1e-300), 1.0)
    footprints = _footprints(calibration, weight * fixed)
    return downdate(FootprintBlocks.of(footprints), ids, ridge="paper")


def paper_relinearized(calibration: Calibration, ids: ArrayLike, *, touched: Quotes) -> dict[str, float]:
    """One step, then a second one for which the touched shards alone are linearized anew.

    Their rows are taken where the first step led and all others stay at the reference: a sum of two different
    linearizations, which is the linearization of nothing. ``refine`` relinearizes all retained quotes.

    Args:
        touched: the retained quotes of the shards that held a quote to strike out.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a quote is too large to be counted exactly.
        ParameterError: the first step already leads out of the model.
    """
    footprints, how = _footprints(calibration, calibration.settings.weights), calibration.settings
    first = downdate(FootprintBlocks.of(footprints), ids, ridge="paper")
    theta = np.array(list(first.parameters.values()))
    total = np.array(first.equations.system().rows)
    if len(touched):
        old = np.array(footprints.only(touched.ids).total().system().rows)
        objective, _ = objective_of(touched, residual=how.residual, weights=how.weights)
        total += np.array(linearize(objective, calibration.model, theta.tolist()).rows) - old
    H = total[:-1, :-1] + PAPER_RIDGE * np.eye(len(theta))
    return calibration.model.parameters.named(theta + np.array(solve(H.tolist(), total[-1, :-1].tolist())))


def _footprints(calibration: Calibration, weights: Weighting) -> Footprints:
    """At the least-squares parameters, as the paper takes them: fitted on what is to be forgotten."""
    return footprints_of(
        calibration.quotes,
        calibration.model,
        calibration.parameters,
        residual=calibration.settings.residual,
        weights=weights,
    )
