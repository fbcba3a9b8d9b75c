"""What the texts of a book may be (ids, labels, their names), so that every file and every condition can hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError

DATE = "date"  # the label that holds the day of a quote
ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF


def check_dates(column: NDArray[Any]) -> None:
    """Raise UsageError unless every value of the label ``date`` is a date or empty."""
    if column.dtype.kind == "M":
        return
    values = column.tolist()
    bad = {value for value in set(values) if not _is_date(value)}
    if bad:
        row = next(row for row, value in enumerate(values) if value in bad)
        raise UsageError(
            f"Quotes: label 'date' at row {row} is {values[row]!r}; it must be a date such as '2024-01-31', or '' if "
            "unknown. Write it so, or give the label another name.",
            label=DATE,
            row=row,
        )


def check_names(names: Iterable[str]) -> None:
    """Raise UsageError unless every name of a label is text that a file and a condition can hold."""
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name or not is_unicode(name):
            raise UsageError(
                f"Quotes: {name!r} is not a name for a label. Give a text that is not empty, without NUL characters "
                "and halves of surrogate pairs.",
                label=name,
            )


def check_text(what: str, column: NDArray[Any]) -> None:
    """Raise UsageError if a text has half of a surrogate pair: no file in UTF-8 could hold it."""
    if column.dtype.kind in "OU" and not _is_unicode(column):
        row = next(row for row, value in enumerate(column.tolist()) if not _is_unicode(np.array([value], object)))
        raise UsageError(
            f"Quotes: {what} at row {row} is {str(column[row])!r}: half of a surrogate pair is not Unicode text. "
            "Decode the text again, with errors='replace'.",
            column=what,
            row=row,
        )


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can hold this text; a name of a file that is none has halves of surrogate pairs for its
    bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_unicode(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "U":
        points = np.ascontiguousarray(column, column.dtype.newbyteorder("=")).view(np.uint32)
        return not bool(((points >= FIRST_SURROGATE) & (points <= LAST_SURROGATE)).any())
    return is_unicode("".join(set(column.tolist())))


def _is_date(value: Any) -> bool:
    try:
        return value == "" or (ISO_DATE.fullmatch(value) is not None and bool(date.fromisoformat(value)))
    except (TypeError, ValueError):
        return False
