"""Books with known answers: what the paper lists, and random ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strikeout.errors import UsageError
from strikeout.kernels import heston
from strikeout.paper.sets import PAPER_START, spot_path
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.issues import QuotesWarning
from strikeout.quotes.reading import read_quotes
from strikeout.quotes.writing import write_quotes
from strikeout.synthetic.heston_quotes import TRUTH, random_quotes
from tests.counting import calls
from tests.raising import raises


@pytest.mark.parametrize(
    ("size", "count", "days", "terms", "strikes"),
    [
        ("small", 540, 90, [30, 60], [90, 100, 110]),
        ("large", 2700, 180, [30, 60, 90], [80, 90, 100, 110, 120]),
    ],
)
def test_the_papers_sets_have_the_days_maturities_and_strikes_it_lists(
    size: str, count: int, days: int, terms: list[int], strikes: list[int]
) -> None:
    quotes = paper_quotes(size)  # type: ignore[arg-type]
    assert len(quotes) == count
    assert np.unique(quotes.labels["day"]).tolist() == list(range(days))
    assert np.unique(quotes.contracts.expiry).tolist() == [term / 252 for term in terms]
    assert np.unique(quotes.contracts.strike).tolist() == strikes
    assert quotes.contracts.is_call.all()


# Prices of another program (Lewis' line with 250 Gauss-Legendre nodes, same random numbers) for rows 0, 269 and 539 of
# the small set and 0, 1349 and 2699 of the large one, seed 42.
OTHER_PROGRAM = {
    "small": ([0, 269, 539], [10.605763914826, 1.1524131392, 0.561064537666]),
    "large": ([0, 1349, 2699], [20.1262465467, 0.22280806514, 1.218714665594]),
}


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_papers_sets_are_those_of_an_independent_program(size: str) -> None:
    rows, prices = OTHER_PROGRAM[size]
    # 1e-10: that program's quadrature error, 5e-12 at most over the whole set, with room.
    assert paper_quotes(size).observed[rows] == pytest.approx(prices, abs=1e-10)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "noise"), [("small", 1e-3), ("large", 5e-4)])
def test_the_papers_noise_has_the_standard_deviation_it_states(size: str, noise: float) -> None:
    quotes = paper_quotes(size)  # type: ignore[arg-type]
    c = quotes.contracts
    clean = heston.price(np.array([*TRUTH.values()]), c.forward, c.strike, c.expiry, c.discount, c.is_call)
    errors = quotes.observed - clean
    # 4 standard deviations of the two estimates.
    assert errors.std() == pytest.approx(noise, rel=4 / np.sqrt(2 * len(quotes)))
    assert errors.mean() == pytest.approx(0.0, abs=4 * noise / np.sqrt(len(quotes)))


def test_the_papers_quadrature_errs_by_as_much_as_its_noise_on_the_small_set_only() -> None:
    small, large = (
        np.abs(paper_quotes(size, quadrature="paper").observed - paper_quotes(size).observed).max()  # type: ignore[arg-type]
        for size in ("small", "large")
    )
    assert 5e-4 < small < 2e-3
    assert large < 1e-8


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_path() -> None:
    assert paper_quotes("small").observed.tobytes() == paper_quotes("small", seed=42).observed.tobytes()
    assert spot_path(90, seed=42)[0] == 100.0
    assert spot_path(90, seed=42)[-1] != spot_path(90, seed=43)[-1]
    assert np.array_equal(spot_path(180, seed=42)[:90], spot_path(90, seed=42))


def test_dates_are_business_days_and_expiries_lie_as_many_of_them_ahead() -> None:
    labels = paper_quotes("small").labels
    assert labels["date"][0] == "2024-01-02"
    ahead = np.busday_count(labels["date"].astype("datetime64[D]"), labels["expiry_date"].astype("datetime64[D]"))
    assert np.array_equal(ahead, labels["expiry_days"])
    assert np.is_busday(labels["date"].astype("datetime64[D]")).all()


def test_the_large_set_survives_a_file_with_all_its_quotes(tmp_path: Path) -> None:
    quotes = paper_quotes("large")
    with pytest.warns(QuotesWarning, match="2,700 of 2,700 rows read"):
        back = read_quotes(write_quotes(quotes, tmp_path / "large.csv"))
    assert back.ids.tolist() == quotes.ids.tolist()
    assert back.observed.tobytes() == quotes.observed.tobytes()
    assert back.contracts.forward.tobytes() == quotes.contracts.forward.tobytes()


def test_truth_and_start_are_those_of_the_paper_and_cannot_be_changed() -> None:
    assert list(TRUTH.values()) == [2.0, 0.06, 0.30, -0.6, 0.06]
    assert list(PAPER_START.values()) == [1.0, 0.04, 0.20, -0.3, 0.04]
    with pytest.raises(TypeError):
        TRUTH["mean_reversion"] = 1.0  # type: ignore[index]


@pytest.mark.parametrize("maturities", [1, 7, 500])
def test_a_random_book_has_exactly_the_maturities_asked_for(maturities: int) -> None:
    quotes = random_quotes(500, maturities=maturities, seed=3)
    assert len(np.unique(quotes.contracts.expiry)) == maturities
    assert len(np.unique(quotes.ids)) == 500


def test_a_random_book_without_noise_lies_within_the_no_arbitrage_bounds() -> None:
    quotes = random_quotes(5000, maturities=40, noise=0.0, seed=5)
    contracts = quotes.contracts
    assert (quotes.observed > contracts.intrinsic).all()
    assert (
        quotes.observed < contracts.discount * np.where(contracts.is_call, contracts.forward, contracts.strike)
    ).all()


def test_calls_minus_puts_of_a_random_book_are_its_forwards() -> None:
    calls = random_quotes(300, noise=0.0, puts=0.0, seed=9)
    puts = random_quotes(300, noise=0.0, puts=1.0, seed=9)
    assert np.array_equal(calls.contracts.strike, puts.contracts.strike)
    parity = calls.contracts.discount * (calls.contracts.forward - calls.contracts.strike)
    # Prices up to 100 rounded to the last bit, twice.
    assert calls.observed - puts.observed == pytest.approx(parity, abs=4 * 100 * np.finfo(float).eps)


def test_another_theta_by_name_or_in_order_gives_another_book() -> None:
    theta = {**TRUTH, "vol_of_vol": 0.9}
    named = random_quotes(50, theta=theta, seed=1)
    assert np.array_equal(named.observed, random_quotes(50, theta=list(theta.values()), seed=1).observed)
    assert not np.array_equal(named.observed, random_quotes(50, seed=1).observed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"maturities": 0},
        {"maturities": 11},
        {"puts": 1.5},
        {"noise": -1.0},
        {"noise": np.nan},
        {"theta": {"kappa": 1.0}},
        {"theta": [1.0, 2.0]},
        {"theta": [np.nan] * 5},
    ],
)
def test_a_random_book_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        random_quotes(10, **{"maturities": 2, **wrong})  # type: ignore[arg-type]


def test_an_unknown_set_or_quadrature_is_refused() -> None:
    with raises(UsageError, size="medium"):
        paper_quotes("medium")  # type: ignore[arg-type]
    with raises(UsageError, quadrature="simpson"):
        paper_quotes("small", quadrature="simpson")  # type: ignore[arg-type]


def test_more_random_quotes_take_no_more_calls() -> None:
    """Nothing in Python is done quote by quote; what a million of them take is in benchmarks/scale.py."""
    few, many = (calls(lambda count=count: random_quotes(count, maturities=5)) for count in (1_000, 4_000))
    assert 0 < many == few
