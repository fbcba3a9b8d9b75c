"""Laws of a calibration: the order of the book cannot show, and the truth is found wherever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so

QUOTES = so.paper.quotes("small", seed=7)
CALIBRATION = so.calibrate(QUOTES, so.Heston())


def shuffled(quotes: so.Quotes, seed: int) -> so.Quotes:
    rows = np.random.default_rng(seed).permutation(len(quotes))
    return so.Quotes(
        ids=quotes.ids[rows],
        contracts=quotes.contracts[rows],
        observed=quotes.observed[rows],
        weight=quotes.weight[rows],
    )


@settings(max_examples=20)
@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_the_order_of_the_quotes_changes_no_bit(seed):
    again = so.calibrate(shuffled(QUOTES, seed), so.Heston())
    assert again.parameters == CALIBRATION.parameters
    assert again.standard_errors == CALIBRATION.standard_errors
    assert again.rmse == CALIBRATION.rmse
    assert again.history == CALIBRATION.history


@pytest.mark.parametrize(
    "options", [{"loss": "huber"}, {"residual": "implied_vol"}, {"weights": "vega"}, {"feller": "enforce"}]
)
def test_no_option_lets_the_order_show(options):
    quotes = QUOTES.only(QUOTES.ids[:60])
    one, other = (so.calibrate(book, so.Heston(), **options) for book in (quotes, shuffled(quotes, 5)))
    assert one.parameters == other.parameters
    assert one.standard_errors == other.standard_errors
    assert one.rmse == other.rmse


def test_the_numpy_kernel_does_not_let_the_order_show_either():
    quotes, model = QUOTES.only(QUOTES.ids[:90]), so.Heston(kernel="numpy")
    one, other = (so.calibrate(book, model) for book in (quotes, shuffled(quotes, 9)))
    assert one.parameters == other.parameters
    assert one.standard_errors == other.standard_errors


def test_scattered_expiries_do_not_let_the_order_show_either():
    rng = np.random.default_rng(4)
    expiry = np.exp(rng.uniform(np.log(0.1), np.log(2.0), 600))
    k = np.where(rng.random(600) < 0.3, 0.0, rng.uniform(-0.5, 0.5, 600) * np.sqrt(expiry))  # many at the money: ties
    contracts = so.Contracts(forward=100.0, strike=100.0 * np.exp(k), expiry=expiry, discount=1.0, is_call=True)
    model = so.Heston(expiries="scattered")
    observed = model.price([2.0, 0.06, 0.3, -0.6, 0.06], contracts) + 1e-3 * rng.standard_normal(600)
    quotes = so.Quotes(ids=np.arange(600).astype(str), contracts=contracts, observed=observed)
    one, other = (so.calibrate(book, model) for book in (quotes, shuffled(quotes, 9)))
    assert one.parameters == other.parameters
    assert one.standard_errors == other.standard_errors


def test_duplicated_quotes_do_not_let_the_order_show():
    twice = so.Quotes(
        ids=[f"{name}-{copy}" for copy in "ab" for name in QUOTES.ids[:60]],
        contracts=QUOTES.contracts[np.tile(np.arange(60), 2)],
        observed=np.r_[QUOTES.observed[:60], QUOTES.observed[:60] + 1e-3],
    )
    assert so.calibrate(twice, so.Heston()).parameters == so.calibrate(shuffled(twice, 1), so.Heston()).parameters


@settings(max_examples=10)
@given(st.integers(min_value=1, max_value=539))
def test_calibrating_twice_gives_the_same_bits(drop):
    quotes = QUOTES.without([QUOTES.ids[drop]])
    assert so.calibrate(quotes, so.Heston()).parameters == so.calibrate(quotes, so.Heston()).parameters


def surface() -> so.Contracts:
    """Six expiries from a month to three years, fifteen strikes each, as wide as the volatility makes them."""
    expiry = np.repeat([1 / 12, 0.25, 0.5, 1.0, 2.0, 3.0], 15)
    k = np.tile(np.linspace(-1.6, 1.2, 15), 6) * 0.25 * np.sqrt(expiry)
    return so.Contracts(
        forward=100.0, strike=100.0 * np.exp(k), expiry=expiry, discount=np.exp(-0.02 * expiry), is_call=k > 0.0
    )


@pytest.mark.parametrize("noise", [0.0, 5e-4])
def test_eighty_of_eighty_random_truths_are_recovered(noise):
    model, contracts, rng = so.Heston(), surface(), np.random.default_rng(80)
    lower = np.array([0.3, 0.01, 0.1, -0.95, 0.005])
    upper = np.array([8.0, 0.3, 1.5, 0.95, 0.3])
    lost = []
    for _ in range(80):
        truth = rng.uniform(lower, upper)
        observed = model.price(truth, contracts) + noise * rng.standard_normal(len(contracts))
        quotes = so.Quotes(ids=np.arange(len(contracts)).astype(str), contracts=contracts, observed=observed)
        found = so.calibrate(quotes, model)
        apart = np.abs(np.array(list(found.parameters.values())) - truth)
        # Without noise, 1e-6 relative: prices to 1e-13 of the forward, amplified by the weakest direction. With it,
        # 5 SE leave 400 parameters one chance in 4,000 of a false alarm.
        limit = 1e-6 * np.abs(truth) + 1e-9 if noise == 0.0 else 5.0 * np.array(list(found.standard_errors.values()))
        if not (found.converged and (apart <= limit).all()):
            lost.append((truth, found))
    assert lost == []
