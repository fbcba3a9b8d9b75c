"""The loop on costs made to be awkward. NIST's certified problems are in tests/reference/test_nist.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import nan

import numpy as np
import pytest

from strikeout.calibration.loop import BUILTIN, CUSTOM, Box, Convergence, Evaluation, descend
from strikeout.calibration.termination import Termination
from strikeout.statistics.linearization import Linearization

Rows = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def evaluate(rows: Rows) -> Callable[[Sequence[float]], Evaluation]:
    def at(u: Sequence[float]) -> Evaluation:
        residual, jacobian = rows(np.array(u))
        a = np.column_stack([jacobian, residual])
        equations = Linearization(tuple((a.T @ a)[np.triu_indices(a.shape[1])].tolist()), len(residual))
        p = len(u)
        return Evaluation([row[:p] for row in equations.rows[:p]], equations.rows[p][:p], equations.cost, equations)

    return at


def box(p: int, size: float = 1e6) -> Box:
    return Box((-size,) * p, (size,) * p)


def rosenbrock(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.array([10.0 * (u[1] - u[0] ** 2), 1.0 - u[0]])
    return r, -np.array([[-20.0 * u[0], 10.0], [-1.0, 0.0]])


def test_a_curved_valley_with_zero_cost_is_walked_to_its_end():
    end = descend(evaluate(rosenbrock), [-1.2, 1.0], box=box(2, 10.0), convergence=Convergence(1, 1e-12))
    assert end.termination.converged
    assert end.point == pytest.approx([1.0, 1.0], abs=1e-12)


def test_a_minimum_outside_the_box_is_held_on_its_wall():
    end = descend(
        evaluate(rosenbrock), [-1.2, 1.0], box=Box((-2.0, -2.0), (0.5, 2.0)), convergence=Convergence(1, 1e-12)
    )
    assert end.termination.converged
    assert end.point == pytest.approx([0.5, 0.25], abs=1e-9)  # on the wall u_0 = 0.5 the cost is least at u_1 = u_0^2
    assert end.held == (0,)


def large_residual(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two exponentials held against data they cannot meet: Gauss-Newton alone converges like 0.9^n here."""
    t = np.linspace(0.0, 2.0, 12)
    model = np.exp(u[0] * t) + u[1] * t
    y = np.where(np.arange(12) % 2 == 0, 9.0, -6.0)
    return y - model, np.column_stack([t * np.exp(u[0] * t), t])


def test_large_residuals_converge_in_few_steps():
    end = descend(evaluate(large_residual), [0.3, 0.1], box=box(2, 100.0), convergence=Convergence(10, 3e-12))
    assert end.termination is Termination.CONVERGED
    assert end.evaluations <= 25
    up, down = (np.array(end.point) + d for d in ([1e-4, 0.0], [-1e-4, 0.0]))
    cost = [float((large_residual(u)[0] ** 2).sum()) for u in (up, np.array(end.point), down)]
    assert cost[1] <= min(cost[0], cost[2])


def test_a_point_without_a_finite_cost_is_stepped_back_from():
    def rows(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if u[0] <= 0.0:
            return np.full(3, nan), np.full((3, 1), nan)
        t = np.array([1.0, 2.0, 3.0])
        return t * np.log(0.1) - t * np.log(u[0]), (t / u[0])[:, None]

    end = descend(evaluate(rows), [5.0], box=box(1, 100.0), convergence=Convergence(2, 1e-13))
    assert end.termination.converged
    assert end.point == pytest.approx([0.1], rel=1e-12)


def test_a_start_without_a_finite_cost_says_so():
    nowhere = evaluate(lambda u: (np.full(3, nan), np.full((3, len(u)), nan)))
    end = descend(nowhere, [1.0], box=box(1), convergence=Convergence(2, 1e-13))
    assert end.termination is Termination.NOT_FINITE


def test_a_cost_that_falls_for_ever_ends_without_claiming_to_have_converged():
    def rows(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([1.0 / u[0], 0.0]), np.array([[1.0 / u[0] ** 2], [0.0]])  # least at infinity, never there

    end = descend(evaluate(rows), [1.0], box=box(1, 1e300), convergence=Convergence(1, 0.0))
    assert end.termination is Termination.CAP
    assert end.evaluations == BUILTIN.cap


def test_every_visit_lowers_the_cost_until_rounding():
    end = descend(evaluate(rosenbrock), [-1.2, 1.0], box=box(2, 10.0), convergence=Convergence(1, 1e-12))
    costs = [visit.cost for visit in end.visits]
    assert all(later < earlier for earlier, later in pairwise(costs))


def test_a_watch_can_end_the_search():
    end = descend(
        evaluate(rosenbrock), [-1.2, 1.0], box=box(2, 10.0), convergence=Convergence(1, 1e-12),
        watch=lambda _u, _at, visit: Termination.ABANDONED if visit.evaluations > 3 else None,
    )  # fmt: skip
    assert end.termination is Termination.ABANDONED
    assert end.point != pytest.approx([1.0, 1.0], abs=1e-3)


def test_a_direction_without_information_does_not_hide_convergence():
    t = np.linspace(0.0, 1.0, 8)

    def rows(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sin(5.0 * t) - (u[0] + u[1]) * t, np.column_stack([t, t])

    end = descend(evaluate(rows), [3.0, -1.0], box=box(2, 100.0), convergence=Convergence(6, 1e-13))
    assert end.termination.converged
    assert sum(end.point) == pytest.approx(float(t @ np.sin(5.0 * t) / (t @ t)), rel=1e-9)


def bump(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A peak looked for from so far away that it hardly shows: NIST's Eckerle4, made round."""
    t = np.linspace(-10.0, 10.0, 41)
    y, shape = 2.0 * np.exp(-(t**2)), np.exp(-(((t - u[1]) / u[2]) ** 2))
    away = (t - u[1]) / u[2]
    return y - u[0] * shape, np.column_stack(
        [shape, u[0] * shape * 2.0 * away / u[2], u[0] * shape * 2.0 * away**2 / u[2]]
    )


def test_the_patient_pace_comes_home_from_where_the_brisk_one_is_lost():
    everywhere = Box((-np.inf,) * 3, (np.inf,) * 3)
    lost, found = (
        descend(evaluate(bump), [1.0, 5.0, 2.0], box=everywhere, convergence=Convergence(38, 1e-16), limits=limits)
        for limits in (BUILTIN, CUSTOM)
    )
    assert not lost.termination.converged or lost.system.cost > 1.0
    assert found.termination.converged
    assert np.abs(found.point) == pytest.approx([2.0, 0.0, 1.0], abs=1e-9)
