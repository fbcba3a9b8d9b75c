"""Writing a book so that reading it back gives the same bits."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl

from strikeout.errors import UsageError
from strikeout.quotes.columns import ALIASES, CARRIED, LABEL_NAMES, NUMBERS
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.replacing import replace_file
from strikeout.quotes.spreadsheets import guarded

_COLUMN_OF_LABEL = {label: role for role, label in LABEL_NAMES.items()}


def write_quotes(quotes: Quotes, path: str | PathLike[str]) -> Path:
    """Writes a book to a .csv or .parquet file, whole or not at all; `read_quotes` gives the same book back.

    A CSV has no types, so labels other than the canonical numbers come back as text; Parquet keeps every type. Texts of
    a CSV that a spreadsheet would run as formulas are written behind an apostrophe; see ``spreadsheets``.

    Raises:
        UsageError: the ending is neither .csv nor .parquet, a label has a reserved name, or the file cannot be written.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise UsageError(f"{target.name}: the ending says neither .csv nor .parquet. Give the file one of them.")
    frame = frame_of(quotes)
    return replace_file(target, guarded(frame).write_csv if ending == ".csv" else frame.write_parquet)


def frame_of(quotes: Quotes) -> pl.DataFrame:
    """The book in the canonical columns.

    Raises:
        UsageError: a label has the name of a canonical column and would be read back as something else.
    """
    contracts = quotes.contracts
    columns = {
        "id": pl.Series(quotes.ids.tolist(), dtype=pl.String),
        "expiry_years": contracts.expiry,
        "strike": contracts.strike,
        "right": np.where(contracts.is_call, "C", "P"),
        "price": quotes.observed,
        "forward": contracts.forward,
        "discount": contracts.discount,
        "weight": quotes.weight,
    }
    if np.isfinite(quotes.spread).any():
        columns["spread"] = pl.Series(quotes.spread).fill_nan(None)
    for label, values in quotes.labels.items():
        name = _column_of(label, is_number=values.dtype.kind == "f", is_text=values.dtype.kind in "OU")
        columns[name] = pl.Series(values.tolist(), dtype=pl.String) if values.dtype.kind in "OU" else pl.Series(values)
    return pl.DataFrame(columns)


def _column_of(label: str, *, is_number: bool, is_text: bool) -> str:
    name = _COLUMN_OF_LABEL.get(label, label)
    key = name.strip().lower().replace(" ", "_")
    role = next((role for role, others in ALIASES.items() if key == role or key in others), None)
    if role is None and name.strip() and name == name.strip():
        return name
    if role is None or role in CARRIED or name != role:
        raise UsageError(
            f"The label {label!r} would be read back as {role or 'a nameless column'}. Rename it.", label=label
        )
    if not (is_number if role in NUMBERS else is_text):
        raise UsageError(
            f"The label {label!r} must hold {'numbers' if role in NUMBERS else 'text'}: files keep {role} as that."
        )
    return name
