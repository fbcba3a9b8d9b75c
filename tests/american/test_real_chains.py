"""A real chain of American options before and after it is read as European: the table of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.kernels import black
from strikeout.quotes.issues import QuotesWarning

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "american-options.md"
SPY, RATE = "raw/cboe_spy_2023-09-14.csv.gz", 0.054


def told() -> np.ndarray:
    """The rows of the table: years, forward, yield in percent and jump in volatility points, each before and after."""
    rows = re.findall(r"^\| \d\.\d\d \|.*$", PAGE.read_text(), re.M)
    return np.array([[float(cell.strip(" %")) for cell in row.strip("| ").split("|")] for row in rows])


def forward_and_jump(quotes: so.Quotes, T: float) -> tuple[float, float]:
    """Forward of a slice, and the median of call less put volatility at the five strikes nearest to it."""
    c = quotes.contracts
    rows = np.flatnonzero(c.expiry == T)
    c = c[rows]
    sigma = black.implied_volatility(quotes.observed[rows], c.forward, c.strike, c.expiry, c.discount, c.is_call)
    both = np.intersect1d(c.strike[c.is_call], c.strike[~c.is_call])
    near = both[np.argsort(np.abs(both / c.forward[0] - 1.0))[:5]]
    apart = [sigma[(c.strike == K) & c.is_call].mean() - sigma[(c.strike == K) & ~c.is_call].mean() for K in near]
    return float(c.forward[0]), float(np.nanmedian(apart))


def test_the_table_of_spy_is_what_is_computed(shared_data):
    with pytest.warns(QuotesWarning):
        read = so.read_quotes(shared_data(SPY), constants={"rate": RATE}, exercise="european")
    with pytest.warns(QuotesWarning):
        made = so.read_quotes(shared_data(SPY), constants={"rate": RATE})
    assert len(read) - len(made) == 598
    spot = float(read.labels["spot"][0])
    expiries = np.unique(read.contracts.expiry)
    rows = told()
    assert len(rows) == 6
    for years, *expected in rows:
        T = expiries[np.argmin(np.abs(expiries - years))]
        (F, apart), (G, closer) = forward_and_jump(read, T), forward_and_jump(made, T)
        yields = [100.0 * (RATE - np.log(forward / spot) / T) for forward in (F, G)]
        found = [F, G, *yields, 100.0 * apart, 100.0 * closer]
        assert found == pytest.approx(expected, abs=0.0051)  # the digits of the table
    long = rows[rows[:, 0] > 0.5]
    assert (np.abs(long[:, 4] - 1.3) < 0.2).all()  # what the fund pays, 1.4 % a year less a little borrow
    assert (np.abs(rows[:, 6]) < 0.1).all()  # call and put volatilities meet within a tenth of a point


def test_without_a_rate_long_forwards_are_still_nearer_than_those_read_as_european(shared_data):
    with pytest.warns(QuotesWarning):
        read = so.read_quotes(shared_data(SPY), constants={"rate": RATE}, exercise="european")
    with pytest.warns(QuotesWarning):
        best, made = (so.read_quotes(shared_data(SPY), constants=known) for known in ({"rate": RATE}, {}))
    forwards = [
        dict(zip(q.contracts.expiry.tolist(), q.contracts.forward.tolist(), strict=True)) for q in (best, made, read)
    ]
    long = [T for T in forwards[0] if T > 0.5]
    with_rate, without, european = (np.array([of[T] for T in long]) for of in forwards)
    assert (np.abs(without - with_rate) < 0.25 * np.abs(european - with_rate)).all()
    at = int(np.argmin(np.abs(np.array(long) - 2.27)))
    told = re.search(
        r"at 2.27 years,\s+(\d+\.\d) read as European, (\d+\.\d) converted without a rate, (\d+\.\d) with",
        PAGE.read_text(),
    )
    assert [float(number) for number in told.groups()] == pytest.approx(
        [european[at], without[at], with_rate[at]], abs=0.051
    )
