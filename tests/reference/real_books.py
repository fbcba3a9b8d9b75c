"""The real option books behind the stored Heston deletions, built as their description says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import strikeout as so
from strikeout.kernels import black

SharedData = Callable[[str], Path]

FILES = {
    "spx_weekly_2011_open": "chains/panel_spx_weekly_2011_h1.parquet",
    "spx_2011-02-02": "chains/panel_spx_weekly_2011_h1.parquet",
    "spx_2011-05-11": "chains/panel_spx_weekly_2011_h1.parquet",
    "gatheral_spx_2005-09-15": "chains/day_surface_spx_2005-09-15.parquet",
    "andreasenhuge_sx5e_2010-03-01": "chains/day_andreasenhuge_sx5e_2010-03-01.parquet",
}
SHORTEST = 7.0 / 365.0  # the Gatheral book was stored without its expiry of two days


def book(name: str, shared_data: SharedData) -> tuple[so.Quotes, pl.DataFrame]:
    """The quotes, row by row as in the stored case, and the rows of the file they came from."""
    frame = pl.read_parquet(shared_data(FILES[name]))
    if name.startswith("spx_"):
        day = name.removeprefix("spx_")
        frame = frame if day == "weekly_2011_open" else frame.filter(pl.col("quote_date") == day)
        columns = {key: frame[key].to_numpy().astype(float) for key in ("forward", "strike", "discount")}
        contracts = so.Contracts(**columns, expiry=expiries(frame), is_call=(frame["cp_flag"] == "C").to_numpy())
        return quotes_of(contracts, frame["mid"].to_numpy().astype(float)), frame
    frame = frame.filter(pl.col("iv_mid").is_finite())
    frame = frame.filter(pl.Series(expiries(frame) > SHORTEST))
    forward, strike, vol = (frame[key].to_numpy().astype(float) for key in ("forward", "strike", "iv_mid"))
    expiry = expiries(frame)
    contracts = so.Contracts(forward=forward, strike=strike, expiry=expiry, discount=1.0, is_call=strike >= forward)
    price = black.price(forward, strike, expiry, vol, contracts.discount, contracts.is_call)
    vega = black.vega(forward, strike, expiry, vol, contracts.discount)
    return quotes_of(contracts, price, 1.0 / np.maximum(vega, 1e-3 * forward) ** 2), frame


def expiries(frame: pl.DataFrame) -> np.ndarray:
    """Years: the source's own where it gave them, else days of 365."""
    if frame["t_years"].null_count() == 0:
        return frame["t_years"].to_numpy().astype(float)
    days = (frame["expiry"].str.to_date() - frame["quote_date"].str.to_date()).dt.total_days()
    return days.to_numpy().astype(float) / 365.0


def quotes_of(contracts: so.Contracts, observed: Any, weight: Any = None) -> so.Quotes:
    ids = [f"row {row}" for row in range(len(contracts))]
    return so.Quotes(ids=ids, contracts=contracts, observed=observed, weight=weight)


def rows_of(deletion: dict[str, Any], frame: pl.DataFrame) -> list[int]:
    """The rows a stored deletion takes away: listed, or by its rule where there are too many to list."""
    if deletion["deleted_rows"] is not None:
        return list(deletion["deleted_rows"])
    chosen = {
        "quote_date in last 4 weeks (>= 2011-06-08)": pl.col("quote_date") >= "2011-06-08",
        "t_years>0.5": pl.Series(expiries(frame)) > 0.5,
        "puts with strike/underlying<0.85": (pl.col("cp_flag") == "P")
        & (pl.col("strike") / pl.col("underlying") < 0.85),
    }[deletion["rule"]]
    return frame.with_row_index("row").filter(chosen)["row"].to_list()
