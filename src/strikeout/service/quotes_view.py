"""Quotes of a book page by page: held and struck out, filtered by a condition, in the order of their ids."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from strikeout.book import Book
from strikeout.errors import UsageError
from strikeout.quotes.conditions import literal
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.selection import select
from strikeout.quotes.writing import frame_of

MOST_DATES, SHOWN_VALUES = 1000, 12  # dates of a facet, and values of another one
State = Literal["held", "struck", "all"]


@dataclass(frozen=True)
class QuotePage:
    """Some quotes of a book as a table, how many match in all, and the cursor of the next page."""

    frame: pl.DataFrame
    total: int
    cursor: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"total": self.total, "cursor": self.cursor, "quotes": self.frame.fill_nan(None).to_dicts()}


def quote_page(
    book: Book, *, where: str | None = None, state: State = "held", limit: int | None = None, cursor: str | None = None
) -> QuotePage:
    """Return a page of quotes; ``struck_by`` is the entry that struck a quote out, null for one that is held.

    Args:
        where: a condition in SQL; all quotes if it is not given.
        limit: the most rows; all if it is not given.
        cursor: of the page before. It is a position among the ids, so it stays valid if the book changes.

    Raises:
        UsageError: the condition cannot be read, or the cursor is not one of these.
    """
    frames = []
    if state in ("held", "all"):
        frames.append(_frame(book.quotes(), where, None))
    if state in ("struck", "all"):
        frames += [_frame(quotes, where, entry) for entry, quotes in book.snapshot().set_aside.items()]
    joined = pl.concat(frames, how="diagonal_relaxed") if frames else _frame(book.quotes()[:0], None, None)
    found = joined.sort("id")
    total = found.height
    if cursor is not None:
        found = found.filter(pl.col("id") > _after(cursor))
    shown = found if limit is None else found.head(limit)
    more = shown.height < found.height
    return QuotePage(shown, total, _cursor(shown["id"][-1]) if more and shown.height else None)


def facets_of(book: Book) -> list[dict[str, Any]]:
    """Return the labels with few values, each value with its count and the condition that selects it."""
    quotes = book.quotes()
    found = []
    for name, values in quotes.labels.items():
        distinct, counts = np.unique(values.astype(str), return_counts=True)
        most = MOST_DATES if name in ("date", "expiry_date") else SHOWN_VALUES
        if not 1 < len(distinct) <= most or not name.isidentifier():
            continue
        order = np.argsort(-counts, kind="stable")[:SHOWN_VALUES]
        listed = [(distinct[n].item(), int(counts[n]), f"{name} = {literal(distinct[n])}") for n in sorted(order)]
        found.append({"name": name, "values": listed, "more": len(distinct) - len(listed)})
    return found


def _frame(quotes: Quotes, where: str | None, entry: int | None) -> pl.DataFrame:
    kept = quotes if where is None or not len(quotes) else quotes.only(select(quotes, where))
    return frame_of(kept).with_columns(pl.lit(entry, dtype=pl.Int64).alias("struck_by"))


def _cursor(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _after(cursor: str) -> str:
    try:
        found = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (Error, ValueError):
        found = ""
    if _cursor(found) != cursor:
        raise UsageError("The cursor is not one that a page of quotes returned. Begin without one.")
    return found
