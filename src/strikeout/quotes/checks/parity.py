"""The rule between a call and a put of one strike."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.finding import ROUNDING, is_american, shown, told


def broken_parity(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q302: call minus put differs from D (F - K) by more than bid and ask allow, and ``limit`` of D F beyond that.

    For American options parity is an inequality with room for early exercise, so they are left out.
    """
    sides = frame.filter(pl.col("bid").is_not_null() & pl.col("ask").is_not_null() & ~is_american(frame))
    puts = sides.filter(~pl.col("is_call")).select(
        "slice", "strike", pl.col("at").alias("put"), pl.col("bid").alias("put_bid"), pl.col("ask").alias("put_ask")
    )
    pairs = sides.filter("is_call").join(puts, on=["slice", "strike"], how="inner")
    carried = pl.col("discount") * (pl.col("forward") - pl.col("strike"))
    dear = pl.col("bid") - pl.col("put_ask") - carried  # what selling the call and buying the put gains
    cheap = carried - (pl.col("ask") - pl.col("put_bid"))  # and what the reverse does
    pairs = pairs.with_columns(pl.max_horizontal(dear, cheap).alias("gain"), (dear > cheap).alias("dear"))
    least = (limit + ROUNDING) * pl.col("discount") * pl.col("forward")
    word = pl.when("dear").then(pl.lit("dear")).otherwise(pl.lit("cheap"))
    return told(
        pairs.filter(pl.col("gain") > least), "bid", "call minus put at strike ", shown("strike"), " is too ", word,
        " by ", shown("gain", 4), " against the forward ", shown("forward"), ", bid and ask paid; kept.",
        others=("put",),
    )  # fmt: skip
