"""What each rule costs on a million rows: seconds of the processor, all threads counted.

The rows are ten days of one underlying, 250 expiries of 200 strikes each, calls and puts at bid and ask, one row in a
thousand spoilt and one stale, so that rules have something to find and sentences to write.
"""

from __future__ import annotations

import time
from datetime import date, timedelta
from statistics import median

import numpy as np
import polars as pl

from benchmarks.rows import Result, Row
from strikeout.kernels import black
from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.market import CHECKED, check_market
from strikeout.quotes.checks.rows import with_slices

MILLION, QUICK = 1_000_000, 40_000
DAYS, STRIKES = 10, 200
WORDS = {"underlying": "SPX", "root": "SPXW", "settlement": "pm", "exercise": "E", "deliverable": "100"}
LONGEST = 1.0  # seconds a rule may take for a million rows


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Every rule alone on one frame, then all of them with slices and sentences; the median of some runs."""
    count = QUICK if is_quick else MILLION
    frame = market(count)
    sliced = with_slices(frame)
    repeats, scale = (1 if is_quick else 5), MILLION / count
    task = f"{count:,} rows"
    rows = []
    for code, rule in CHECKED.items():
        found = rule(sliced, RULES[code].limit or 0.0)
        seconds = median(_processor_seconds(lambda: rule(sliced, RULES[code].limit or 0.0)) for _ in range(repeats))  # noqa: B023
        rows.append(Row(task, f"strikeout {code}", seconds, note=f"{RULES[code].name}: {found.height:,} found"))
    slowest = max(rows, key=lambda row: row.seconds or 0.0)
    whole = median(_processor_seconds(lambda: check_market(frame)) for _ in range(repeats))
    rows.append(Row(task, "strikeout, all", whole, note="every rule, slices and sentences included"))
    longest = (slowest.seconds or 0.0) * scale
    met = "met" if longest < LONGEST else "missed"
    return Result(
        "rules",
        is_quick,
        tuple(rows),
        {
            f"slowest rule, s a million rows (under {LONGEST:g}: {met})": longest,
            "which": slowest.candidate,
            "all rules, s a million rows": whole * scale,
        },
    )


def _processor_seconds(work: object) -> float:
    begin = time.process_time()
    work()  # type: ignore[operator]
    return max(time.process_time() - begin, 1e-9)


def market(count: int, *, seed: int = 1) -> pl.DataFrame:
    """Return quotes in canonical units, a thousandth of them spoilt and as many stale."""
    rng = np.random.default_rng(seed)
    expiries = count // (DAYS * STRIKES * 2)
    day, expiry, place, is_call = (
        column.ravel()
        for column in np.meshgrid(
            np.arange(DAYS), np.arange(expiries), np.arange(STRIKES), [True, False], indexing="ij"
        )
    )
    forward = 100.0 * (1.0 + 0.01 * day)
    strike = np.round(40.0 + 0.6 * place, 1)
    years = (30.0 + 7.0 * expiry - day) / 365.0
    mid = black.price(forward, strike, years, 0.2 + 0.1 * np.abs(np.log(strike / 100.0)), 0.99, is_call)
    spoilt = rng.random(mid.size) < 0.001
    mid = np.where(spoilt, mid * rng.uniform(0.5, 2.0, mid.size), mid)
    before = mid.reshape(DAYS, -1)  # and as many stand still for a day
    mid = np.where(rng.random(mid.size) < 0.001, np.vstack([before[:1], before[:-1]]).ravel(), mid)
    half = 0.01 + 0.01 * mid
    in_the_money = (strike > forward) & ~is_call
    american = np.where(in_the_money & (rng.random(mid.size) < 0.02), mid * 1.03, np.nan)  # some converted puts
    start = date(2024, 1, 2)
    dates = np.array([np.datetime64(start + timedelta(days=k)) for k in range(DAYS)])
    ends = np.array([np.datetime64(start + timedelta(days=30 + 7 * k)) for k in range(expiries)])
    return pl.DataFrame({
        "at": np.arange(mid.size), "row": np.arange(mid.size) + 2, "strike": strike, "is_call": is_call,
        "expiry_years": years, "forward": forward, "discount": np.full(mid.size, 0.99), "spot": forward,
        "observed": mid, "bid": np.maximum(mid - half, 0.0), "ask": mid + half,
        "american_mid": pl.Series(american).fill_nan(None),
        "iv": np.full(mid.size, 0.2), "volume": rng.integers(0, 3, mid.size).astype(float),
        "open_interest": rng.integers(0, 3, mid.size).astype(float),
        "quote_date": dates[day], "expiry": ends[expiry],
        **{name: pl.Series([word]).new_from_index(0, mid.size).rechunk() for name, word in WORDS.items()},
    }).with_columns(pl.col("quote_date", "expiry").cast(pl.Date))  # fmt: skip
