"""Several starts, the best end taken, and how many agree on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strikeout.calibration.basin import Basin, Joining, Progress, apart, basin_of
from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import Evaluation, Visit
from strikeout.calibration.problem import AnyPosed, Posed, RobustSearch, Search, SearchEnd
from strikeout.calibration.termination import Termination
from strikeout.errors import ParameterError, UsageError
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.losses import AskedLoss, RobustLoss, Squared
from strikeout.text import Argument

Start = Mapping[str, float]
Stages = Sequence[Mapping[str, float]]

STARTS = 4  # canonical starts of a search, unless others are asked for
AGREEMENT = 1e-3  # standard errors: ends closer than this are one optimum
NEARLY = 0.1  # standard errors: how far from the optimum of a simpler model its search may end


def starting_points(model: Model, coordinates: Coordinates, starts: int | Start | Sequence[Start]) -> list[list[float]]:
    """Return points inside the box: the first canonical ones of the model, or those given by name."""
    space = model.parameters
    if isinstance(starts, int):
        if starts < 1:
            raise UsageError(
                Argument("starts", starts), f": at least one is needed; {model.name} has {len(space.starts)}."
            )
        if starts > max(len(space.starts), STARTS):
            raise UsageError(
                Argument("starts", starts),
                f": {model.name} has {len(space.starts)} canonical starts. Give at most that many, or in Python "
                "a list of starts of your own.",
                starts=starts,
                most=len(space.starts),
            )
        return [coordinates.point(row) for row in space.starts[:starts].tolist()]
    given = [starts] if isinstance(starts, Mapping) else list(starts)
    if not given:
        raise UsageError("starts is empty: give a number, a mapping by name, or several such mappings.")
    fixed = {space.names[i]: value for i, value in coordinates.fixed.items()}
    for start in given:
        if not isinstance(start, Mapping):
            raise ParameterError(
                f"A start is a mapping by name ({', '.join(space.names)}); got {start!r}.", start=start
            )
    return [coordinates.point(space.vector({**start, **fixed}).tolist()) for start in given]


def stages_of(space: ParameterSpace, starts: int | Start | Sequence[Start]) -> Stages:
    """Return the stages of a search: those of the model by default, none if starts are asked for."""
    return space.stages if starts == STARTS else ()


def search(
    problem: Search[AnyPosed],
    points: Sequence[Sequence[float]],
    progress: Progress | None = None,
    *,
    first: SearchEnd[AnyPosed] | None = None,
) -> list[SearchEnd[AnyPosed]]:
    """Return the end of every start, in their order. A later start stops once it is sure to end like an earlier one.

    ``first`` is the end of a start that was followed already; it comes before the others.
    """
    ends: list[SearchEnd[AnyPosed]] = [] if first is None else [first]
    best = first if first is not None and first.descent.termination.converged else None
    known = _basin(best)
    for number, point in enumerate(points, len(ends)):
        is_watched = known is not None or progress is not None
        end = problem.follow(point, Joining(known, problem.coordinates.box, number, progress) if is_watched else None)
        if end.descent.termination is Termination.JOINED:
            end = SearchEnd(end.descent, end.objective, end.merit, joined=best)
        if end.descent.termination.converged and (best is None or end.merit < best.merit):
            best, known = end, _basin(end)
        ends.append(end)
    return ends


def staged(problem: Search[AnyPosed], points: Sequence[Sequence[float]], stages: Stages) -> Sequence[Sequence[float]]:
    """Return starts near the optimum of the simpler model that this one extends: one for each stage after the first.

    The first stage fixes the parameters that the simpler model lacks, at values without effect. Its search starts at
    the first point and ends near the optimum, which is enough for a start. Without stages,
    or if nothing else is free or the first stage leads nowhere, the starts are the points.
    """
    coordinates = problem.coordinates
    if not stages:
        return points
    u = coordinates.at(points[0], stages[0])
    simpler = problem.within(coordinates.pinned(u, stages[0]))
    descent = simpler.follow(u, _nearly).descent
    if not descent.termination.converged:
        return points
    return [coordinates.point(coordinates.theta(coordinates.at(descent.point, stage))) for stage in stages[1:]]


def _nearly(_u: Sequence[float], _at: Evaluation, visit: Visit) -> Termination | None:
    return Termination.CONVERGED if visit.gradient < NEARLY else None


def searched(
    problem: RobustSearch[AnyPosed],
    points: Sequence[Sequence[float]],
    stages: Stages = (),
    progress: Progress | None = None,
) -> list[SearchEnd[AnyPosed]]:
    """Return the ends of all starts; if the loss redescends, one more comes first, from the optimum of Huber's loss.

    The optimum of Huber's loss gives the scale of a residual too, unless it was given: ends are then compared by their
    cost at one scale.
    """
    asked = problem.asked
    if not asked.redescends:
        return search(problem, staged(problem, points, stages), progress)
    for convex in (AskedLoss("huber", asked.scale), AskedLoss("soft-l1", asked.scale)):  # the second is smooth
        posed = problem.asking(convex)
        points, stages = staged(posed, points, stages), ()
        first = best_of(search(posed, points, progress))
        if first.descent.termination.converged:
            break
    loss = first.objective.loss
    assert isinstance(loss, RobustLoss)
    scale = asked.scale if asked.scale is not None else loss.threshold / convex.tuning
    posed = problem.asking(AskedLoss(asked.kind, scale))
    return search(posed, [first.descent.point, *points], progress)


def best_of(ends: Sequence[SearchEnd[AnyPosed]]) -> SearchEnd[AnyPosed]:
    """Return the converged end of least merit; if none converged, the least of all; the first among equals."""
    converged = [end for end in ends if end.descent.termination.converged]
    return min(converged or ends, key=lambda end: end.merit if end.merit == end.merit else float("inf"))


def agrees(end: SearchEnd[Posed], best: SearchEnd[Posed]) -> bool:
    """Return whether the end is the same optimum as the best, to a thousandth of a standard error, or on its way
    there."""
    if end.joined is not None:  # perhaps an optimum that a still later start has bettered
        return end.joined is best or agrees(end.joined, best)
    if not end.descent.termination.converged:
        return False
    cost = best.descent.system.cost
    dof = max(len(best.objective) - len(best.descent.point), 1)
    rounding = 10.0 * best.objective.rounding
    limit = AGREEMENT * AGREEMENT * cost / dof + rounding * rounding
    return apart(end.descent.point, best.descent) <= limit


def _basin(best: SearchEnd[Posed] | None) -> Basin | None:
    """Return what later starts may join: nothing under a robust loss, whose threshold differs from start to start."""
    return basin_of(best.descent) if best is not None and isinstance(best.objective.loss, Squared) else None
