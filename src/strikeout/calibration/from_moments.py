"""A calibration from moments alone: no quote in memory, and a cost that does not grow with the book."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.convergence import Convergence
from strikeout.calibration.coordinates import Coordinates, coordinates_of
from strikeout.calibration.feller import CHOICES
from strikeout.calibration.loop import Evaluation, Watch, descend
from strikeout.calibration.problem import SearchEnd
from strikeout.calibration.result import concluded
from strikeout.calibration.settings import Settings
from strikeout.calibration.starts import Progress, best_of, search, starting_points
from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.models.model import Model
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.moments import Moments
from strikeout.statistics.quadrature import Quadrature, quadrature_of
from strikeout.text import Argument

Floats = NDArray[np.float64]

DEFAULT = Settings()


def calibrate_moments(
    moments: Moments, model: Model, how: Settings = DEFAULT, *, progress: Progress | None = None
) -> Calibration:
    """Fit the parameters of a model to the quotes behind the moments; a pure function of the two.

    Equal moments give equal bits, whatever was added to them and subtracted before. Squared price residuals with the
    weights of the moments. ``rmse`` is the weighted root mean square, in currency.

    Args:
        how: bounds, fixed parameters, Feller's condition and starts count; the rest is that of the moments.
        progress: as for ``calibrate``.

    Raises:
        UsageError: an unknown option.
        ParameterError: an unknown name, empty bounds, or a value outside them.
        UnidentifiedError: there are too few quotes for the free parameters.
        RefusedError: no quotes can have these moments, or the basis does not resolve the model's prices.
    """
    bounds, fixed, feller, starts = how.bounds, how.fixed, how.feller, how.starts
    if feller not in CHOICES:
        raise UsageError(Argument("feller", feller), f" is unknown. Use one of {', '.join(CHOICES)}.")
    coordinates = coordinates_of(model.parameters, bounds=bounds, fixed=fixed, enforce_feller=feller == "enforce")
    points = starting_points(model, coordinates, starts)
    free = len(coordinates.free)
    count = len(moments)
    if count <= free:
        raise UnidentifiedError(
            f"{count} quotes cannot determine {free} free parameters with standard errors: at least {free + 1} "
            "are needed. Add quotes, or fix parameters (",
            Argument("fixed", ...),
            ").",
            count=count,
            free=free,
        )
    ends, best = _search(MomentProblem(quadrature_of(moments), model, coordinates), points, progress)
    cost = best.descent.system.cost
    if best.objective.deficit > best.objective.smallest:
        raise RefusedError(
            f"The best fit to these moments costs {-best.objective.deficit:.2g}, less than nothing: either quotes were "
            "taken away that were never in, or the basis is too coarse for the model's prices. Subtract only what was "
            f"added, and take moments with more polynomials than {moments.basis.nodes}, as moments_of(quotes, "
            "basis=Basis(nodes=48)).",
            cost=-best.objective.deficit,
        )
    return Calibration(
        **concluded(ends, best, model, coordinates, noise=cost / (count - free), bounds=bounds),
        quotes=None,  # type: ignore[arg-type]  # there are none: ``used`` raises
        rmse=sqrt(cost / best.objective.total_weight),
        count=count,
        residual="price",
        weights=moments.weights,
        loss="squared",
        feller=feller,
        settings=replace(how, weights=moments.weights, residual="price", loss="squared", select="all"),
        asked=model,
        moments=moments,
    )


@dataclass(frozen=True)
class MomentProblem:
    """Moments read out, the model that is to meet them, and the coordinates in which to search."""

    quadrature: Quadrature
    model: Model
    coordinates: Coordinates

    def evaluate(self, u: Sequence[float]) -> Evaluation:
        theta = self.coordinates.theta(u)
        if theta[0] != theta[0]:
            nothing = Linearization((nan,) * ((len(theta) + 1) * (len(theta) + 2) // 2), len(self.quadrature))
            return Evaluation([[nan] * len(u)] * len(u), [nan] * len(u), nan, nothing)
        return self.coordinates.system(self._linearize(np.array(theta)), u, theta)

    @cached_property
    def _linearize(self) -> Callable[[Floats], Linearization]:
        return self.quadrature.linearizer(self.model)

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> SearchEnd[Quadrature]:
        """Return the end of one start."""
        descent = descend(self.evaluate, start, box=self.coordinates.box, convergence=self._convergence, watch=watch)
        return SearchEnd(descent, self.quadrature, descent.system.cost)

    def resolves(self, end: SearchEnd[Quadrature]) -> bool:
        """Return whether costs near the end have all the digits that a search makes use of."""
        return self.quadrature.jitter <= self._convergence.blur(end.descent.system.cost)

    def centred(self, u: Sequence[float]) -> MomentProblem:
        """Return the same problem, with costs near u to all their digits."""
        theta = np.array(self.coordinates.theta(u))
        return self if theta[0] != theta[0] else replace(self, quadrature=self.quadrature.centred(self.model, theta))

    @cached_property
    def _convergence(self) -> Convergence:
        return Convergence(max(len(self.quadrature) - len(self.coordinates.free), 1), self.quadrature.rounding)


def _search(
    problem: MomentProblem, points: Sequence[Sequence[float]], progress: Progress | None
) -> tuple[list[SearchEnd[Quadrature]], SearchEnd[Quadrature]]:
    """Return the end of every start, and the best of them with a cost to all digits."""
    first = search(problem, points[:1], progress)[0]
    if not problem.resolves(first):
        problem = problem.centred(first.descent.point)
        first = _joined(first, problem.follow(first.descent.point))
    ends = search(problem, points[1:], progress, first=first)
    best = best_of(ends)
    if not problem.resolves(best):
        at = ends.index(best)
        ends[at] = best = _joined(best, problem.centred(best.descent.point).follow(best.descent.point))
    return ends, best


def _joined(first: SearchEnd[Quadrature], then: SearchEnd[Quadrature]) -> SearchEnd[Quadrature]:
    visits = (*first.descent.visits, *then.descent.visits)
    evaluations = first.descent.evaluations + then.descent.evaluations
    return replace(then, descent=replace(then.descent, visits=visits, evaluations=evaluations))
