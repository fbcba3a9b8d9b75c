"""The objective: one canonical order, whatever the order of the book."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.objective import objective_of
from tests.calibration.smile_model import book
from tests.raising import raises


def tied_book(order: np.ndarray) -> Quotes:
    """Quotes that agree in expiry and moneyness and differ elsewhere, in the given order."""
    forward = np.array([100.0, 50.0, 100.0, 100.0, 100.0, 100.0])[order]
    discount = np.array([1.0, 1.0, 0.9, 1.0, 1.0, 1.0])[order]
    is_call = np.array([True, True, True, False, True, True])[order]
    observed = np.array([8.0, 4.0, 7.0, 8.0, 9.0, 9.0])[order]
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0])[order]
    c = Contracts(forward=forward, strike=forward, expiry=0.5, discount=discount, is_call=is_call)
    return Quotes(ids=[f"q{i}" for i in order], contracts=c, observed=observed, weight=weight)


def test_quotes_that_tie_in_expiry_and_moneyness_are_ordered_by_everything_else():
    first, _ = objective_of(tied_book(np.arange(6)))
    for seed in range(20):
        other, _ = objective_of(tied_book(np.random.default_rng(seed).permutation(6)))
        assert (other.observed == first.observed).all()
        assert (other.weight == first.weight).all()
        assert (other.contracts.forward == first.contracts.forward).all()
        assert (other.contracts.is_call == first.contracts.is_call).all()


def test_the_order_leads_back_to_the_quotes():
    quotes = book()
    objective, _ = objective_of(quotes)
    assert (quotes.observed[objective.order] == objective.observed).all()
    assert (np.diff(objective.contracts.expiry) >= 0.0).all()


def test_a_quote_of_weight_zero_is_as_if_never_seen():
    quotes = book()
    weight = np.where(quotes.ids == "q4", 0.0, 1.0)
    left_out, _ = objective_of(quotes, weights=weight)
    never, _ = objective_of(quotes.without(["q4"]))
    assert (left_out.observed == never.observed).all()
    assert len(left_out) == 17


def test_no_weight_at_all_is_refused():
    with raises(UnidentifiedError):
        objective_of(book(), weights=np.zeros(18))


def test_implied_volatility_targets_are_the_markets_own():
    objective, _ = objective_of(book(), residual="implied_vol")
    k = objective.contracts.log_moneyness
    # Inverting Black from in-the-money prices of 30 loses their time value's digits: eps * 30 / vega of 5.
    assert objective.target == pytest.approx(0.2 - 0.1 * k + 0.3 * k * k, abs=1e-13)


def test_a_price_without_volatility_is_refused_by_name():
    quotes = book()
    with raises(RefusedError, ids=["q0"]):
        objective_of(quotes.with_observed(np.where(quotes.ids == "q0", -1.0, quotes.observed)), residual="implied_vol")


@pytest.mark.parametrize("rule", ["relative", "vega", "spread"])
def test_weights_made_for_prices_are_refused_for_volatilities(rule):
    with raises(UsageError, mentions={"weights"}):
        objective_of(book(spread=0.5), residual="implied_vol", weights=rule)


def test_an_unknown_residual_is_refused():
    with raises(UsageError, mentions={"residual"}):
        objective_of(book(), residual="delta")  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["price", "forward", "weight"])
def test_a_sentinel_that_squares_to_infinity_is_refused_by_name(column):
    """1e300 stands for "none" in some files; squared it is infinite, and a search could not even begin."""
    c = Contracts(
        forward=[100.0, 1e300 if column == "forward" else 100.0], strike=90.0, expiry=0.5, discount=1.0, is_call=True
    )
    quotes = Quotes(
        ids=["good", "bad"],
        contracts=c,
        observed=[11.0, 1e300 if column == "price" else 11.0],
        weight=[1.0, 1e308 if column == "weight" else 1.0],
    )
    with np.errstate(over="raise"), raises(RefusedError, ids=["bad"]) as refused:
        objective_of(quotes)
    assert refused.value.ids == ["bad"]


def test_a_book_in_a_huge_unit_is_no_sentinel():
    c = Contracts(forward=1e150, strike=[0.9e150, 1.1e150], expiry=0.5, discount=1.0, is_call=True)
    assert len(objective_of(Quotes(ids=["a", "b"], contracts=c, observed=[1e149, 1e148]))[0]) == 2
