"""American quotes as European ones: a derived input that is recomputed and never stored."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout import american
from strikeout.errors import UsageError
from strikeout.kernels import black
from strikeout.quotes.issues import QuotesWarning

SPOT, RATE, DIVIDEND = 100.0, 0.045, 0.013
DAYS = (60, 180, 365)
THETA = {
    "mean_reversion": 2.0,
    "long_variance": 0.05,
    "vol_of_vol": 0.4,
    "correlation": -0.6,
    "initial_variance": 0.05,
}


def frame(*, seed: int | None = None) -> pl.DataFrame:
    """A chain with American exercise: Heston's volatilities, American prices at each, and no forwards.

    Args:
        seed: of noise within the spreads; none if left out.
    """
    rows = []
    for days in DAYS:
        T = days / 365
        F, D = SPOT * np.exp((RATE - DIVIDEND) * T), np.exp(-RATE * T)
        strikes = np.arange(80.0, 121.0, 4.0)
        contracts = so.Contracts(forward=F, strike=strikes, expiry=T, discount=D, is_call=strikes >= F)
        sigma = black.implied_volatility(so.Heston().price(THETA, contracts), F, strikes, T, D, strikes >= F)
        for is_call in (True, False):
            prices = american.price(
                spot=SPOT,
                strike=strikes,
                expiry=T,
                rate=RATE,
                dividend_yield=DIVIDEND,
                volatility=sigma,
                is_call=is_call,
            )
            rows += [(T, K, "C" if is_call else "P", p) for K, p in zip(strikes, prices, strict=True)]
    made = pl.DataFrame(rows, schema=["expiry_years", "strike", "right", "mid"], orient="row")
    noise = 0.0 if seed is None else np.random.default_rng(seed).uniform(-0.02, 0.02, made.height)
    mid = made["mid"].to_numpy() + noise
    return made.drop("mid").with_columns(
        bid=mid - 0.03, ask=mid + 0.03, spot=SPOT, exercise=pl.lit("A"), underlying=pl.lit("XYZ")
    )


@pytest.fixture(scope="module")
def read() -> so.Quotes:
    with pytest.warns(QuotesWarning):
        return so.read_quotes(frame(seed=1), exercise="european")


@pytest.fixture(scope="module")
def quotes(read: so.Quotes) -> so.Quotes:
    return american.to_european(read)


def jump(quotes: so.Quotes) -> float:
    """The largest difference of call and put volatilities at the strikes next to a forward."""
    c = quotes.contracts
    sigma = black.implied_volatility(quotes.observed, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    found = []
    for T in np.unique(c.expiry):
        at = c.expiry == T
        near = c.strike[at][np.argmin(np.abs(c.strike[at] / c.forward[at] - 1.0))]
        pair = sigma[at & (c.strike == near)]
        found.append(abs(pair[0] - pair[1]))
    return max(found)


def test_with_a_rate_the_forwards_of_american_pairs_are_found():
    with pytest.warns(QuotesWarning):
        clean = so.read_quotes(frame(), constants={"rate": RATE}, exercise="european")
    forward = SPOT * np.exp((RATE - DIVIDEND) * clean.contracts.expiry)
    assert np.abs(american.to_european(clean).contracts.forward / forward - 1.0).max() < 1e-6
    assert np.abs(clean.contracts.forward / forward - 1.0).max() > 1e-3  # read as European


def test_without_a_rate_the_forwards_of_american_pairs_are_found_less_well():
    with pytest.warns(QuotesWarning):
        clean = so.read_quotes(frame(), exercise="european")
    made, before = american.to_european(clean).contracts, clean.contracts
    forward, discount = SPOT * np.exp((RATE - DIVIDEND) * made.expiry), np.exp(-RATE * made.expiry)
    # What is left is the prior of the rate, which five strikes around the money do not overrule in a short slice.
    assert np.abs(made.forward / forward - 1.0).max() < 1e-4
    assert np.abs(made.discount / discount - 1.0).max() < 2e-3
    assert np.abs(before.discount / discount - 1.0).max() > 2e-2  # read as European, the rate is far off


def test_volatilities_of_calls_and_puts_meet_at_the_forward():
    with pytest.warns(QuotesWarning):
        clean = so.read_quotes(frame(), exercise="european")
    assert jump(american.to_european(clean)) < 2e-4
    assert jump(clean) > 1e-3


def test_a_price_is_at_the_volatility_of_the_american_mid(quotes):
    c, mid = quotes.contracts, quotes.labels["american_mid"]
    rate = -np.log(c.discount) / c.expiry
    sigma = american.implied_volatility(
        price=mid,
        spot=SPOT,
        strike=c.strike,
        expiry=c.expiry,
        rate=rate,
        dividend_yield=rate - np.log(c.forward / SPOT) / c.expiry,
        is_call=c.is_call,
    )
    expected = black.price(c.forward, c.strike, c.expiry, sigma, c.discount, c.is_call)
    known = np.isfinite(sigma)
    assert known.sum() > 0.9 * len(quotes)
    assert np.abs(quotes.observed - expected)[known].max() < 1e-7 * SPOT
    assert (quotes.observed <= mid + 1e-9).all()
    assert (mid - quotes.observed).max() > 0.1


def test_a_slice_without_a_quote_has_the_bits_of_one_that_never_had_it(read, quotes):
    gone = quotes.ids[(quotes.contracts.strike == 100.0) & (quotes.contracts.expiry > 0.9)]
    after, never = quotes.without(gone), american.to_european(read.without(gone))
    assert after.observed.tobytes() == never.observed.tobytes()
    assert after.contracts.forward.tobytes() == never.contracts.forward.tobytes()
    stays = np.isin(quotes.ids, after.ids)
    touched = after.contracts.expiry > 0.9
    assert (after.observed != quotes.observed[stays])[touched].all()  # every price of the slice moves
    assert (after.observed == quotes.observed[stays])[~touched].all()


def test_the_order_of_rows_changes_no_bit(read, quotes):
    backwards = american.to_european(read[::-1])[::-1]
    assert backwards.observed.tobytes() == quotes.observed.tobytes()


def test_forgetting_american_quotes_equals_never_having_seen_them(read, quotes):
    calibration = so.calibrate(quotes, so.Heston(), select="otm")
    gone = quotes.ids[(quotes.contracts.strike == 100.0) & (quotes.contracts.expiry > 0.9)]
    done = so.forget(calibration, ids=gone)
    assert [refit.name for refit in done.refits]  # the slice is named among the refits
    never = american.to_european(read.without(gone))
    assert done.parameters == so.calibrate(never, so.Heston(), select="otm").parameters
    assert so.verify(done.certificate, never)
    assert not so.verify(done.certificate, quotes)


def test_a_file_that_was_written_gives_the_same_quotes(quotes, tmp_path):
    so.write_quotes(quotes, tmp_path / "quotes.csv")
    with pytest.warns(QuotesWarning):
        again = so.read_quotes(tmp_path / "quotes.csv")
    assert again.observed.tobytes() == quotes.observed.tobytes()
    assert again.contracts.forward.tobytes() == quotes.contracts.forward.tobytes()


def test_an_american_quote_without_spot_is_refused():
    rows = frame().drop("spot")
    with pytest.warns(QuotesWarning):
        without = so.read_quotes(rows, exercise="european")
    with pytest.raises(UsageError) as refused:
        american.to_european(without)
    assert len(refused.value.ids) == len(without)


def test_european_quotes_stay_as_they_are():
    chain = frame().with_columns(exercise=pl.lit("E"))
    with pytest.warns(QuotesWarning):
        read = so.read_quotes(chain, exercise="european")
    assert american.to_european(read) is read


def test_given_forwards_are_used_for_each_quote_alone():
    T = pl.col("expiry_years")
    chain = frame().with_columns(forward=SPOT * ((RATE - DIVIDEND) * T).exp(), rate=RATE)
    with pytest.warns(QuotesWarning):
        read = so.read_quotes(chain, exercise="european")
    made = american.to_european(read)
    assert made[:5].observed.tobytes() == american.to_european(read[:5]).observed.tobytes()
    assert (made.labels["american_mid"] - made.observed).max() > 0.1
    assert american.to_european(made).observed.tobytes() == made.observed.tobytes()


def test_a_book_stores_the_mid_and_forgets_as_if_never_seen(read, quotes, tmp_path):
    gone = quotes.ids[(quotes.contracts.strike == 100.0) & (quotes.contracts.expiry > 0.9)]
    with so.Book.create(tmp_path / "american.book") as book:
        book.import_quotes(quotes)
        back = book.quotes().only(quotes.ids)
        assert np.array_equal(np.sort(back.observed), np.sort(quotes.observed))
        book.calibrate(select="otm")
        book.forget(ids=gone, reason="bad-feed")
        never = american.to_european(read.without(gone))
        left = book.quotes()
        order = np.argsort(left.ids), np.argsort(never.ids)
        assert left.observed[order[0]].tobytes() == never.observed[order[1]].tobytes()
        found = book.calibration().parameters
    assert found == so.calibrate(never, so.Heston(), select="otm").parameters
