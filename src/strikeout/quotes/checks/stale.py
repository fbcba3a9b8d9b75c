"""The rule about quotes that stood still while the market moved."""

from __future__ import annotations

import polars as pl

from strikeout.quotes.checks.frames import FINDING, report_rows, shown

CONTRACT = ("underlying", "root", "expiry", "strike", "is_call", "exercise", "settlement", "source")
WHEN = ("quote_date", "quote_time")
# Every column the rule needs, if it exists; the timestamp is numbered from the last of them.
LOOKED_AT = (
    "at", "row", *CONTRACT, *WHEN, "bid", "ask", "observed", "spot", "forward", "discount", "expiry_years",
)  # fmt: skip
UNKNOWN_SPREAD = 0.05  # if no spread is known, the price should have moved by this share of itself


def stale(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q210: the same quote as at its last appearance, though the underlying moved by more than ``limit``.

    And so far that Black's formula, at the volatility it was quoted at, moves by more than half the spread: a worthless
    option rightly stands still.
    """
    index = "spot" if "spot" in frame.columns else "forward"
    same = [name for name in CONTRACT if name in frame.columns]
    when = [name for name in WHEN if name in frame.columns]
    stood = [name for name in ("bid", "ask", "observed") if name in frame.columns]
    known = {*same, *when, *stood, index, "at", "moment", "forward", "discount", "expiry_years"}
    # Sorting by a hash of the contract is quicker than by its columns; that neighbours are equal is checked below.
    seen = frame.select(pl.col(sorted(known)), pl.struct(same).hash().alias("contract")).sort("contract", *when, "at")
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in same)
    unchanged = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in stood)
    # Two quotes of one contract at one time are duplicates; neither is an earlier appearance of the other.
    is_later = pl.col("moment") != pl.col("moment").shift(1)
    move = pl.col(index) / pl.col(index).shift(1) - 1.0
    held = seen.with_columns(move.alias("move"), pl.col("at").shift(1).alias("last")).filter(
        (is_same & is_later & unchanged & (move.abs() > limit)).fill_null(value=False)
    )
    if not held.height:
        return pl.DataFrame(schema=FINDING)
    moved = held.with_columns(_expected(held).alias("expected"))
    room = pl.col("observed").abs() * UNKNOWN_SPREAD
    if {"bid", "ask"} <= set(frame.columns):
        room = ((pl.col("ask") - pl.col("bid")) / 2).fill_null(room)
    return report_rows(
        moved.filter(pl.col("expected").fill_nan(None).abs() > room), "bid" if "bid" in stood else "price",
        "unchanged at ", shown("observed"), " while the underlying moved by ", shown(100 * pl.col("move"), 3),
        " %, which is worth ", shown("expected", 3), " here; kept.", others=("last",),
    )  # fmt: skip


def _expected(held: pl.DataFrame) -> pl.Series:
    """Return how far the price should have gone with the underlying, at the volatility it has."""
    from strikeout.kernels import black

    price, forward, strike, years, discount, is_call, move = (
        held[name].to_numpy()
        for name in ("observed", "forward", "strike", "expiry_years", "discount", "is_call", "move")
    )
    before = forward / (1.0 + move)
    volatility = black.implied_volatility(price, before, strike, years, discount, is_call)
    return pl.Series(black.price(forward, strike, years, volatility, discount, is_call) - price)
