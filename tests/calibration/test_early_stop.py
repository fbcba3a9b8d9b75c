"""When a start may stop: what it joins is where it would have ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.basin import Basin, basin_of, joins
from strikeout.calibration.coordinates import coordinates_of
from strikeout.calibration.loop import Box, Convergence, Evaluation, descend
from strikeout.calibration.problem import Problem
from strikeout.calibration.starts import agrees, best_of, search, starting_points
from strikeout.calibration.termination import Termination
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.objective import objective_of

MODEL = so.Heston(expiries="shared")


def problem_of(quotes: so.Quotes, *, feller: bool) -> Problem:
    coordinates = coordinates_of(MODEL.parameters, bounds=None, fixed=None, enforce_feller=feller)
    return Problem(objective_of(quotes)[0], MODEL, coordinates)


def random_book(seed: int) -> so.Quotes:
    """Truths all over Heston's space, noise up to a sixth of a unit, every fourth book with a tenth of bad prices."""
    rng = np.random.default_rng(seed)
    low, high = np.log([0.3, 0.01, 0.1, 0.005]), np.log([12.0, 0.4, 2.5, 0.5])
    kappa, vbar, sigma, v0 = np.exp(rng.uniform(low, high))
    theta = [kappa, vbar, sigma, rng.uniform(-0.95, 0.5), v0]
    count, noise = int(rng.integers(40, 200)), 10.0 ** rng.uniform(-4.0, -0.8)
    quotes = so.synthetic.random_quotes(count, maturities=int(rng.integers(3, 9)), seed=seed, theta=theta, noise=noise)
    if seed % 4:
        return quotes
    prices = quotes.observed.copy()
    prices[rng.choice(count, count // 10, replace=False)] *= rng.uniform(0.2, 3.0, count // 10)
    return quotes.with_observed(prices)


@pytest.mark.parametrize("seed", range(40))
def test_a_start_that_joined_would_have_ended_at_the_same_optimum(seed):
    problem = problem_of(random_book(seed), feller=seed % 5 == 0)
    points = starting_points(MODEL, problem.coordinates, 4)
    joined = [(p, end) for p, end in zip(points, search(problem, points), strict=True) if end.joined is not None]
    assert len(joined) == 3  # all but the first, in each of these books
    for point, end in joined:
        alone = problem.follow(point)
        assert alone.descent.evaluations >= end.descent.evaluations
        assert agrees(alone, end.joined)


def test_no_start_of_the_bank_is_kept_from_a_better_optimum():
    for seed in range(40):
        problem = problem_of(random_book(seed), feller=seed % 5 == 0)
        points = starting_points(MODEL, problem.coordinates, 4)
        alone = best_of([problem.follow(point) for point in points])
        assert best_of(search(problem, points)).merit <= alone.merit * (1.0 + 1e-9)


def test_a_start_does_not_agree_with_an_optimum_that_betters_the_one_it_joined():
    problem = problem_of(random_book(580), feller=True)  # the last of the four starts finds a second, lower optimum
    ends = search(problem, starting_points(MODEL, problem.coordinates, 4))
    best = best_of(ends)
    assert best is ends[3]
    assert [end.joined is ends[0] for end in ends] == [False, True, True, False]
    assert ends[0].merit > best.merit * 1.001
    assert [agrees(end, best) for end in ends] == [False, False, False, True]


def test_the_paper_s_book_takes_sixteen_evaluations_and_says_four_of_four():
    calibration = so.calibrate(so.paper.quotes("large", seed=42), so.Heston())
    assert calibration.agreement == len(calibration.starts) == 4
    assert [start.termination for start in calibration.starts[1:]] == [Termination.JOINED] * 3
    assert sum(start.evaluations for start in calibration.starts) <= 16  # 20 by the parabola alone


def curve(u: Sequence[float]) -> Evaluation:
    """Residuals of ``exp(u_0 t) + u_1`` against the same at (1, 2): mildly bent, one optimum."""
    t = np.linspace(0.0, 1.0, 9)
    r = np.exp(t) + 2.0 - np.exp(u[0] * t) - u[1] + 0.01 * (-1.0) ** np.arange(9)
    a = np.column_stack([t * np.exp(u[0] * t), np.ones(9), r])
    equations = Linearization(tuple((a.T @ a)[np.triu_indices(3)].tolist()), 9)
    return Evaluation([row[:2] for row in equations.rows[:2]], equations.rows[2][:2], equations.cost, equations)


BOX = Box((-9.0, -9.0), (9.0, 9.0))


def known_of_curve(box: Box = BOX) -> Basin:
    return basin_of(descend(curve, [0.3, 0.5], box=box, convergence=Convergence(7, 3e-13)))


def test_a_point_from_which_gauss_newton_sees_the_optimum_joins_far_outside_the_parabola():
    known = known_of_curve()
    assert joins([0.7, 1.5], curve([0.7, 1.5]), known, BOX)


def test_a_point_whose_step_leads_elsewhere_does_not_join():
    known, u = known_of_curve(), [0.7, 1.5]
    at = curve(u)
    assert not joins(u, at._replace(score=[-g for g in at.score]), known, BOX)
    assert not joins(u, at._replace(cost=4.0 * at.cost), known, BOX)  # the step is right, its promise is not


def test_a_point_below_the_known_cost_never_joins():
    known, u = known_of_curve(), [1.0001, 2.0]
    assert not joins(u, curve(u)._replace(cost=0.5 * known.end.system.cost), known, BOX)


def test_an_optimum_on_a_wall_is_joined_by_the_parabola_alone():
    box = Box((-9.0, -9.0), (0.8, 9.0))
    known = known_of_curve(box)
    assert known.end.held == (0,)
    assert not joins([0.6, 1.5], curve([0.6, 1.5]), known, box)
