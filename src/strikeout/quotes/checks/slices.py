"""Rules across the quotes of one underlying and timestamp: units, put-call parity, expiries."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.frames import FINDING, ROUNDING, is_american, report_rows, shown

FEWEST = 4  # the median of fewer quotes is not informative
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
        _found(strikes, "strike", "the median strike is ", shown("ratio", 3), " times the forward: another unit?"),
        _found(prices, "price", shown(100 * pl.col("outside"), 3), " % of the prices that can be judged are below half "
              "of the intrinsic value or above the upper bound: another unit than the forward's?"),
        _found(percent, "iv", "the median volatility is ", shown("iv", 3), ": in percent?"),
    ])  # fmt: skip


def _found(slices: pl.DataFrame, column: str, *words: pl.Expr | str) -> pl.DataFrame:
    count = pl.col("count").cast(pl.String)
    sentence = pl.concat_str([pl.lit(word) if isinstance(word, str) else word for word in words])
    return slices.select(
        pl.col("all").list.first().alias("at"),
        pl.lit(column).alias("column"),
        pl.concat_str(sentence, pl.lit(" ("), count, pl.lit(" quotes of one expiry; kept)")).alias("words"),
        pl.col("all").list.slice(1).alias("others"),
    )


def broken_parity(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q302: call minus put differs from D (F - K) by more than bid and ask allow, and ``limit`` of D F beyond that.

    For American options parity is an inequality that allows for early exercise, so they are left out.
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
    return report_rows(
        pairs.filter(pl.col("gain") > least), "bid", "call minus put at strike ", shown("strike"), " is too ", word,
        " by ", shown("gain", 4), " against the forward ", shown("forward"), ", bid and ask paid; kept.",
        others=("put",),
    )  # fmt: skip


KIND = ("moment", "is_call", "american")


def calendar(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q305: a bid above what the next expiry costs at the ask, at the same strike over forward.

    Price over discounted forward cannot fall with the expiry at a fixed strike over forward, where rates and dividend
    yields are known. The next expiry seldom lists that very strike: two neighbours of it cost no less than it would.
    European options in the money are left to parity. American ones are held against the same strike, forwards apart.
    """
    rows = _ordered(_scaled(frame))
    outside = pl.when("is_call").then(pl.col("x") >= 1.0).otherwise(pl.col("x") <= 1.0)
    near = rows.filter((pl.col("bid") > 0) & pl.col("later").is_not_null() & (outside | pl.col("american")))
    far = rows.select(pl.col("term").alias("later"), "x", pl.col("x").alias("x_far"), "cost", "at")
    for side, strategy in (("low", "backward"), ("high", "forward")):
        named = far.rename({"cost": f"cost_{side}", "x_far": f"x_{side}", "at": f"at_{side}"})
        near = near.join_asof(named, on="x", by="later", strategy=strategy, check_sortedness=False)  # type: ignore[arg-type]
    near = near.drop_nulls(["x_low", "x_high"])
    if not near.height:
        return pl.DataFrame(schema=FINDING)
    apart = pl.col("x_high") - pl.col("x_low")
    share = pl.when(apart > 0).then((pl.col("x_high") - pl.col("x")) / apart).otherwise(1.0)
    cost = share * pl.col("cost_low") + (1.0 - share) * pl.col("cost_high")
    near = near.with_columns((cost * pl.col("unit")).alias("price"))
    least = (limit + ROUNDING) * pl.col("discount") * pl.col("forward")
    return report_rows(
        near.filter(pl.col("bid") > pl.col("price") + least), "bid", "the bid ", shown("bid"), " at strike ",
        shown("strike"), " is above ", shown("price"), ", what the next expiry costs at the same strike over forward; "
        "kept.", others=("at_low", "at_high"),
    )  # fmt: skip


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``term``, a number for each expiry of each kind, and ``later``, that of the next; sorted by x."""
    terms = rows.select(*KIND, "expiry_years").unique().sort(*KIND, "expiry_years").with_row_index("term")
    is_same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in KIND)
    terms = terms.with_columns(pl.when(is_same).then(pl.col("term") + 1).alias("later"))
    return rows.join(terms, on=[*KIND, "expiry_years"], how="left").sort("x", "at")


def _scaled(frame: pl.DataFrame) -> pl.DataFrame:
    """Return two-sided quotes with ``x``, their strike, and ``unit``, what their price is counted in."""
    american = is_american(frame).alias("american")
    rows = frame.filter(pl.col("bid").is_not_null() & pl.col("ask").is_not_null()).with_columns(american)
    x = pl.when("american").then(pl.col("strike")).otherwise(pl.col("strike") / pl.col("forward"))
    unit = pl.when("american").then(1.0).otherwise(pl.col("discount") * pl.col("forward"))
    kept = pl.col("at", "moment", "is_call", "american", "expiry_years", "strike", "forward", "discount", "bid", "ask")
    return rows.select(kept, x.alias("x"), unit.alias("unit")).with_columns(
        (pl.col("ask") / pl.col("unit")).alias("cost")
    )
