"""What a rule answers with: the rows it speaks of, in words, and the other quotes its finding rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

FINDING: Mapping[str, Any] = {"at": pl.Int64, "column": pl.String, "words": pl.String, "others": pl.List(pl.Int64)}
ROUNDING = 1e-9  # of the price of one forward: what rounding of inputs may feign


def found(frame: pl.DataFrame, fails: pl.Expr, column: str, *words: pl.Expr | str) -> pl.DataFrame:
    """A finding for each row of the frame where ``fails``; ``column`` is the canonical name of what is doubtful."""
    return told(frame.filter(fails.fill_null(value=False)), column, *words)


def told(rows: pl.DataFrame, column: str, *words: pl.Expr | str, others: tuple[str, ...] = ()) -> pl.DataFrame:
    """A finding for every row; ``others`` are columns that hold the positions of the other quotes involved."""
    involved = pl.concat_list(pl.col(*others).cast(pl.Int64)) if others else pl.lit(None, FINDING["others"])
    sentence = pl.concat_str([pl.lit(word) if isinstance(word, str) else word for word in words])
    return rows.select(
        pl.col("at").cast(pl.Int64),
        pl.lit(column).alias("column"),
        sentence.alias("words"),
        involved.alias("others"),
    )


def shown(number: pl.Expr | str, digits: int = 6) -> pl.Expr:
    """A number in a sentence: so many significant digits at most."""
    column = pl.col(number) if isinstance(number, str) else number
    return column.round_sig_figs(digits).cast(pl.String).str.strip_suffix(".0")


def is_american(frame: pl.DataFrame) -> pl.Expr:
    """Which rows may be exercised early, as far as the table says."""
    if "exercise" not in frame.columns:
        return pl.lit(value=False)
    style = pl.col("exercise").cast(pl.String).str.strip_chars().str.to_lowercase()
    return style.is_in(["a", "american"]).fill_null(value=False)
