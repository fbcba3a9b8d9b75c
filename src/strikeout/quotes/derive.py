"""From understood columns to contracts and prices: expiry in years, discount, forward, observed price, spread, ids."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import nan

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.kernels import elementary
from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import Layout, as_text, quotient
from strikeout.quotes.forwards import DISCOUNT_FROM, FORWARD_FROM, PLAIN
from strikeout.quotes.rules import DAYS_PER_YEAR, to_dates

LONGEST_PART = 16  # of a derived id; longer text is digested


def is_timed(layout: Layout, clock: Clock | None) -> bool:
    """Whether time to expiry is counted to the second: it takes a clock, and a time at which the quote was taken."""
    if clock is None or "expiry_years" in layout.used:
        return False
    return clock.quote is not None or "quote_time" in layout.places


def with_expiry(work: pl.DataFrame, frame: pl.DataFrame, layout: Layout, *, clock: Clock | None = None) -> pl.DataFrame:
    """Adds expiry_years: to the second where a clock can tell, from whole days where the table gives dates alone.

    Null where a date or time is missing or not understood.
    """
    if "expiry_years" in layout.used:
        return work
    if clock is None or not is_timed(layout, clock):
        days = (work["expiry"] - work["quote_date"]).dt.total_days()
        return work.with_columns(quotient(days, DAYS_PER_YEAR).alias("expiry_years"))
    at = [_told(frame, layout, "quote_time")]
    taken = _moments(work["quote_date"], at, lambda day, text: clock.taken(day, text or None))
    beside = [_told(frame, layout, "settlement"), _told(frame, layout, "expiry_time")]
    ends = _moments(work["expiry"], beside, lambda day, how, text: clock.ends(day, how, text or None))
    begin, end = taken.to_numpy().astype(float), ends.to_numpy().astype(float)
    known = np.isfinite(begin) & np.isfinite(end)
    years = np.full(work.height, np.nan)
    years[known] = clock.between(begin[known], end[known])
    return work.with_columns(pl.Series("expiry_years", years).fill_nan(None))


def _moments(days: pl.Series, texts: list[pl.Series], moment: Callable[..., float | None]) -> pl.Series:
    """What a function makes of a day and of texts beside it, asked once for every different combination."""
    columns = {"day": days.cast(pl.String), **{f"text {n}": text for n, text in enumerate(texts)}}
    table = pl.DataFrame(columns)
    distinct = table.unique()
    found = [None if day is None else moment(day, *rest) for day, *rest in distinct.iter_rows()]
    distinct = distinct.with_columns(pl.Series("moment", found, dtype=pl.Float64))
    joined = table.join(distinct, on=table.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined["moment"]


def with_money(work: pl.DataFrame, frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Adds discount, forward, observed and spread; null wherever an ingredient is.

    Where parity is a road to the forward, stand-ins take the place of what is found once the book is known, and
    forward_from and discount_from say so; see ``forwards``.
    """
    used = layout.used
    if "parity" in layout.roads:
        work = _with_stand_ins(work, frame, layout)
    else:
        if "discount" not in used:
            work = work.with_columns(_decayed(work, "rate").alias("discount"))
        if "forward" not in used:
            work = work.with_columns(
                (pl.col("spot") * _decayed(work, "dividend_yield") / pl.col("discount")).alias("forward")
            )
    if "price" in used:
        observed = work["price"]
    elif "bid" in used:
        observed = work.select((pl.col("bid") + pl.col("ask")) / 2).to_series()
    else:
        observed = _from_volatility(work)
    spread = pl.lit(None, pl.Float64)
    if {"bid", "ask"} <= layout.places.keys():
        spread = pl.col("ask") - pl.col("bid")
    if "spread" in layout.places:
        spread = pl.col("spread")
    return work.with_columns(observed.alias("observed"), spread.alias("spread"))


def _decayed(work: pl.DataFrame, name: str) -> pl.Series:
    """``exp(-x expiry_years)`` of the column x of this name; null if either is."""
    exponent = work.select((-pl.col(name) * pl.col("expiry_years")).cast(pl.Float64)).to_series()
    found = pl.Series(elementary.exp(exponent.fill_null(nan).to_numpy()))
    return pl.select(pl.when(exponent.is_not_null()).then(found)).to_series()


def _with_stand_ins(work: pl.DataFrame, frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Each row's own forward and discount, or the strike and 1; and which of the two, in words."""
    nothing = pl.lit(None, pl.Float64)
    discount = pl.col("discount") if "discount" in layout.places else nothing
    rate = pl.lit(_decayed(work, "rate")) if "rate" in layout.places else nothing
    forward = pl.col("forward") if "given" in layout.roads else nothing
    # A book that was written down says of its forwards which were derived: those are found anew.
    told = {name: _told(frame, layout, name) for name in (FORWARD_FROM, DISCOUNT_FROM)}
    work = work.with_columns(
        pl.Series("told:forward", told[FORWARD_FROM]), pl.Series("told:discount", told[DISCOUNT_FROM])
    )
    is_own = pl.col("told:discount").is_in(["", "given", "rate"])
    own = pl.when(is_own).then(discount).fill_null(pl.when(is_own).then(rate))
    work = work.with_columns(
        pl.when(is_own & discount.is_not_null() & (pl.col("told:discount") != "rate")).then(pl.lit("given"))
        .when(own.is_not_null()).then(pl.lit("rate")).otherwise(pl.lit("parity")).alias(DISCOUNT_FROM),
        own.alias("own"),
    )  # fmt: skip
    is_given = pl.col("told:forward").is_in(["", "given"]) & forward.is_not_null() & pl.col("own").is_not_null()
    carry = pl.lit(_decayed(work, "dividend_yield")) if "spot" in layout.roads else nothing
    from_spot = pl.col("spot") * carry / pl.col("own") if "spot" in layout.roads else nothing
    stand_in = pl.when(from_spot.is_infinite()).then(from_spot).otherwise(pl.col("strike"))  # an overflow stays one
    return work.with_columns(
        pl.when(is_given).then(pl.lit("given")).otherwise(pl.lit("parity")).alias(FORWARD_FROM),
        pl.when(is_given).then(forward).otherwise(stand_in).alias("forward"),
        pl.col("own").fill_null(PLAIN).alias("discount"),
    ).drop("own", "told:forward", "told:discount")


def _told(frame: pl.DataFrame, layout: Layout, name: str) -> pl.Series:
    if name not in layout.places:
        return pl.Series([""]).new_from_index(0, frame.height)
    return as_text(frame, layout.places[name]).fill_null("")


def _from_volatility(work: pl.DataFrame) -> pl.Series:
    from strikeout.kernels import black

    needed = work.select("forward", "strike", "expiry_years", "iv", "discount", "is_call")
    whole = needed.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    whole &= needed.select(pl.min_horizontal("forward", "strike", "expiry_years", "iv", "discount") > 0).to_series()
    prices = np.full(work.height, np.nan)
    rows = whole.fill_null(value=False).to_numpy()
    prices[rows] = black.price(*(needed.filter(rows)[name].to_numpy() for name in needed.columns))
    return pl.Series(prices).fill_nan(None)


def derived_ids(frame: pl.DataFrame, work: pl.DataFrame, layout: Layout) -> pl.Series:
    """A readable name for each quote, made of what the quote is: never of its row, nor of the rows around it.

    underlying / root / quote date / quote time / expiry / expiry in years / strike / right / source, those there are.
    """
    parts = [_word(frame, layout, role) for role in ("underlying", "root")]
    parts += [_day(frame, work, layout, "quote_date"), _word(frame, layout, "quote_time")]
    parts.append(_day(frame, work, layout, "expiry"))
    if "expiry_years" in layout.used:
        # Also beside a date: morning and afternoon settlement are two contracts of one day.
        parts.append("T" + _digits(work["expiry_years"]))
    parts += [
        _digits(work["strike"]),
        pl.select(pl.when(work["is_call"]).then(pl.lit("C")).otherwise(pl.lit("P"))).to_series(),
    ]
    parts.append(_word(frame, layout, "source"))
    named = {str(k): part.fill_null("-") for k, part in enumerate(parts) if part is not None}
    return pl.DataFrame(named).select(pl.concat_str(pl.all(), separator="/").alias("id")).to_series()


def _digits(numbers: pl.Series) -> pl.Series:
    return numbers.cast(pl.String).str.strip_suffix(".0")


def _day(frame: pl.DataFrame, work: pl.DataFrame, layout: Layout, role: str) -> pl.Series | None:
    if role not in layout.places:
        return None
    days = work[role] if role in work.columns else to_dates(frame[layout.places[role]])
    # Where the time comes from expiry_years the dates are labels and may be any text.
    return days.cast(pl.String).fill_null(shortened(as_text(frame, layout.places[role])))


def _word(frame: pl.DataFrame, layout: Layout, role: str) -> pl.Series | None:
    return shortened(as_text(frame, layout.places[role])) if role in layout.places else None


def shortened(text: pl.Series) -> pl.Series:
    """Short text as it is; of long text the first eight hex digits of its BLAKE2b digest."""
    if not (text.str.len_chars() > LONGEST_PART).any():
        return text
    distinct = text.unique().drop_nulls()
    short = [
        value if len(value) <= LONGEST_PART else hashlib.blake2b(value.encode(), digest_size=4).hexdigest()
        for value in distinct.to_list()
    ]
    return text.replace_strict(distinct, pl.Series(short), return_dtype=pl.String)


def label_array(column: pl.Series, *, is_gappy: bool = False) -> NDArray[np.generic]:
    """A column as an array; text as an array of shared strings, empty where there is none.

    ``is_gappy``: as an array of the kind it would be if a cell were empty. Whole numbers are then not whole ones.
    """
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        return np.array(column.extend_constant(None, 1).to_numpy()[:-1] if is_gappy else column.to_numpy())
    filled = column.fill_null("")
    distinct = filled.unique().sort()
    if distinct.len() > column.len() // 4:
        return filled.to_numpy().astype(object)
    array: NDArray[np.generic] = distinct.to_numpy().astype(object)[distinct.search_sorted(filled).to_numpy()]
    return array
