"""Several starts, the best end taken, and how many agree on it.

When a start may stop before its end: an earlier one has found the optimum that it is on its way to.

    symbol  meaning
    u*, H*  the optimum that is known, and the curvature there
    H, G    curvature and score at u, a point of the later start
    s       the step from u to u*, straight in the products of loop.py
    miss    the length of H^-1 G - s in the metric of H: how far Gauss-Newton's step from u ends from u*

Either u lies where the cost is that of the parabola around u*; or Gauss-Newton, from u, sees u* and little else. Its
step misses u* by the curvature of the prices on the way, which falls with the square of the way: if it misses by a
fifth, the next step misses by a twenty-fifth. Newton's method converges from wherever it misses by less
than a third of the way (Kantorovich), if the prices bend no more elsewhere than on this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import le
from typing import NamedTuple

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import RIDGE, Box, Descent, Evaluation, Visit, Watch
from strikeout.calibration.problem import AnyPosed, Posed, RobustSearch, Search, SearchEnd
from strikeout.calibration.termination import Termination
from strikeout.errors import ParameterError, UsageError
from strikeout.kernels.symmetric import dot, length
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.losses import AskedLoss, RobustLoss, Squared
from strikeout.text import Argument

Walls = tuple[list[float], list[float]]

NEAR = 0.2  # of the size of every coordinate of u*: where the parabola is asked
WITHIN = 1.0  # of the same: where Gauss-Newton is asked
AIM = 0.2  # of the way, that its step may miss by
KEPT = 0.1  # of the fall of the cost, that the parabola, or the step, may be wrong by


class Basin(NamedTuple):
    """An optimum that is known, and how far around it each criterion is asked."""

    end: Descent
    near: Walls
    within: Walls


def basin_of(end: Descent) -> Basin:
    """Return the basin around the end of a search."""
    return Basin(end, _walls(end.point, NEAR), _walls(end.point, WITHIN))


def joins(u: Sequence[float], at: Evaluation, known: Basin, box: Box) -> bool:
    """Return whether a search at u is on its way to the optimum that is known.

    A judgement, not a proof: on 40 random books, tests follow every start that joined to an end of its own, which
    agrees with that optimum.
    """
    end = known.end
    gap = at.cost - end.system.cost
    if not gap > 0.0 or not _between(u, known.within):
        return False
    if _between(u, known.near):
        way = apart(u, end)
        if abs(gap - way) <= KEPT * way + 1e-9 * end.system.cost:
            return True
    if end.held:  # there the score is not zero, and no step of Gauss-Newton's ends
        return False
    H, G = at.curvature, at.score
    s = box.straight(u, end.point)
    moved = [dot(row, s) for row in H]
    way, promised = dot(s, moved), 2.0 * dot(G, s)
    if not abs(gap - (promised - way)) <= KEPT * gap:
        return False
    miss = length(H, [g - h for g, h in zip(G, moved, strict=True)], RIDGE)
    return miss * miss <= AIM * AIM * way


def apart(u: Sequence[float], other: Descent) -> float:
    """Return the squared distance of u from the end of a search, in the metric of the curvature there."""
    d = [a - b for a, b in zip(u, other.point, strict=True)]
    return dot(d, [dot(row, d) for row in other.system.curvature])


def _walls(point: Sequence[float], share: float) -> Walls:
    return [x - share * abs(x) for x in point], [x + share * abs(x) for x in point]


def _between(u: Sequence[float], walls: Walls) -> bool:
    lower, upper = walls
    return all(map(le, lower, u)) and all(map(le, u, upper))


Start = Mapping[str, float]
Stages = Sequence[Mapping[str, float]]
Progress = Callable[[int, Visit], None]

STARTS = 4  # canonical starts of a search, unless others are asked for
AGREEMENT = 1e-3  # standard errors: ends closer than this are one optimum
NEARLY = 0.1  # standard errors: how far from the optimum of a simpler model its search may end
PATIENCE = 60  # evaluations, after which a start far behind the best is let go


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
    for number, point in enumerate(points, len(ends)):
        end = problem.follow(point, _watch(best, problem.coordinates.box, number, progress))
        if end.descent.termination is Termination.JOINED:
            end = SearchEnd(end.descent, end.objective, end.merit, joined=best)
        if end.descent.termination.converged and (best is None or end.merit < best.merit):
            best = end
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


def _watch(best: SearchEnd[Posed] | None, box: Box, number: int, progress: Progress | None) -> Watch | None:
    if best is None and progress is None:
        return None
    known = basin_of(best.descent) if best is not None and isinstance(best.objective.loss, Squared) else None

    def watch(u: Sequence[float], at: Evaluation, visit: Visit) -> Termination | None:
        if progress is not None:
            progress(number, visit)
        if known is None:
            return None
        if joins(u, at, known, box):
            return Termination.JOINED
        behind = visit.evaluations >= PATIENCE and at.cost > 4.0 * known.end.system.cost
        return Termination.ABANDONED if behind else None

    return watch
