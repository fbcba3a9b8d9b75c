"""Search smile by smile: expiries that share no parameter are problems of their own.

One damping for all of them would be that of the worst: each smile has starts, steps and a convergence of its own, and
the best end of each smile is a part of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strikeout.calibration.coordinates import Bounds, Coordinates, coordinates_of
from strikeout.calibration.latent_problem import parts_of
from strikeout.calibration.loop import Descent, Visit
from strikeout.calibration.problem import Problem, SearchEnd
from strikeout.calibration.starts import Progress, best_of, search
from strikeout.calibration.termination import Termination
from strikeout.models.smiles import Smiles
from strikeout.statistics.objective import Objective

Ends = list[SearchEnd[Objective]]


@dataclass(frozen=True, eq=False)
class SmilePart:
    """The problem of one smile, and where its coordinates are among all."""

    problem: Problem
    at: tuple[int, ...]


def is_by_smile(problem: Problem) -> bool:
    """Return whether smiles are searched one by one; the scale of a robust loss is one for all of them."""
    model = problem.model
    if not isinstance(model, Smiles) or not model.parameters.is_curve or model.expiries == "quoted":
        return False
    return not problem.asked.is_robust


def search_by_smile(
    problem: Problem, points: Sequence[Sequence[float]], bounds: Bounds | None, progress: Progress | None = None
) -> tuple[Ends, SearchEnd[Objective]]:
    """Return the end of each start, and the end that is the best of every smile."""
    found = []
    for part in smile_parts(problem, bounds):
        starts = [[point[i] for i in part.at] for point in points]
        found.append((part, search(part.problem, starts, progress)))
    ends = [_whole(problem, [(part, ends[n]) for part, ends in found]) for n in range(len(points))]
    return ends, _whole(problem, [(part, best_of(ends)) for part, ends in found])


def smile_parts(problem: Problem, bounds: Bounds | None) -> list[SmilePart]:
    """Return the problem of each smile that has a free parameter."""
    model, coordinates, objective = problem.model, problem.coordinates, problem.objective
    assert isinstance(model, Smiles)
    assert model.expiries != "quoted"
    expiry = objective.book.expiry
    parts = parts_of(objective, {T: np.flatnonzero(expiry == T) for T in model.expiries})
    place = {coordinates.names[i]: n for n, i in enumerate(coordinates.free)}
    found = []
    for T, part in parts.items():
        alone = model.only(float(T))
        names = alone.parameters.names
        own = _own_coordinates(coordinates, alone, bounds)
        at = tuple(place[name] for name in names if name in place)
        if at:
            found.append(SmilePart(Problem(part, alone, own), at))
    return found


def _own_coordinates(coordinates: Coordinates, alone: Smiles, bounds: Bounds | None) -> Coordinates:
    """Return the coordinates of one smile, with the bounds and fixed values that name its parameters."""
    names = alone.parameters.names
    fixed = {coordinates.names[i]: value for i, value in coordinates.fixed.items() if coordinates.names[i] in names}
    own = {name: ends for name, ends in (bounds or {}).items() if name in names}
    return coordinates_of(alone.parameters, bounds=own, fixed=fixed, enforce_feller=False)


def _whole(problem: Problem, parts: Sequence[tuple[SmilePart, SearchEnd[Objective]]]) -> SearchEnd[Objective]:
    """Return the end of a search of all smiles, from the end of each."""
    u = [0.0] * len(problem.coordinates.free)
    ended, evaluations, held = Termination.CONVERGED_TO_ROUNDING, 0, set()
    for part, end in parts:
        evaluations += end.descent.evaluations
        reached = end if end.joined is None else end.joined  # the end it was on its way to
        for i, x in zip(part.at, reached.descent.point, strict=True):
            u[i] = x
        held |= {part.at[i] for i in reached.descent.held}
        ended = _worse(ended, reached.descent.termination)
    system = problem.evaluate(u)
    visit = Visit(system.cost, 0.0, 0.0, tuple(u), evaluations)
    descent = Descent(u, system, ended, (visit,), evaluations, tuple(sorted(held)))
    return SearchEnd(descent, problem.objective, system.cost)


def _worse(one: Termination, other: Termination) -> Termination:
    """Return the first of two ends that did not converge; of two that did, the one that is not due to rounding."""
    if not one.converged:
        return one
    return other if not other.converged or one is Termination.CONVERGED_TO_ROUNDING else one
