"""The rule from one expiry to the next."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.finding import FINDING, ROUNDING, is_american, shown, told

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
    return told(
        near.filter(pl.col("bid") > pl.col("price") + least), "bid", "the bid ", shown("bid"), " at strike ",
        shown("strike"), " is above ", shown("price"), ", what the next expiry costs at the same strike over forward; "
        "kept.", others=("at_low", "at_high"),
    )  # fmt: skip


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds ``term``, a number for each expiry of each kind, and ``later``, that of the next; sorted by x."""
    terms = rows.select(*KIND, "expiry_years").unique().sort(*KIND, "expiry_years").with_row_index("term")
    is_same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in KIND)
    terms = terms.with_columns(pl.when(is_same).then(pl.col("term") + 1).alias("later"))
    return rows.join(terms, on=[*KIND, "expiry_years"], how="left").sort("x", "at")


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
