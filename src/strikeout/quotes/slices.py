"""Slices: the quotes that share one underlying, one moment and one expiry, and so one forward and one discount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]

KEYS = ("underlying", "root", "date", "quote_time", "expiry_date")  # labels; the time to expiry tells the rest apart
SHOWN = ("underlying", "root", "date", "expiry_date")


def slice_numbers(labels: Mapping[str, NDArray[Any]], expiry: NDArray[np.float64]) -> tuple[Rows, Rows]:
    """The number of the slice of every row, from zero, and the first row of every slice."""
    numbers = np.unique(expiry, return_inverse=True)[1]
    for name in (name for name in KEYS if name in labels):
        codes = _codes(labels[name])
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    _, first = np.unique(numbers, return_index=True)
    return numbers.astype(np.intp), first.astype(np.intp)


def slice_name(labels: Mapping[str, NDArray[Any]], expiry: float, *, row: int) -> str:
    """A slice in words, from one of its rows: "SPX SPXW 2022-01-07 2022-01-10", or the years where it has no date."""
    underlying, root, day, end = (str(labels[name][row]) if name in labels else "" for name in SHOWN)
    words = (underlying, root if root != underlying else "", day, end or f"{expiry:.4g} years")
    return " ".join(filter(None, words))


def _codes(column: NDArray[Any]) -> NDArray[np.int64]:
    table: dict[Any, int] = {}
    values = column.astype(str).tolist() if column.dtype.kind not in "OU" else column.tolist()
    return np.fromiter((table.setdefault(value, len(table)) for value in values), np.int64, len(column))
