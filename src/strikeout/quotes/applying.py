"""Convert a vendor's rows to canonical columns and units, one row per quote.

A cell that cannot be understood stays as it was found, as text; the row rules then name it.

What stands above the header of a vendor's file: the underlying's price, and when the file was made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from strikeout.quotes.columns import NUMBERS, as_text, quotient
from strikeout.quotes.profile import CLOCKS, Origin, Profile, parse_symbols, plain

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::\d{2})?\s*([AaPp])?\.?[Mm]?")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
SATURDAY = 5


def preamble_values(profile: Profile, lines: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Canonical columns that the lines above the header give, and what was made of them in words.

    A stamp of a weekend, or of an hour before the market opens, belongs to the weekday before: the quotes in such a
    file are the last of that day, of the hour the market closes. Holidays are not known; a date given as a constant
    goes before.
    """
    text = "\n".join(lines)
    rules = profile.preamble
    said: dict[str, Any] = {}
    notes = []
    price = _spot(text, rules["spot"]) if "spot" in rules else None
    if price is not None:
        said["spot"] = price
    line = _found(text, f"({rules['stamp']})")[0] if "stamp" in rules else None
    stamp = _timestamp_of(line, rules.get("months", {})) if line else None
    if stamp is not None:
        day = _session(stamp, time.fromisoformat(rules.get("opens", "00:00")))
        closes = time.fromisoformat(rules.get("closes", "23:59"))
        said["quote_date"] = day.isoformat()
        said["quote_time"] = min(stamp.time(), closes).isoformat() if day == stamp.date() else closes.isoformat()
        if day != stamp.date():
            notes.append(
                f"stamped {stamp:%Y-%m-%d %H:%M}, when the market was closed: the quotes are of {day}; if not, give "
                "quote_date as a constant"
            )
    return said, tuple(notes)


def _found(text: str, pattern: str) -> list[str | None]:
    """Return the groups of the first match, None for each that took no part; by Polars, in time linear in the text."""
    groups = pl.Series([text]).str.extract_groups(f"(?m){pattern}").struct.unnest()
    return list(groups.row(0))


def _spot(text: str, pattern: str) -> float | None:
    try:
        price = float(next((group for group in _found(text, pattern) if group), "").replace(",", ""))
    except ValueError:
        return None
    return price if isfinite(price) else None


def _timestamp_of(text: str, months: dict[str, list[str]]) -> datetime | None:
    """Return the date and time in a line such as "Date: 9 June 2023, 1:40 PM EDT", whatever the order of its parts."""
    names = {word.lower(): int(number) for number, words in months.items() for word in words}
    words = re.findall(r"[^\W\d_]+", text.lower())
    month = next((names[word] for word in words if word in names), None)
    year, clock = _YEAR.search(text), _CLOCK.search(text)
    if month is None or year is None or clock is None:
        return None
    rest = text[: clock.start()].replace(year.group(0), " ")
    day = re.search(r"\b(\d{1,2})\b", rest)
    hour = int(clock.group(1)) % 12 if clock.group(3) else int(clock.group(1))
    hour += 12 if (clock.group(3) or "").lower() == "p" else 0
    try:
        return datetime(int(year.group(0)), month, int(day.group(1)), hour, int(clock.group(2))) if day else None
    except ValueError:  # the 31st of June
        return None


def _session(stamp: datetime, opens: time) -> Any:
    day = stamp.date() if stamp.time() >= opens else stamp.date() - timedelta(days=1)
    while day.weekday() >= SATURDAY:
        day -= timedelta(days=1)
    return day


DATES = ("quote_date", "expiry")
PRICES = ("price", "bid", "ask", "spread")
STANDARD = "standard"
MOST_DAYS = 36_500  # that a column may count back: beyond a century, the number is not a count of days
LAST_MOMENT = 2**63 - 1  # nanoseconds since 1970: in the year 2262
UNIT = "strikeout:unit"  # the column that marks prices in coins, until they are converted


@dataclass(frozen=True, eq=False)
class Applied:
    """Canonical rows; ``at`` is the position of the vendor's row each came from."""

    frame: pl.DataFrame
    at: pl.Series


def filled_columns(frame: pl.DataFrame) -> frozenset[str]:
    """Return the names of the columns that have a value."""
    return frozenset(name for name in frame.columns if frame[name].null_count() < frame.height)


def sources(profile: Profile, filled: frozenset[str]) -> dict[str, dict[str, str]]:
    """For each side ("" of a long layout, "C" and "P" of a wide one) the vendor's column of each canonical one."""
    names = {plain(name): name for name in filled}
    sides = {"C": {**profile.columns, **profile.calls}, "P": {**profile.columns, **profile.puts}}
    out: dict[str, dict[str, str]] = {}
    for side, origins in (sides if profile.is_wide else {"": dict(profile.columns)}).items():
        found: dict[str, str] = {}
        # What stands in for others where those are empty comes last.
        for role, origin in sorted(origins.items(), key=lambda pair: bool(pair[1].unless)):
            name = next((names[plain(way)] for way in origin.column if plain(way) in names), None)
            if name is not None and not (origin.unless and set(origin.unless) <= found.keys()):
                found[role] = name
        out[side] = found
    return out


def apply_profile(
    profile: Profile,
    frame: pl.DataFrame,
    *,
    filled: frozenset[str],
    fixed: Mapping[str, float | str],
    given: frozenset[str],
) -> Applied:
    """Return the vendor's rows as canonical ones.

    ``filled`` are the columns to look at, ``fixed`` values for all rows (the profile's and the preamble's), ``given``
    canonical columns the caller will add, so that nothing else may claim them.
    """
    parts = []
    unit = next((name for name in frame.columns if plain(name) == plain(profile.coin.get("column", ""))), None)
    for side, found in sources(profile, filled).items():
        origins = {**profile.columns, **(profile.puts if side == "P" else profile.calls)}
        columns = {role: _converted(frame, name, role, origins[role], profile) for role, name in found.items()}
        part = pl.DataFrame(columns)
        if unit is not None:
            part = part.with_columns(as_text(frame, unit).alias(UNIT))
        part = _completed(profile, part, side, fixed=fixed, given=given)
        labels = [frame[name].alias(name) for name in frame.columns if plain(name) in map(plain, profile.labels)]
        part = part.hstack([label for label in labels if label.name not in part.columns])
        at = pl.int_range(0, frame.height, eager=True)
        if side:
            own = [role for role in (profile.calls if side == "C" else profile.puts) if role in part.columns]
            there = part.select(pl.any_horizontal(pl.col(own).is_not_null())).to_series()
            part, at = part.filter(there), at.filter(there)
        parts.append((part, at))
    if len(parts) == 1:
        return Applied(parts[0][0], parts[0][1])
    order = np.argsort(np.concatenate([at.to_numpy() for _, at in parts]), kind="stable")
    whole = stacked([part for part, _ in parts])
    return Applied(whole[order], pl.concat([at for _, at in parts])[order])


def stacked(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Frames of the same columns below one another; a column that is text in one becomes text in all."""
    if len(parts) == 1:
        return parts[0]
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    types = {name: {part.schema[name] for part in parts if name in part.columns} - {pl.Null} for name in names}
    columns = []
    for name in names:
        one = next(iter(types[name]), pl.Null)
        alike = len(types[name]) <= 1
        pieces = [
            pl.Series(name, [None], dtype=one if alike else pl.String).new_from_index(0, part.height)
            if name not in part.columns
            else part[name].cast(one)
            if alike
            else as_text(part, name)
            for part in parts
        ]
        columns.append(pl.concat(pieces).alias(name))
    return pl.DataFrame(columns)


def _converted(frame: pl.DataFrame, name: str, role: str, origin: Origin, profile: Profile) -> pl.Series:
    column = frame[name]
    if role in NUMBERS or origin.before:
        made = _number(column, origin)
    elif origin.format in CLOCKS:
        made = _moment(column, role, origin, profile)
    elif origin.format:
        made = _day(column, origin)
    else:
        made = _word(frame, name, origin) if origin.values or origin.drop or origin.extract else column
    return made.alias(role)


def _number(column: pl.Series, origin: Origin) -> pl.Series:
    if column.dtype.is_numeric():
        number, garbled = column.cast(pl.Float64), None
    else:
        text = column.cast(pl.String).str.strip_chars()
        for sign in origin.drop:
            text = text.str.replace_all(sign, "", literal=True)
        if origin.values:
            text = text.replace(dict(origin.values))
        number = text.cast(pl.Float64, strict=False)
        garbled = number.is_null() & text.is_not_null() & (text != "")
    if origin.sentinels:
        number = pl.select(pl.when(~number.is_in(list(origin.sentinels))).then(number)).to_series()
    number = quotient(number, origin.divide)
    if garbled is None or not garbled.any():
        return number
    return pl.select(pl.when(garbled).then(column).otherwise(number.cast(pl.String))).to_series()


def _day(column: pl.Series, origin: Origin) -> pl.Series:
    if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
        return column
    text = column.cast(pl.String).str.strip_chars()
    distinct = text.unique().drop_nulls()
    days = distinct.str.to_date(origin.format, strict=False)
    whole = text.replace_strict(distinct, days, default=None, return_dtype=pl.Date)
    garbled = whole.is_null() & text.is_not_null() & (text != "")
    if not garbled.any():
        return whole
    # Another of the vendor's forms, such as ISO, is left to the row rules, which read it or name it.
    return pl.select(pl.when(garbled).then(text).otherwise(whole.cast(pl.String))).to_series()


def _moment(column: pl.Series, role: str, origin: Origin, profile: Profile) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime):
        moment = column.dt.replace_time_zone("UTC") if column.dtype.time_zone is None else column
    else:
        count, unit = column.cast(pl.Int64, strict=False), CLOCKS[origin.format]
        count = pl.select(pl.when(count.abs() <= LAST_MOMENT // unit).then(count)).to_series()  # beyond, it would wrap
        moment = (count * unit).cast(pl.Datetime("ns", "UTC"))
    if role in DATES:
        return moment.dt.convert_time_zone(profile.time.get("zone", "UTC")).dt.date()
    return moment.dt.convert_time_zone("UTC").dt.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00")


def _word(frame: pl.DataFrame, name: str, origin: Origin) -> pl.Series:
    text = as_text(frame, name).str.strip_chars()
    for sign in origin.drop:
        text = text.str.replace_all(sign, "", literal=True)
    if origin.extract:
        text = text.str.extract(origin.extract)
    return text.replace(dict(origin.values))


def _completed(
    profile: Profile, part: pl.DataFrame, side: str, *, fixed: Mapping[str, float | str], given: frozenset[str]
) -> pl.DataFrame:
    """With what the side, the name, the class and the profile say beyond the columns."""
    if side:
        part = part.with_columns(pl.lit(side).alias("right"))
    if profile.symbol and "symbol" in part.columns:
        named = parse_symbols(part["symbol"], profile.symbol)
        said = {"root": named.root, "expiry": named.expiry, "strike": named.strike, "right": named.right}
        part = part.drop("symbol").with_columns(
            *(column.alias(role) for role, column in said.items() if role not in part.columns)
        )
        if profile.symbol == "occ" and "deliverable" not in part.columns:
            # The class of a contract adjusted for a corporate action ends in a digit.
            adjusted = pl.col("root").str.contains(r"\d$")
            part = part.with_columns(
                pl.when(adjusted).then(pl.lit("adjusted")).otherwise(pl.lit(STANDARD)).alias("deliverable")
            )
    part = part.drop("symbol", strict=False)
    for role, origin in profile.columns.items():
        if origin.before and role in part.columns:
            is_day = part.schema.get(origin.before, pl.String) != pl.String
            day = part[origin.before].cast(pl.Date) if is_day else None
            # By way of a float: a column with one cell that is not a number has all of them as text, 30 as 30.0.
            count = part[role].cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
            back = pl.select(pl.when(count.abs() <= MOST_DAYS).then(count)).to_series()
            made = None
            if day is not None:
                both = pl.DataFrame({"day": day, "back": back})
                made = both.select(pl.col("day") - pl.duration(days="back")).to_series()
            part = part.with_columns((pl.lit(None, pl.Date) if made is None else made).alias(role))
    part = part.with_columns(
        *(pl.lit(value).alias(role) for role, value in fixed.items() if role not in (*part.columns, *given))
    )
    part = part.with_columns(*(made for made in _by_class(profile, part) if made.meta.output_name() not in given))
    return _in_currency(profile, part) if profile.coin else part


def _by_class(profile: Profile, part: pl.DataFrame) -> list[pl.Expr]:
    of = next((role for role in ("root", "underlying") if role in part.columns), None)
    if of is None:
        return []
    made = []
    for role, facts in profile.by_class.items():
        if role not in part.columns:
            value = {root: word for word, roots in facts.items() if word != "otherwise" for root in roots}
            rest = pl.col(of) if facts.get("otherwise") == "class" else pl.lit(facts.get("otherwise"))
            known = pl.col(of).is_in(list(value))
            made.append(pl.when(known).then(pl.col(of).replace(value)).otherwise(rest).alias(role))
    return made


def _in_currency(profile: Profile, part: pl.DataFrame) -> pl.DataFrame:
    """Return prices in units of the underlying, times the underlying.

    If the forward is known, it is the exchange's own: price * forward is the value at expiry, which its discount
    brings to today. If it is not, price * spot is the value today whatever the rate, so discount and rate are left
    to put-call parity, which finds both from such prices.
    """
    unit_column = UNIT if "column" in profile.coin else "root"
    if unit_column not in part.columns:
        return part
    words = [str(word) for word in profile.coin.get("values", profile.coin.get("classes", ()))]
    is_coin = pl.col(unit_column).is_in(words).fill_null(value=False)
    # A forward or spot that is not a number stays text for the row rules, and nothing is multiplied by it.
    forward, spot = (
        pl.col(role).cast(pl.Float64, strict=False) if role in part.columns else pl.lit(None, pl.Float64)
        for role in ("forward", "spot")
    )
    by = pl.when(is_coin).then(pl.coalesce(forward, spot)).otherwise(1.0)
    made = [_times(part, role, by) for role in PRICES if role in part.columns]
    known = ~is_coin | forward.is_not_null()
    made += [pl.when(known).then(pl.col(role)).alias(role) for role in ("discount", "rate") if role in part.columns]
    return part.with_columns(made).drop(UNIT, strict=False)


def _times(part: pl.DataFrame, role: str, by: pl.Expr) -> pl.Expr:
    if part.schema[role] != pl.String:
        return (pl.col(role) * by).alias(role)
    number = pl.col(role).cast(pl.Float64, strict=False) * by
    return pl.coalesce(number.cast(pl.String), pl.col(role)).alias(role)
