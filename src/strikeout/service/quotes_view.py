"""Quotes of a book page by page: held and struck out, filtered by a condition, in the order of their ids."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from bisect import bisect_right
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
from strikeout.service.problems import frame_bytes

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
    after = None if cursor is None else _after(cursor)
    parts: list[tuple[int | None, Quotes]] = [] if state == "struck" else [(None, book.quotes())]
    parts += [] if state == "held" else list(book.snapshot().set_aside.items())
    matching = [
        (entry, quotes, quotes.ids if where is None or not len(quotes) else select(quotes, where))
        for entry, quotes in parts
    ]
    names = sorted(name for _, _, ids in matching for name in ids.tolist())
    first = 0 if after is None else bisect_right(names, after)
    shown = names[first : None if limit is None else first + limit]
    chosen = set(shown)
    frames = [
        frame_of(quotes.only([name for name in ids.tolist() if name in chosen])).with_columns(
            pl.lit(entry, dtype=pl.Int64).alias("struck_by")
        )
        for entry, quotes, ids in matching or [(None, book.quotes(), np.array([], object))]
    ]
    is_more = bool(shown) and first + len(shown) < len(names)
    return QuotePage(
        pl.concat(frames, how="diagonal_relaxed").sort("id"), len(names), _cursor(shown[-1]) if is_more else None
    )


def quotes(book: Book, tell: object, **asked: Any) -> dict[str, Any]:  # noqa: ARG001
    """Return a page of quotes as plain values, and the names of its columns."""
    page = quote_page(book, **asked)
    return {**page.to_dict(), "columns": page.frame.columns}


def quote_file(book: Book, tell: object, *, kind: str, **asked: Any) -> dict[str, Any]:  # noqa: ARG001
    """Return quotes as the bytes of a file, in base 64, and the cursor of the next page."""
    page = quote_page(book, **asked)
    return {"body": b64encode(frame_bytes(page.frame, kind)).decode("ascii"), "cursor": page.cursor}


def facets(book: Book, tell: object) -> dict[str, Any]:  # noqa: ARG001
    """Return the labels with few values, each value with its count and the condition that selects it."""
    held = book.quotes()
    found = []
    for name, values in held.labels.items():
        distinct, counts = np.unique(values.astype(str), return_counts=True)
        most = MOST_DATES if name in ("date", "expiry_date") else SHOWN_VALUES
        if not 1 < len(distinct) <= most or not name.isidentifier():
            continue
        order = np.argsort(-counts, kind="stable")[:SHOWN_VALUES]
        listed = [(distinct[n].item(), int(counts[n]), f"{name} = {literal(distinct[n])}") for n in sorted(order)]
        found.append({"name": name, "values": listed, "more": len(distinct) - len(listed)})
    return {"facets": found}


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
