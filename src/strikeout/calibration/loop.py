"""Levenberg-Marquardt in a box: from one start to an optimum, the same bits every time.

symbol  meaning
u       the point, in the free coordinates
H, G    curvature and score there
S       second-order part of the curvature, learnt once the steps are small
reach   length of the next Gauss-Newton step in the metric of H (see convergence.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strikeout.calibration.box import Box
from strikeout.calibration.convergence import Convergence
from strikeout.calibration.limits import BUILTIN, Limits
from strikeout.calibration.sr1 import corrected, updated
from strikeout.calibration.termination import Termination
from strikeout.kernels.symmetric import length
from strikeout.statistics.linearization import Linearization

Rows = list[list[float]]

PATIENCE = 25  # failed steps in a row
# Information below this share of a coordinate's own is none: it keeps the reach finite where a direction is lost.
RIDGE = 1e-14
# The second-order part is learnt from steps below this many standard errors (longer ones mix in the third) and used
# for such alone: kept for longer ones, it can hold a search on NIST's MGH17 to ever smaller steps, if the last bits are
# so. It is learnt only if Gauss-Newton shortens the next step by less than this factor: otherwise there is nothing
# to learn.
LOCAL = 1.0
SLOW = 0.01


class Evaluation(NamedTuple):
    """The normal equations in the free coordinates, and those of the parameters they came from."""

    curvature: Rows
    score: list[float]
    cost: float
    equations: Linearization


class Visit(NamedTuple):
    """One accepted point on the way."""

    cost: float
    gradient: float  # the next Gauss-Newton step in standard errors
    damping: float
    point: tuple[float, ...]
    evaluations: int  # so far


@dataclass(frozen=True)
class Descent:
    """Where one start ended."""

    point: list[float]
    system: Evaluation
    termination: Termination
    visits: tuple[Visit, ...]
    evaluations: int
    held: tuple[int, ...]  # coordinates on a bound that the cost pushes against


Evaluate = Callable[[Sequence[float]], Evaluation]
Watch = Callable[[Sequence[float], Evaluation, Visit], Termination | None]


def descend(
    evaluate: Evaluate,
    start: Sequence[float],
    *,
    box: Box,
    convergence: Convergence,
    watch: Watch | None = None,
    limits: Limits = BUILTIN,
) -> Descent:
    """Follow the cost down from ``start`` until the next step is negligible.

    ``watch`` looks at every accepted point and may end the search with a reason.
    """
    u, at = list(start), evaluate(start)
    damping, evaluations, refused = limits.damping, 1, 0
    scale = _grown(None, at.curvature) if limits.keeps_scale else None
    S: Rows | None = None
    reach = _reach(at, box.pushed(u, at.score))
    visits = [Visit(at.cost, convergence.standard_errors(reach, at.cost), damping.value, tuple(u), 1)]
    while True:
        ended = convergence.ended(reach, at.cost)
        if watch is not None and not refused:
            ended = watch(u, at, visits[-1]) or ended
        if ended is None and evaluations >= limits.cap:
            ended = Termination.CAP
        if ended is not None:
            break
        trial, promised = box.step(u, corrected(at.curvature, S), at.score, damping.value, scale=scale)
        if S is not None and not promised > 0.0:  # the correction made the curvature indefinite: forget it
            S = None
            continue
        blur, accepted, gain = convergence.blur(at.cost), False, 1.0
        if promised > 0.0 and trial != u:
            new = evaluate(trial)
            evaluations += 1
            fall = at.cost - new.cost
            if promised > blur:
                accepted, gain = fall > 1e-3 * promised, fall / promised
            elif fall > -2.0 * blur:  # the cost no longer resolves the difference; the score does
                accepted = _reach(new, box.pushed(trial, new.score)) < 0.9 * reach
        if accepted:
            before, reach = reach, _reach(new, box.pushed(trial, new.score))
            gradient = convergence.standard_errors(reach, new.cost)
            if not gradient < LOCAL:
                S = None
            elif visits[-1].gradient < LOCAL and reach > SLOW * before:
                s = [b - a for a, b in zip(u, trial, strict=True)]
                y = [a - b for a, b in zip(at.score, new.score, strict=True)]
                S = updated(S, new.curvature, s, y)
            u, at, refused = trial, new, 0
            scale = scale and _grown(scale, at.curvature)
            damping = damping.after_success(gain)
            visits.append(Visit(at.cost, gradient, damping.value, tuple(u), evaluations))
            continue
        refused += 1
        damping = damping.after_failure()
        if S is not None:
            S = None
        elif trial == u or promised <= blur or refused > PATIENCE:
            ended = convergence.resolved(reach, at.cost)
            break
    return Descent(u, at, ended, tuple(visits), evaluations, box.pushed(u, at.score))


def _grown(scale: list[float] | None, H: Rows) -> list[float]:
    """Return the largest curvature met so far, a coordinate."""
    return [max(row[i], scale[i] if scale else 0.0) for i, row in enumerate(H)]


def _reach(at: Evaluation, held: tuple[int, ...]) -> float:
    H, G = at.curvature, at.score
    if held:
        free = [i for i in range(len(G)) if i not in held]
        H, G = [[H[i][j] for j in free] for i in free], [G[i] for i in free]
    return length(H, G, RIDGE)
