"""The rule about numbers that make sense in another unit only."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.finding import FINDING, shown

FEWEST = 4  # of fewer quotes a median says nothing
IN_THE_MONEY = 0.02  # of the forward
PERCENT = 3.0  # no market's median volatility is 300 %; in percent every one is above this


def odd_units(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q301: the median strike is ``limit`` times off the forward, the median volatility is above 3, or most prices
    cannot be those of options on this forward. One finding a slice; its quotes are those involved."""
    ratio, one = pl.col("strike") / pl.col("forward"), pl.col("discount") * pl.col("forward")
    intrinsic = pl.col("discount") * (pl.col("forward") - pl.col("strike")) * (2.0 * pl.col("is_call") - 1.0)
    bound = pl.col("discount") * pl.when("is_call").then(pl.col("forward")).otherwise(pl.col("strike"))
    # Only options that are worth something without volatility can be seen to be too cheap.
    low = (pl.col("observed") < 0.5 * intrinsic).filter(intrinsic > IN_THE_MONEY * one)
    high = pl.col("observed") > bound * (1.0 + 1e-9)
    iv = pl.col("iv").median() if "iv" in frame.columns else pl.lit(None, pl.Float64)
    slices = (
        frame.group_by("slice", maintain_order=True)
        .agg(
            pl.len().alias("count"), ratio.median().alias("ratio"), iv.alias("iv"),
            pl.max_horizontal(pl.when(low.count() >= FEWEST).then(low.mean()), high.mean()).alias("outside"),
            pl.col("at").cast(pl.Int64).alias("all"),
        )
        .filter(pl.col("count") >= FEWEST)
    )  # fmt: skip
    strikes = slices.filter((pl.col("ratio") > limit) | (pl.col("ratio") * limit < 1.0))
    prices = slices.filter((pl.col("outside") > 0.5) & pl.col("ratio").is_between(1.0 / limit, limit))
    percent = slices.filter(pl.col("iv") > PERCENT)
    return pl.concat([
        pl.DataFrame(schema=FINDING),
        _told(strikes, "strike", "the median strike is ", shown("ratio", 3), " times the forward: another unit?"),
        _told(prices, "price", shown(100 * pl.col("outside"), 3), " % of the prices that can be judged are below half "
              "of the intrinsic value or above the upper bound: another unit than the forward's?"),
        _told(percent, "iv", "the median volatility is ", shown("iv", 3), ": in percent?"),
    ])  # fmt: skip


def _told(slices: pl.DataFrame, column: str, *words: pl.Expr | str) -> pl.DataFrame:
    count = pl.col("count").cast(pl.String)
    sentence = pl.concat_str([pl.lit(word) if isinstance(word, str) else word for word in words])
    return slices.select(
        pl.col("all").list.first().alias("at"),
        pl.lit(column).alias("column"),
        pl.concat_str(sentence, pl.lit(" ("), count, pl.lit(" quotes of one expiry; kept)")).alias("words"),
        pl.col("all").list.slice(1).alias("others"),
    )
