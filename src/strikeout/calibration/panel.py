"""Quotes of many days (or of any groups) and a model in, shared parameters and a latent one for every group out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.choosing import chosen, weights_for
from strikeout.calibration.conclusion import concluded
from strikeout.calibration.coordinates import Bounds, Coordinates, coordinates_of
from strikeout.calibration.identifiability import INFLATION
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_groups import counted_groups, grouped, latent_of, panel_form, shared_space
from strikeout.calibration.panel_precision import latent_errors
from strikeout.calibration.panel_problem import PanelObjective, PanelProblem, Settling, parts_of
from strikeout.calibration.settings import Settings, settings_of
from strikeout.calibration.starts import Progress, best_of, search, starting_points
from strikeout.calibration.termination import Termination
from strikeout.errors import UnidentifiedError, UsageError
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.linearize import price_residuals
from strikeout.statistics.objective import objective_of
from strikeout.wording import Argument, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


@dataclass(frozen=True, eq=False)
class Shared:
    """As much of a model as the search for its shared parameters needs."""

    name: str
    parameters: ParameterSpace
    inflation: float


def calibrate_panel(
    quotes: Quotes, model: Model, *, label: str, settings: Settings, progress: Progress | None = None
) -> PanelCalibration:
    """The shared parameters and the latent path that bring the model closest to the quotes, group by group.

    Minimises the sum over groups of the cost of a plain calibration, each group at its own latent parameter. The order
    of rows and of groups cannot change a bit, and time and memory are linear in the number of groups.

    Args:
        label: what tells the groups apart. ``settings`` may leave it open, and are kept as they were asked.

    Raises:
        UsageError: an unknown option, no such label, or one that a panel does not know.
        ParameterError: an unknown name, empty bounds, or a value outside them.
        RefusedError: a quote lacks what the residual or the weighting needs.
        UnidentifiedError: there are too few quotes for the shared parameters and the latent ones.
    """
    latent, how, panel = latent_of(model), settings, label
    _refuse_what_panels_lack(how, latent)
    space = model.parameters
    k = space.names.index(latent)
    shared = Shared(model.name, shared_space(model), getattr(model, "inflation", INFLATION))
    own = {name: ends for name, ends in (how.bounds or {}).items() if name != latent}
    coordinates = coordinates_of(shared.parameters, bounds=own, fixed=how.fixed, enforce_feller=how.feller == "enforce")
    lower, upper = _latent_bounds(space, k, how.bounds)
    points = starting_points(shared, coordinates, _without_latent(how.starts, latent))  # type: ignore[arg-type]
    used = chosen(quotes, how.select)
    groups = grouped(used, panel)
    whole, rule = objective_of(used, residual=how.residual, weights=weights_for(used, quotes, how.weights))
    objective = PanelObjective(parts_of(whole, groups))
    _refuse_too_few(objective, coordinates, latent, panel)
    formed = panel_form(model, used, groups)
    start = min(max(float(space.starts[0][k]), lower), upper)
    problem = PanelProblem(objective, formed, coordinates, k, lower, upper, start)
    ends = search(problem, points, progress)
    best = best_of(ends)
    at = problem.settle(coordinates.theta(best.descent.point), negligible=0.0)
    freedom = objective.count - len(best.descent.point) - int(np.count_nonzero(~at.held))
    noise = best.descent.system.cost / max(freedom, 1)
    found = concluded(ends, best, shared, coordinates, noise=noise, bounds=own)  # type: ignore[arg-type]
    names, values = tuple(objective.parts), at.latents.tolist()
    on_bound = {
        g: x for g, x, held in zip(names, values, at.held.tolist(), strict=True) if held and x in (lower, upper)
    }
    return PanelCalibration(
        **{**found, "model": formed, "termination": _ended(found["termination"], on_bound, how.bounds, latent)},
        quotes=used,
        panel=panel,
        latent=dict(zip(names, values, strict=True)),
        latent_standard_errors=dict(zip(names, latent_errors(problem, at, best.descent, noise), strict=True)),
        latent_on_bound=on_bound,
        counts={group: len(part) for group, part in objective.parts.items()},
        rmse=_rmse(problem, at),
        count=objective.count,
        residual=how.residual,
        weights=rule,
        loss=how.loss,
        feller=how.feller,
        settings=settings_of(quotes, **how.keywords()),
        asked=model,
        given=quotes,
    )


def _ended(ended: Termination, on_bound: Mapping[Any, float], bounds: Bounds | None, latent: str) -> Termination:
    """The end of the search for the shared parameters, unless a latent one is on a bound; as for any parameter."""
    if not on_bound or not ended.converged:
        return ended
    return Termination.CONVERGED_ON_BOUND if latent in (bounds or {}) else Termination.AT_BOUND


def _refuse_what_panels_lack(how: Settings, latent: str) -> None:
    if how.loss != "squared":
        raise UsageError(
            Argument("loss", how.loss),
            ": a panel has a squared loss. Give ",
            Argument("loss", "squared"),
            ", or ",
            Argument("panel", None),
            ".",
        )
    if latent in (how.fixed or {}):
        raise UsageError(
            Argument("fixed"),
            f" names {latent}, which a panel estimates for every group. Fix it with ",
            Argument("panel", None),
            ", or leave it free.",
        )


def _refuse_too_few(objective: PanelObjective, coordinates: Coordinates, latent: str, panel: str) -> None:
    free, groups = len(coordinates.free), len(objective.parts)
    if len(objective) <= free:
        raise UnidentifiedError(
            f"{many(objective.count, 'quote')} of {counted_groups(groups, panel)} cannot determine "
            f"{many(free, 'shared parameter')} and {many(groups, 'value')} of {latent} with standard errors: at least "
            f"{free + groups + 1:,} are needed. Add "
            "quotes, fix parameters (",
            Argument("fixed", ...),
            "), or have one value for all (",
            Argument("panel", None),
            ").",
            count=objective.count,
            groups=groups,
            free=free,
        )


def _latent_bounds(space: ParameterSpace, k: int, bounds: Bounds | None) -> tuple[float, float]:
    """The latent parameter's bounds, refused for the same reasons as any other's."""
    name = space.names[k]
    alone = ParameterSpace((name,), space.lower[k : k + 1], space.upper[k : k + 1], space.starts[:, k : k + 1])
    asked = {name: bounds[name]} if bounds is not None and name in bounds else None
    found = coordinates_of(alone, bounds=asked, fixed=None, enforce_feller=False)
    return found.lower[0], found.upper[0]


def _without_latent(starts: Any, latent: str) -> Any:
    """A start may name the latent parameter; it is found anew at every point, so its start does not matter."""
    if isinstance(starts, int):
        return starts
    given: Sequence[Any] = [starts] if isinstance(starts, Mapping) else list(starts)
    return [
        {name: value for name, value in start.items() if name != latent} if isinstance(start, Mapping) else start
        for start in given
    ]


def _rmse(problem: PanelProblem, at: Settling) -> float:
    squares = []
    for part, x in zip(problem.objective.parts.values(), at.latents.tolist(), strict=True):
        errors = price_residuals(part, problem.model, [*at.theta[: problem.latent], x, *at.theta[problem.latent :]])
        squares.append(float(np.add.reduce(errors * errors)))
    return sqrt(fsum(squares) / problem.objective.count)
