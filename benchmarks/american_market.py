"""What reading American prices as European ones does to calibrations: a round trip, and real chains. No timing.

The round trip: a European Heston surface, American prices of it by QuantLib's finite differences for Heston, converted
under Black-Scholes dynamics and calibrated. The parameter error that is left is that of converting: an American price
of a Heston model has no exact European twin at one Black-Scholes volatility (Burkovska et al., 2018).

The chains lie in ../shared/data beside the repository. Their dividends are assumptions: the last amount, repeated every
quarter.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import QuantLib as ql  # noqa: N813

import strikeout as so
from benchmarks.rows import Result, Row
from strikeout.kernels import black

SPOT, RATE, DIVIDEND = 100.0, 0.045, 0.013
TRUTHS = {
    "ordinary": (2.0, 0.05, 0.4, -0.6, 0.05),
    "steep skew": (1.5, 0.06, 0.8, -0.8, 0.04),
}  # mean reversion, long variance, vol of vol, correlation, initial variance
NAMES = ("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance")
DAYS = (91, 182, 365)
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "raw"


def _quarters(year: int, months: tuple[int, ...]) -> list[str]:
    return [f"{year}-{month:02d}" for month in months]


# file, rate, and the dividends assumed
CHAINS: dict[str, tuple[str, float, dict[str, float]]] = {
    "SPY 2023-09-14": (
        "cboe_spy_2023-09-14.csv.gz",
        0.054,
        {f"{m}-15": 1.64 for y in (2023, 2024, 2025) for m in _quarters(y, (3, 6, 9, 12)) if m > "2023-08"},
    ),
    "AAPL 2019-08-23": (
        "cboe_aapl_2019-08-23.csv.gz",
        0.02,
        {f"{m}-07": 0.77 for y in (2019, 2020, 2021) for m in _quarters(y, (2, 5, 8, 11)) if m > "2019-08"},
    ),
}
SHORT = 0.25  # years


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Parameter errors of the round trip, and jumps and fit errors of real chains."""
    rows = []
    for name, truth in list(TRUTHS.items())[: 1 if is_quick else None]:
        rows += _round_trip(name, dict(zip(NAMES, truth, strict=True)), (40, 60, 30) if is_quick else (100, 200, 100))
    if not is_quick:
        for name in CHAINS:
            rows += _chain(name)
    return Result("american-market", is_quick, tuple(rows), {"assumed": "the last dividend, every quarter"})


def _round_trip(name: str, truth: dict[str, float], grid: tuple[int, int, int]) -> list[Row]:
    frame = _american_surface(truth, grid)
    ways = {
        "European prices": (frame.with_columns(mid=pl.col("european"), exercise=pl.lit("E")), "european"),
        "American, read as European": (frame, "european"),
        "American, converted": (frame, "auto"),
    }
    rows = []
    for way, (table, exercise) in ways.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quotes = so.read_quotes(table.drop("european"), exercise=exercise)
            found = so.calibrate(quotes, so.Heston(), residual="implied_vol").parameters
        off = ", ".join(f"{each} {100.0 * (found[each] / truth[each] - 1.0):+.2f} %" for each in NAMES)
        rows.append(Row(f"Heston, {name}", way, note=off))
    return rows


def _american_surface(truth: dict[str, float], grid: tuple[int, int, int]) -> pl.DataFrame:
    """Out-of-the-money options: exact European prices, plus the difference of American and European on one grid."""
    rows = []
    for days in DAYS:
        T = days / 365
        F, D, K = SPOT * np.exp((RATE - DIVIDEND) * T), np.exp(-RATE * T), np.arange(80.0, 121.0, 5.0)
        contracts = so.Contracts(forward=F, strike=K, expiry=T, discount=D, is_call=K >= F)
        exact = so.Heston().price(truth, contracts)
        for strike, price in zip(K.tolist(), exact.tolist(), strict=True):
            extra = _value(truth, strike, days, strike >= F, grid, early=True)
            extra -= _value(truth, strike, days, strike >= F, grid, early=False)
            right = "C" if strike >= F else "P"
            rows.append((T, strike, right, price + max(extra, 0.0), price, SPOT, RATE, float(F), "A"))
    names = ["expiry_years", "strike", "right", "mid", "european", "spot", "rate", "forward", "exercise"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _value(
    truth: dict[str, float], strike: float, days: int, call: bool, grid: tuple[int, int, int], *, early: bool
) -> float:
    today = ql.Date(1, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    count = ql.Actual365Fixed()
    rate, dividend = (ql.YieldTermStructureHandle(ql.FlatForward(today, each, count)) for each in (RATE, DIVIDEND))
    kappa, theta, sigma, rho, v0 = (truth[name] for name in NAMES)
    process = ql.HestonProcess(rate, dividend, ql.QuoteHandle(ql.SimpleQuote(SPOT)), v0, kappa, theta, sigma, rho)
    end = today + days
    exercise = ql.AmericanExercise(today, end) if early else ql.EuropeanExercise(end)
    option = ql.VanillaOption(ql.PlainVanillaPayoff(ql.Option.Call if call else ql.Option.Put, strike), exercise)
    option.setPricingEngine(ql.FdHestonVanillaEngine(ql.HestonModel(process), *grid))
    return float(option.NPV())


def _chain(name: str) -> list[Row]:
    file, rate, dividends = CHAINS[name]
    if not (DATA / file).exists():
        return [Row(name, "strikeout", note="the reference chains are not in ../shared/data beside the repository")]
    ways: dict[str, dict[str, Any]] = {
        "read as European": {},
        "converted, yield": {"exercise": "american"},
        "converted, cash dividends": {"exercise": "american", "dividends": dividends},
    }
    rows = []
    for way, how in ways.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quotes = so.read_quotes(DATA / file, constants={"rate": rate}, **how)
            fit = so.calibrate(quotes, so.Heston(), select="otm", residual="implied_vol", weights="none")
        jumps = jumps_of(quotes)
        short = [abs(j) for T, _, j, _ in jumps if T < SHORT]
        long = [abs(j) for T, _, j, _ in jumps if T >= SHORT]
        spread = [s for T, _, _, s in jumps if T < SHORT]
        note = (
            f"{len(quotes):,} quotes; call less put volatility at the forward, median over slices: below 3 months "
            f"{100 * np.median(short):.2f} points (half a spread is {100 * np.median(spread):.2f}), longer "
            f"{100 * np.median(long):.2f}; Heston RMSE {fit.fit_errors.overall.vol_points:.2f} points"
        )
        rows.append(Row(name, way, note=note))
    return rows


def jumps_of(quotes: so.Quotes) -> list[tuple[float, float, float, float]]:
    """Return years, forward, call less put volatility (median of five strikes) and half a spread in volatility."""
    c = quotes.contracts
    sigma = black.implied_volatility(quotes.observed, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    vega = black.vega(c.forward, c.strike, c.expiry, np.where(np.isfinite(sigma), sigma, 0.2), c.discount)
    found = []
    for T in np.unique(c.expiry):
        at = np.flatnonzero(c.expiry == T)
        both = np.intersect1d(c.strike[at][c.is_call[at]], c.strike[at][~c.is_call[at]])
        near = both[np.argsort(np.abs(both / c.forward[at[0]] - 1.0))[:5]]
        apart, wide = [], []
        for K in near:
            rows = at[c.strike[at] == K]
            call, put = rows[c.is_call[rows]][0], rows[~c.is_call[rows]][0]
            apart.append(sigma[call] - sigma[put])
            wide.append(0.5 * (quotes.spread[call] + quotes.spread[put]) / (2.0 * vega[call]))
        if apart and np.isfinite(apart).any():
            found.append((float(T), float(c.forward[at[0]]), float(np.nanmedian(apart)), float(np.nanmedian(wide))))
    return found
