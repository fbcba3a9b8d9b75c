"""What rules find, the slices they look at, and the rules that look at one row alone, in canonical units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from strikeout.kernels import black, elementary, normal
from strikeout.kernels.arrays import Floats
from strikeout.quotes.parity import AMERICAN_MID, MOMENT

FINDING: Mapping[str, Any] = {"at": pl.Int64, "column": pl.String, "words": pl.String, "others": pl.List(pl.Int64)}
ROUNDING = 1e-9  # of the price of one forward: what rounding of inputs may feign
ONE_DAY = 1.0 / 365.0  # years
DAY_ROUNDING = 1e-9  # days: 7 / 365 years may be a little less than 7 days
SLACK = 1e-12  # a few roundings of what a bound is computed from, as a share of the larger of forward and strike
NO_BAND = 1000.0  # deviations: the limit that leaves every quote in
ONE_LOT = ("", "100", "100.0", "standard", "std", "s", "n", "no", "false", "0")
# Indices with options that settle at the open and others that settle at the close of the same day.
TWO_SETTLEMENTS = ("SPX", "NDX", "RUT")


def found(frame: pl.DataFrame, fails: pl.Expr, column: str, *words: pl.Expr | str) -> pl.DataFrame:
    """Return a finding for each row of the frame where ``fails``; ``column`` is the canonical name of what is
    doubtful."""
    is_found = frame.select(fails.fill_null(value=False)).to_series()
    return report_rows(frame.filter(is_found) if is_found.any() else frame.clear(), column, *words)


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


def with_slices(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``moment`` and ``slice``: numbers that quotes of one timestamp, and of one expiry of it, share."""
    keys = [name for name in MOMENT if name in frame.columns]
    frame = _numbered(frame, keys, "moment") if keys else frame.with_columns(pl.lit(0, pl.UInt32).alias("moment"))
    dated = ["expiry"] if "expiry" in frame.columns else []
    return _numbered(frame, ["moment", *dated, "expiry_years"], "slice")


def _numbered(frame: pl.DataFrame, keys: list[str], name: str) -> pl.DataFrame:
    """Add the number of the row's keys among those that occur; files have rows in runs, so one row of each is looked
    up."""
    is_new = frame.select(pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift()) for key in keys)).to_series()
    is_new |= pl.int_range(frame.height, eager=True) == 0  # the first row differs from none, even if it is empty
    heads = frame.select(keys).filter(is_new)
    distinct = heads.unique(maintain_order=True).with_row_index(name)
    numbers = heads.join(distinct, on=keys, how="left", nulls_equal=True, maintain_order="left")[name]
    return frame.with_columns(numbers.gather(is_new.cum_sum() - 1).alias(name))


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


def below_intrinsic(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q202: the price is below the intrinsic value."""
    sign = pl.when("is_call").then(1.0).otherwise(-1.0)
    intrinsic = pl.col("discount") * (sign * (pl.col("forward") - pl.col("strike"))).clip(0.0)
    words = ("the price ", shown("observed"), " is below the intrinsic value ", shown(intrinsic), "; kept.")
    return found(frame, pl.col("observed") < intrinsic - _slack(), "price", *words)


def above_bound(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q205: the price is above the discounted forward (call) or strike (put)."""
    bound = pl.col("discount") * pl.when("is_call").then(pl.col("forward")).otherwise(pl.col("strike"))
    words = ("the price ", shown("observed"), " is above the upper bound ", shown(bound), "; kept.")
    return found(frame, pl.col("observed") > bound + _slack(), "price", *words)


def _slack() -> pl.Expr:
    return SLACK * pl.col("discount") * pl.max_horizontal("forward", "strike")


def american(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q203: American exercise of a quote that was not converted."""
    words = ("'", pl.col("exercise").cast(pl.String), "' is American; it is priced as European; kept.")
    converted = pl.col(AMERICAN_MID).is_not_null() if AMERICAN_MID in frame.columns else pl.lit(value=False)
    return found(frame, is_american(frame) & ~converted, "exercise", *words)


def large_premium(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q220: the premium of early exercise is more than ``limit`` spreads."""
    premium, spread = pl.col(AMERICAN_MID) - pl.col("observed"), pl.col("ask") - pl.col("bid")
    words = ("early exercise is worth ", shown(premium, 3), ", more than the spread of ", shown(spread, 3), "; kept.")
    return found(frame, premium > limit * spread, "price", *words)


def loose_conversion(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q221: worth less than ``limit`` spreads more than exercising now pays, or within a day of its end."""
    sign = pl.when("is_call").then(1.0).otherwise(-1.0)
    now = sign * (pl.col("spot") - pl.col("strike"))
    time_value, spread = pl.col(AMERICAN_MID) - now, pl.col("ask") - pl.col("bid")
    deep = (now > 0.0) & (time_value < limit * spread)
    last = (now > 0.0) & pl.col(AMERICAN_MID).is_not_null() & (pl.col("expiry_years") < ONE_DAY)
    words = ("worth ", shown(time_value, 3), " more than exercising now pays, and the spread is ", shown(spread, 3))
    effect = "; its volatility is unreliable; kept."
    return found(frame, deep | last, "price", *words, effect)


def locked(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q206: bid and ask are equal."""
    equal = (pl.col("bid") == pl.col("ask")) & (pl.col("bid") > 0)
    return found(frame, equal, "bid", "bid and ask are both ", shown("bid"), ": a locked market; kept.")


def zero_bid(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q207: there is no bid."""
    words = ("there is no bid, and the ask is ", shown("ask"), "; kept.")
    return found(frame, (pl.col("bid") == 0) & (pl.col("ask") > 0), "bid", *words)


def wide_spread(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q208: ask minus bid is more than ``limit`` of the mid. A zero bid is Q207's matter."""
    share = (pl.col("ask") - pl.col("bid")) / ((pl.col("ask") + pl.col("bid")) / 2)
    words = ("the spread is ", shown(share, 3), f" of the mid, more than {limit:g}; kept.")
    return found(frame, (pl.col("bid") > 0) & (share > limit), "bid", *words)


def far_from_money(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q209: the strike is more than ``limit`` times the forward, or less than the forward over ``limit``."""
    ratio = pl.col("strike") / pl.col("forward")
    words = (
        "the strike ",
        shown("strike"),
        " is ",
        shown(ratio, 3),
        f" of the forward; the band is {1.0 / limit:.3g} to {limit:g}; kept.",
    )
    return found(frame, (ratio > limit) | (ratio * limit < 1.0), "strike", *words)


def short_expiry(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q214: fewer than ``limit`` days are left."""
    words = ("expires in ", shown(_days(), 4), f" days, fewer than {limit:g}; kept.")
    return found(frame, _days() < limit - DAY_ROUNDING, "expiry_years", *words)


def long_expiry(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q215: more than ``limit`` days are left."""
    words = ("expires in ", shown(_days(), 6), f" days, more than {limit:g}; kept.")
    return found(frame, _days() > limit + DAY_ROUNDING, "expiry_years", *words)


def _days() -> pl.Expr:
    return 365.0 * pl.col("expiry_years")


def outside_delta(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q216: N(d1) at the volatility of the price is below ``limit`` or above 1 - ``limit``, or does not exist."""
    if limit <= 0.0:
        return pl.DataFrame(schema=FINDING)
    far, total = _standardised(frame)
    delta = normal.cdf(0.5 * total - far)
    rows = frame.with_columns(pl.Series("delta", delta).fill_nan(None))
    outside = pl.col("delta").is_null() | (pl.col("delta") < limit) | (pl.col("delta") > 1.0 - limit)
    number = pl.when(pl.col("delta").is_null()).then(pl.lit("without a volatility")).otherwise(shown("delta", 3))
    return found(
        rows, outside, "price", "the forward delta N(d1) is ", number, f", outside {limit:g} to {1 - limit:g}; kept."
    )


def far_in_deviations(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q222: ln(strike / forward) exceeds ``limit`` standard deviations at the volatility of the price, or has none."""
    if limit >= NO_BAND:
        return pl.DataFrame(schema=FINDING)
    rows = frame.with_columns(pl.Series("far", _standardised(frame)[0]).fill_nan(None))
    outside = pl.col("far").is_null() | (pl.col("far").abs() > limit)
    number = pl.when(pl.col("far").is_null()).then(pl.lit("no")).otherwise(shown("far", 3))
    return found(
        rows, outside, "strike", "the strike is ", number, f" standard deviations from the forward, of {limit:g}; kept."
    )


def _standardised(frame: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return ln(strike / forward) over the volatility of the price to expiry, and that volatility, sigma sqrt(T)."""
    columns = ("observed", "forward", "strike", "expiry_years", "discount")
    price, forward, strike, years, discount = (frame[name].cast(pl.Float64).to_numpy() for name in columns)
    sigma = black.implied_volatility(price, forward, strike, years, discount, frame["is_call"].to_numpy())
    with np.errstate(divide="ignore", invalid="ignore"):
        total = sigma * np.sqrt(years)
        return -elementary.log(forward / strike) / total, total


def low_price(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q217: the price is below ``limit``."""
    words = ("the price ", shown("observed"), f" is below {limit:g}; kept.")
    return found(frame, (pl.col("observed") < limit) & (limit > 0.0), "price", *words)


def low_volume(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q218: fewer than ``limit`` contracts were traded."""
    return found(frame, pl.col("volume") < limit, "volume", shown("volume"), f" traded, fewer than {limit:g}; kept.")


def low_open_interest(frame: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Q219: fewer than ``limit`` contracts are open."""
    words = (shown("open_interest"), f" open, fewer than {limit:g}; kept.")
    return found(frame, pl.col("open_interest") < limit, "open_interest", *words)


def odd_deliverable(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q211: the deliverable is not the standard one, or the root is that of an adjusted contract, such as AAPL1."""
    parts = []
    if "deliverable" in frame.columns:
        text = pl.col("deliverable").cast(pl.String).str.strip_chars().str.to_lowercase()
        words = ("'", pl.col("deliverable").cast(pl.String), "' is not the standard deliverable; kept.")
        parts.append(found(frame, ~text.is_in(ONE_LOT), "deliverable", *words))
    if {"root", "underlying"} <= set(frame.columns):
        root, underlying = pl.col("root").cast(pl.String), pl.col("underlying").cast(pl.String)
        adjusted = root.str.contains(r"\d$") & (root.str.strip_chars_end("0123456789") == underlying)
        parts.append(found(frame, adjusted, "root", "'", root, "' is the root of an adjusted contract; kept."))
    return pl.concat(parts) if parts else pl.DataFrame(schema=FINDING)


def settlement_unknown(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q212: settlement in the morning or afternoon is not stated, for indices on third Fridays."""
    if "settlement" in frame.columns:
        said = pl.col("settlement").cast(pl.String).str.strip_chars().str.to_lowercase().is_in(["am", "pm"])
        return found(frame, ~said.fill_null(value=False), "settlement", "am or pm is not stated; kept.")
    if not {"underlying", "expiry"} <= set(frame.columns) or "root" in frame.columns:
        return pl.DataFrame(schema=FINDING)
    is_index = pl.col("underlying").cast(pl.String).str.strip_chars("^$_. ").is_in(TWO_SETTLEMENTS)
    third_friday = (pl.col("expiry").dt.weekday() == 5) & pl.col("expiry").dt.day().is_between(15, 21)
    words = ("options of ", pl.col("underlying").cast(pl.String), " on this day settle in the morning or in the ")
    return found(frame, is_index & third_friday, "expiry", *words, "afternoon, and the row does not state which; kept.")


def untraded(frame: pl.DataFrame, limit: float) -> pl.DataFrame:  # noqa: ARG001
    """Q213: neither volume nor open interest."""
    nothing = (pl.col("volume") == 0) & (pl.col("open_interest") == 0)
    return found(frame, nothing, "volume", "no volume and no open interest; kept.")
