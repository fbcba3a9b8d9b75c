"""A fit of implied volatilities that a few doubtful quotes dominate is reported with the rule that leaves them out."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.calibration.warnings import dominated_fit
from strikeout.kernels import black


def quotes(*, odd_expiry: float, odd_bid: float, odd_vol: float = 0.6) -> so.Quotes:
    """Thirty quotes at a volatility of 20 %, and three of the given expiry, bid and volatility."""
    strike = np.array([*np.tile(np.linspace(90, 110, 15), 2), 98.0, 100.0, 102.0])
    years = np.array([*np.repeat([0.5, 1.0], 15), *[odd_expiry] * 3])
    vol = np.array([0.2] * 30 + [odd_vol] * 3)
    price = black.price(100.0, strike, years, vol, 1.0, strike > 0)
    bid = np.array([*(price[:30] - 0.01), *[odd_bid] * 3])
    contracts = so.Contracts(forward=100.0, strike=strike, expiry=years, discount=1.0, is_call=True)
    return so.Quotes(ids=[f"q{n}" for n in range(33)], contracts=contracts, observed=price, labels={"bid": bid})


@pytest.mark.parametrize(
    ("odd", "rules"),
    [
        ({"odd_expiry": 0.01, "odd_bid": 1.0}, ["Q214=7,reject"]),
        ({"odd_expiry": 0.5, "odd_bid": 0.0}, ["Q207=reject"]),
        ({"odd_expiry": 0.01, "odd_bid": 0.0}, ["Q207=reject", "Q214=7,reject"]),
        ({"odd_expiry": 0.5, "odd_bid": 1.0}, []),
    ],
)
def test_the_rule_for_the_quotes_that_dominate_is_named(odd, rules):
    found = so.calibrate(quotes(**odd), so.BlackScholes(), residual="implied_vol")
    warnings = dominated_fit(found)
    assert len(warnings) == len(rules)
    assert all(rule in warning and warning in found.summary() for rule, warning in zip(rules, warnings, strict=True))


def test_a_fit_of_prices_has_no_such_warning():
    assert not dominated_fit(so.calibrate(quotes(odd_expiry=0.01, odd_bid=0.0), so.BlackScholes()))
