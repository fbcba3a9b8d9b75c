"""Rows that share an id: the same quote told twice, or two that cannot both be right."""

from __future__ import annotations

import numpy as np
import polars as pl

# What a quote is, beside its name and its labels.
VALUES = ("forward", "strike", "expiry_years", "discount", "is_call", "observed", "spread", "weight")


def twins(ids: pl.Series, work: pl.DataFrame, labels: pl.DataFrame, good: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Rows that repeat an earlier one exactly, and rows whose id another row has with other values."""
    at = good.arg_true()
    named = ids.gather(at)
    shared = at.filter(named.is_duplicated())
    repeats, clashes = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
    if shared.len():
        known = work.select(name for name in VALUES if name in work.columns)
        rows = pl.concat(
            [
                pl.DataFrame({"strikeout:id": ids[shared], "strikeout:at": shared}),
                _apart(known[shared], "w"),
                # A frame without columns has no rows to pick: a file need not have a single label.
                *([_apart(labels[shared], "l")] if labels.width else []),
            ],
            how="horizontal",
        )
        content = pl.struct(pl.exclude("strikeout:id", "strikeout:at"))
        rows = rows.with_columns(
            (content.n_unique().over("strikeout:id") > 1).alias("strikeout:clash"),
            (pl.col("strikeout:at") > pl.col("strikeout:at").min().over("strikeout:id")).alias("strikeout:later"),
        )
        places, clash = rows["strikeout:at"].to_numpy(), rows["strikeout:clash"].to_numpy()
        clashes[places[clash]] = True
        repeats[places[~clash & rows["strikeout:later"].to_numpy()]] = True
    return pl.Series(repeats), pl.Series(clashes)


def _apart(frame: pl.DataFrame, mark: str) -> pl.DataFrame:
    return frame.rename({name: f"{mark}:{name}" for name in frame.columns})
