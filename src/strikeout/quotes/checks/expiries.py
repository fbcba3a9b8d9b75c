"""The rule from one expiry to the next."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.finding import FINDING, ROUNDING, is_american, shown, told

BY = ("moment", "is_call", "american", "term")


def calendar(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q305: a bid above what the next expiry costs at the ask, at the same strike over forward.

    Price over discounted forward cannot fall with the expiry at a fixed strike over forward, where rates and dividend
    yields are known. The next expiry seldom lists that very strike: two neighbours of it cost no less than it would.
    European options in the money are left to parity. American ones are held against the same strike, forwards apart.
    """
    rows = _scaled(frame)
    terms = (
        rows.select("moment", "is_call", "american", "expiry_years")
        .unique()
        .sort("moment", "is_call", "american", "expiry_years")
    )
    order = pl.int_range(pl.len(), dtype=pl.Int64).over("moment", "is_call", "american").alias("term")
    terms = terms.with_columns(order)
    rows = rows.join(terms, on=["moment", "is_call", "american", "expiry_years"], how="left").sort("x", "at")
    outside = pl.when("is_call").then(pl.col("x") >= 1.0).otherwise(pl.col("x") <= 1.0)
    near = rows.filter((pl.col("bid") > 0) & (outside | pl.col("american")))
    far = rows.select(*BY[:3], pl.col("term") - 1, "x", pl.col("x").alias("x_far"), "cost", "at", "ask")
    for side, strategy in (("low", "backward"), ("high", "forward")):
        named = far.rename({"cost": f"cost_{side}", "x_far": f"x_{side}", "at": f"at_{side}", "ask": f"ask_{side}"})
        near = near.join_asof(named, on="x", by=list(BY), strategy=strategy, check_sortedness=False)  # type: ignore[arg-type]
    near = near.drop_nulls(["x_low", "x_high"])
    if not near.height:
        return pl.DataFrame(schema=FINDING)
    apart = pl.col("x_high") - pl.col("x_low")
    share = pl.when(apart > 0).then((pl.col("x_high") - pl.col("x")) / apart).otherwise(1.0)
    cost = share * pl.col("cost_low") + (1.0 - share) * pl.col("cost_high")
    near = near.with_columns((cost * pl.col("unit")).alias("later"))
    least = (limit + ROUNDING) * pl.col("discount") * pl.col("forward")
    return told(
        near.filter(pl.col("bid") > pl.col("later") + least), "bid", "the bid ", shown("bid"), " at strike ",
        shown("strike"), " is above ", shown("later"), ", what the next expiry costs at the same strike over forward; "
        "kept.", others=("at_low", "at_high"),
    )  # fmt: skip


def _scaled(frame: pl.DataFrame) -> pl.DataFrame:
    """Two-sided quotes with ``x``, their strike, and ``unit``, what their price is counted in."""
    american = is_american(frame).alias("american")
    rows = frame.filter(pl.col("bid").is_not_null() & pl.col("ask").is_not_null()).with_columns(american)
    x = pl.when("american").then(pl.col("strike")).otherwise(pl.col("strike") / pl.col("forward"))
    unit = pl.when("american").then(1.0).otherwise(pl.col("discount") * pl.col("forward"))
    kept = pl.col("at", "moment", "is_call", "american", "expiry_years", "strike", "forward", "discount", "bid", "ask")
    return rows.select(kept, x.alias("x"), unit.alias("unit")).with_columns(
        (pl.col("ask") / pl.col("unit")).alias("cost")
    )
