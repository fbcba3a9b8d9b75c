"""The search of a panel: the shared parameters alone, every group's latent parameter solved for at each point.

    symbol  meaning
    theta   the shared parameters
    x_g     the latent parameter of group g: the one of least cost, given theta, inside its bounds
    T_g     normal equations of group g at (theta, x_g): upper triangle of (H, G; G', cost)
    k       the column of the latent parameter
    S       the sum over groups of T_ij - T_ik T_jk / T_kk: the normal equations of theta, all x_g following it

The cost with every x_g at its best is a function of theta alone, and S are its Gauss-Newton equations (variable
projection; Golub and Pereyra, 1973). The loop of a plain calibration therefore also searches panels, with as many
coordinates as shared parameters, and one evaluation takes a few passes over the quotes for any number of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, isfinite, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from strikeout.calibration.coordinates import Bounds, Coordinates, coordinates_of
from strikeout.calibration.latent_solve import FACTOR, NEGLIGIBLE, PATIENCE, Line, settled
from strikeout.calibration.loop import BUILTIN, CUSTOM, Convergence, Descent, Evaluation, Limits, Watch, descend
from strikeout.calibration.panels import shared_space
from strikeout.calibration.problem import SearchEnd, follow_robust
from strikeout.calibration.settings import Settings
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.arrow import eliminate_each
from strikeout.kernels.symmetric import inverse, length
from strikeout.models.model import Model, ParameterSpace
from strikeout.quotes.contracts import Features
from strikeout.statistics.linearization import Linearization, places
from strikeout.statistics.linearize import linearize_each, price_residuals, rows, summed
from strikeout.statistics.losses import LEAST_SQUARES, TUNING, AskedLoss, Huber, Loss, Reweighted, RobustLoss, Squared
from strikeout.statistics.objective import Objective, canonical_order, objective_of
from strikeout.statistics.system import Group

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


Posed = Callable[[Rows, Floats], list[tuple[Objective, list[float]]]]

MEDIANS = 8  # steps to the median: from a bound the first ones are cut to a factor of 3
NEAR = 10.0  # standard errors from the optimum, within which the latent parameters are solved to all digits


@dataclass(frozen=True, eq=False)
class PanelObjective:
    """The objective of a panel by group; every group has a quote that counts."""

    parts: dict[Group, Objective]
    loss: Loss = field(default_factory=Squared)

    def __len__(self) -> int:
        """Quotes less groups: the degrees of freedom that the latent parameters leave for the shared ones."""
        return self.count - len(self.parts)

    @cached_property
    def count(self) -> int:
        return sum(len(part) for part in self.parts.values())

    @cached_property
    def rounding(self) -> float:
        """As ``Objective.rounding``, of all quotes; the order of the groups does not affect it."""
        return sqrt(fsum(part.rounding * part.rounding for part in self.parts.values()))

    def with_loss(self, loss: Loss) -> PanelObjective:
        """Return the same quotes under another loss."""
        return PanelObjective({group: part.with_loss(loss) for group, part in self.parts.items()}, loss)


def parts_of(whole: Objective, groups: Mapping[Group, Rows]) -> dict[Group, Objective]:
    """Return the objective by group, without groups of which no quote counts; targets and weights are each quote's."""
    parts = {}
    for group, at in groups.items():
        book, prices, weights = whole.book[at], whole.prices[at], whole.weights[at]
        order, places = canonical_order(book, prices, weights)
        if len(order):
            parts[group] = Objective(book, prices, whole.targets[at], weights, whole.residual, order, places)
    return parts


@dataclass(frozen=True, eq=False)
class Settling:
    """Every group's latent parameter at its best for one theta, and the normal equations there."""

    theta: tuple[float, ...]
    latents: Floats  # in the order of the groups
    triangles: Floats  # T_g, one row per group
    held: Mask  # on a bound that the cost pushes against, or moving no price of its group
    system: Linearization  # S

    @property
    def cost(self) -> float:
        return self.system.cost


@dataclass(frozen=True, eq=False)
class PanelProblem:
    """A panel, the model to fit to it, and the coordinates in which to search for the shared parameters."""

    objective: PanelObjective
    model: Model
    coordinates: Coordinates
    latent: int  # its place among the model's parameters
    lower: float  # bounds of the latent parameter
    upper: float
    start: float
    asked: AskedLoss = LEAST_SQUARES

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> SearchEnd[PanelObjective]:
        """Return the end of one start."""
        if self.asked.is_robust:
            return follow_robust(self, start, watch)
        descent = self.descend(start, watch)
        return SearchEnd(descent, self.objective, descent.system.cost)

    def descend(
        self, start: Sequence[float], watch: Watch | None, noise: float | None = None, tolerance: float | None = None
    ) -> Descent:
        freedom, limits = max(len(self.objective) - len(start), 1), self.limits
        convergence = Convergence(freedom, self.objective.rounding, noise, tolerance or limits.tolerance)
        best: Settling | None = None
        negligible = 0.0 if isinstance(self.objective.loss, Reweighted) else NEGLIGIBLE

        def evaluate(u: Sequence[float]) -> Evaluation:
            # Latent parameters begin at the linear prediction from the best point so far.
            nonlocal best, negligible
            found = self.settle(self.coordinates.theta(u), best, negligible=negligible)
            system = self.coordinates.system(found.system, u, found.theta)
            if isfinite(found.cost) and (best is None or found.cost <= best.cost):
                best = found
                if convergence.standard_errors(length(system.curvature, system.score), found.cost) < NEAR:
                    negligible = 0.0
            return system

        box = self.coordinates.box
        return descend(evaluate, start, box=box, convergence=convergence, watch=watch, limits=limits)

    @property
    def limits(self) -> Limits:
        """As for a plain calibration."""
        books = (part.book for part in self.objective.parts.values())
        return CUSTOM if any(isinstance(book, Features) for book in books) else BUILTIN

    def within(self, coordinates: Coordinates) -> PanelProblem:
        return replace(self, coordinates=coordinates)

    def asking(self, asked: AskedLoss) -> PanelProblem:
        return replace(self, asked=asked)

    def with_loss(self, loss: Loss) -> PanelProblem:
        return replace(self, objective=self.objective.with_loss(loss))

    def evaluate(self, u: Sequence[float]) -> Evaluation:
        """Return the equations at a point, the latent parameters solved from the start to all digits."""
        found = self.settle(self.coordinates.theta(u), negligible=0.0)
        return self.coordinates.system(found.system, u, found.theta)

    def weighted_residuals(self, u: Sequence[float]) -> Floats:
        """Return the weighted residuals of all groups, the latent parameters at their best."""
        return self.residuals_at(self.settle(self.coordinates.theta(u), negligible=0.0))

    def residuals_at(self, at: Settling) -> Floats:
        """Return the weighted residuals of all groups, in the order of the groups."""
        found = []
        for part, x in zip(self.objective.parts.values(), at.latents.tolist(), strict=True):
            residual, _ = rows(part, self.model, np.array(self._whole(at.theta, x)))
            found.append(part.root_weight * residual)
        return np.concatenate(found)

    def settle(
        self, theta: Sequence[float], near: Settling | None = None, *, negligible: float = NEGLIGIBLE
    ) -> Settling:
        """Solve for every latent parameter at this theta, from the start or from the prediction of ``near``."""
        if theta[0] != theta[0]:
            return self._nothing(theta)
        begin = np.full(len(self.objective.parts), self.start) if near is None else self._following(near, theta)
        is_robust = isinstance(self.objective.loss, RobustLoss)
        found = (self._settle_robust if is_robust else self._settle_squared)(theta, begin, negligible)
        if found is None:
            return self._nothing(theta)
        x, T = found
        return self._reduced(tuple(theta), x, T, self.line.held(x, T))

    def _posed(self, theta: Sequence[float]) -> Posed:
        parts = list(self.objective.parts.values())
        return lambda groups, x: [
            (parts[g], self._whole(theta, at)) for g, at in zip(groups.tolist(), x.tolist(), strict=True)
        ]

    def _settle_squared(self, theta: Sequence[float], begin: Floats, negligible: float) -> tuple[Floats, Floats] | None:
        posed = self._posed(theta)

        def evaluate(groups: Rows, x: Floats) -> Floats:
            return np.array([equations.triangle for equations in linearize_each(posed(groups, x), self.model)])

        return settled(evaluate, begin, self.line, rounding=self._rounding, negligible=negligible)

    def _settle_robust(self, theta: Sequence[float], begin: Floats, negligible: float) -> tuple[Floats, Floats] | None:
        """Return latent parameters and equations under a robust loss.

        The cost of a group under a loss that redescends may have several optima in its latent parameter. Two are
        solved for, and that of least cost is taken, so it depends on theta alone: the one next to the optimum under
        Huber's loss at the same scale, which a third of bad quotes that weigh much can draw to a bound, and the one
        next to the median of what single quotes ask for.
        """
        if not self.asked.redescends or not isinstance(self.objective.loss, RobustLoss):
            return self._settle_from(theta, begin, negligible)
        convex = Huber(TUNING / self.asked.tuning * self.objective.loss.threshold)
        near = self.asking(AskedLoss(convex.name)).with_loss(convex)._settle_from(theta, begin, negligible)
        if near is None:
            return None
        begins = (near[0], self._middle(theta, near[0]))
        found = [self._settle_from(theta, one, negligible) for one in begins]
        if found[0] is None or found[1] is None:
            return found[0]
        (x, T), (other, U) = found[0], found[1]
        is_lower = U[:, -1] < T[:, -1]
        return np.where(is_lower, other, x), np.where(is_lower[:, None], U, T)

    def _middle(self, theta: Sequence[float], x: Floats) -> Floats:
        """Return a latent parameter of every group of which half of its quotes ask for more, and half for less.

        No quote weighs more than another, so fewer than half of them cannot draw it far, whatever their prices are.
        """
        posed, found = self._posed(theta), x.copy()
        for _ in range(MEDIANS):
            steps = np.zeros(len(x))
            for n, (part, at) in enumerate(posed(np.arange(len(x)), found)):
                residual, jacobian = rows(part, self.model, np.array(at))
                counts = (part.root_weight > 0.0) & (jacobian[:, self.latent] != 0.0)
                if counts.any():
                    steps[n] = np.median(residual[counts] / jacobian[counts, self.latent])
            found = self.line.towards(found, np.where(np.isfinite(steps), steps, 0.0))
        return found

    def _settle_from(self, theta: Sequence[float], begin: Floats, negligible: float) -> tuple[Floats, Floats] | None:
        """Return the latent parameters and equations under a robust loss where a search from here ends.

        The second derivative counts no outlier, so it may vanish far from the optimum. There the step takes the
        curvature of iteratively reweighted least squares instead, which always lowers the cost: column 0 of T.
        """
        k, line, posed, loss = self.latent, self.line, self._posed(theta), self.objective.loss
        # Steps with less than a tenth of it would be cut back often, those with more are Newton's own.
        least = 0.5 if loss.name == "huber" else 0.1

        def evaluate(groups: Rows, x: Floats) -> Floats:
            found = []
            for part, at in posed(groups, x):
                assert isinstance(part.loss, RobustLoss)
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    residual, jacobian = rows(part, self.model, np.array(at))
                    triangle = summed(part, residual, jacobian).triangle
                    e, column = part.root_weight * residual, part.root_weight * jacobian[:, k]
                    reweighted = float(np.add.reduce(column * column * part.loss.weight(e)))
                    # The search sees a curvature of its own; a latent parameter is solved for with the true one.
                    exact = part.loss.loss if isinstance(part.loss, Reweighted) else part.loss
                    true = float(np.add.reduce(column * column * exact.stiffness(e)))
                found.append((true if true > least * reweighted else reweighted, *triangle))
            return np.array(found)

        shifted = Line(line.lower, line.upper, 0, line.score + 1, line.is_edge)
        # The first order of the last step cannot be added here: the search's curvature is not the true one.
        found = settled(
            evaluate, begin, shifted, rounding=self._rounding, negligible=negligible, small=1e-13, patience=PATIENCE
        )
        return None if found is None else (found[0], np.ascontiguousarray(found[1][:, 1:]))

    @cached_property
    def line(self) -> Line:
        """The bounds of a latent parameter, and its places in the normal equations."""
        k, space = self.latent, self.model.parameters
        is_edge = space.names[k] in space.edges and self.lower == space.lower[k]
        return Line(self.lower, self.upper, self.place(k, k), self.place(k, len(space)), is_edge)

    @cached_property
    def _rounding(self) -> Floats:
        return np.array([part.rounding for part in self.objective.parts.values()])

    def _reduced(self, theta: tuple[float, ...], x: Floats, T: Floats, held: Mask) -> Settling:
        size, k = len(self.model.parameters) + 1, self.latent
        S = eliminate_each(T[:, np.array(places(size))], k, held)
        # Sums are correctly rounded, so the order of the groups does not affect them.
        sums = tuple(fsum(S[:, i, j].tolist()) for i in range(size - 1) for j in range(i, size - 1))
        system = Linearization(sums, self.objective.count)
        pivot = np.where(held, np.inf, T[:, self.place(k, k)])
        moved = np.clip(x + T[:, self.place(k, size - 1)] / pivot, self.lower, self.upper)
        return Settling(theta, moved, T, held, system)

    def freed(self, at: Settling, u: Sequence[float]) -> list[list[float]] | None:
        """Return the curvature in u with the latent parameters at an edge of the model free; None if none is there."""
        is_edge = at.held & (at.latents == self.lower) & (at.triangles[:, self.line.curvature] > 0.0)
        if not self.line.is_edge or not is_edge.any():
            return None
        found = self._reduced(at.theta, at.latents, at.triangles, at.held & ~is_edge)
        return self.coordinates.system(found.system, u, found.theta).curvature

    def slopes(self, at: Settling) -> Floats:
        """Return how each latent parameter follows the shared ones, ``-T_ik / T_kk``: one row per shared parameter."""
        k = self.latent
        pivot = np.where(at.held, np.inf, at.triangles[:, self.place(k, k)])
        shared = [i for i in range(len(self.model.parameters)) if i != k]
        return np.array([-at.triangles[:, self.place(i, k)] / pivot for i in shared])

    def _following(self, near: Settling, theta: Sequence[float]) -> Floats:
        x = near.latents
        for slope, a, b in zip(self.slopes(near), theta, near.theta, strict=True):
            x = x + slope * (a - b)
        if self.lower >= 0.0:
            x = np.clip(x, near.latents / FACTOR, near.latents * FACTOR)
        # Inside the bounds: one on a bound that the cost does not push against would be slow to leave it.
        margin = 1e-3 * (self.upper - self.lower) if isfinite(self.upper - self.lower) else 0.0
        inside: Floats = np.clip(x, self.lower + min(margin, 0.5 * abs(self.lower)), self.upper - margin)
        return np.where(near.held, near.latents, inside)

    def _whole(self, theta: Sequence[float], x: float) -> list[float]:
        return [*theta[: self.latent], x, *theta[self.latent :]]

    def place(self, i: int, j: int) -> int:
        """Return the place of the product of columns i and j in the triangle."""
        i, j = (i, j) if i <= j else (j, i)
        size = len(self.model.parameters) + 1
        return i * size - i * (i - 1) // 2 + j - i

    def _nothing(self, theta: Sequence[float]) -> Settling:
        size, groups = len(self.model.parameters), len(self.objective.parts)
        system = Linearization((nan,) * (size * (size + 1) // 2), self.objective.count)
        whole = np.full((groups, (size + 1) * (size + 2) // 2), nan)
        return Settling(tuple(theta), np.full(groups, nan), whole, np.zeros(groups, bool), system)


def problem_again(
    quotes: Quotes, groups: Mapping[Group, Rows], model: Model, latent: str, how: Settings
) -> PanelProblem:
    """Return the problem of a panel whose model is formed already, to evaluate it at parameters of one's choice."""
    space = model.parameters
    k = space.names.index(latent)
    lower, upper = latent_bounds(space, k, how.bounds)
    whole, _ = objective_of(quotes, residual=how.residual, weights=how.weights)
    coordinates = coordinates_of(shared_space(model, latent), bounds=None, fixed=None, enforce_feller=False)
    start = min(max(float(space.starts[0][k]), lower), upper)
    return PanelProblem(PanelObjective(parts_of(whole, groups)), model, coordinates, k, lower, upper, start)


def latent_bounds(space: ParameterSpace, k: int, bounds: Bounds | None) -> tuple[float, float]:
    """Return the bounds of the latent parameter; raise for the same reasons as for any other."""
    name = space.names[k]
    alone = ParameterSpace((name,), space.lower[k : k + 1], space.upper[k : k + 1], space.starts[:, k : k + 1])
    asked = {name: bounds[name]} if bounds is not None and name in bounds else None
    found = coordinates_of(alone, bounds=asked, fixed=None, enforce_feller=False)
    return found.lower[0], found.upper[0]


def latent_errors(problem: PanelProblem, at: Settling, descent: Descent, noise: float) -> list[float]:
    """Return standard errors of the latent parameters, in the order of the groups; not-a-number if one is held.

    The block of the inverse: ``s^2 (1 / H_ll + c' C c)`` with C the covariance of the shared parameters over s^2 and c
    how the latent one follows them. The first term is the uncertainty given the shared parameters, the second that of
    the shared parameters themselves.
    """
    coordinates, H = problem.coordinates, descent.system.curvature
    kept = [i for i in range(len(descent.point)) if i not in descent.held]
    C = inverse([[H[i][j] for j in kept] for i in kept])
    chain = _chain(coordinates, descent.point)
    slopes = problem.slopes(at)
    follow = []
    for i in kept:
        total = np.zeros(len(at.latents))
        for row, slope in zip(chain, slopes, strict=True):
            total = total + row[i] * slope
        follow.append(total)
    own = at.triangles[:, problem.place(problem.latent, problem.latent)]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = 1.0 / own
        for m, a in enumerate(follow):
            for n, b in enumerate(follow):
                variance = variance + C[m][n] * (a * b)
    known = zip(variance.tolist(), at.held.tolist(), strict=True)
    return [nan if held or not v >= 0.0 else sqrt(noise * v) for v, held in known]


def _chain(coordinates: Coordinates, u: Sequence[float]) -> list[list[float]]:
    """Return derivatives of the shared parameters by the free coordinates: one row per parameter."""
    place = {i: n for n, i in enumerate(coordinates.free)}
    rows = [[0.0] * len(place) for _ in coordinates.names]
    for i, n in place.items():
        rows[i][n] = 1.0
    share = coordinates.share
    if share is not None:
        slopes = share.slopes(coordinates.theta(u), u[place[share.replaced]])
        rows[share.replaced] = [slopes.get(i, 0.0) for i in coordinates.free]
    return rows


def panel_rmse(parts: Iterable[Objective], model: Model, latent: int, theta: Sequence[float], x: Floats) -> float:
    """Return the root mean square of price residuals, unweighted, at these shared parameters and this path."""
    squares, count, ahead, behind = [], 0, list(theta[:latent]), list(theta[latent:])
    for part, own in zip(parts, x.tolist(), strict=True):
        errors = price_residuals(part, model, [*ahead, own, *behind])
        squares.append(float(np.add.reduce(errors * errors)))
        count += len(part)
    return sqrt(fsum(squares) / count)
