"""Calibrate: the paper's sets, what cannot be determined, and every option."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.termination import Termination
from strikeout.errors import ParameterError, UnidentifiedError, UsageError
from tests.calibration.smile_model import TRUTH, Smile, book
from tests.raising import raises

PAPER = {
    "mean_reversion": 2.0, "long_variance": 0.06, "vol_of_vol": 0.3, "correlation": -0.6, "initial_variance": 0.06,
}  # fmt: skip
PAPER_START = {
    "mean_reversion": 1.0, "long_variance": 0.04, "vol_of_vol": 0.2, "correlation": -0.3, "initial_variance": 0.04,
}  # fmt: skip


@pytest.fixture(scope="module")
def large() -> so.Quotes:
    return so.paper.quotes("large", seed=42)


@pytest.fixture(scope="module")
def paper(large) -> so.results.Calibration:
    return so.calibrate(large, so.Heston())


@pytest.fixture(scope="module")
def one_expiry(large) -> so.results.Calibration:
    first = large.contracts.expiry == large.contracts.expiry.min()
    return so.calibrate(large.only(large.ids[first]), so.Heston())


def test_the_papers_large_set_gives_its_parameters_back_within_three_standard_errors(paper):
    assert paper.converged
    assert paper.count == 2700
    for name, true in PAPER.items():
        assert abs(paper.parameters[name] - true) <= 3.0 * paper.standard_errors[name]
    assert paper.rmse == pytest.approx(0.00049, abs=5e-6)  # the noise is 5e-4, less 5 of 2,700 degrees of freedom


def test_every_start_finds_the_papers_optimum(paper, large):
    assert paper.agreement == 4
    alone = so.calibrate(large, so.Heston(), starts=PAPER_START)
    for name in PAPER:
        apart = abs(alone.parameters[name] - paper.parameters[name])
        assert apart <= 1e-6 * paper.standard_errors[name]  # both stop below 1e-8 standard errors


def test_standard_errors_are_those_of_the_linearized_model(paper, large):
    _, jacobian = so.Heston().linearize(paper.parameters, large.contracts)
    variance = paper.cost / (2700 - 5)
    expected = np.sqrt(variance * np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    assert list(paper.standard_errors.values()) == pytest.approx(expected, rel=1e-6)  # cond(J'J) is 1e8


def test_the_history_falls_to_the_end(paper):
    costs = [step.cost for step in paper.history]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(costs))
    assert paper.history[-1].parameters == paper.parameters
    assert paper.history[-1].gradient <= 1e-8


def test_quotes_without_noise_stop_as_converged(large):
    exact = large.with_observed(so.Heston().price(PAPER, large.contracts))
    calibration = so.calibrate(exact, so.Heston())
    assert calibration.termination is Termination.CONVERGED_TO_ROUNDING
    # Prices are good to 1e-14 of the forward; the weakest parameter multiplies that by about 1e3.
    assert calibration.parameters == pytest.approx(PAPER, rel=1e-9)


def test_a_single_expiry_is_not_taken_for_a_calibration(one_expiry):
    assert one_expiry.termination is Termination.NOT_IDENTIFIED
    assert not one_expiry.converged
    assert "mean_reversion" in one_expiry.unidentified
    assert "mean_reversion is free" in one_expiry.summary()


def test_a_single_expiry_without_noise_is_not_taken_for_one_either(large):
    first = large.only(large.ids[large.contracts.expiry == large.contracts.expiry.min()])
    exact = first.with_observed(so.Heston().price(PAPER, first.contracts))
    assert not so.calibrate(exact, so.Heston()).converged


def test_a_single_expiry_is_enough_once_the_drift_is_fixed(large):
    first = large.only(large.ids[large.contracts.expiry == large.contracts.expiry.min()])
    fixed = {"mean_reversion": 2.0, "long_variance": 0.06}
    calibration = so.calibrate(first, so.Heston(), fixed=fixed)
    assert calibration.converged
    assert calibration.fixed == fixed
    assert np.isnan(calibration.standard_errors["mean_reversion"])
    assert abs(calibration.parameters["vol_of_vol"] - 0.3) <= 3.0 * calibration.standard_errors["vol_of_vol"]


@pytest.mark.parametrize("count", [1, 4, 5])
def test_too_few_quotes_are_refused_with_the_numbers(large, count):
    with raises(UnidentifiedError, mentions={"fixed"}, free=5) as caught:
        so.calibrate(large.only(large.ids[:count]), so.Heston())
    assert caught.value.count == count
    assert caught.value.exit_code == 3


def test_many_quotes_of_few_contracts_are_refused():
    c = so.Contracts(forward=100.0, strike=[90.0, 110.0] * 10, expiry=0.5, discount=1.0, is_call=True)
    quotes = so.Quotes(ids=[f"q{i}" for i in range(20)], contracts=c, observed=[12.0, 2.0] * 10)
    with raises(UnidentifiedError, mentions={"fixed"}, places=2, free=5, count=20):
        so.calibrate(quotes, so.Heston())


def test_fewer_free_parameters_need_fewer_quotes():
    quotes = book(noise=0.001)
    few = quotes.only(quotes.ids[[0, 4, 8]])
    assert so.calibrate(few, Smile(), fixed={"skew": -0.1}).count == 3


def test_feller_enforced_is_an_optimum_on_the_boundary(large):
    broken = {**PAPER, "vol_of_vol": 0.8}
    quotes = large.with_observed(so.Heston().price(broken, large.contracts))
    free = so.calibrate(quotes, so.Heston())
    held = so.calibrate(quotes, so.Heston(), feller="enforce")
    assert free.feller_ratio == pytest.approx(2 * 2 * 0.06 / 0.64)
    assert any("Feller" in sentence for sentence in free.warnings)
    assert held.feller_ratio == pytest.approx(1.0, abs=1e-12)
    assert held.termination is Termination.CONVERGED_ON_BOUND
    # No neighbour that meets the condition is better: along the boundary, and into it.
    here = dict(held.parameters)

    def cost(parameters: dict[str, float]) -> float:
        residual = quotes.observed - so.Heston().price(parameters, quotes.contracts)
        return float(residual @ residual)

    assert cost(here) == pytest.approx(held.cost, rel=1e-9)
    for name in ("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance"):
        for factor in (0.9999, 1.0001):
            moved = {**here, name: here[name] * factor}
            largest = (2 * moved["mean_reversion"] * moved["long_variance"]) ** 0.5
            moved["vol_of_vol"] = min(moved["vol_of_vol"], largest) if name == "vol_of_vol" else largest
            assert cost(moved) >= cost(here) * (1 - 1e-12)


def test_feller_enforced_changes_nothing_where_it_holds_anyway(paper, large):
    enforced = so.calibrate(large, so.Heston(), feller="enforce")
    assert enforced.termination is paper.termination
    for name, value in paper.parameters.items():
        assert abs(enforced.parameters[name] - value) <= 1e-6 * paper.standard_errors[name]
        assert enforced.standard_errors[name] == pytest.approx(paper.standard_errors[name], rel=1e-6)


def test_a_bound_that_was_asked_for_is_converged_on(large):
    calibration = so.calibrate(large, so.Heston(), bounds={"vol_of_vol": (0.4, 1.0)})
    assert calibration.termination is Termination.CONVERGED_ON_BOUND
    assert calibration.on_bound == {"vol_of_vol": 0.4}
    assert np.isnan(calibration.standard_errors["vol_of_vol"])
    assert "on its bound 0.4" in calibration.summary()


def test_running_into_the_models_own_bound_is_not_convergence():
    quotes = book()
    frowning = quotes.with_observed(Smile().price({**TRUTH, "smile": 0.0}, quotes.contracts) - 0.001)
    sinking = so.calibrate(frowning, Smile())
    assert sinking.on_bound == {"smile": 0.0}
    assert sinking.termination is Termination.AT_BOUND
    assert not sinking.converged


def test_huber_shrugs_off_what_ruins_least_squares(large):
    rng = np.random.default_rng(0)
    bad = rng.choice(2700, 270, replace=False)
    observed = large.observed.copy()
    observed[bad] *= 10.0  # a decimal shift
    spoiled = large.with_observed(observed)
    squared, huber = (so.calibrate(spoiled, so.Heston(), loss=loss) for loss in ("squared", "huber"))
    for name, true in PAPER.items():
        assert abs(huber.parameters[name] - true) <= 5.0 * huber.standard_errors[name]
    assert huber.converged
    assert huber.agreement == 4
    assert abs(squared.parameters["initial_variance"] - 0.06) > 0.01
    assert huber.threshold == pytest.approx(
        1.345 * 5e-4, rel=0.25
    )  # a tenth of the quotes widens the median by a fifth


def test_huber_standard_errors_are_near_least_squares_ones_on_clean_quotes(paper, large):
    huber = so.calibrate(large, so.Heston(), loss="huber")
    for name, error in paper.standard_errors.items():
        assert huber.standard_errors[name] == pytest.approx(error, rel=0.1)  # 1 / sqrt(0.95), and sampling


def test_huber_keeps_its_head_where_quotes_are_sentinels(large):
    sentinel = np.where(np.arange(2700) % 50 == 0, 1e12, large.observed)
    calibration = so.calibrate(large.with_observed(sentinel), so.Heston(), loss="huber")
    for name, true in PAPER.items():
        assert abs(calibration.parameters[name] - true) <= 5.0 * calibration.standard_errors[name]


def test_implied_volatility_residuals_find_the_same_model():
    calibration = so.calibrate(book(), Smile(), residual="implied_vol")
    assert calibration.parameters == pytest.approx(TRUTH, abs=1e-12)
    assert calibration.converged


def test_vega_weights_are_volatility_residuals_to_first_order():
    quotes = book(noise=0.001)
    by_vega = so.calibrate(quotes, Smile(), weights="vega")
    by_vol = so.calibrate(quotes, Smile(), residual="implied_vol")
    for name, error in by_vol.standard_errors.items():
        assert abs(by_vega.parameters[name] - by_vol.parameters[name]) <= 0.3 * error


def test_doubling_every_weight_changes_no_parameter_and_no_standard_error():
    quotes = book(noise=0.01)
    one, two = (so.calibrate(quotes, Smile(), weights=np.full(18, w)) for w in (1.0, 4.0))
    assert two.parameters == one.parameters
    assert two.standard_errors == pytest.approx(one.standard_errors, rel=1e-14)


def test_a_model_with_fewer_canonical_starts_uses_all_it_has():
    assert len(so.calibrate(book(), Smile(), starts=4).starts) == 2


def test_a_model_without_a_price_anywhere_does_not_converge():
    @dataclass(frozen=True)
    class Nowhere(Smile):
        def linearize(self, theta, contracts):
            price, jacobian = super().linearize(theta, contracts)
            return price * np.nan, jacobian * np.nan

    calibration = so.calibrate(book(), Nowhere())
    assert calibration.termination is Termination.NOT_FINITE
    assert json.loads(json.dumps(calibration.to_dict(), allow_nan=False))["rmse"] is None
    assert "no finite price" in calibration.summary()


def test_progress_sees_every_start_and_ends_where_the_calibration_does():
    seen: list[tuple[int, float]] = []
    calibration = so.calibrate(book(noise=0.01), Smile(), progress=lambda n, visit: seen.append((n, visit.cost)))
    assert {number for number, _ in seen} == {0, 1}
    assert calibration.cost in {cost for _, cost in seen}


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"loss": "l7"}, UsageError, "squared, huber"),
        ({"feller": "maybe"}, UsageError, "warn, enforce, ignore"),
        ({"starts": 0}, UsageError, "at least one is needed; smile has 2"),
        ({"starts": []}, UsageError, "starts is empty"),
        ({"starts": {"level": 0.2}}, ParameterError, "missing"),
        ({"starts": [[0.2, 0.0, 0.1]]}, ParameterError, "mapping by name"),
    ],
)
def test_a_call_that_is_off_is_refused_in_words(options, error, says):
    with pytest.raises(error, match=says):
        so.calibrate(book(), Smile(), **options)


def test_a_calibration_tells_its_story(paper, one_expiry):
    text = paper.summary()
    for word in (*PAPER, "standard error", "RMSE", "4 of 4", "Feller ratio", "converged"):
        assert word in text
    assert "steps of the best start" in paper.report()
    assert "<table>" in paper._repr_html_()
    assert "<strong>" in one_expiry._repr_html_()
    assert "converged" in repr(paper)


def test_a_calibration_is_json_without_not_a_number(paper, large):
    bounded = so.calibrate(large, so.Heston(), bounds={"vol_of_vol": (0.4, 1.0)})
    for calibration in (paper, bounded):
        text = json.dumps(calibration.to_dict(), allow_nan=False)
        assert json.loads(text)["converged"] is True
    assert json.loads(text)["standard_errors"]["vol_of_vol"] is None
    assert {"parameters", "standard_errors", "rmse", "converged", "termination", "count"} <= json.loads(text).keys()


def test_residuals_are_in_the_order_of_the_quotes(paper, large):
    assert (paper.residuals == large.observed - so.Heston().price(paper.parameters, large.contracts)).all()
    assert np.sqrt(np.mean(paper.residuals**2)) == pytest.approx(paper.rmse, rel=1e-9)


@pytest.mark.parametrize(
    ("quotes", "model", "says"),
    [
        ([1.0, 2.0], so.Heston(), "takes quotes, or the moments of quotes; got list"),
        ("book.csv", so.Heston(), "got str. read_quotes makes quotes"),
        (book(), "heston", "takes a model, such as Heston.*got str"),
        (book(), so.Heston, r"Heston is a class: write Heston\(\)"),
    ],
)
def test_what_is_no_quotes_or_no_model_is_refused_in_a_sentence(quotes, model, says):
    with pytest.raises(UsageError, match=says):
        so.calibrate(quotes, model)
