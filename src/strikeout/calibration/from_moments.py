"""A calibration from moments alone: no quote in memory, and a cost that does not grow with the book.

How well moments resolve a model's prices, bounded from the moments alone.

    symbol  meaning                                                                         shape
    f       model less reference surface, per unit of discount * forward                    (cells, points)
    u       sensitivity of a price to a move of one standard error of a parameter that      (cells, points, p)
            the others answer: J H^-1 e_i / (s sqrt(H^-1_ii))
    I[g]    the polynomial through the values of g at the nodes of a cell
    A       sum w s^2 of the quotes of a cell                                               (cells,)
    r       residual of a quote

By parameter i, the next Gauss-Newton step of the quotes is ``sum w s r u`` standard errors long; that of their moments
is zero. The difference is exactly

    sum w s r (u - I[u])  +  sum w s^2 (I[f u] - f I[u])

over the quotes, and wherever in its cell a quote lies, neither can exceed the largest values there:

    sqrt(cost sum A max|u - I[u]|^2)  +  sum A max|I[f u] - f I[u]|.

In the same way the cost of the quotes and that of their moments differ by at most

    2 sqrt(cost sum A max|f - I[f]|^2)  +  sum A max|I[f f] + f f - 2 f I[f]|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from strikeout.calibration.basin import Progress
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.coordinates import CHOICES, Coordinates, coordinates_of
from strikeout.calibration.loop import Convergence, Evaluation, Watch, descend
from strikeout.calibration.misfit import moments_far_from_smooth
from strikeout.calibration.problem import SearchEnd
from strikeout.calibration.result import concluded
from strikeout.calibration.settings import Settings
from strikeout.calibration.starts import STARTS, best_of, search, staged, stages_of, starting_points
from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.kernels import chebyshev, int192
from strikeout.kernels.arrays import Floats
from strikeout.kernels.products import product
from strikeout.kernels.symmetric import inverse, solve
from strikeout.models.model import Model
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.moments import Moments, reference_price
from strikeout.statistics.objective import Weighting, objective_of
from strikeout.statistics.quadrature import Quadrature, quadrature_of
from strikeout.text import Argument

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


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
    problem = MomentProblem(quadrature_of(moments), model, coordinates)
    ends, best = _search(problem, staged(problem, points, stages_of(model.parameters, starts)), progress)
    if starts == STARTS and _is_far(moments, problem, best):
        ends, best = _with_more_starts(problem, ends, best, progress)
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

    def within(self, coordinates: Coordinates) -> MomentProblem:
        return replace(self, coordinates=coordinates)

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


def _is_far(moments: Moments, problem: MomentProblem, end: SearchEnd[Quadrature]) -> bool:
    """Return whether a converged end is far from smooth; False if expiries have no slice of their own."""
    model, coordinates = problem.model, problem.coordinates
    is_shared = moments.basis.expiries == "shared"
    if not is_shared or not len(model.parameters.more_starts) or not end.descent.termination.converged:
        return False
    theta = np.array(coordinates.theta(end.descent.point))
    begin = np.flatnonzero(np.r_[True, moments.cells[1:, 0] != moments.cells[:-1, 0]])
    counts = np.add.reduceat(moments.counts, begin)
    cost = end.descent.system.cost
    return moments_far_from_smooth(end.objective, cost, counts, model, theta, len(coordinates.free))


def _with_more_starts(
    problem: MomentProblem, ends: list[SearchEnd[Quadrature]], best: SearchEnd[Quadrature], progress: Progress | None
) -> tuple[list[SearchEnd[Quadrature]], SearchEnd[Quadrature]]:
    """Follow the model's further starts too; keep them if one of them ends better."""
    points = [problem.coordinates.point(row) for row in problem.model.parameters.more_starts.tolist()]
    more, found = _search(problem, points, progress)
    return ([*ends, *more], found) if best_of([best, found]) is found else (ends, best)


def _joined(first: SearchEnd[Quadrature], then: SearchEnd[Quadrature]) -> SearchEnd[Quadrature]:
    visits = (*first.descent.visits, *then.descent.visits)
    evaluations = first.descent.evaluations + then.descent.evaluations
    return replace(then, descent=replace(then.descent, visits=visits, evaluations=evaluations))


COARSEST = 0.1  # standard errors; moments that may be off by more do not determine the optimum of their quotes

_FOUND: WeakKeyDictionary[Calibration, float] = WeakKeyDictionary()  # warnings and certificates ask again


def interpolation_bound(calibration: Calibration) -> float:
    """Return by how many standard errors a calibration from moments can at most be off the optimum of their quotes.

    Needs no quote, and holds wherever in its cell each of them lies; ``interpolation_error``, measured on the quotes,
    is ten to some hundred times smaller. Infinite if the basis is too coarse for a bound.

    Raises:
        UsageError: the calibration was made from quotes, which nothing stands between.

    >>> import strikeout as so
    >>> interpolation_bound(so.calibrate(so.states.moments_of(so.paper.quotes("small")), so.Heston())) < 1e-6
    True
    """
    if calibration.moments is None:
        raise UsageError("interpolation_bound: this calibration was made from quotes, not from moments.")
    if calibration not in _FOUND:
        _FOUND[calibration] = _bound(calibration)
    return _FOUND[calibration]


def _bound(calibration: Calibration) -> float:
    moments = calibration.moments
    model, basis, cells = calibration.model, moments.basis, moments.cells
    names = model.parameters.names
    free = [i for i, name in enumerate(names) if name not in calibration.fixed and name not in calibration.on_bound]
    rows, freedom = calibration.equations.rows, calibration.count - len(free)
    unscaled = np.array(inverse([[rows[i][j] for j in free] for i in free])).reshape(len(free), len(free))
    if not (unscaled.diagonal() > 0.0).all() or not calibration.cost > 0.0:
        return inf
    towards = unscaled / (sqrt(calibration.cost / freedom) * np.sqrt(unscaled.diagonal()))
    theta = np.array([calibration.parameters[name] for name in names])

    nodes, between = basis.contracts(cells), basis.contracts(cells, between=True)
    (price, jacobian), (price_there, jacobian_there) = model.linearize(theta, nodes), model.linearize(theta, between)
    f = (price - reference_price(nodes)).reshape(len(cells), -1, 1)
    f_there = (price_there - reference_price(between)).reshape(len(cells), -1, 1)
    u, u_there = (product(J[:, free], towards).reshape(len(cells), -1, len(free)) for J in (jacobian, jacobian_there))
    A = int192.read(moments.words[:, :1], chebyshev.EXPONENT)

    resolved = basis.between(np.concatenate([u, f * u, f, f * f], axis=2))
    of_u, of_fu, of_f, of_ff = np.split(resolved, np.cumsum([len(free), len(free), 1]), axis=2)
    missed, mixed = np.abs(u_there - of_u).max(axis=1), np.abs(of_fu - f_there * of_u).max(axis=1)
    f_missed = np.abs(f_there - of_f).max(axis=1)
    f_mixed = np.abs(of_ff + f_there * (f_there - 2.0 * of_f)).max(axis=1)

    cost = calibration.cost
    uncertain = float((2.0 * np.sqrt(cost * (A * f_missed * f_missed).sum(axis=0)) + (A * f_mixed).sum(axis=0))[0])
    step = np.sqrt((cost + uncertain) * (A * missed * missed).sum(axis=0)) + (A * mixed).sum(axis=0)
    # The quotes' own standard errors may be smaller than those of the moments, as their cost may be.
    bound = float(step.max(initial=0.0)) / sqrt(1.0 - uncertain / cost) if uncertain < cost else inf
    return bound if bound == bound else inf


def coarseness(calibration: Calibration) -> tuple[str, ...]:
    """Return the warning that moments may not resolve the prices of a calibration; nothing if they do."""
    bound = interpolation_bound(calibration)
    if not bound > COARSEST:
        return ()
    most = f"up to {bound:.2g} standard errors" if isfinite(bound) else "any number of standard errors"
    return (
        f"The {calibration.moments.basis.nodes} polynomials of the moments may be too few for these prices: the "
        f"optimum of the quotes can be {most} away. Take moments with more, as moments_of(quotes, "
        "basis=Basis(nodes=96)), or calibrate from the quotes; interpolation_error(calibration, quotes) measures it.",
    )


def interpolation_error(calibration: Calibration, quotes: Quotes, *, weights: Weighting | None = None) -> float:
    """Return how far a calibration from moments is from the optimum of the quotes themselves, in standard errors.

    Measured on the book: the largest component of the next Gauss-Newton step of the quotes' own problem, each over its
    standard error there. Zero but for rounding where the basis resolves the model's prices.

    Args:
        quotes: the ones the moments were taken from.
        weights: as the moments were taken; the rule of that name where not given.

    Raises:
        UsageError: weights of your own that are not given here, or another number of quotes.
        RefusedError: a quote lacks what the weighting needs.
    """
    if weights is None and calibration.weights == "own":
        raise UsageError("interpolation_error: the moments were taken with weights of your own. Give them again.")
    objective, _ = objective_of(quotes, weights=weights or calibration.weights)
    if len(objective) != calibration.count:
        raise UsageError(
            f"interpolation_error: the calibration has {calibration.count} quotes and {len(objective)} were given. "
            "Give those that the moments were taken from.",
            count=len(objective),
        )
    names = calibration.model.parameters.names
    theta = [calibration.parameters[name] for name in names]
    suited = getattr(calibration.model, "suited", None)
    model = calibration.model if suited is None else suited(quotes.contracts)
    rows = linearize(objective, model, theta).rows
    kept = [i for i, name in enumerate(names) if name not in calibration.fixed and name not in calibration.on_bound]
    curvature = [[rows[i][j] for j in kept] for i in kept]
    step, unscaled = solve(curvature, [rows[-1][i] for i in kept]), inverse(curvature)
    noise = sqrt(rows[-1][-1] / (len(objective) - len(kept)))
    return max(abs(s) / (noise * sqrt(unscaled[n][n])) for n, s in enumerate(step))
