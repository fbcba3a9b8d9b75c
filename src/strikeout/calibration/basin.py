"""When a start may stop before its end, because an earlier one has found the optimum that it is on its way to.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import le
from typing import Any, NamedTuple

from strikeout.calibration.loop import RIDGE, Box, Descent, Evaluation, Visit
from strikeout.calibration.termination import Termination
from strikeout.kernels.symmetric import dot, length

Progress = Callable[[int, Visit], None]
Walls = tuple[list[float], list[float]]

NEAR = 0.2  # of the size of every coordinate of u*: where the parabola is asked
WITHIN = 1.0  # of the same: where Gauss-Newton is asked
AIM = 0.2  # of the way, that its step may miss by
PATIENCE = 60  # evaluations, after which a start far behind the best is let go
KEPT = 0.1  # of the fall of the cost, that the parabola, or the step, may be wrong by


class Basin(NamedTuple):
    """An optimum that is known, and how far around it each criterion is asked."""

    end: Descent
    near: Walls
    within: Walls

    @property
    def given(self) -> tuple[Any, ...]:
        """What the compiled code is given."""
        end = self.end
        curvature = [x for row in end.system.curvature for x in row]
        return end.point, curvature, end.system.cost, bool(end.held), *self.near, *self.within


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


@dataclass(frozen=True)
class Joining:
    """A watch of one start: reports every accepted point, and ends the search if it joins an optimum that is known.

    The compiled search does the same without Python, if nothing is to be reported (native/descent.hpp).
    """

    known: Basin | None
    box: Box
    number: int  # of the start
    progress: Progress | None

    def __call__(self, u: Sequence[float], at: Evaluation, visit: Visit) -> Termination | None:
        if self.progress is not None:
            self.progress(self.number, visit)
        if self.known is None:
            return None
        if joins(u, at, self.known, self.box):
            return Termination.JOINED
        behind = visit.evaluations >= PATIENCE and at.cost > 4.0 * self.known.end.system.cost
        return Termination.ABANDONED if behind else None
