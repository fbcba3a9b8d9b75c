"""The paper's scheme: right where its mesh suffices, wrong where the paper's own mesh is too coarse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.errors import UsageError
from strikeout.paper import heston as paper_scheme
from strikeout.paper.sets import spot_path
from strikeout.synthetic.heston_quotes import normal_draws

TRUTH = np.array([2.0, 0.06, 0.30, -0.6, 0.06])  # the paper's section "Illustrations"
START = np.array([1.0, 0.04, 0.20, -0.3, 0.04])
LARGE = {"u_max": 120.0, "nodes": 800}
SMALL = {"u_max": 50.0, "nodes": 180}
CORNERS = Path(__file__).parents[2].parent / "shared" / "data" / "reference" / "heston_corners.json"


def book(count: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    expiry = rng.choice([30, 60, 90], count) / 252
    forward = 100 * np.exp(0.1 * rng.standard_normal(count))
    return {
        "forward": forward,
        "strike": rng.choice([80.0, 90.0, 100.0, 110.0, 120.0], count),
        "expiry": expiry,
        "discount": np.exp(-0.01 * expiry),
        "is_call": rng.random(count) < 0.5,
    }


def corners(name: str) -> list[Any]:
    if not CORNERS.exists():
        pytest.skip(f"the reference prices are not here: {CORNERS}")
    return [one for one in json.loads(CORNERS.read_text())["slices"] if one["name"] == name]


def test_the_vectorised_prices_are_those_of_the_loop():
    columns = book()
    together = paper_scheme.price(TRUTH, **columns, **LARGE)
    one_by_one = [
        paper_scheme.price_one(TRUTH, *(column[row] for column in columns.values()), **LARGE) for row in range(40)
    ]
    # 801 terms of at most order one times a forward of about 100, rounded: 1e3 * eps * 100.
    np.testing.assert_allclose(together, one_by_one, rtol=0, atol=1e3 * np.finfo(float).eps * 100)


def test_the_vectorised_differences_are_those_of_the_loop():
    columns = book(8)
    _, together = paper_scheme.linearize(TRUTH, *columns.values(), **LARGE, step=1e-4)
    one_by_one = [
        paper_scheme.linearize_one(TRUTH, *(column[row] for column in columns.values()), **LARGE, step=1e-4)[1]
        for row in range(8)
    ]
    # The rounding of the prices, about 1e-13, over twice the smallest step, 6e-6.
    np.testing.assert_allclose(together, one_by_one, rtol=0, atol=1e-7)


def test_the_large_mesh_is_good_to_1e_11_of_the_forward_at_the_paper_s_truth():
    for corner in corners("paper_true"):
        k = np.array([row["log_moneyness"] for row in corner["rows"]])
        expected = np.array([float(row["price"]) for row in corner["rows"]])
        gradient = np.array([[float(x) for x in row["gradient"]] for row in corner["rows"]])
        found, jacobian = paper_scheme.linearize(
            corner["theta"], 1.0, np.exp(k), corner["expiry"], 1.0, True, **LARGE, step=1e-4
        )
        assert np.abs(found - expected).max() < 1e-11
        # Central differences of relative step 1e-4: their square times third derivatives of order one.
        assert np.abs(jacobian - gradient).max() < 1e-8


def test_the_small_mesh_errs_by_about_the_paper_s_own_noise():
    # The paper adds noise of 1e-3 to prices it computes with u_max = 50, nodes = 180.
    strike = np.array([90.0, 100.0, 110.0])
    small = paper_scheme.price(TRUTH, 100.0, strike, 30 / 252, 1.0, True, **SMALL)
    large = paper_scheme.price(TRUTH, 100.0, strike, 30 / 252, 1.0, True, **LARGE)
    assert 2e-4 < np.abs(small - large).max() < 2e-3


def test_the_scheme_loses_digits_at_a_day_to_expiry():
    worst = max(
        abs(
            paper_scheme.price_one(one["theta"], 1.0, np.exp(row["log_moneyness"]), one["expiry"], 1.0, True, **LARGE)
            - float(row["price"])
        )
        for one in corners("v0.001")
        for row in one["rows"]
    )
    assert worst > 1e-4


def test_put_and_call_differ_by_the_discounted_forward_less_strike():
    columns = book() | {"is_call": True}
    calls = paper_scheme.price(START, **columns, **LARGE)
    puts = paper_scheme.price(START, **columns | {"is_call": False}, **LARGE)
    parity = columns["discount"] * (columns["forward"] - columns["strike"])
    np.testing.assert_allclose(calls - puts, parity, rtol=0, atol=1e-12)


@given(rows=st.lists(st.integers(0, 39), min_size=1, max_size=40))
@settings(max_examples=25, deadline=None)
def test_a_price_does_not_depend_on_its_batch(rows: list[int]):
    columns = book()
    whole = paper_scheme.price(TRUTH, **columns, **SMALL)
    part = paper_scheme.price(TRUTH, **{name: column[rows] for name, column in columns.items()}, **SMALL)
    assert part.tobytes() == whole[rows].tobytes()


@pytest.mark.parametrize("correlation", [0.95, 1.0 / 1.5])
def test_prices_pass_smoothly_through_a_mean_reversion_of_zero_under_the_share_measure(correlation: float):
    # kappa - rho sigma, the speed under the share measure, is negative in one case and exactly zero in the other.
    theta = np.array([1.0, 0.05, 1.5, correlation, 0.05])
    left, middle, right = (
        paper_scheme.price(theta + shift, 1.0, 1.1, 1.0, 1.0, True, u_max=400.0, nodes=8000)[0]
        for shift in (np.array([s, 0, 0, 0, 0]) for s in (-1e-4, 0.0, 1e-4))
    )
    # A smooth price is its neighbours' mean up to the square of the step.
    assert abs((left + right) / 2 - middle) < 1e-8


def test_no_contracts_have_no_prices():
    prices, jacobian = paper_scheme.linearize(TRUTH, *np.empty((5, 0)), **SMALL, step=1e-4)
    assert (prices.shape, jacobian.shape) == ((0,), (0, 5))


def test_parameters_that_make_no_sense_give_not_a_number():
    assert np.isnan(paper_scheme.price([1.0, 0.04, 0.0, -0.3, 0.04], 1.0, 1.0, 1.0, 1.0, True, **SMALL)).all()
    assert np.isnan(paper_scheme.price([np.nan, 0.04, 0.2, -0.3, 0.04], 1.0, 1.0, 1.0, 1.0, True, **SMALL)).all()


@pytest.mark.parametrize("seed", [7, 42, 60])
def test_the_literal_path_is_euler_maruyama_for_the_spot_and_close_to_the_one_in_logarithms(seed):
    literal, logs = (spot_path(180, seed=seed, path=path) for path in ("euler-maruyama", "log-euler"))
    assert 0.0 < np.abs(literal / logs - 1.0).max() < 5e-3
    kappa, vbar, sigma, rho, v = so.paper.TRUTH.values()
    rng, s, dt = np.random.default_rng(seed), 100.0, 1 / 252
    for day in range(5):  # dS = r S dt + sqrt(v) S dW, as the paper prints it
        assert literal[day] == pytest.approx(s, rel=1e-14)
        z1, z2 = normal_draws(rng, 2)
        s += 0.01 * s * dt + np.sqrt(v) * s * np.sqrt(dt) * z1
        v += kappa * (vbar - v) * dt + sigma * np.sqrt(v) * np.sqrt(dt) * (rho * z1 + np.sqrt(1 - rho**2) * z2)


def test_the_path_of_the_quotes_can_be_chosen():
    literal, logs = so.paper.quotes("small", path="euler-maruyama"), so.paper.quotes("small")
    assert literal.labels["spot"][0] == logs.labels["spot"][0] == 100.0
    assert literal.labels["spot"][-1] != logs.labels["spot"][-1]
    with pytest.raises(UsageError):
        so.paper.quotes("small", path="milstein")
