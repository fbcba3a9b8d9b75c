"""Chains with calls, puts and no forward, as frames: what a vendor's file looks like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from strikeout.kernels import black


def chain(
    *,
    dates: Sequence[str] = ("2024-03-01",),
    expiries: Sequence[str] = ("2024-04-05", "2024-06-07", "2024-12-06"),
    strikes: Sequence[float] = tuple(range(70, 131, 3)),
    rate: float = 0.03,
    dividend: float = 0.01,
    noise: float = 0.01,
    seed: int = 5,
) -> pl.DataFrame:
    """Calls and puts on a made-up smile around 100, their mids off by up to ``noise``, with bids and asks around."""
    rng = np.random.default_rng(seed)
    rows = []
    for date in dates:
        for expiry in expiries:
            years = (np.datetime64(expiry) - np.datetime64(date)).astype(int) / 365
            forward, discount = 100.0 * np.exp((rate - dividend) * years), np.exp(-rate * years)
            for strike in map(float, strikes):
                vol = 0.2 - 0.15 * np.log(strike / forward) / np.sqrt(years + 0.2)
                for right in "CP":
                    args = (np.array([x]) for x in (forward, strike, years, vol, discount))
                    mid = float(black.price(*args, np.array([right == "C"]))[0]) + noise * rng.uniform(-1.0, 1.0)
                    half = 0.02 + 0.004 * abs(strike - forward)
                    bid, ask = max(mid - half, 0.0), mid + half
                    rows.append((date, expiry, strike, right, round(bid, 6), round(ask, 6)))
    return pl.DataFrame(rows, schema=["quote_date", "expiry", "strike", "right", "bid", "ask"], orient="row")
