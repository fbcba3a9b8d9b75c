"""One step, then relinearizations over all retained quotes, with an error estimate."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, isnan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.assurance.optimality import Question
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError, RefusedError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.evidence import free_parameters
from strikeout.kernels.symmetric import length
from strikeout.statistics.schur import ArrowBlocks
from strikeout.statistics.system import Group

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Refined:
    """Parameters after the last pass; ``errors`` are the lengths, in standard errors, of the step after each pass.

    The last of them is the error estimate: one more step predicts what is left (measured: within a sixth).
    """

    parameters: dict[str, float]
    latent: dict[Group, float]
    errors: tuple[float, ...]
    undetermined: tuple[str, ...]  # parameters that the retained quotes leave free at the end

    @property
    def error(self) -> float:
        return self.errors[-1]


def refine(calibration: Calibration, ids: ArrayLike, *, passes: int = 2) -> Refined:
    """Downdate, then take ``passes`` Gauss-Newton steps, each linearized over **all** retained quotes.

    Never over the touched shards alone: that mixes linearization points and made errors of 1.3 standard errors 51.

    Raises:
        UsageError: fewer than no passes, or the calibration is not one of squared loss.
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a step leads out of the model, or the retained quotes do not determine it.
    """
    if passes < 0:
        raise UsageError(f"refine: passes={passes}. Give 0, for the downdate alone, or more.")
    if calibration.loss != "squared":
        raise UsageError(f"refine takes squared loss; this calibration has {calibration.loss}. Use recalibrate.")
    step = downdate(calibration.footprints, ids, free=free_parameters(calibration))
    parameters, latent, held = dict(step.parameters), dict(step.latent), step.system.held
    retained = calibration.quotes.without(ids)
    asked = Question.of(calibration, retained, groups=step.groups)
    moving = [name for name in parameters if name not in calibration.fixed]
    names = calibration.model.parameters.names
    order = [names.index(name) for name in (*moving, *([] if asked.latent is None else [asked.latent]))]
    is_held = np.array([group in held for group in asked.parts])
    errors = []
    for number in range(passes + 1):
        try:
            systems = asked.systems(parameters, latent)
        except ParameterError as error:
            raise RefusedError(
                f"refine: after {number} passes the step leads out of the model: {error.sentence} Use recalibrate.",
                passes=number,
            ) from error
        H = np.array([system.curvature for system in systems])[:, order][:, :, order]
        G = np.array([system.score for system in systems])[:, order]
        arrow = ArrowBlocks(H, is_held, asked.latent is not None)
        shared, latents = arrow.solve(G)
        count, cost = sum(system.count for system in systems), sum(system.cost for system in systems)
        freedom = count - len(moving) - (int(np.count_nonzero(~is_held)) if arrow.has_latent else 0)
        errors.append(_scaled(arrow, shared, sqrt(cost / freedom) if freedom > 0 and cost > 0.0 else 0.0))
        if number == passes:
            break
        if not all(map(isfinite, shared.tolist())):
            raise RefusedError(
                f"refine: the {len(retained):,} retained quotes do not determine the step. Use recalibrate.",
                passes=number,
            )
        for name, change in zip(moving, shared.tolist(), strict=True):
            parameters[name] += change
        for group, change, stays in zip(latent, latents.tolist(), is_held.tolist(), strict=False):
            latent[group] += 0.0 if stays else change
    found = asked.optimality(parameters, latent, held=held)
    return Refined(parameters, latent, tuple(errors), found.undetermined)


def _scaled(arrow: ArrowBlocks, shared: Floats, noise: float) -> float:
    """Return the length of the next step of the (shared) parameters in standard errors; infinite if undetermined."""
    whole = arrow.reduced()
    right = np.add.reduce(whole * shared, axis=1)
    reach = length(whole.tolist(), right.tolist())
    if isnan(reach):
        return inf
    return reach / noise if noise > 0.0 else (inf if reach else 0.0)
