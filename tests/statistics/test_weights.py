"""Weights: what each rule gives, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import RefusedError, UsageError
from strikeout.kernels import black
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.objective import RULES, VEGA_FLOOR, weights_of
from strikeout.text import Argument
from tests.calibration.smile_model import book
from tests.raising import raises


def test_given_weights_are_the_quotes_own():
    quotes = book()
    own = Quotes(ids=quotes.ids, contracts=quotes.contracts, observed=quotes.observed, weight=np.arange(1.0, 19.0))
    assert (weights_of(own, "given")[0] == np.arange(1.0, 19.0)).all()
    assert (weights_of(own, "none")[0] == 1.0).all()


def test_vega_weights_turn_a_price_residual_into_a_volatility_residual():
    quotes, c = book(), book().contracts
    vol = black.implied_volatility(quotes.observed, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    moved = black.price(c.forward, c.strike, c.expiry, vol + 1e-7, c.discount, c.is_call)
    weight, _ = weights_of(quotes, "vega")
    # First order in the move of 1e-7: the error is 1e-7 times a volga of order ten, plus eps * price / 1e-7.
    assert np.sqrt(weight) * (moved - quotes.observed) == pytest.approx(np.full(18, 1e-7), rel=1e-5)


def test_no_wing_weighs_more_than_the_vega_floor_allows():
    c = Contracts(forward=100.0, strike=[100.0, 200.0], expiry=0.02, discount=1.0, is_call=True)
    observed = black.price(c.forward, c.strike, c.expiry, np.full(2, 0.3), c.discount, c.is_call)
    weight, _ = weights_of(Quotes(ids=["atm", "wing"], contracts=c, observed=observed), "vega")
    assert weight[1] / weight[0] == pytest.approx(VEGA_FLOOR**-2, rel=1e-3)  # at the money, vega is the largest


def test_spread_weights_are_inverse_squares_of_the_spread():
    assert weights_of(book(spread=0.5), "spread")[0] == pytest.approx(np.full(18, 4.0), rel=1e-15)


def test_relative_weights_turn_a_price_residual_into_a_share_of_the_price():
    quotes = book()
    weight, _ = weights_of(quotes, "relative")
    # A residual of one percent of the price, whatever the price; two roundings.
    assert np.sqrt(weight) * (0.01 * quotes.observed) == pytest.approx(np.full(18, 0.01), rel=1e-15)


def test_a_price_of_zero_has_no_relative_residual_and_is_named():
    quotes = book()
    with raises(RefusedError, mentions={"weights"}, ids=["q3"]) as caught:
        weights_of(quotes.with_observed(np.where(quotes.ids == "q3", 0.0, quotes.observed)), "relative")
    assert caught.value.ids == ["q3"]


@pytest.mark.parametrize("rule", RULES)
def test_a_weight_follows_from_its_quote_alone(rule):
    """To the last bit: otherwise a struck quote would live on in the weights of the others."""
    quotes = book(spread=0.5)
    whole = weights_of(quotes, rule)[0]
    for row in range(18):
        assert weights_of(quotes[[row]], rule)[0][0] == whole[row]


def test_quotes_without_a_spread_are_named():
    with raises(RefusedError, mentions={"weights"}) as caught:
        weights_of(book(), "spread")
    assert "checks" not in caught.value.arguments  # no market is known to be locked
    assert caught.value.ids[-1] == "q17"


def test_a_locked_market_has_no_spread_and_is_told_the_rule_that_leaves_it_out():
    with pytest.raises(RefusedError) as caught:
        weights_of(book(spread=0.0), "spread")
    assert len(caught.value.ids) == 18
    assert Argument("checks", {"Q206": "reject"}) in caught.value.parts


def test_quotes_without_an_implied_volatility_are_named():
    quotes = book()
    below = quotes.with_observed(np.where(quotes.ids == "q3", 1e-9 - 1.0, quotes.observed))
    with raises(RefusedError, ids=["q3"]):
        weights_of(below, "vega")


def test_an_unknown_rule_is_refused_with_the_known_ones():
    with raises(UsageError, mentions={"weights"}):
        weights_of(book(), "gamma")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.ones(3), -np.ones(18), np.full(18, np.nan)])
def test_an_array_of_the_wrong_shape_or_sign_is_refused(bad):
    with pytest.raises(UsageError, match="weights: "):
        weights_of(book(), bad)
