"""One start followed to its end, whatever the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from typing import Generic, Protocol, TypeVar

import numpy as np

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import Descent, Evaluation, Visit, Watch, descend
from strikeout.calibration.pace import BRISK, PATIENT, Pace
from strikeout.calibration.termination import Termination
from strikeout.calibration.yardstick import Yardstick
from strikeout.errors import ParameterError
from strikeout.models.model import Model
from strikeout.quotes.features import Features
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearizer, rows
from strikeout.statistics.losses import TUNING, Huber, Loss, robust_scale
from strikeout.statistics.objective import Objective

SETTLED = 1e-6  # relative change of Huber's threshold; its effect on the parameters is far smaller
OUTER_CAP = 100


class Posed(Protocol):
    """What was asked of a model, of quotes or of their moments: as much of it as the comparison of ends needs."""

    @property
    def loss(self) -> Loss: ...

    @property
    def rounding(self) -> float: ...

    def __len__(self) -> int: ...


AnyPosed = TypeVar("AnyPosed", bound=Posed, covariant=True)


@dataclass(frozen=True)
class End(Generic[AnyPosed]):
    """Where one start led, with the objective it ended on (Huber's threshold is found on the way)."""

    descent: Descent
    objective: AnyPosed
    merit: float  # what is compared between starts: the cost, or Huber's threshold
    joined: End[AnyPosed] | None = None  # whose basin it came into, where it was not followed further


class Search(Protocol[AnyPosed]):
    """Something that can be followed from a start to its end."""

    @property
    def coordinates(self) -> Coordinates: ...

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> End[AnyPosed]: ...


@dataclass(frozen=True)
class Problem:
    """An objective, the model that is to meet it, and the coordinates in which to search."""

    objective: Objective
    model: Model
    coordinates: Coordinates

    def evaluate(self, u: Sequence[float]) -> Evaluation:
        theta = self.coordinates.theta(u)
        try:
            if theta[0] == theta[0]:
                return self.coordinates.system(self._linearize(theta), u, theta)
        except ParameterError:  # inside the bounds, but where the model ends: a point to step back from
            pass
        nothing = Linearization((nan,) * ((len(theta) + 1) * (len(theta) + 2) // 2), len(self.objective))
        return Evaluation([[nan] * len(u)] * len(u), [nan] * len(u), nan, nothing)

    @cached_property
    def _linearize(self) -> Callable[[Sequence[float]], Linearization]:
        return linearizer(self.objective, self.model)

    def weighted_residuals(self, u: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        residual, _ = rows(self.objective, self.model, np.array(self.coordinates.theta(u)))
        return self.objective.root_weight * residual

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> End[Objective]:
        """The end of one start."""
        if isinstance(self.objective.loss, Huber):
            return self._settle(start, watch)
        descent = self._descend(start, watch)
        return End(descent, self.objective, descent.system.cost)

    @property
    def pace(self) -> Pace:
        """Patient where the functions, the bounds and the starts are somebody's own."""
        return PATIENT if isinstance(self.objective.book, Features) else BRISK

    def _descend(
        self, start: Sequence[float], watch: Watch | None, noise: float | None = None, tolerance: float | None = None
    ) -> Descent:
        freedom, pace = max(len(self.objective) - len(start), 1), self.pace
        yardstick = Yardstick(freedom, self.objective.rounding, noise, tolerance or pace.tolerance)
        return descend(self.evaluate, start, box=self.coordinates.box, yardstick=yardstick, watch=watch, pace=pace)

    def _settle(self, start: Sequence[float], watch: Watch | None) -> End[Objective]:
        """Huber: descend, measure the threshold again at the end, and so on until it stays; then descend to the end.

        The first threshold comes from the residuals at the start itself: half the quotes can be absurd, and it is
        still the size of the others.
        """
        smallest = 0.1 * self.objective.rounding
        visits: tuple[Visit, ...] = ()
        u, evaluations, settled, moved = list(start), 0, False, 1.0
        width = TUNING * max(robust_scale(self.weighted_residuals(u)), smallest)
        for _ in range(OUTER_CAP):
            posed = replace(self, objective=self.objective.with_loss(Huber(width)))
            end = posed._descend(u, watch, width / TUNING, None if settled else max(0.01 * moved, 1e-6))
            u, visits, evaluations = end.point, visits + end.visits, evaluations + end.evaluations
            if settled or not end.termination.converged:
                break
            before, width = width, TUNING * max(robust_scale(self.weighted_residuals(u)), smallest)
            moved = abs(width - before) / before
            settled = not moved > SETTLED
        ended = end.termination if settled or not end.termination.converged else Termination.CAP
        whole = Descent(u, end.system, ended, visits, evaluations, end.held)
        return End(whole, posed.objective, width)
