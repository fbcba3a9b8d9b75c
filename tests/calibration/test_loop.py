"""The loop on problems whose answers are certified: NIST's nonlinear regressions, and costs made to be awkward."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import nan
from typing import Any

import numpy as np
import pytest

from strikeout.calibration.box import Box
from strikeout.calibration.loop import CAP, Descent, System, descend
from strikeout.calibration.termination import Termination
from strikeout.calibration.yardstick import Yardstick
from strikeout.statistics.linearization import Linearization

Rows = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def evaluate(rows: Rows) -> Callable[[Sequence[float]], System]:
    def at(u: Sequence[float]) -> System:
        residual, jacobian = rows(np.array(u))
        a = np.column_stack([jacobian, residual])
        equations = Linearization(tuple((a.T @ a)[np.triu_indices(a.shape[1])].tolist()), len(residual))
        p = len(u)
        return System([row[:p] for row in equations.rows[:p]], equations.rows[p][:p], equations.cost, equations)

    return at


def box(p: int, size: float = 1e6) -> Box:
    return Box((-size,) * p, (size,) * p)


def rosenbrock(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.array([10.0 * (u[1] - u[0] ** 2), 1.0 - u[0]])
    return r, -np.array([[-20.0 * u[0], 10.0], [-1.0, 0.0]])


def test_a_curved_valley_with_zero_cost_is_walked_to_its_end():
    end = descend(evaluate(rosenbrock), [-1.2, 1.0], box=box(2, 10.0), yardstick=Yardstick(1, 10.0))
    assert end.termination.converged
    assert end.point == pytest.approx([1.0, 1.0], abs=1e-12)


def test_a_minimum_outside_the_box_is_held_on_its_wall():
    end = descend(evaluate(rosenbrock), [-1.2, 1.0], box=Box((-2.0, -2.0), (0.5, 2.0)), yardstick=Yardstick(1, 10.0))
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
    end = descend(evaluate(large_residual), [0.3, 0.1], box=box(2, 100.0), yardstick=Yardstick(10, 30.0))
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

    end = descend(evaluate(rows), [5.0], box=box(1, 100.0), yardstick=Yardstick(2, 1.0))
    assert end.termination.converged
    assert end.point == pytest.approx([0.1], rel=1e-12)


def test_a_start_without_a_finite_cost_says_so():
    nowhere = evaluate(lambda u: (np.full(3, nan), np.full((3, len(u)), nan)))
    end = descend(nowhere, [1.0], box=box(1), yardstick=Yardstick(2, 1.0))
    assert end.termination is Termination.NOT_FINITE


def test_a_cost_that_falls_for_ever_ends_without_claiming_to_have_converged():
    def rows(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([1.0 / u[0], 0.0]), np.array([[1.0 / u[0] ** 2], [0.0]])  # least at infinity, never there

    end = descend(evaluate(rows), [1.0], box=box(1, 1e300), yardstick=Yardstick(1, 0.0))
    assert end.termination is Termination.CAP
    assert end.evaluations == CAP


def test_every_visit_lowers_the_cost_until_rounding():
    end = descend(evaluate(rosenbrock), [-1.2, 1.0], box=box(2, 10.0), yardstick=Yardstick(1, 10.0))
    costs = [visit.cost for visit in end.visits]
    assert all(later < earlier for earlier, later in pairwise(costs))


def test_a_watch_can_end_the_search():
    end = descend(
        evaluate(rosenbrock), [-1.2, 1.0], box=box(2, 10.0), yardstick=Yardstick(1, 10.0),
        watch=lambda _u, _at, visit: Termination.ABANDONED if visit.evaluations > 3 else None,
    )  # fmt: skip
    assert end.termination is Termination.ABANDONED
    assert end.point != pytest.approx([1.0, 1.0], abs=1e-3)


def test_a_direction_without_information_does_not_hide_convergence():
    t = np.linspace(0.0, 1.0, 8)

    def rows(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sin(5.0 * t) - (u[0] + u[1]) * t, np.column_stack([t, t])

    end = descend(evaluate(rows), [3.0, -1.0], box=box(2, 100.0), yardstick=Yardstick(6, 1.0))
    assert end.termination.converged
    assert sum(end.point) == pytest.approx(float(t @ np.sin(5.0 * t) / (t @ t)), rel=1e-9)


# From the second, nearer start. Bennett5 and Lanczos1 end at the cap and are in the test after.
NIST = (
    "Chwirut2", "DanWood", "ENSO", "Eckerle4", "Gauss1", "Kirby2", "MGH09", "MGH17", "Misra1a", "Misra1c", "Rat42",
)  # fmt: skip
WORDS = {name: getattr(np, name) for name in ("exp", "sin", "cos", "log", "sqrt", "arctan")} | {"pi": np.pi}


def nist(case: dict[str, Any]) -> Descent:
    columns = dict(zip(case["columns"], np.array(case["data"]).T, strict=True))
    y, p = columns[case["response"]], case["p"]

    def model(b: np.ndarray) -> np.ndarray:
        return eval(case["model"], {**WORDS, **columns, **{f"b{i}": x for i, x in enumerate(b, 1)}})

    def rows(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(all="ignore"):
            steps = [model(u + 1e-30j * np.eye(p)[i]).imag / 1e-30 for i in range(p)]  # exact to rounding
            return y - model(u), np.column_stack(steps)

    return descend(
        evaluate(rows), case["start2"], box=box(p), yardstick=Yardstick(len(y) - p, 1e-3 * float(np.linalg.norm(y)))
    )


@pytest.mark.parametrize("name", NIST)
def test_nist_certified_parameters_and_standard_deviations_are_found(name, shared_data):
    case = json.loads(shared_data(f"nls/nist/{name}.json").read_text())
    end = nist(case)
    errors = np.sqrt(end.system.cost / (case["n"] - case["p"]) * np.diag(np.linalg.inv(end.system.curvature)))
    assert end.termination.converged
    true, deviations = ([float(x) for x in case["certified"][key]] for key in ("parameters", "standard_deviations"))
    for x, t, error, sd in zip(end.point, true, errors, deviations, strict=True):
        assert abs(x - t) <= 1e-6 * sd + 1e-10 * abs(t)  # certified to 11 digits
        assert error == pytest.approx(sd, rel=1e-6)


@pytest.mark.parametrize("name", ["Bennett5", "Lanczos1"])
def test_a_search_that_has_not_arrived_does_not_say_it_has(name, shared_data):
    case = json.loads(shared_data(f"nls/nist/{name}.json").read_text())
    assert nist(case).termination is Termination.CAP
