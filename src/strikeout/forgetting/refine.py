"""One step, then relinearizations over all retained quotes, with an honest error bar."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.stationarity import scaled_gradient
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError, RefusedError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.kernels.symmetric import solve
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.statistics.system import FootprintBlocks


@dataclass(frozen=True)
class Refined:
    """Parameters after the last pass; ``errors`` are the lengths, in standard errors, of the step after each pass.

    The last of them is the error bar: one more step predicts what is left (measured: within a sixth). ``system`` is
    the problem linearized there.
    """

    parameters: dict[str, float]
    errors: tuple[float, ...]
    system: Linearization

    @property
    def error(self) -> float:
        return self.errors[-1]


def refine(calibration: Calibration, ids: ArrayLike, *, passes: int = 2) -> Refined:
    """A downdate, then ``passes`` Gauss-Newton steps, each linearized over **all** retained quotes.

    Never over the touched shards alone: that mixes linearization points and made errors of 1.3 standard errors 51.

    Raises:
        UsageError: fewer than no passes, or the calibration is not one of squared loss.
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a step leads where the model has no prices, or the retained quotes do not determine it.
    """
    if passes < 0:
        raise UsageError(f"refine: passes={passes}. Give 0, for the downdate alone, or more.")
    if calibration.loss != "squared":
        raise UsageError(f"refine takes squared loss; this calibration has {calibration.loss}. Use recalibrate.")
    model, footprints, how = calibration.model, calibration.footprints, calibration.settings
    free = [i for i, name in enumerate(model.parameters.names) if name not in calibration.fixed]
    theta = list(downdate(FootprintBlocks.of(footprints), ids, free=tuple(free)).parameters.values())
    retained = calibration.quotes.without(ids)
    objective, _ = objective_of(retained, residual=how.residual, weights=how.weights)
    errors = []
    for number in range(passes + 1):
        try:
            system = linearize(objective, model, theta)
        except ParameterError as error:
            raise RefusedError(
                f"refine: after {number} passes the step leads out of the model: {error.sentence} Use recalibrate.",
                passes=number,
            ) from error
        errors.append(scaled_gradient(system, free=free))
        if number == passes:
            break
        rows = system.rows
        change = solve([[rows[i][j] for j in free] for i in free], [rows[-1][i] for i in free])
        if not all(map(isfinite, change)):
            raise RefusedError(
                f"refine: the {len(retained):,} retained quotes do not determine the step. Use recalibrate.",
                passes=number,
            )
        theta = (np.array(theta) + np.bincount(free, change, len(theta))).tolist()
    return Refined(dict(zip(model.parameters.names, theta, strict=True)), tuple(errors), system)
