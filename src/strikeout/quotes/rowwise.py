"""What each row says by itself: its values, its faults, its name. Nothing here looks at another row.

So a file can be read in pieces of any size, and a row reads the same in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import NUMBERS, Layout, as_text, label_name
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.derive import derived_ids, is_timed, label_array, with_expiry, with_money
from strikeout.quotes.forwards import DISCOUNT_FROM, FORWARD_FROM
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rules import DAYS, Rules, to_dates
from strikeout.quotes.tables import Table
from strikeout.quotes.twins import VALUES

PIECE = 100_000  # rows turned from one kind of text into another at once
LABELLED = (
    "underlying", "root", "quote_date", "quote_time", "expiry", "exercise", "bid", "ask", "iv", "spot", "rate",
    "dividend_yield", "source", "expiry_time", "settlement", "volume", "open_interest", "last_trade_time",
    "deliverable", "iv_bid", "iv_ask",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they were understood: what they are called, numbers (``work``), labels, which can be quotes as far as
    they themselves say (``good``), and what was found wrong."""

    ids: pl.Series
    work: pl.DataFrame
    labels: pl.DataFrame
    good: pl.Series
    found: tuple[pl.DataFrame, ...]

    def only(self, kept: pl.Series) -> Quotes:
        """The book of these rows."""
        labels = self.labels.filter(kept) if self.labels.width else self.labels
        return book_of(self.ids.filter(kept), self.work.filter(kept), labels)


def read_rows(rules: Rules, clock: Clock | None) -> Rows:
    """The rows of a table, each by itself."""
    frame, layout = rules.frame, rules.layout
    work, parts = rules.parse()
    work = with_expiry(work, frame, layout, clock=clock)
    parts += _untimed(rules, work, clock)
    parts += rules.judge(work)
    work = with_money(work, frame, layout)
    parts += rules.judge_money(work, _unmarked(frame.height, parts))
    ids = as_text(frame, layout.places["id"]) if "id" in layout.places else derived_ids(frame, work, layout)
    return Rows(ids, work, _labels(frame, work, layout), _unmarked(frame.height, parts), tuple(parts))


def clock_of(table: Table, clock: Clock | None) -> Clock | None:
    """The clock that was asked for, or else the profile's own."""
    return Clock.of(table.profile.time) if clock is None and table.profile is not None else clock


def routes_told(layout: Layout, clock: Clock | None) -> Mapping[str, str]:
    """What each quantity of a quote is computed from."""
    return {
        "observed": layout.observed_from,
        "forward": layout.forward_from,
        "expiry_years": str(clock) if is_timed(layout, clock) else layout.expiry_from,
        "discount": layout.discount_from,
        "id": "id" if "id" in layout.places else "the contract, date and source",
    }


def twin_issues(rules: Rules, repeats: pl.Series, clashes: pl.Series) -> list[pl.DataFrame]:
    """An issue for each row that repeats an earlier one, and for each whose id another has with other values."""
    same = "id" if "id" in rules.layout.places else "contract, date and source"
    words = f"another row has the same {same} and other values; keep the right one, or give each its own id."
    return [
        rules.failures("Q108", "id", clashes, words),
        rules.failures("Q201", "id", repeats, "an exact repeat of an earlier row; kept once."),
    ]


def _untimed(rules: Rules, work: pl.DataFrame, clock: Clock | None) -> list[pl.DataFrame]:
    """Rows whose dates are understood and whose time of day is not."""
    if not is_timed(rules.layout, clock):
        return []
    dated = work["quote_date"].is_not_null() & work["expiry"].is_not_null()
    words = "'{}' is not understood as a time; write 15:45:00, or 2024-01-31T15:45:00."
    return [rules.failures("Q110", "quote_time", dated & work["expiry_years"].is_null(), words)]


def _unmarked(height: int, parts: list[pl.DataFrame]) -> pl.Series:
    good = np.ones(height, bool)
    for part in parts:
        rejected = part.filter(pl.col("code").str.starts_with("Q1"))
        good[rejected["at"].to_numpy()] = False
    return pl.Series(good)


def _labels(frame: pl.DataFrame, work: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Every column that is not part of a contract or its price, under the name it will have as a label."""
    columns: dict[str, pl.Series] = {}
    for role in (role for role in LABELLED if role in layout.places):
        if role in NUMBERS:
            columns[label_name(role)] = work[role].cast(pl.Float64)
        elif role in ("quote_date", "expiry"):
            text = as_text(frame, layout.places[role])
            days = work[role] if role in work.columns else to_dates(frame[layout.places[role]])
            is_day = role in layout.used or role in DAYS
            columns[label_name(role)] = days.cast(pl.String).fill_null(text) if is_day else text
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
    """The book of rows that are all good; ``gappy`` are labels with empty cells in rows that are elsewhere."""
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
    """As an array of text, some at a time: as objects of Python, all at once would take more room than the book."""
    names = np.empty(ids.len(), f"U{np.max(ids.str.len_chars().to_numpy(), initial=1)}")
    for begin in range(0, ids.len(), PIECE):
        names[begin : begin + PIECE] = ids.slice(begin, PIECE).to_numpy()
    return names
