"""Values, labels, ids and faults of each row by itself, without looking at other rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.kernels import elementary
from strikeout.quotes.clock import DAY, Clock
from strikeout.quotes.columns import NUMBERS, Layout, as_text, label_name, once, quotient
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.dividends import DIVIDENDS, Dividends, less_dividends
from strikeout.quotes.exercise import european_prices, is_american
from strikeout.quotes.forwards import DISCOUNT_FROM, FORWARD_FROM, PLAIN
from strikeout.quotes.issues import SCHEMA
from strikeout.quotes.parity import AMERICAN_MID
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rates import DatedCurves, RateCurve
from strikeout.quotes.rules import DAYS, DAYS_PER_YEAR, Rules, to_dates
from strikeout.quotes.tables import Table

LAST_DAY = Clock()  # when trading ends on the last day: 16:00, settled in the morning 9:30, in the zone of the times
LONGEST_PART = 16  # of a derived id; longer text is digested
# The values of a quote, beside its id and its labels.
VALUES = ("forward", "strike", "expiry_years", "discount", "is_call", "observed", "spread", "weight")


def is_timed(layout: Layout, clock: Clock | None) -> bool:
    """Return whether time to expiry is counted to the second: it takes a clock, and a time at which the quote was
    taken."""
    if clock is None or "expiry_years" in layout.used:
        return False
    return clock.quote is not None or "quote_time" in layout.places


def with_expiry(work: pl.DataFrame, frame: pl.DataFrame, layout: Layout, *, clock: Clock | None = None) -> pl.DataFrame:
    """Add expiry_years: to the second with a clock, from whole days if the table gives dates alone.

    Null if a date or time is missing or not understood. Without a clock a quote on its last day that has a time of day
    is counted from it to LAST_DAY's end of trading, if the time has no zone or both are in the zone of the exchange.
    """
    if "expiry_years" in layout.used:
        return work
    if clock is None or not is_timed(layout, clock):
        days = (work["expiry"] - work["quote_date"]).dt.total_days()
        whole = quotient(days, DAYS_PER_YEAR).alias("expiry_years")
        return work.with_columns(_with_last_day(whole, days == 0, work, frame, layout))
    at = [_stated(frame, layout, "quote_time")]
    taken = _moments(work["quote_date"], at, lambda day, text: clock.taken(day, text or None))
    beside = [_stated(frame, layout, "settlement"), _stated(frame, layout, "expiry_time")]
    ends = _moments(work["expiry"], beside, lambda day, how, text: clock.ends(day, how, text or None))
    begin, end = taken.to_numpy().astype(float), ends.to_numpy().astype(float)
    known = np.isfinite(begin) & np.isfinite(end)
    years = np.full(work.height, np.nan)
    years[known] = clock.between(begin[known], end[known])
    return work.with_columns(pl.Series("expiry_years", years).fill_nan(None))


def _with_last_day(
    years: pl.Series, is_last: pl.Series, work: pl.DataFrame, frame: pl.DataFrame, layout: Layout
) -> pl.Series:
    """Return the years with those of rows on their last day counted from the time of the quote, if there is one."""
    is_last = is_last.fill_null(value=False)
    if "quote_time" not in layout.places or not is_last.any():
        return years
    at, day = frame.filter(is_last), work["expiry"].filter(is_last)
    texts = [_stated(at, layout, name) for name in ("quote_time", "settlement", "expiry_time")]

    def left(day: str, taken: str, how: str, ends: str) -> float | None:
        end = LAST_DAY.ends(day, how, ends or None)
        begin = LAST_DAY.taken(day, taken) if taken and LAST_DAY.is_local(taken) else None
        return None if begin is None or end is None or end <= begin else end - begin

    seconds = _moments(day, texts, left)
    made = quotient(seconds, DAYS_PER_YEAR * DAY)
    whole = years.to_frame().with_row_index("at")
    here = pl.DataFrame({"at": is_last.arg_true().cast(whole.schema["at"]), "made": made})
    return (
        whole.join(here, on="at", how="left", maintain_order="left")
        .select(pl.coalesce("made", "expiry_years").alias("expiry_years"))
        .to_series()
    )


def _moments(days: pl.Series, texts: list[pl.Series], moment: Callable[..., float | None]) -> pl.Series:
    """Return what a function makes of a day and of texts beside it, asked once for every different combination."""
    columns = {"day": days.cast(pl.String), **{f"text {n}": text for n, text in enumerate(texts)}}
    table = pl.DataFrame(columns)
    distinct = table.unique()
    found = [None if day is None else moment(day, *rest) for day, *rest in distinct.iter_rows()]
    distinct = distinct.with_columns(pl.Series("moment", found, dtype=pl.Float64))
    joined = table.join(distinct, on=table.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined["moment"]


def with_money(work: pl.DataFrame, frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Add discount, forward, observed and spread; null wherever an ingredient is.

    If parity is a source of forwards, placeholders replace what is found once all quotes are read, and forward_from and
    discount_from mark them; see ``forwards``.
    """
    used = layout.used
    if "parity" in layout.forward_sources:
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
    """Return each row's own forward and discount, or the strike and 1; and which of the two, in words."""
    nothing = pl.lit(None, pl.Float64)
    discount = pl.col("discount") if "discount" in layout.places else nothing
    rate = pl.lit(_decayed(work, "rate")) if "rate" in layout.places else nothing
    forward = pl.col("forward") if "given" in layout.forward_sources else nothing
    # A written book marks the forwards that were derived: those are refitted.
    stated = {name: _stated(frame, layout, name) for name in (FORWARD_FROM, DISCOUNT_FROM) if name in layout.places}
    forward_from, discount_from = (
        pl.lit(stated[name]) if name in stated else pl.lit("") for name in (FORWARD_FROM, DISCOUNT_FROM)
    )
    is_own = discount_from.is_in(["", "given", "rate"])
    own = pl.when(is_own).then(discount).fill_null(pl.when(is_own).then(rate))
    work = work.with_columns(
        pl.when(is_own & discount.is_not_null() & (discount_from != "rate")).then(pl.lit("given"))
        .when(own.is_not_null()).then(pl.lit("rate")).otherwise(pl.lit("parity")).alias(DISCOUNT_FROM),
        own.alias("own"),
    )  # fmt: skip
    is_given = forward_from.is_in(["", "given"]) & forward.is_not_null() & pl.col("own").is_not_null()
    carry = pl.lit(_decayed(work, "dividend_yield")) if "spot" in layout.forward_sources else nothing
    from_spot = pl.col("spot") * carry / pl.col("own") if "spot" in layout.forward_sources else nothing
    stand_in = pl.when(from_spot.is_infinite()).then(from_spot).otherwise(pl.col("strike"))  # an overflow stays one
    return work.with_columns(
        pl.when(is_given).then(pl.lit("given")).otherwise(pl.lit("parity")).alias(FORWARD_FROM),
        pl.when(is_given).then(forward).otherwise(stand_in).alias("forward"),
        pl.col("own").fill_null(PLAIN).alias("discount"),
    ).drop("own")


def _stated(frame: pl.DataFrame, layout: Layout, name: str) -> pl.Series:
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
    """Return a readable name for each quote, made of what the quote is: never of its row, nor of the rows around it.

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
    """Return a column as an array; text as an array of shared strings, empty if there is none.

    ``is_gappy``: as an array of the kind it would be if a cell were empty. Whole numbers are then not whole ones.
    """
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        return np.array(column.extend_constant(None, 1).to_numpy()[:-1] if is_gappy else column.to_numpy())
    filled = column.fill_null("")
    if filled.len() and (filled == filled[0]).all():
        same = np.empty(filled.len(), object)
        same.fill(filled[0])  # a third of the time of repeat
        return same
    distinct = filled.unique().sort()
    if distinct.len() > column.len() // 4:
        return filled.to_numpy().astype(object)
    array: NDArray[np.generic] = distinct.to_numpy().astype(object)[distinct.search_sorted(filled).to_numpy()]
    return array


PIECE = 100_000  # rows turned from one kind of text into another at once
LABELLED = (
    "underlying", "root", "quote_date", "quote_time", "expiry", "exercise", "bid", "ask", "iv", "spot", "rate",
    "dividend_yield", "source", "expiry_time", "settlement", "volume", "open_interest", "last_trade_time",
    "deliverable", "iv_bid", "iv_ask", "american_mid", "dividends",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they were understood: what they are called, numbers (``work``), labels, which can be quotes by
    themselves (``good``), and what was found wrong."""

    ids: pl.Series
    work: pl.DataFrame
    labels: pl.DataFrame
    good: pl.Series
    found: tuple[pl.DataFrame, ...]


def read_rows(
    rules: Rules,
    clock: Clock | None,
    curve: RateCurve | DatedCurves | None = None,
    *,
    exercise: str = "auto",
    dividends: Dividends | None = None,
) -> Rows:
    """Read the rows of a table, each by itself; with a ``curve`` the rate of each is that of its time to expiry.

    Args:
        exercise: which rows are American and read as European: none, all, or those that the table states ("auto").
        dividends: the cash dividends of which those in the life of a quote become its label.
    """
    frame, layout = rules.frame, rules.layout
    work, parts = rules.parse()
    work = with_expiry(work, frame, layout, clock=clock)
    if curve is not None:
        dates = work["quote_date"].cast(pl.String).to_list() if "quote_date" in work.columns else None
        rates = curve.at(work["expiry_years"].cast(pl.Float64).fill_null(nan).to_numpy(), dates)
        work = work.with_columns(pl.Series("rate", rates).fill_nan(None))
    parts += _untimed(rules, work, clock)
    parts += rules.judge(work)
    work = with_money(work, frame, layout)
    paid = None if dividends is None else _paid(dividends, work, frame, layout)
    if paid is not None and not {"forward", "parity"} & {*layout.used, *layout.forward_sources}:
        work = _less_dividends(work, paid)
    parts += rules.judge_money(work, _unmarked(frame.height, parts))
    ids = as_text(frame, layout.places["id"]) if "id" in layout.places else derived_ids(frame, work, layout)
    labels = _labels(frame, work, layout)
    if paid is not None:
        labels = labels.with_columns(paid)
    if exercise != "european":
        work, labels, found = _converted(rules, work, labels, exercise, _unmarked(frame.height, parts))
        parts.append(found)
    return Rows(ids, work, labels, _unmarked(frame.height, parts), tuple(parts))


def _converted(
    rules: Rules, work: pl.DataFrame, labels: pl.DataFrame, exercise: str, good: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the rows with American prices as the label american_mid, and an issue for each that should be exercised
    now.

    A row with its own forward gets its European price here. One whose forward is derived keeps its mid: ``derived``
    converts it. A volatility in the place of a price is read as it is, and so is a row without a spot. A file with a
    column american_mid was read before: all of its other prices are European.
    """
    layout, nothing = rules.layout, pl.DataFrame(schema=SCHEMA)
    style = _stated(rules.frame, layout, "exercise").to_numpy().astype(object)
    american = np.ones(work.height, bool) if exercise == "american" else is_american(style)
    was_read = AMERICAN_MID in rules.frame.columns
    is_priced = bool({"price", "bid"} & layout.used) and (AMERICAN_MID in work.columns or not was_read)
    if "spot" not in layout.places or not is_priced or not american.any():
        return work, labels, nothing
    columns = work.select(pl.col("spot", "strike", "expiry_years", "forward", "discount", "observed").cast(pl.Float64))
    spot, strike, expiry, forward, discount, price = (
        columns[name].fill_null(nan).to_numpy() for name in columns.columns
    )
    mid = work[AMERICAN_MID].cast(pl.Float64).fill_null(nan).to_numpy() if was_read else price
    is_call = work["is_call"].fill_null(value=False).to_numpy().astype(bool)
    early = good.to_numpy() & american & np.isfinite(spot) & (spot > 0.0) & np.isfinite(mid)
    now = np.maximum(np.where(is_call, spot - strike, strike - spot), 0.0)
    pays = early & (now > 0.0) & (mid <= now) & (not was_read)
    early &= ~pays
    own = early.copy()
    if FORWARD_FROM in work.columns:
        own &= (work[FORWARD_FROM] == "given").to_numpy()
    observed = np.array(price)
    contracts = Contracts(
        forward=forward[own], strike=strike[own], expiry=expiry[own], discount=discount[own], is_call=is_call[own]
    )
    paid = labels[DIVIDENDS].fill_null("").to_numpy().astype(object)[own] if DIVIDENDS in labels.columns else None
    observed[own] = european_prices(mid[own], spot[own], contracts, paid)
    words = "the price {} is not above what exercising now pays, so it has no volatility; left out."
    role = next(role for role in ("price", "bid") if role in layout.used)
    return (
        work.with_columns(pl.Series("observed", observed).fill_nan(None)),
        labels.with_columns(
            pl.Series(AMERICAN_MID, np.where(early, mid, nan)).fill_nan(None),
            # Others stay as they are, an empty cell too: the same row in a part without American rows must be equal.
            pl.when(pl.Series(american & (not was_read)))
            .then(pl.lit("A"))
            .otherwise(_label(labels, "exercise"))
            .alias("exercise"),
        ),
        rules.failures("Q117", role, pl.Series(pays), words),
    )


def _label(labels: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String) if name in labels.columns else pl.lit(None, pl.String)


def _less_dividends(work: pl.DataFrame, paid: pl.Series) -> pl.DataFrame:
    """Return the rows with forwards from spot that are less the cash dividends."""
    numbers = work.select(
        pl.col("forward", "spot", "expiry_years", "discount", "dividend_yield").cast(pl.Float64).fill_null(nan)
    )
    forward, spot, expiry, discount, dividend = (column.to_numpy() for column in numbers.get_columns())
    with np.errstate(all="ignore"):
        cost = -elementary.log(discount) / expiry - dividend
    found = less_dividends(forward, paid.to_list(), spot=spot, expiry=expiry, cost=cost)
    return work.with_columns(pl.Series("forward", found).fill_nan(None))


def _paid(dividends: Dividends, work: pl.DataFrame, frame: pl.DataFrame, layout: Layout) -> pl.Series:
    """Return the label ``dividends`` of each row; empty without a date or an expiry, which then has its own issue."""
    whose = _stated(frame, layout, "underlying").to_list()
    days = to_dates(frame[layout.places["quote_date"]]).to_list()
    known: dict[tuple[Any, ...], str] = {}
    texts = []
    for key in zip(whose, days, work["expiry_years"].cast(pl.Float64).to_list(), strict=True):
        if key not in known:
            known[key] = "" if key[1] is None or key[2] is None else dividends.text(*key)
        texts.append(known[key])
    return pl.Series(DIVIDENDS, texts, dtype=pl.String)


def clock_of(table: Table, clock: Clock | None) -> Clock | None:
    """Return the clock that was asked for, or else the profile's own."""
    return Clock.of(table.profile.time) if clock is None and table.profile is not None else clock


def describe_derivation(
    layout: Layout, clock: Clock | None, curve: RateCurve | DatedCurves | None, *, is_converted: bool
) -> Mapping[str, str]:
    """Return what each quantity of a quote is computed from; ``is_converted`` if some rows are American."""
    converted = "; of American rows the European price at its American volatility" if is_converted else ""
    return {
        "observed": layout.observed_from + converted,
        "forward": layout.forward_from,
        "expiry_years": str(clock) if is_timed(layout, clock) else layout.expiry_from,
        "discount": layout.discount_from + (f", the rate from {curve.name}" if curve is not None else ""),
        "id": "id" if "id" in layout.places else "the contract, date and source",
    }


def duplicates(
    ids: pl.Series, work: pl.DataFrame, labels: pl.DataFrame, good: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Return which rows repeat an earlier one exactly, and which have an id that another has with other values."""
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


def duplicate_issues(rules: Rules, repeats: pl.Series, clashes: pl.Series) -> list[pl.DataFrame]:
    """Return an issue for each row that repeats an earlier one, and for each whose id another has with other values."""
    same = "id" if "id" in rules.layout.places else "contract, date and source"
    words = f"another row has the same {same} and other values; keep the right one, or give each its own id."
    return [
        rules.failures("Q108", "id", clashes, words),
        rules.failures("Q201", "id", repeats, "an exact repeat of an earlier row; kept once."),
    ]


def _untimed(rules: Rules, work: pl.DataFrame, clock: Clock | None) -> list[pl.DataFrame]:
    """Return rows whose dates are understood and whose time of day is not."""
    if not is_timed(rules.layout, clock):
        return []
    dated = work["quote_date"].is_not_null() & work["expiry"].is_not_null()
    words = "'{}' is not understood as a time; write 15:45:00, or 2024-01-31T15:45:00."
    return [rules.failures("Q110", "quote_time", dated & work["expiry_years"].is_null(), words)]


def _unmarked(height: int, parts: list[pl.DataFrame]) -> pl.Series:
    good = np.ones(height, bool)
    for part in (part for part in parts if part.height):
        rejected = part.filter(pl.col("code").str.starts_with("Q1"))
        good[rejected["at"].to_numpy()] = False
    return pl.Series(good)


def _labels(frame: pl.DataFrame, work: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Return every column that is not part of a contract or its price, under the name it will have as a label."""
    columns: dict[str, pl.Series] = {}
    for role in (role for role in LABELLED if role in layout.places):
        if role in NUMBERS:
            columns[label_name(role)] = work[role].cast(pl.Float64)
        elif role in ("quote_date", "expiry"):
            columns[label_name(role)] = as_text(frame, layout.places[role])
            if role in layout.used or role in DAYS:
                days = work[role] if role in work.columns else to_dates(frame[layout.places[role]])
                days = once(days, lambda column: column.cast(pl.String))
                columns[label_name(role)] = days.fill_null(columns[label_name(role)]) if days.null_count() else days
        else:
            columns[label_name(role)] = as_text(frame, layout.places[role])
    for name in (FORWARD_FROM, DISCOUNT_FROM):
        if name in work.columns:
            columns[name] = work[name]
    for name in layout.labels:
        nested = frame[name].dtype.is_nested()
        columns[name] = as_text(frame, name) if nested else frame[name]
    return pl.DataFrame(columns)


def book_of(ids: pl.Series, work: pl.DataFrame, labels: pl.DataFrame, *, gappy: frozenset[str] = frozenset()) -> Quotes:
    """Return the book of rows that are all good; ``gappy`` are labels with empty cells in rows that are elsewhere."""
    column = {name: work[name].to_numpy() for name in VALUES if name in work.columns}
    contracts = Contracts(
        forward=column["forward"], strike=column["strike"], expiry=column["expiry_years"], discount=column["discount"],
        is_call=column["is_call"].astype(bool),
    )  # fmt: skip
    # Every rule of a book was a rule of its rows, and a second copy of the names alone is a gigabyte in ten million.
    return Quotes._trusted(
        ids=_names(ids), contracts=contracts, observed=column["observed"].astype(float),
        weight=column["weight"].astype(float) if "weight" in column else np.ones(ids.len()),
        spread=column["spread"].astype(float),
        labels={name: label_array(labels[name], is_gappy=name in gappy) for name in labels.columns},
    )  # fmt: skip


def _names(ids: pl.Series) -> np.ndarray[Any, np.dtype[np.str_]]:
    """Return an array of text, some at a time: all at once take more memory than the quotes."""
    width = int(np.max(ids.str.len_chars().to_numpy(), initial=1))
    names = np.empty(ids.len(), f"U{width}")
    for begin in range(0, ids.len(), PIECE):
        # Padded and joined they are the array's own bytes: no Python object for each name.
        text = ids.slice(begin, PIECE).str.pad_end(width, "\0").str.join("")[0]
        names[begin : begin + PIECE] = np.frombuffer(text.encode("utf-32-le"), f"<U{width}")
    return names
