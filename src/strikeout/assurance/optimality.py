"""Whether parameters are an optimum of the quotes they are held against: asked at the parameters themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from strikeout.assurance.stationarity import next_step
from strikeout.calibration.identifiability import INFLATION, slack, undetermined
from strikeout.kernels.symmetric import inverse, length
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.losses import Squared, noise_variance
from strikeout.statistics.objective import Objective

# A cost is that of another valley where it is above the best by what moving every free parameter by so many standard
# errors costs. Within one valley a step that is near enough to be certified leaves far less.
VALLEY = 5.0
BLUR = 100.0  # times the rounding of all residuals: costs that differ by less than its square are one

Limits = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Optimality:
    """What quotes say of parameters that are claimed to be their optimum."""

    count: int  # quotes that count
    free: int  # parameters that may move
    undetermined: tuple[str, ...]  # those the quotes leave free, or cannot tell from the others
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
        """Whether the parameters are determined, and an optimum to this many standard errors or to rounding."""
        if self.spare <= 0 or self.undetermined or self.pulled:
            return False
        return self.apart <= tolerance or self.reach <= self.rounding

    def is_certain(self, tolerance: float) -> bool:
        """Whether that holds of the optimum too that is so near: see ``room_for``."""
        return self.is_within(tolerance) and self.slack >= room_for(tolerance)

    def is_above(self, best: float) -> bool:
        """Whether ``best``, the cost of another point, is so far below that these parameters are in another valley."""
        bottom = self.cost - (self.reach * self.reach if isfinite(self.reach) else 0.0)
        return is_other_valley(bottom, best, free=self.free, spare=self.spare, rounding=self.rounding)


def room_for(tolerance: float) -> float:
    """The least ``slack`` of an answer that stands for an optimum within this many standard errors.

    The quotes may just determine the parameters at the answer, and no longer at the optimum. Twice the tolerance, since
    the standard errors change as well: of 1,100 steps on small noisy books none was undetermined at its optimum then.
    """
    return 1.0 + 2.0 * tolerance


def is_other_valley(cost: float, best: float, *, free: int, spare: int, rounding: float) -> bool:
    """Whether a cost is so far above the best that it is the bottom of another valley.

    Args:
        free: how many parameters may move.
        spare: how many more quotes than that there are.
        rounding: of all residuals; costs that are no farther apart than it makes them are one.
    """
    noise, blur = max(best, 0.0) / max(spare, 1), BLUR * rounding
    return cost - best > VALLEY * VALLEY * free * noise + blur * blur


def optimality(
    objective: Objective,
    model: Model,
    theta: Sequence[float],
    *,
    fixed: Collection[str],
    on_bound: Collection[str],
    bounds: Limits,
) -> Optimality:
    """Return what the quotes of an objective say of these parameters.

    Args:
        fixed: names of the parameters that were given.
        on_bound: names of those said to have ended on a bound.
        bounds: those that were asked for.

    Raises:
        ParameterError: the parameters are no point of the model.
    """
    space = model.parameters
    system = linearize(objective, model, theta)
    free = [i for i, name in enumerate(space.names) if name not in fixed and name not in on_bound]
    H, G = [[system.rows[i][j] for j in free] for i in free], [system.rows[-1][i] for i in free]
    spare = system.count - len(free)
    variance = system.cost / spare if spare > 0 else float("nan")
    if spare > 0 and not isinstance(objective.loss, Squared):
        difference, _ = rows(objective, model, np.array(theta))
        variance = noise_variance(objective.loss, objective.root_weight * difference, len(free))
    limit = getattr(model, "inflation", INFLATION)
    lost = undetermined(space, theta, H, kept=free, noise_variance=variance, inflation=limit) if spare > 0 else []
    lost = lost or _inseparable(system, space, free, [name for name in on_bound if name not in bounds], limit)
    moves = map(abs, next_step(system, free=free, variance=variance)) if spare > 0 else [float("inf")]
    return Optimality(
        count=system.count,
        free=len(free),
        undetermined=tuple(lost),
        slack=slack(space, theta, H, kept=free, noise_variance=variance) if spare > 0 else 0.0,
        pulled=tuple(
            name
            for name in on_bound
            if is_pulled(system.rows[-1][space.names.index(name)], theta[space.names.index(name)], name, space, bounds)
        ),
        apart=max(moves, default=0.0),
        reach=length(H, G),
        cost=system.cost,
        rounding=objective.rounding,
    )


def is_pulled(score: float, value: float, name: str, space: ParameterSpace, bounds: Limits) -> bool:
    """Whether quotes with this score pull a parameter that is on a bound back inside."""
    least = bounds[name][0] if name in bounds else float(space.lower[space.names.index(name)])
    return score > 0.0 if value == least else score < 0.0


def _inseparable(
    system: Linearization, space: ParameterSpace, free: list[int], edges: Collection[str], limit: float
) -> list[str]:
    """If a parameter ended at an edge of the model, those that the others can imitate, itself included."""
    found = sorted({*free, *(space.names.index(name) for name in edges)})
    H = [[system.rows[i][j] for j in found] for i in found]
    unscaled = inverse(H)
    return [space.names[i] for n, i in enumerate(found) if not unscaled[n][n] * H[n][n] < limit]
