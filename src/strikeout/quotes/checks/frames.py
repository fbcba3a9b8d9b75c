"""The frame that market rules look at, its slices, and the findings they return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from strikeout.quotes.parity import AMERICAN_MID, LABELS, MOMENT

if TYPE_CHECKING:
    pass

FINDING: Mapping[str, Any] = {"at": pl.Int64, "column": pl.String, "words": pl.String, "others": pl.List(pl.Int64)}
ROUNDING = 1e-9  # of the price of one forward: what rounding of inputs may feign


def found(frame: pl.DataFrame, fails: pl.Expr, column: str, *words: pl.Expr | str) -> pl.DataFrame:
    """Return a finding for each row of the frame where ``fails``; ``column`` is the canonical name of what is
    doubtful."""
    return report_rows(frame.filter(fails.fill_null(value=False)), column, *words)


def report_rows(rows: pl.DataFrame, column: str, *words: pl.Expr | str, others: tuple[str, ...] = ()) -> pl.DataFrame:
    """Return a finding for every row; ``others`` are columns that hold the positions of the other quotes involved."""
    involved = pl.concat_list(pl.col(*others).cast(pl.Int64)) if others else pl.lit(None, FINDING["others"])
    sentence = pl.concat_str([pl.lit(word) if isinstance(word, str) else word for word in words])
    return rows.select(
        pl.col("at").cast(pl.Int64),
        pl.lit(column).alias("column"),
        sentence.alias("words"),
        involved.alias("others"),
    )


def shown(number: pl.Expr | str, digits: int = 6) -> pl.Expr:
    """Return a number in a sentence: with at most ``digits`` significant digits."""
    column = pl.col(number) if isinstance(number, str) else number
    return column.round_sig_figs(digits).cast(pl.String).str.strip_suffix(".0")


def is_american(frame: pl.DataFrame) -> pl.Expr:
    """Return which rows may be exercised early, as far as the table states it."""
    if "exercise" not in frame.columns:
        return pl.lit(value=False)
    style = pl.col("exercise").cast(pl.String).str.strip_chars().str.to_lowercase()
    return style.is_in(["a", "american"]).fill_null(value=False)


# Canonical name -> the label it is kept as.
NUMBERS = {name: name for name in ("bid", "ask", "iv", "spot", "volume", "open_interest", AMERICAN_MID)}
WORDS = {name: name for name in ("underlying", "root", "quote_time", "exercise", "settlement", "deliverable", "source")}


KNOWN = frozenset({*NUMBERS.values(), *LABELS.values(), *WORDS.values()})  # every label that a rule looks at


def market_by(own: Mapping[str, pl.Series], labels: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return the same where contracts and labels are columns already."""
    columns = dict(own)
    for name, label in NUMBERS.items():
        if label in labels and (labels[label].dtype.is_numeric() or labels[label].dtype == pl.Boolean):
            columns[name] = labels[label].cast(pl.Float64).fill_nan(None)
    for name, label in LABELS.items():
        if label in labels:
            columns[name] = _text(labels[label]).str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    for name, label in WORDS.items():
        if label in labels:
            columns[name] = _text(labels[label])
    return pl.DataFrame(columns)


def _series(label: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> pl.Series:
    return pl.Series(label.tolist() if label.dtype.kind == "O" else label)


def _text(label: pl.Series) -> pl.Series:
    return label.cast(pl.String).fill_null("")


def with_slices(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``moment`` and ``slice``: numbers that quotes of one timestamp, and of one expiry of it, share."""
    keys = [name for name in MOMENT if name in frame.columns]
    frame = _numbered(frame, keys, "moment") if keys else frame.with_columns(pl.lit(0, pl.UInt32).alias("moment"))
    dated = ["expiry"] if "expiry" in frame.columns else []
    return _numbered(frame, ["moment", *dated, "expiry_years"], "slice")


def _numbered(frame: pl.DataFrame, keys: list[str], name: str) -> pl.DataFrame:
    distinct = frame.select(keys).unique(maintain_order=True).with_row_index(name)
    return frame.join(distinct, on=keys, how="left", nulls_equal=True, maintain_order="left")


def laddered(frame: pl.DataFrame) -> pl.DataFrame:
    """Return two-sided quotes in ladders, along ``x``: of one slice and exercise, calls or puts; there prices fall,
    convex.

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
