"""Which quotes belong together: one underlying, one moment, one expiry."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.finding import is_american
from strikeout.quotes.slices import MOMENT


def with_slices(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds ``moment`` and ``slice``: numbers that quotes of one moment, and of one expiry of it, share."""
    keys = [name for name in MOMENT if name in frame.columns]
    frame = _numbered(frame, keys, "moment") if keys else frame.with_columns(pl.lit(0, pl.UInt32).alias("moment"))
    dated = ["expiry"] if "expiry" in frame.columns else []
    return _numbered(frame, ["moment", *dated, "expiry_years"], "slice")


def _numbered(frame: pl.DataFrame, keys: list[str], name: str) -> pl.DataFrame:
    distinct = frame.select(keys).unique(maintain_order=True).with_row_index(name)
    return frame.join(distinct, on=keys, how="left", nulls_equal=True, maintain_order="left")


def laddered(frame: pl.DataFrame) -> pl.DataFrame:
    """Two-sided quotes in ladders, along ``x``: of one slice and exercise, calls or puts; there prices fall, convex.

    x is the strike of a call and minus that of a put: what holds for calls along x then holds for puts.
    """
    x = pl.when("is_call").then(pl.col("strike")).otherwise(-pl.col("strike"))
    two_sided = pl.col("bid").is_not_null() & pl.col("ask").is_not_null()
    return (
        frame.filter(two_sided)
        .select(
            pl.col("at", "strike", "bid", "ask", "forward", "discount", "^slope$"),
            x.alias("x"),
            (4 * pl.col("slice").cast(pl.Int64) + 2 * is_american(frame) + pl.col("is_call")).alias("ladder"),
        )
        .sort("ladder", "x", "ask", "at")
    )
