"""Keyed commitments to an erased quote, by which a book recognises it if it is imported again.

A quote gets three: to its id, to its contract, price and date, and to its contract and price alone. Other labels are
not part of them, so a quote is recognised under another source, or under none. The date is part of them because the
same contract may be quoted at the same price on two days; a quote that is imported without a date is compared by
contract and price alone. Commitments are keyed with the secret of the book: without it they reveal nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Set

import numpy as np
from numpy.typing import NDArray

from strikeout.quotes.quotes import Quotes

Commit = Callable[[str, bytes], str]
ID, DATED, UNDATED, ANY_DATE = "id", "content", "content without a date", "content of any date"
PER_QUOTE = 3


def commitments(quotes: Quotes, commit: Commit, *, retained: Quotes) -> list[str]:
    """Return the commitments a book keeps of erased quotes, at most ``PER_QUOTE`` for each.

    A quote that the book retains from another source too, at the same price on the same day, is committed to by its id
    alone: the other one has not returned.
    """
    found, shared = [], _contents(retained[_may_equal(retained, quotes)])
    for name, content, date in _rows(quotes):
        found.append(commit(ID, name))
        dates = shared.get(content)
        if dates is None:
            found.append(commit(ANY_DATE, content))
        if dates is None or (date is not None and not dates & {date, None}):
            found.append(commit(UNDATED, content) if date is None else commit(DATED, content + date))
    return found


def _may_equal(retained: Quotes, quotes: Quotes) -> NDArray[np.bool_]:
    """Return which retained quotes have a price, strike and expiry of these: few enough to compare them one by one."""
    here, there = retained.contracts, quotes.contracts
    same = np.isin(retained.observed, quotes.observed)
    return same & np.isin(here.strike, there.strike) & np.isin(here.expiry, there.expiry)


def _contents(quotes: Quotes) -> dict[bytes, set[bytes | None]]:
    """Return the dates on which each contract and price is quoted."""
    found: dict[bytes, set[bytes | None]] = {}
    for _, content, date in _rows(quotes):
        found.setdefault(content, set()).add(date)
    return found


def returning(quotes: Quotes, erased: Set[str], commit: Commit) -> NDArray[np.bool_]:
    """Return which of these quotes were erased before, given all commitments of a book."""
    if not erased:
        return np.zeros(len(quotes), bool)
    return np.array([_is_erased(*row, erased, commit) for row in _rows(quotes)], bool)


def _is_erased(name: bytes, content: bytes, date: bytes | None, erased: Set[str], commit: Commit) -> bool:
    if commit(ID, name) in erased:
        return True
    if date is None:
        return commit(ANY_DATE, content) in erased
    return commit(DATED, content + date) in erased or commit(UNDATED, content) in erased


def _rows(quotes: Quotes) -> list[tuple[bytes, bytes, bytes | None]]:
    """Return id, contract and price, and date of each quote as bytes; the date is None if the quote has none."""
    c = quotes.contracts
    numbers = np.column_stack([c.forward, c.strike, c.expiry, c.discount, c.is_call, quotes.observed])
    dates = quotes.labels["date"].astype(str).tolist() if "date" in quotes.labels else [""] * len(quotes)
    return [
        (name.encode("utf-8", "surrogatepass"), struct.pack("<6d", *row), date.encode() if date else None)
        for name, row, date in zip(quotes.ids.tolist(), numbers.tolist(), dates, strict=True)
    ]
