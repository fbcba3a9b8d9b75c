"""Turn the end of a search into a result: parameters, how well they are known, and how the starts compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strikeout.calibration.calibration import StartEnd, Trace
from strikeout.calibration.coordinates import Bounds, Coordinates
from strikeout.calibration.identifiability import INFLATION, Precision, precision_of
from strikeout.calibration.loop import Descent
from strikeout.calibration.problem import Posed, SearchEnd
from strikeout.calibration.starts import agrees
from strikeout.calibration.termination import Termination
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.losses import Loss, redescends


def concluded(
    ends: Sequence[SearchEnd[Posed]],
    best: SearchEnd[Posed],
    model: Model,
    coordinates: Coordinates,
    *,
    noise: float,
    bounds: Bounds | None,
    freed: list[list[float]] | None = None,
) -> dict[str, Any]:
    """Return the part of a ``Calibration`` that follows from the search alone, whatever was searched; by keyword.

    Args:
        noise: variance of a weighted residual.
        bounds: that were asked for; ending on one of these is not a failure.
        freed: as for ``precision_of``.
    """
    descent, names = best.descent, model.parameters.names
    theta = coordinates.theta(descent.point)
    precision = precision_of(
        model.parameters,
        coordinates,
        descent,
        noise_variance=noise,
        inflation=getattr(model, "inflation", INFLATION),
        freed=freed,
    )
    held = {coordinates.free[i] for i in descent.held} - coordinates.replaced
    return {
        "model": model,
        "parameters": dict(zip(names, theta, strict=True)),
        "standard_errors": dict(zip(names, precision.standard_errors, strict=True)),
        "relative_errors": dict(zip(names, precision.relative_errors, strict=True)),
        "unidentified": tuple(names[i] for i in precision.free),
        "on_bound": {names[i]: theta[i] for i in sorted(held)},
        "fixed": {names[i]: value for i, value in sorted(coordinates.fixed.items())},
        "cost": descent.system.cost,
        "termination": _locally(
            termination_of(descent, coordinates, precision, {*(bounds or {})}, is_curve=model.parameters.is_curve),
            best.objective.loss,
        ),
        "equations": descent.system.equations,
        "trace": Trace(descent.visits, coordinates),
        "starts": tuple(start_end(end, best, coordinates) for end in ends),
    }


def termination_of(
    descent: Descent, coordinates: Coordinates, precision: Precision, asked: set[str], *, is_curve: bool = False
) -> Termination:
    """Return the search's own end, unless it ended on a bound or at parameters the quotes do not determine.

    Args:
        is_curve: open parameters, and ends on bounds of the model, are answers (``ParameterSpace.is_curve``).
    """
    ended = descent.termination
    is_open = precision.inseparable or (precision.free and ended.converged)
    if is_open and ended is not Termination.NOT_FINITE and not is_curve:
        return Termination.NOT_IDENTIFIED
    if not ended.converged:
        return ended
    if not descent.held:
        return ended
    own = {
        i
        for i in descent.held
        if coordinates.free[i] not in coordinates.replaced and coordinates.names[coordinates.free[i]] not in asked
    }
    if not own:
        return Termination.CONVERGED_ON_BOUND
    beyond = set() if is_curve else own - coordinates.on_edge(own, descent.point)
    return Termination.AT_BOUND if beyond else Termination.CONVERGED_ON_EDGE


def panel_termination(
    ended: Termination, on_bound: Mapping[Any, float], bounds: Bounds | None, latent: str, space: ParameterSpace
) -> Termination:
    """Return the end of the search for the shared parameters, unless a latent one is on a bound.

    As in a plain calibration, a bound that was asked for and an edge of the model are answers.
    """
    if not on_bound or not ended.converged:
        return ended
    if latent in (bounds or {}):
        return Termination.CONVERGED_ON_BOUND
    lowest = float(space.lower[space.names.index(latent)])
    is_edge = latent in space.edges and all(value == lowest for value in on_bound.values())
    return Termination.CONVERGED_ON_EDGE if is_edge else Termination.AT_BOUND


def _locally(ended: Termination, loss: Loss) -> Termination:
    """Return the same end; if the loss redescends, an optimum is one of perhaps several."""
    is_inner = ended in (Termination.CONVERGED, Termination.CONVERGED_TO_ROUNDING)
    return Termination.CONVERGED_LOCALLY if is_inner and redescends(loss) else ended


def start_end(end: SearchEnd[Posed], best: SearchEnd[Posed], coordinates: Coordinates) -> StartEnd:
    """Return where one start ended, beside the best."""
    descent = end.descent
    return StartEnd(
        parameters=coordinates.named(descent.point),
        cost=descent.system.cost,
        termination=descent.termination,
        evaluations=descent.evaluations,
        agrees=agrees(end, best),
    )
