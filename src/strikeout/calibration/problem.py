"""The problem of a plain calibration, one start at a time, and what all kinds of problems share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from strikeout.calibration.basin import Basin, Joining
from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import (
    BUILTIN,
    CURVE,
    CUSTOM,
    Convergence,
    Descent,
    Evaluation,
    Limits,
    Visit,
    Watch,
    descend,
)
from strikeout.calibration.termination import Termination
from strikeout.errors import ParameterError
from strikeout.kernels.arrays import Floats
from strikeout.models.model import Model
from strikeout.quotes.contracts import Features
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearizer, rows
from strikeout.statistics.losses import LEAST_SQUARES, AskedLoss, Loss, Reweighted, RobustLoss, Squared, robust_scale
from strikeout.statistics.objective import Objective

SETTLED = 1e-6  # relative change of a threshold; its effect on the parameters is far smaller
OUTER_CAP = 100


class Posed(Protocol):
    """The objective of a search, over quotes or their moments: as much of it as the comparison of ends needs."""

    @property
    def loss(self) -> Loss: ...

    @property
    def rounding(self) -> float: ...

    def __len__(self) -> int: ...


AnyPosed = TypeVar("AnyPosed", bound=Posed, covariant=True)


@dataclass(frozen=True)
class SearchEnd(Generic[AnyPosed]):
    """The end of one start, with the objective it ended on (the threshold of a robust loss is estimated on the way)."""

    descent: Descent
    objective: AnyPosed
    merit: float  # what is compared between starts: the cost, or a threshold that was estimated on the way
    joined: SearchEnd[AnyPosed] | None = None  # whose basin it entered, if it was not followed further


class Search(Protocol[AnyPosed]):
    """A problem that can be followed from a start to its end."""

    @property
    def coordinates(self) -> Coordinates: ...

    def within(self, coordinates: Coordinates) -> Search[AnyPosed]: ...

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> SearchEnd[AnyPosed]: ...


class RobustSearch(Search[AnyPosed], Protocol[AnyPosed]):
    """A problem under a robust loss; until it has a threshold, its objective has the squared loss."""

    @property
    def objective(self) -> AnyPosed: ...

    @property
    def asked(self) -> AskedLoss: ...

    def asking(self, asked: AskedLoss) -> RobustSearch[AnyPosed]: ...

    def with_loss(self, loss: Loss) -> RobustSearch[AnyPosed]: ...

    def weighted_residuals(self, u: Sequence[float]) -> Floats: ...

    def evaluate(self, u: Sequence[float]) -> Evaluation: ...

    def descend(
        self, start: Sequence[float], watch: Watch | None, noise: float | None = None, tolerance: float | None = None
    ) -> Descent: ...


def follow_robust(problem: RobustSearch[AnyPosed], start: Sequence[float], watch: Watch | None) -> SearchEnd[AnyPosed]:
    """Return the end of one start under a robust loss.

    Descend, estimate the threshold again at the end, and repeat until it stays; then descend to the end. The first
    threshold is estimated from the residuals at the start itself: half the quotes can be absurd, and it still has the
    size of the others.

    With a given scale the threshold begins as large as the residuals at the start and shrinks to that of the scale, by
    half at least each time: if the last one came first, all residuals might be beyond it, and none would pull.
    """
    asked, scale = problem.asked, problem.asked.scale
    tuning, smallest = asked.tuning, scale if scale is not None else 0.1 * problem.objective.rounding
    visits: tuple[Visit, ...] = ()
    u, evaluations, settled, moved = list(start), 0, False, 1.0
    width = tuning * max(robust_scale(problem.weighted_residuals(u)), smallest)
    noise = width / tuning
    for _ in range(OUTER_CAP):
        posed = problem.with_loss(_searched(asked.at(width)))
        end = posed.descend(u, watch, noise, None if settled else max(0.01 * moved, 1e-6))
        u, visits, evaluations = end.point, visits + end.visits, evaluations + end.evaluations
        if settled or not end.termination.converged:
            break
        measured = robust_scale(posed.weighted_residuals(u))
        before, width = width, tuning * max(measured, smallest)
        if scale is None:
            noise, moved = width / tuning, abs(width - before) / before
            settled = not moved > SETTLED
        else:
            width = max(min(width, 0.5 * before), tuning * scale)
            noise, settled = max(min(measured, scale), 0.1 * problem.objective.rounding), width == tuning * scale
    ended = end.termination if settled or not end.termination.converged else Termination.CAP
    final = problem.with_loss(asked.at(width))
    system = end.system if asked.kind == "huber" else final.evaluate(u)
    whole = Descent(u, system, ended, visits, evaluations, end.held)
    return SearchEnd(whole, final.objective, width if scale is None else system.cost)


def _searched(loss: RobustLoss) -> Loss:
    """Return the loss with the curvature that a search uses; Huber's psi' is never negative."""
    return loss if loss.name == "huber" else Reweighted(loss)


@dataclass(frozen=True)
class Problem:
    """An objective, the model to fit to it, and the coordinates to search in."""

    objective: Objective
    model: Model
    coordinates: Coordinates
    asked: AskedLoss = LEAST_SQUARES

    def evaluate(self, u: Sequence[float]) -> Evaluation:
        theta = self.coordinates.theta(u)
        try:
            if theta[0] == theta[0]:
                return self.coordinates.system(self._linearize(theta), u, theta)
        except ParameterError:  # inside the bounds, but beyond the boundary of the model: a point to step back from
            pass
        nothing = Linearization((nan,) * ((len(theta) + 1) * (len(theta) + 2) // 2), len(self.objective))
        return Evaluation([[nan] * len(u)] * len(u), [nan] * len(u), nan, nothing)

    @cached_property
    def _linearize(self) -> Callable[[Sequence[float]], Linearization]:
        return linearizer(self.objective, self.model)

    def weighted_residuals(self, u: Sequence[float]) -> Floats:
        residual, _ = rows(self.objective, self.model, np.array(self.coordinates.theta(u)))
        return self.objective.root_weight * residual

    def within(self, coordinates: Coordinates) -> Problem:
        return replace(self, coordinates=coordinates)

    def asking(self, asked: AskedLoss) -> Problem:
        return replace(self, asked=asked)

    def with_loss(self, loss: Loss) -> Problem:
        return replace(self, objective=self.objective.with_loss(loss))

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> SearchEnd[Objective]:
        """Return the end of one start."""
        if self.asked.is_robust:
            return follow_robust(self, start, watch)
        descent = self.descend(start, watch)
        return SearchEnd(descent, self.objective, descent.system.cost)

    @property
    def limits(self) -> Limits:
        """Those of user-defined models if functions, bounds and starts are the user's own."""
        if isinstance(self.objective.book, Features):
            return CUSTOM
        return CURVE if self.model.parameters.is_curve else BUILTIN

    def descend(
        self, start: Sequence[float], watch: Watch | None, noise: float | None = None, tolerance: float | None = None
    ) -> Descent:
        freedom, limits = max(len(self.objective) - len(start), 1), self.limits
        convergence = Convergence(freedom, self.objective.rounding, noise, tolerance or limits.tolerance)
        if noise is None and self._search is not None:
            if watch is None:
                return self._compiled(start, convergence, None)
            if isinstance(watch, Joining) and watch.progress is None:
                return self._compiled(start, convergence, watch.known)
        return descend(
            self.evaluate, start, box=self.coordinates.box, convergence=convergence, watch=watch, limits=limits
        )

    @cached_property
    def _search(self) -> Callable[..., Any] | None:
        """The model's compiled loop, if it has one for this objective; ``descend`` is its definition."""
        ready = getattr(self.model, "searcher", None)
        is_plain = self.objective.residual == "price" and isinstance(self.objective.loss, Squared)
        if ready is None or not is_plain or self.coordinates.share is not None or self.limits is not BUILTIN:
            return None
        found: Callable[..., Any] | None = ready(*self.objective.prepared)
        return found

    def _compiled(self, start: Sequence[float], convergence: Convergence, known: Basin | None) -> Descent:
        """Return what ``descend`` returns, without the interpreter in between: a third of the time of a small book."""
        assert self._search is not None
        c, theta = self.coordinates, self.coordinates.theta(start)
        limits = (convergence.freedom, convergence.rounding, convergence.tolerance, self.limits.cap)
        basin = None if known is None else known.given
        ended, u, sums, visits, evaluations, held = self._search(theta, c.free, c.box.given, limits, basin)
        system = c.system(Linearization(sums, len(self.objective)), u, theta)
        return Descent(u, system, Termination[ended], tuple(map(Visit._make, visits)), evaluations, held)
