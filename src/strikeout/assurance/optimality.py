"""Whether parameters are an optimum of quotes, computed from the quotes at the parameters themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.identifiability import INFLATION, slack, undetermined
from strikeout.calibration.panels import grouped, shared_space
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.arrow import ArrowBlocks
from strikeout.kernels.symmetric import inverse, length
from strikeout.models.model import Model, ParameterSpace
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.losses import Loss, Squared, loss_with, noise_variance
from strikeout.statistics.objective import Objective, Weighting, objective_of
from strikeout.statistics.system import WHOLE, Group

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration


# A cost belongs to another valley if it is above the best by the cost of moving every free parameter by this many
# standard errors. Within one valley a step that is near enough to be certified leaves far less.
VALLEY = 5.0
BLUR = 100.0  # times the rounding of all residuals: costs that differ by less than its square are equal
Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Optimality:
    """What quotes show of parameters that are claimed to be their optimum."""

    count: int  # quotes that count
    free: int  # parameters that may move
    undetermined: tuple[str, ...]  # those the quotes leave free, or cannot distinguish from the others
    slack: float  # by what factor standard errors could grow before the quotes leave one free
    pulled: tuple[str, ...]  # those on a bound that the quotes pull back inside
    apart: float  # the next Gauss-Newton step, the parameter that moves most, in its own standard errors
    reach: float  # the same step in the metric of the curvature
    cost: float
    rounding: float  # of all residuals: see ``Objective.rounding``

    @property
    def spare(self) -> int:
        """How many more quotes there are than free parameters."""
        return self.count - self.free

    def is_within(self, tolerance: float) -> bool:
        """Return whether the parameters are determined, and an optimum to this many standard errors or to rounding."""
        if self.spare <= 0 or self.undetermined or self.pulled:
            return False
        return self.apart <= tolerance or self.reach <= self.rounding

    def is_certain(self, tolerance: float) -> bool:
        """Return whether that also holds at the optimum nearby: see ``slack_for``."""
        return self.is_within(tolerance) and self.slack >= slack_for(tolerance)

    def is_above(self, best: float) -> bool:
        """Return whether ``best``, the cost of another point, is so low that these parameters are in another valley."""
        bottom = self.cost - (self.reach * self.reach if isfinite(self.reach) else 0.0)
        return is_other_valley(bottom, best, free=self.free, spare=self.spare, rounding=self.rounding)


def slack_for(tolerance: float) -> float:
    """Return the least ``slack`` of an answer that replaces an optimum within this many standard errors.

    The quotes may just determine the parameters at the answer, and no longer at the optimum. Twice the tolerance, since
    the standard errors change as well: of 1,100 steps on small noisy books none was undetermined at its optimum then.
    """
    return 1.0 + 2.0 * tolerance


def is_other_valley(cost: float, best: float, *, free: int, spare: int, rounding: float) -> bool:
    """Return whether a cost is so far above the best that it is the bottom of another valley.

    Args:
        free: how many parameters may move.
        spare: how many more quotes than that there are.
        rounding: of all residuals; costs that differ by no more than it causes are equal.
    """
    noise, blur = max(best, 0.0) / max(spare, 1), BLUR * rounding
    return cost - best > VALLEY * VALLEY * free * noise + blur * blur


@dataclass(frozen=True, eq=False)
class Question:
    """The optimum that is asked for: objectives by group, and what is not estimated.

    Args:
        parts: a plain calibration has one, under ``WHOLE``.
        latent: the parameter that every group has for itself; None for a plain calibration.
        fixed: parameters that were given.
        bounds: those that were asked for.
    """

    parts: Mapping[Group, Objective]
    model: Model
    latent: str | None = None
    fixed: Collection[str] = ()
    bounds: Limits = field(default_factory=dict)

    @staticmethod
    def of(
        calibration: Calibration, quotes: Quotes | None = None, *, groups: Collection[Group] | None = None
    ) -> Question:
        """Return the question a calibration answers; or that of other quotes, with its settings and threshold.

        Args:
            groups: of a panel; those of the calibration if not given.
        """
        how, used = calibration.settings, calibration.used if quotes is None else quotes
        if calibration.panel is None:
            rows = {WHOLE: np.arange(len(used))}
        else:
            found = calibration.rows if quotes is None else grouped(used, calibration.panel)
            rows = {group: found[group] for group in (calibration.latent if groups is None else groups)}
        return question(
            used,
            calibration.model,
            rows,
            residual=how.residual,
            weights=how.weights,
            loss=loss_with(calibration.loss, calibration.threshold),
            latent=calibration.latent_name,
            rest={"fixed": calibration.fixed, "bounds": how.bounds or {}},
        )

    @property
    def space(self) -> ParameterSpace:
        """The (shared) parameters."""
        return shared_space(self.model, self.latent)

    @cached_property
    def rounding(self) -> float:
        """The rounding of all residuals; see ``Objective.rounding``."""
        squares = 0.0
        for part in self.parts.values():
            squares += part.rounding * part.rounding
        return sqrt(squares)

    def theta(self, parameters: Mapping[str, float], latent: Mapping[Group, float], group: Group) -> list[float]:
        """Return all parameters of one group, in the model's order."""
        names = self.model.parameters.names
        return [latent[group] if name == self.latent else parameters[name] for name in names]

    def systems(self, parameters: Mapping[str, float], latent: Mapping[Group, float]) -> list[Linearization]:
        """Return every group linearized at its parameters."""
        return [
            linearize(part, self.model, self.theta(parameters, latent, group)) for group, part in self.parts.items()
        ]

    def cost(self, parameters: Mapping[str, float], latent: Mapping[Group, float]) -> float:
        """Return the cost of all quotes."""
        return _total(system.cost for system in self.systems(parameters, latent))

    def noise(self, parameters: Mapping[str, float], latent: Mapping[Group, float], cost: float, free: int) -> float:
        """Return the variance of a weighted residual."""
        loss = next(iter(self.parts.values())).loss
        if isinstance(loss, Squared):
            return cost / (sum(map(len, self.parts.values())) - free)
        found = []
        for group, part in self.parts.items():
            difference, _ = rows(part, self.model, np.array(self.theta(parameters, latent, group)))
            found.append(part.root_weight * difference)
        return noise_variance(loss, np.concatenate(found), free)

    def optimality(
        self,
        parameters: Mapping[str, float],
        latent: Mapping[Group, float],
        *,
        on_bound: Collection[str] = (),
        held: Collection[Group] = (),
    ) -> Optimality:
        """Return what the quotes show of these parameters.

        If the quotes of a group do not determine its latent parameter, that parameter counts as undetermined.

        Args:
            on_bound: names of those that are claimed to have ended on a bound.
            held: groups whose latent parameter is claimed to be on a bound, or to move no price.
        """
        systems, space, names = self.systems(parameters, latent), self.space, self.model.parameters.names
        places = [names.index(name) for name in space.names]
        free = [n for n, name in enumerate(space.names) if name not in self.fixed and name not in on_bound]
        k = None if self.latent is None else names.index(self.latent)
        order = [*(places[n] for n in free), *([] if k is None else [k])]
        H = np.array([system.curvature for system in systems])[np.ix_(range(len(systems)), order, order)]
        G = np.array([system.score for system in systems])[:, order]
        is_held = np.array([group in held for group in self.parts])
        arrow = ArrowBlocks(H, is_held, k is not None)
        loose = k is not None and bool(np.any(~is_held & ~(H[:, -1, -1] > 0.0)))
        count, cost = sum(system.count for system in systems), _total(system.cost for system in systems)
        moving = len(free) + (0 if k is None else int(np.count_nonzero(~is_held)))
        lost: list[str] = [str(self.latent)] if loose else []
        apart = reach = float("inf")
        gained = room = 0.0  # what the latent parameters would gain, if they moved alone
        limit, theta = getattr(self.model, "inflation", INFLATION), [parameters[name] for name in space.names]
        if k is None:
            reach = length(H[0].tolist(), G[0].tolist())
        if count > moving and not lost:
            variance, whole = self.noise(parameters, latent, cost, moving), arrow.reduced().tolist()
            lost = undetermined(space, theta, whole, kept=free, noise_variance=variance, inflation=limit)
            room = slack(space, theta, whole, kept=free, noise_variance=variance)
            if k is not None and not lost:
                lost = self._imitated(H, latent, is_held, [space.names[n] for n in free], limit)
            apart = _farthest(arrow, G, sqrt(variance) if variance >= 0.0 else nan)
            if k is not None:
                moves = np.where(is_held, 0.0, G[:, -1]) / np.where(is_held, 1.0, H[:, -1, -1])
                gained = float(np.add.reduce(moves * np.where(is_held, 0.0, G[:, -1])))
                reach = length(whole, (G[:, :-1] - H[:, :-1, -1] * moves[:, None]).sum(axis=0).tolist())
        if k is None:
            edges = [name for name in on_bound if name not in self.bounds]
            lost = lost or _inseparable(systems[0], space, free, edges, limit)
        pulled = [
            name
            for name in on_bound
            if is_pulled(_score(systems, names.index(name)), parameters[name], name, space, self.bounds)
        ]
        inside = k is not None and self._is_latent_pulled(systems, latent, held, k)
        return Optimality(
            count=count,
            free=moving,
            undetermined=tuple(lost),
            slack=room,
            pulled=(*pulled, *([str(self.latent)] if inside else [])),
            apart=apart,
            reach=reach,
            cost=cost - gained,
            rounding=self.rounding,
        )

    def _imitated(
        self, H: Floats, latent: Mapping[Group, float], is_held: Mask, names: list[str], limit: float
    ) -> list[str]:
        """Return the shared parameters that others can imitate once latent parameters at an edge of the model move."""
        space = self.model.parameters
        if self.latent not in space.edges or self.latent in self.bounds:
            return []
        lowest = float(space.lower[space.names.index(self.latent)])
        is_edge = is_held & np.array([latent[group] == lowest for group in self.parts])
        if not is_edge.any():
            return []
        whole = ArrowBlocks(H, is_held).reduced().tolist()
        unscaled = inverse(ArrowBlocks(H, is_held & ~is_edge).reduced().tolist())
        return [name for n, name in enumerate(names) if not unscaled[n][n] * whole[n][n] < limit]

    def _is_latent_pulled(
        self, systems: list[Linearization], latent: Mapping[Group, float], held: Collection[Group], k: int
    ) -> bool:
        """Return whether the quotes of a group pull its latent parameter inside that is claimed to be held."""
        space = self.model.parameters
        low, high = self.bounds.get(space.names[k], (float(space.lower[k]), float(space.upper[k])))
        for group, system in zip(self.parts, systems, strict=True):
            value, pull = latent[group], system.rows[-1][k]
            is_right = (value <= low and pull <= 0.0) or (value >= high and pull >= 0.0)
            if group in held and not is_right and system.rows[k][k] != 0.0:
                return True
        return False


def question(
    quotes: Quotes,
    model: Model,
    groups: Mapping[Group, Rows],
    *,
    residual: Any,
    weights: Weighting,
    loss: Loss,
    latent: str | None,
    rest: Mapping[str, Any],
) -> Question:
    """Return the question these quotes pose, by group; ``rest`` are fixed parameters and bounds."""
    parts = {}
    for group, places in groups.items():
        some = quotes if latent is None else quotes[places]
        own = weights if latent is None else weights_of_rows(weights, places)
        objective, _ = objective_of(some, residual=residual, weights=own)
        parts[group] = objective.with_loss(loss)
    return Question(parts, model, latent, **rest)


def weights_of_rows(weights: Weighting, rows: Rows) -> Weighting:
    """Return the weights of some rows; a rule, or weights by id, apply to any quotes."""
    return np.asarray(weights, float)[rows] if isinstance(weights, np.ndarray | list | tuple) else weights


def is_pulled(score: float, value: float, name: str, space: ParameterSpace, bounds: Limits) -> bool:
    """Return whether quotes with this score pull a parameter that is on a bound back inside."""
    least = bounds[name][0] if name in bounds else float(space.lower[space.names.index(name)])
    return score > 0.0 if value == least else score < 0.0


def _farthest(arrow: ArrowBlocks, G: Floats, noise: float) -> float:
    """Return the next step of the parameter that moves most, in its own standard errors."""
    steps, errors = arrow.solve(G), arrow.errors(noise)
    with np.errstate(divide="ignore", invalid="ignore"):  # without noise there are no errors: then rounding decides
        shares = [np.where(steps[0] == 0.0, 0.0, np.abs(steps[0] / errors[0]))]
        if arrow.has_latent:
            shares.append(np.abs((steps[1] / errors[1])[~arrow.held]))
    return float(np.max(np.concatenate(shares), initial=0.0))


def _total(values: Any) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def _score(systems: list[Linearization], place: int) -> float:
    return _total(system.rows[-1][place] for system in systems)


def _inseparable(
    system: Linearization, space: ParameterSpace, free: list[int], edges: Collection[str], limit: float
) -> list[str]:
    """Return, if a parameter ended at an edge of the model, those that the others can imitate, itself included."""
    found = sorted({*free, *(space.names.index(name) for name in edges)})
    H = [[system.rows[i][j] for j in found] for i in found]
    unscaled = inverse(H)
    return [space.names[i] for n, i in enumerate(found) if not unscaled[n][n] * H[n][n] < limit]
