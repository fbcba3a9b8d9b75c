"""Quotes that do not fit their own smile."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError


@pytest.fixture(scope="module")
def book():
    """Heston's smiles with noise of a hundredth of the spread: no outlier."""
    strikes = np.arange(80.0, 121.0, 2.0)
    K, T = (one.ravel() for one in np.meshgrid(strikes, [0.1, 0.5, 1.0]))
    contracts = so.Contracts(forward=100.0, strike=K, expiry=T, discount=0.98, is_call=K > 100.0)
    prices = so.Heston().price([2.0, 0.04, 0.4, -0.7, 0.05], contracts)
    noise = 1e-3 * np.random.default_rng(1).standard_normal(len(K))
    return so.Quotes(ids=[f"q{i}" for i in range(len(K))], contracts=contracts, observed=prices + noise)


@pytest.mark.parametrize("factor", [0.7, 0.9, 1.1, 1.25, 10.0])
@pytest.mark.parametrize("place", [3, 10, 25, 38, 59])
def test_a_wrong_price_is_listed_first(book, place, factor):
    observed = book.observed.copy()
    wrong = place if observed[place] > 0.3 else place + 8  # a tenth of a worthless price is within its noise
    observed[wrong] *= factor
    found = so.outliers(book.with_observed(observed))
    assert found["id"][0] == f"q{wrong}"
    assert found["expected"][0] == pytest.approx(book.observed[wrong], rel=0.05)


@pytest.mark.parametrize("place", [0, 20, 62])
def test_a_grossly_wrong_price_at_the_end_of_a_slice_is_listed_first(book, place):
    observed = book.observed.copy()
    observed[place] += 1.0
    assert so.outliers(book.with_observed(observed))["id"][0] == f"q{place}"


def test_quotes_on_their_smile_have_no_score(book):
    assert so.outliers(book)["score"].max() < 3.0


def test_a_price_below_its_intrinsic_value_is_judged_though_it_has_no_volatility(book):
    contracts = so.Contracts(
        forward=100.0, strike=book.contracts.strike, expiry=book.contracts.expiry, discount=0.98, is_call=True
    )
    prices = so.Heston().price([2.0, 0.04, 0.4, -0.7, 0.05], contracts)
    prices[2] = 0.9 * 0.98 * (100.0 - contracts.strike[2])
    found = so.outliers(so.Quotes(ids=book.ids, contracts=contracts, observed=prices))
    assert found["id"][0] == "q2"
    assert np.isnan(found["volatility"][0])
    assert found["arbitrage"][0]


def test_a_neighbour_of_a_wrong_price_is_not_blamed(book):
    observed = book.observed.copy()
    observed[30] *= 1.5
    found = so.outliers(book.with_observed(observed))
    assert found.above(3.0)["id"].tolist() == ["q30"]


def test_the_order_of_the_quotes_changes_nothing(book):
    turned, found = so.outliers(book[::-1]), so.outliers(book)
    assert all(np.array_equal(turned[name], found[name], equal_nan=name != "id" and name != "right") for name in found)


def test_slices_too_small_to_judge_are_counted_and_listed_last(book):
    few = so.outliers(book[[*range(21), 30, 31]])
    assert few.unjudged == 2
    assert np.isnan(few["score"][-2:]).all()
    with pytest.raises(RefusedError):
        so.outliers(book[:3])


def test_a_book_of_no_options_is_refused():
    with pytest.raises(UsageError):
        so.outliers(so.Quotes.from_columns(["a"], [1.0], pressure=[2.0]))


@pytest.mark.parametrize("day", ["2022-06-10", "2023-06-09"])
@pytest.mark.filterwarnings("ignore")
def test_two_errors_planted_in_a_real_day_come_first(shared_data, day):
    """A June 4400 put times 1.25 and a March 4900 call times 0.7, which Cook's distance does not find."""
    quotes = so.read_quotes(shared_data(f"chains/day_cboe_spx_{day}.parquet"), max_reject=1.0, forwards="parity")
    strike, is_call = quotes.contracts.strike, quotes.contracts.is_call
    month = np.array([str(expiry)[5:7] for expiry in quotes.labels["expiry_date"]])
    far = quotes.contracts.expiry > 0.1
    put = np.flatnonzero((strike == 4400) & ~is_call & (month == "06") & far)[-1]
    call = np.flatnonzero((strike == 4900) & is_call & (month == "03") & far)[-1]
    observed = quotes.observed.copy()
    observed[put] *= 1.25
    observed[call] *= 0.7
    found = so.outliers(quotes.with_observed(observed))
    assert set(found["id"][:2]) == {quotes.ids[put], quotes.ids[call]}
    assert found.to_dict(2)["outliers"][0]["score"] > 10.0
