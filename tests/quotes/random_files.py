"""Small files of quotes with everything that goes wrong in large ones, drawn from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

OWN = ("underlying", "quote_date", "expiry", "strike", "right", "bid", "ask", "spot", "rate", "dividend_yield")
# A vendor's wide layout, as text: what each column of OWN is called for calls and puts of one row.
DAYS = ("2024-01-08", "2024-01-09", "2024-01-10")
EXPIRIES = ("2024-03-15", "2024-06-21")
STRIKES = (80.0, 90.0, 95.0, 100.0, 105.0, 110.0, 120.0)
BAD = ("", "n/a", "-99.99", "-1", "1e400", "nan")


def quotes_frame(seed: int) -> pl.DataFrame:
    """Calls and puts of two underlyings over three days, as text; some stand still, some are missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, underlying in enumerate(("ABC", "SPX")[: rng.integers(1, 3)]):
        for day, date in enumerate(DAYS):
            spot = 100.0 + 3.0 * day + number
            for years, expiry in zip((0.2, 0.5), EXPIRIES, strict=True):
                for strike in STRIKES:
                    for right in "CP":
                        if rng.random() < 0.15:
                            continue
                        still = rng.random() < 0.3
                        worth = max((spot if not still else 100.0) - strike, 0.0) * (1 if right == "C" else 0)
                        worth += max(strike - (spot if not still else 100.0), 0.0) * (1 if right == "P" else 0)
                        price = worth + 8.0 * np.sqrt(years)
                        bid, ask = round(price * 0.98, 2), round(price * 1.02, 2)
                        bid = 0.0 if rng.random() < 0.05 else bid
                        rows.append(
                            (
                                underlying,
                                date,
                                expiry,
                                f"{strike:g}",
                                right,
                                f"{bid}",
                                f"{ask}",
                                f"{spot}",
                                "0.02",
                                "0.01",
                            )
                        )
    return pl.DataFrame(rows, schema=dict.fromkeys(OWN, pl.String), orient="row")


def spoiled(frame: pl.DataFrame, seed: int, *, share: float = 0.05) -> pl.DataFrame:
    """With bad cells, exact repeats, rows that say something else of the same contract, and perhaps in no order."""
    rng = np.random.default_rng(seed)
    cells = {name: frame[name].to_list() for name in frame.columns}
    for name in ("strike", "bid", "ask", "right", "expiry", "spot"):
        for at in np.flatnonzero(rng.random(frame.height) < share / 2).tolist():
            cells[name][at] = str(rng.choice(BAD))
    frame = pl.DataFrame(cells, schema=dict.fromkeys(frame.columns, pl.String))
    again = frame.filter(pl.Series(rng.random(frame.height) < share))
    other = frame.filter(pl.Series(rng.random(frame.height) < share)).with_columns(pl.lit("7.7").alias("ask"))
    frame = pl.concat([frame, again, other])
    if rng.random() < 0.6:
        frame = frame[rng.permutation(frame.height)]
    return frame


def drawn_file(folder: Path, seed: int) -> Path:
    """A file in one of many dresses: text or Parquet, forwards given, from spot or by parity, ids or none, labels."""
    rng = np.random.default_rng(seed + 1)
    frame = spoiled(quotes_frame(seed), seed)
    road = rng.choice(["spot", "parity", "mixed"])
    if road == "parity":
        frame = frame.drop("rate", "dividend_yield")
    elif road == "mixed":
        gone = pl.Series(rng.random(frame.height) < 0.3)
        frame = frame.with_columns(pl.when(~gone).then("rate").alias("rate"))
    if rng.random() < 0.3:
        frame = frame.with_columns(pl.Series("id", [f"q{n % 150}" for n in range(frame.height)]))
    if rng.random() < 0.5:
        frame = frame.with_columns(
            pl.Series("desk", [f"d{n % 4}" for n in range(frame.height)]), pl.lit("").alias("void")
        )
    if rng.random() < 0.3:
        late = [None if n < 0.8 * frame.height else "late" for n in range(frame.height)]
        frame = frame.with_columns(pl.Series("remark", late, dtype=pl.String))
    if rng.random() < 0.3:
        path = folder / "quotes.parquet"
        whole = pl.Series("lot", [None if n == frame.height // 2 else n for n in range(frame.height)])
        frame.with_columns(whole).write_parquet(path)
        return path
    path = folder / "quotes.csv"
    frame.write_csv(path, separator=str(rng.choice([",", ";"])))
    return path
