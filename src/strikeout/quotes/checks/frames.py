"""A book as the frame that rules look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from strikeout.quotes.slices import LABELS

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

# Canonical name -> the label it is kept as.
NUMBERS = {name: name for name in ("bid", "ask", "iv", "spot", "volume", "open_interest")}
WORDS = {name: name for name in ("underlying", "root", "quote_time", "exercise", "settlement", "deliverable", "source")}


KNOWN = frozenset({*NUMBERS.values(), *LABELS.values(), *WORDS.values()})  # every label that a rule looks at


def market_of(quotes: Quotes, at: pl.Series | None = None, row: pl.Series | None = None) -> pl.DataFrame:
    """The quotes in canonical columns; ``at`` and ``row`` say where in a table each was found, by default in order.

    Numbers that are unknown are null, a date that is no date is null, text that is empty stays so.
    """
    contracts = quotes.contracts
    at = pl.Series(np.arange(len(quotes))) if at is None else at
    own = {
        "at": at,
        "row": at if row is None else row,
        "strike": pl.Series(contracts.strike),
        "is_call": pl.Series(contracts.is_call),
        "expiry_years": pl.Series(contracts.expiry),
        "forward": pl.Series(contracts.forward),
        "discount": pl.Series(contracts.discount),
        "observed": pl.Series(quotes.observed),
    }
    return market_by(own, {name: _series(label) for name, label in quotes.labels.items() if name in KNOWN})


def market_by(own: Mapping[str, pl.Series], labels: Mapping[str, pl.Series]) -> pl.DataFrame:
    """The same where contracts and labels are columns already."""
    columns = dict(own)
    for name, label in NUMBERS.items():
        if label in labels and (labels[label].dtype.is_numeric() or labels[label].dtype == pl.Boolean):
            columns[name] = labels[label].cast(pl.Float64).fill_nan(None)
    for name, label in LABELS.items():
        if label in labels:
            columns[name] = _text(labels[label]).str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    for name, label in WORDS.items():
        if label in labels:
            columns[name] = _text(labels[label])
    return pl.DataFrame(columns)


def _series(label: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> pl.Series:
    return pl.Series(label.tolist() if label.dtype.kind == "O" else label)


def _text(label: pl.Series) -> pl.Series:
    return label.cast(pl.String).fill_null("")
