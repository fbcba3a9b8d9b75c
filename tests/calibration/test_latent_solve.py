"""One search in one dimension a group, side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from strikeout.calibration.latent_solve import NEGLIGIBLE, Line, settled

LINE = Line(lower=1e-3, upper=10.0, curvature=0, score=1)
Function = Callable[[float], tuple[float, float]]  # a residual and its derivative


def evaluate_of(functions: list[Function], looked: list[int] | None = None):
    """T of one residual a group: curvature, score and cost of ``r(x)^2 + 0.01``."""

    def evaluate(groups, x):
        if looked is not None:
            looked.extend(groups.tolist())
        values = [functions[g](at) for g, at in zip(groups.tolist(), x.tolist(), strict=True)]
        # The residual is observed - model, so the model's derivative is minus that of r.
        return np.array([[slope**2, -slope * r, r * r + 0.01] for r, slope in values])

    return evaluate


def found(functions: list[Function], begin: float = 0.5, line: Line = LINE, looked: list[int] | None = None):
    start = np.full(len(functions), begin)
    rounding = np.full(len(functions), 1e-15)
    return settled(evaluate_of(functions, looked), start, line, rounding=rounding, negligible=0.0)


def straight(at: float) -> Function:
    return lambda x: (x - at, 1.0)


def test_every_group_finds_its_own():
    x, T = found([straight(2.0), straight(0.01), straight(5.0)])
    np.testing.assert_allclose(x, [2.0, 0.01, 5.0], rtol=1e-12)
    np.testing.assert_allclose(T[:, -1], 0.01)


def test_a_curved_one_is_followed_down_without_overshooting():
    x, _ = found(
        [
            lambda x: (np.log(x / 3.0), 1.0 / x),
            lambda x: (np.arctan(5.0 * (x - 4.0)), 5.0 / (1.0 + 25.0 * (x - 4.0) ** 2)),
        ]
    )
    np.testing.assert_allclose(x, [3.0, 4.0], rtol=1e-8)


def test_one_that_wants_to_leave_its_bounds_is_held_there():
    x, T = found([straight(-1.0), straight(20.0), straight(1.0)])
    np.testing.assert_allclose(x, [1e-3, 10.0, 1.0], rtol=1e-12)
    assert LINE.held(x, T).tolist() == [True, True, False]


def test_one_that_moves_nothing_is_held_where_it_began():
    x, T = found([lambda _: (1.0, 0.0), straight(1.0)])
    assert x[0] == 0.5
    assert LINE.held(x, T).tolist() == [True, False]


def test_a_step_into_what_has_no_price_is_cut():
    x, _ = found([lambda x: (x - 1.0, 1.0) if x < 1.2 else (np.nan, np.nan), straight(1.0)], begin=0.1)
    assert x[0] == pytest.approx(1.0)
    x, _ = found([lambda x: (np.log(x), 0.2 / x) if x < 1.2 else (np.nan, np.nan)], begin=0.5)  # five times too long
    assert x[0] < 1.2


def test_no_price_to_begin_with_is_nothing_to_settle():
    assert found([straight(1.0), lambda _: (np.nan, np.nan)]) is None


def test_no_group_can_feel_another():
    functions = [
        straight(2.0),
        lambda x: (np.log(x / 3.0), 1.0 / x),
        straight(20.0),
        lambda x: (x**3 - 1.0, 3.0 * x * x),
    ]
    together, T = found(functions)
    for n, function in enumerate(functions):
        x, alone = found([function])
        assert x[0] == together[n]
        assert (alone[0] == T[n]).all()


def test_a_group_that_has_settled_is_not_looked_at_again():
    looked: list[int] = []
    found([straight(0.5), lambda x: (np.log(x / 9.0), 1.0 / x)], looked=looked)
    assert looked.count(0) == 1
    assert looked.count(1) > 3


def test_what_is_negligible_is_left():
    functions = [lambda x: (np.log(x / 0.500001), 1.0 / x)]
    start, rounding = np.array([0.5]), np.array([1e-15])
    loose, _ = settled(evaluate_of(functions), start, LINE, rounding=rounding, negligible=NEGLIGIBLE)
    tight, _ = settled(evaluate_of(functions), start, LINE, rounding=rounding, negligible=0.0)
    assert loose[0] == 0.5
    assert tight[0] == pytest.approx(0.500001, rel=1e-12)


def test_a_parameter_of_either_sign_may_cross_zero():
    x, _ = found([straight(-2.0)], line=Line(-5.0, 5.0, 0, 1))
    assert x[0] == pytest.approx(-2.0)


def test_a_latent_parameter_cut_short_next_to_an_edge_goes_there():
    edge, bound = Line(1e-8, 10.0, 0, 1, is_edge=True), Line(1e-8, 10.0, 0, 1)
    x, step = np.array([2e-5, 2e-5, 0.1]), np.array([-1.0, -1e-5, -1.0])
    np.testing.assert_allclose(edge.towards(x, step), [1e-8, 1e-5, 0.1 / 3.0])  # cut short, ending by itself, far away
    np.testing.assert_allclose(bound.towards(x, step), [2e-5 / 3.0, 1e-5, 0.1 / 3.0])
