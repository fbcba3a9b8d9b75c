"""Slices: the quotes that share one underlying, timestamp and expiry, and so one forward and one discount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]

MOMENT = ("underlying", "root", "quote_date", "quote_time")  # canonical columns; a slice is one expiry of these
LABELS = {"quote_date": "date", "expiry": "expiry_date"}  # what a book calls them, where by another name
MOMENT_LABELS = tuple(LABELS.get(name, name) for name in MOMENT)
KEYS = (*MOMENT_LABELS, LABELS["expiry"])  # labels; the time to expiry separates the others
AMERICAN_MID = "american_mid"  # the price of an American quote whose ``observed`` is European: see ``exercise``
SHOWN = ("underlying", "root", "date", "expiry_date")


def slice_numbers(labels: Mapping[str, NDArray[Any]], expiry: NDArray[np.float64]) -> tuple[Rows, Rows]:
    """Return the number of the slice of every row, from zero, and the first row of every slice."""
    columns = [_plain(labels[name]) for name in KEYS if name in labels]
    table: dict[Any, int] = {}
    keys = zip(*columns, expiry.tolist(), strict=True)
    numbers = np.fromiter((table.setdefault(key, len(table)) for key in keys), np.intp, len(expiry))
    _, first = np.unique(numbers, return_index=True)
    return numbers, first.astype(np.intp)


def slice_name(labels: Mapping[str, NDArray[Any]], expiry: float, *, row: int) -> str:
    """Return a slice in words, from one of its rows: "SPX SPXW 2022-01-07 2022-01-10", or the years if it has no
    date."""
    underlying, root, day, end = (str(labels[name][row]) if name in labels else "" for name in SHOWN)
    words = (underlying, root if root != underlying else "", day, end or f"{expiry:.4g} years")
    return " ".join(filter(None, words))


def _plain(column: NDArray[Any]) -> list[str]:
    plain: list[str] = (column if column.dtype.kind in "OU" else column.astype(str)).tolist()
    return plain
