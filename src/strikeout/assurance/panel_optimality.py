"""Whether the shared parameters of a panel and the latent one of every group are an optimum of its quotes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.optimality import Limits, Optimality, is_pulled
from strikeout.assurance.panel_arrow import arrow_errors, arrow_solve, reduced
from strikeout.calibration.identifiability import INFLATION, slack, undetermined
from strikeout.calibration.panel_groups import latent_of, shared_space
from strikeout.kernels.symmetric import length
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.statistics.system import Group
from strikeout.statistics.weights import Weighting


@dataclass(frozen=True)
class Systems:
    """Every group linearized at its parameters, in the order of the groups, and the rounding of all residuals."""

    groups: tuple[Group, ...]
    each: tuple[Linearization, ...]
    rounding: float

    @property
    def cost(self) -> float:
        total = 0.0
        for system in self.each:
            total += system.cost
        return total


def systems_at(
    quotes: Quotes,
    rows: Mapping[Group, NDArray[np.intp]],
    model: Model,
    shared: Mapping[str, float],
    latent: Mapping[Group, float],
    *,
    residual: Any,
    weights: Weighting,
) -> Systems:
    """Return every group linearized at the shared parameters and its own latent one.

    Args:
        rows: of the quotes of every group.
        weights: a rule, by id, or one number per quote.

    Raises:
        StrikeoutError: as ``objective_of`` and ``linearize``.
    """
    each, squares, name = [], 0.0, latent_of(model)
    for group, value in latent.items():
        theta = [value if one == name else shared[one] for one in model.parameters.names]
        weight = weights_of_rows(weights, rows[group])
        objective, _ = objective_of(quotes[rows[group]], residual=residual, weights=weight)
        each.append(linearize(objective, model, theta))
        squares += objective.rounding * objective.rounding
    return Systems(tuple(latent), tuple(each), sqrt(squares))


def weights_of_rows(weights: Weighting, rows: NDArray[np.intp]) -> Weighting:
    """Return the weights of some rows; a rule, or weights by id, are for any quotes."""
    return np.asarray(weights, float)[rows] if isinstance(weights, np.ndarray | list | tuple) else weights


def panel_optimality(
    systems: Systems,
    model: Model,
    shared: Mapping[str, float],
    latent: Mapping[Group, float],
    *,
    fixed: Collection[str],
    on_bound: Collection[str],
    held: Collection[Group],
    bounds: Limits,
) -> Optimality:
    """Return what the quotes of a panel say of these parameters, shared and latent.

    A group whose quotes do not determine its latent parameter counts as that parameter being undetermined.

    Args:
        held: groups whose latent parameter is said to be on a bound, or to move no price.
    """
    space, name = shared_space(model), latent_of(model)
    k = model.parameters.names.index(name)
    places = [i for i in range(len(model.parameters)) if i != k]
    free = [n for n, one in enumerate(space.names) if one not in fixed and one not in on_bound]
    order = [*(places[n] for n in free), k]
    H = np.array([system.curvature for system in systems.each])[np.ix_(range(len(systems.each)), order, order)]
    G = np.array([system.score for system in systems.each])[:, order]
    is_held = np.array([group in held for group in systems.groups])
    count, moving = sum(system.count for system in systems.each), len(free) + int(np.count_nonzero(~is_held))
    lost: list[str] = [name] if bool(np.any(~is_held & ~(H[:, -1, -1] > 0.0))) else []
    apart = reach = float("inf")
    gained = room = 0.0  # what the latent parameters would gain, were they to move alone
    if count > moving and not lost:
        variance, whole = systems.cost / (count - moving), reduced(H, is_held).tolist()
        limit, theta = getattr(model, "inflation", INFLATION), [shared[one] for one in space.names]
        lost = undetermined(space, theta, whole, kept=free, noise_variance=variance, inflation=limit)
        room = slack(space, theta, whole, kept=free, noise_variance=variance)
        steps, errors = arrow_solve(H, G, is_held), arrow_errors(H, is_held, sqrt(variance))
        with np.errstate(divide="ignore", invalid="ignore"):  # no noise, no errors: then rounding decides
            shares = np.abs(np.concatenate([steps[0] / errors[0], (steps[1] / errors[1])[~is_held]]))
        apart = float(np.max(shares, initial=0.0))
        moves = np.where(is_held, 0.0, G[:, -1]) / np.where(is_held, 1.0, H[:, -1, -1])
        gained = float(np.add.reduce(moves * np.where(is_held, 0.0, G[:, -1])))
        reach = length(whole, (G[:, :-1] - H[:, :-1, -1] * moves[:, None]).sum(axis=0).tolist())
    pulled = [
        one
        for one in on_bound
        if is_pulled(_score(systems.each, places[space.names.index(one)]), shared[one], one, space, bounds)
    ]
    inside = _is_pulled_inside(systems, latent, held, k, bounds.get(name, _own(model, k)))
    return Optimality(
        count=count,
        free=moving,
        undetermined=tuple(lost),
        slack=room,
        pulled=(*pulled, *([name] if inside else [])),
        apart=apart,
        reach=reach,
        cost=systems.cost - gained,
        rounding=systems.rounding,
    )


def _own(model: Model, k: int) -> tuple[float, float]:
    return float(model.parameters.lower[k]), float(model.parameters.upper[k])


def _score(systems: Sequence[Linearization], place: int) -> float:
    total = 0.0
    for system in systems:
        total += system.rows[-1][place]
    return total


def _is_pulled_inside(
    systems: Systems, latent: Mapping[Group, float], held: Collection[Group], k: int, limits: tuple[float, float]
) -> bool:
    """Whether a group is said to hold its latent parameter, and its quotes pull it inside."""
    for group, system in zip(systems.groups, systems.each, strict=True):
        value, pull = latent[group], system.rows[-1][k]
        is_right = (value <= limits[0] and pull <= 0.0) or (value >= limits[1] and pull >= 0.0)
        if group in held and not is_right and system.rows[k][k] != 0.0:
            return True
    return False
