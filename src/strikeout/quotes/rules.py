"""The rules a row must pass. Each failure is one issue: a code, the row, the column, the value found, what to do.

A frame ``work`` holds what was understood, one row per row of the table: a column for each canonical name, in canonical
units, null if there is no usable value.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from strikeout.quotes.columns import NUMBERS, Layout, as_text, once
from strikeout.quotes.issues import SCHEMA
from strikeout.quotes.limits import MOST_BAD, check_bad
from strikeout.quotes.tables import Table
from strikeout.text import printable

CALLS, PUTS = ("c", "call", "calls"), ("p", "put", "puts")
DAYS_PER_YEAR = 365.0
DAYS = ("quote_date",)  # columns that hold a date whether or not the price needs it
# Beyond these a number is in another unit than ours: percent for decimals, days for years.
LARGEST = {"rate": 1.0, "dividend_yield": 1.0, "iv": 5.0, "discount": 2.0, "expiry_years": 100.0}
WRITTEN = {"id", "weight", "price", "expiry_years", "forward", "discount"}  # what `write_quotes` always writes
# What vendors write for "no value": no quote is worth these.
SENTINELS = (
    -99.99, -999.0, -999.99, -9999.0, -9999.99, -99999.0, -99999.99, -999999.0,
    2147483647.0, 9223372036854775807.0, 9223372036.854775807, 3.4028234663852886e38, 1.7976931348623157e308,
    -2147483648.0, -9223372036854775808.0, -3.4028234663852886e38, -1.7976931348623157e308,
)  # fmt: skip
# A price this little below zero, as a share of discount * forward, may be noise on a worthless option and is kept.
NOISE = 1e-4
NONE = pl.DataFrame(schema=SCHEMA)  # no issue
NEEDS = {
    "strike": "a number above zero",
    "right": "C or P",
    "id": "a name",
    "quote_date": "a date such as 2024-01-31",
    "expiry": "a date such as 2024-01-31",
}


@dataclass(frozen=True, eq=False)
class Rules:
    """The table, how it is laid out, and (from `parse` on) its values."""

    table: Table
    frame: pl.DataFrame
    layout: Layout

    def failures(self, code: str, role: str, fails: pl.Series, words: str) -> pl.DataFrame:
        """Return one issue for each row where ``fails``; ``{}`` in ``words`` is replaced by the value found."""
        if not fails.any():  # which is usual: a frame made for every rule takes longer than to check a chain
            return NONE
        at = fails.fill_null(value=False).arg_true()
        if code.startswith("Q1") and at.len() > MOST_BAD:
            first = self.failures(code, role, pl.int_range(0, fails.len(), eager=True) == at[0], words)
            check_bad(self.table.name, at.len(), first["sentence"][0])
        name = self.layout.places.get(role, role)
        found = (
            as_text(self.frame[at], name) if name in self.frame.columns else pl.Series([""]).new_from_index(0, at.len())
        )
        called = printable(self.table.called(role) if self.table.profile else name)
        before, mark, after = words.partition("{}")
        value = pl.col("value").fill_null("").str.slice(0, 40) if mark else pl.lit("")
        where = (pl.lit(f"{self.table.numbering} "), pl.col("row").cast(pl.String), pl.lit(f", column {called}: "))
        sentence = pl.concat_str(*where, pl.lit(before), value, pl.lit(after))
        shown = _printed(found)
        return pl.DataFrame({"at": at.cast(pl.Int64), "row": self.table.rows[at], "value": shown}).select(
            "at",
            pl.lit(code).alias("code"),
            "row",
            pl.lit(called).alias("column"),
            sentence.alias("sentence"),
            pl.lit(code.startswith("Q1")).alias("is_rejected"),
            pl.lit(None, pl.List(pl.Int64)).alias("others"),
        )

    def parse(self) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
        """Return what every cell means, and the cells that mean nothing."""
        places, used = self.layout.places, self.layout.used
        columns: dict[str, pl.Series] = {}
        issues: list[pl.DataFrame] = []
        if self.table.overflow is not None:
            beyond = self.table.overflow.is_not_null()
            issues.append(
                self.failures(
                    "Q112",
                    self.frame.columns[-1],
                    beyond,
                    "more fields than the header has names; write 1234.5 for 1,234.5, quote text that has separators.",
                )
            )
        for role in (role for role in NUMBERS if role in places):
            columns[role], found = self._numbers(role, needed=role in used)
            if role in self.layout.optional:  # another source may give what is missing here
                found = [part.filter(~pl.col("code").is_in(["Q101", "Q115"])) for part in found]
            issues += found
        # The day of a quote is a date even if the price does not need it: panels, windows and reports go by it.
        for role in (role for role in ("quote_date", "expiry") if role in used or (role in DAYS and role in places)):
            columns[role], found = self._dates(role, needed=role in used)
            issues += found
        columns["is_call"] = _is_call(as_text(self.frame, places["right"]))
        for role in (role for role in ("id", "right") if role in used):
            missing = _is_missing(self.frame[places[role]])
            issues.append(self.failures("Q101", role, missing, f"empty; {NEEDS[role]} is needed."))
            if role == "right":
                odd = columns["is_call"].is_null() & ~missing
                issues.append(self.failures("Q107", role, odd, "'{}' is neither a call nor a put; write C or P."))
        return pl.DataFrame(columns), issues

    def _numbers(self, role: str, *, needed: bool) -> tuple[pl.Series, list[pl.DataFrame]]:
        column = self.frame[self.layout.places[role]]
        if column.dtype.is_numeric():
            missing, number = column.is_null(), column.cast(pl.Float64)
        else:
            text = as_text(self.frame, self.layout.places[role]).str.strip_chars()
            missing, number = text.is_null() | (text == ""), text.cast(pl.Float64, strict=False)
        unsaid = number.is_nan().fill_null(value=False)  # the word nan, or the number.
        # A written book has numbers that were accepted, and reads back as it was: no marks in it.
        marks = () if self.layout.places.keys() >= WRITTEN else SENTINELS
        sentinel = number.is_in(marks).fill_null(value=False)
        garbled, infinite = number.is_null() & ~missing, number.is_infinite().fill_null(value=False)
        number = pl.select(pl.when(~(missing | unsaid | sentinel | infinite)).then(number)).to_series()
        if not needed:
            words = "'{}' is not a finite number; the price does not need it, so it is kept as unknown."
            return number, [self.failures("Q204", role, garbled | infinite | sentinel, words)]
        need = NEEDS.get(role, "a number")
        return number, [
            self.failures("Q101", role, missing, f"empty; {need} is needed."),
            self.failures("Q101", role, unsaid, f"'{{}}' means that there is no value; {need} is needed."),
            self.failures(
                "Q102", role, garbled, "'{}' is not a number; write 1234.5, with a decimal point and no other sign."
            ),
            self.failures("Q111", role, infinite, "{} is not finite; correct or drop it."),
            self.failures("Q115", role, sentinel, f"{{}} is a mark for no value; {need} is needed."),
        ]

    def _dates(self, role: str, *, needed: bool) -> tuple[pl.Series, list[pl.DataFrame]]:
        column = self.frame[self.layout.places[role]]
        missing, dates = _is_missing(column), once(column, to_dates)
        unclear = self.failures(
            "Q110", role, dates.is_null() & ~missing, "'{}' is not understood as a date; write 2024-01-31."
        )
        return dates, [
            *([self.failures("Q101", role, missing, f"empty; {NEEDS[role]} is needed.")] if needed else []),
            unclear,
        ]

    def judge(self, work: pl.DataFrame) -> list[pl.DataFrame]:
        """Return values that are understood but cannot be those of a quote. ``work`` holds expiry_years by now."""
        used, places = self.layout.used, self.layout.places
        issues = []

        def refuse(code: str, role: str, fails: pl.Expr, words: str) -> None:
            issues.append(self.failures(code, role, work.select(fails).to_series(), words))

        for role in ("strike", "forward", "spot", "discount", "iv"):
            if role in used:
                refuse("Q104", role, pl.col(role) <= 0, "{} is not above zero; correct or drop it.")
        if "expiry_years" in used:
            refuse("Q105", "expiry_years", pl.col("expiry_years") <= 0, "{} years: expired; drop it.")
        else:
            words = "{} is not after the quote date: expired, or give expiry_years for a quote on its last day."
            refuse("Q105", "expiry", pl.col("expiry_years") <= 0, words)
        for role in ("bid", "ask"):
            if role in used:
                refuse("Q106", role, pl.col(role) < 0, "{} is below zero; correct or drop it.")
        if "weight" in used:
            refuse("Q109", "weight", pl.col("weight") <= 0, "{} is not above zero; drop the row instead.")
        for role, largest in LARGEST.items():
            if role in used:
                words = f"{{}} is beyond {largest:g}; decimals are meant (0.05 is 5 %), and years for times."
                refuse("Q113", role, pl.col(role).abs() > largest, words)
        if {"bid", "ask"} <= places.keys():
            refuse("Q103", "bid", pl.col("bid") > pl.col("ask"), "the bid {} is above the ask; correct or drop it.")
            if "bid" in used:
                idle = (pl.col("bid") == 0) & (pl.col("ask") == 0)
                refuse("Q114", "ask", idle, "bid and ask are both {}: there is no quote; drop it.")
        return issues

    def judge_money(self, work: pl.DataFrame, good: pl.Series) -> list[pl.DataFrame]:
        """Return prices no option can have, among rows good so far. ``work`` holds forward, discount and observed by
        now."""
        issues = []
        if "price" in self.layout.used:
            noise = NOISE * pl.col("discount") * pl.col("forward")
            below = good & work.select(pl.col("price") < -noise).to_series()
            issues.append(self.failures("Q106", "price", below, "{} is below zero; correct or drop it."))
        made = pl.col("forward", "strike", "expiry_years", "discount", "observed")
        whole = pl.all_horizontal(made.is_finite()) & (pl.col("forward") > 0) & (pl.col("discount") > 0)
        lost = good & ~work.select(whole.fill_null(value=False)).to_series()
        issues.append(self.failures("Q111", "strike", lost, "forward, discount or price overflows; correct the row."))
        return issues


def _printed(texts: pl.Series) -> pl.Series:
    """Texts as a sentence shows them; see ``printable``."""
    odd = texts.filter(texts.str.contains(r"[\p{C}\p{Zl}\p{Zp}]").fill_null(value=False)).unique()
    return texts.replace(odd, pl.Series([printable(text) for text in odd.to_list()], dtype=pl.String))


def _is_call(right: pl.Series) -> pl.Series:
    """Return whether each is a call; null for what is neither a call nor a put."""
    is_call = right == "C"
    if right.null_count() == 0 and (is_call | (right == "P")).all():  # as nearly all files have it
        return is_call
    right = right.str.strip_chars().str.to_lowercase()
    return pl.select(pl.when(right.is_in(CALLS)).then(True).when(right.is_in(PUTS)).then(False)).to_series()


def _is_missing(column: pl.Series) -> pl.Series:
    if column.dtype != pl.String:
        return column.is_null()
    return once(column, lambda text: text.is_null() | (text.str.strip_chars() == ""))


def to_dates(column: pl.Series) -> pl.Series:
    """Days, null where not understood. Day-month order is never guessed: only ISO dates and YYYYMMDD are read."""
    if column.dtype == pl.Date:
        return column
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.date()
    distinct = column.cast(pl.String).unique()
    text = distinct.str.strip_chars()
    iso = text.str.extract(r"^(\d{4}-\d{2}-\d{2})(?:[T ].*)?$").str.to_date("%Y-%m-%d", strict=False)
    compact = text.str.extract(r"^(\d{8})$").str.to_date("%Y%m%d", strict=False)
    days = pl.DataFrame({"text": distinct, "day": iso.fill_null(compact)})
    joined = pl.DataFrame({"text": column.cast(pl.String)}).join(days, on="text", how="left", maintain_order="left")
    return joined["day"]
