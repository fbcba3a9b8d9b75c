"""Write quotes and rejected rows to files, completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl

from strikeout.errors import UsageError
from strikeout.quotes.columns import ALIASES, CARRIED, LABEL_NAMES, NUMBERS, QUARANTINE, as_text
from strikeout.quotes.exercise import is_american
from strikeout.quotes.parity import AMERICAN_MID
from strikeout.quotes.quotes import Quotes, is_unicode
from strikeout.quotes.spreadsheets import guarded, guarded_text
from strikeout.quotes.tables import Table


def replace_file(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it there in one step."""
    target = Path(path)
    if not is_unicode(str(target)):
        raise UsageError(f"{target}: its name is not UTF-8 text. Give it another name.", path=str(target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise UsageError(
            f"{target}: cannot be written ({error.strerror}). Check the folder.", path=str(target), errno=error.errno
        ) from error
    part = Path(name)
    try:
        os.close(handle)
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # a temporary file is private; the result is an ordinary one
        part.replace(target)
    except OSError as error:
        raise UsageError(
            f"{target}: cannot be written ({error.strerror}).", path=str(target), errno=error.errno
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return target


_COLUMN_OF_LABEL = {label: role for role, label in LABEL_NAMES.items()}


def write_quotes(quotes: Quotes, path: str | PathLike[str]) -> Path:
    """Write a book to a .csv or .parquet file, whole or not at all; `read_quotes` gives the same book back.

    A CSV has no types, so labels other than the canonical numbers come back as text; Parquet keeps every type. Texts of
    a CSV that a spreadsheet would run as formulas are written behind an apostrophe; see ``spreadsheets``.

    Raises:
        UsageError: the ending is neither .csv nor .parquet, a label has a reserved name, or the file cannot be written.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise UsageError(
            f"{target.name}: the ending is neither .csv nor .parquet. Give the file one of them.", ending=ending
        )
    frame = frame_of(quotes)
    return replace_file(target, guarded(frame).write_csv if ending == ".csv" else frame.write_parquet)


def frame_of(quotes: Quotes) -> pl.DataFrame:
    """Return the book in the canonical columns."""
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
    if AMERICAN_MID not in quotes.labels and _has_american(quotes):
        columns[AMERICAN_MID] = pl.Series([None] * len(quotes), dtype=pl.Float64)  # so that they are not converted
    return pl.DataFrame(columns)


def _has_american(quotes: Quotes) -> bool:
    style = quotes.labels.get("exercise")
    return style is not None and bool(is_american(np.asarray(style, object)).any())


def _column_of(label: str, *, is_number: bool, is_text: bool) -> str:
    name = _COLUMN_OF_LABEL.get(label, label)
    key = name.strip().lower().replace(" ", "_")
    role = next((role for role, others in ALIASES.items() if key == role or key in others), None)
    if role is None and name.strip() and name == name.strip():
        return name
    if role is None or role in CARRIED or name != role:
        raise UsageError(
            f"The label {label!r} would be read back as {role or 'a nameless column'}. Rename it.",
            label=label,
            role=role,
        )
    if not (is_number if role in NUMBERS else is_text):
        needed = "numbers" if role in NUMBERS else "text"
        raise UsageError(
            f"The label {label!r} must hold {needed}: files keep {role} as that.", label=label, needed=needed
        )
    return name


def rows_as_found(table: Table, issues: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of issues, all columns as text, and quarantine_row, quarantine_code, quarantine_sentence of each.

    A row with several faults is there once; its codes and sentences follow one another. So is a row that holds a call
    and a put, of which one or both have issues.
    """
    faults = issues.group_by(pl.col("row").alias("quarantine_row"), maintain_order=True).agg(
        pl.col("at").first(),
        pl.col("code").str.join(" ").alias("quarantine_code"),
        pl.col("sentence").str.join(" ").alias("quarantine_sentence"),
    )
    found = table.as_found(faults["at"]).drop(QUARANTINE, strict=False)  # of a file that was one already
    return pl.DataFrame([as_text(found, name) for name in found.columns]).hstack(faults.drop("at"))


def write_parts(preamble: Sequence[str], parts: Iterable[pl.DataFrame], path: str | PathLike[str]) -> Path:
    """Write rejected rows that come in parts, whole or not at all. ``preamble`` stands above the vendor's header."""

    def write(target: Path) -> None:
        with target.open("wb") as file:
            # What stands above a vendor's header (the day, the underlying) is needed to read the rows again.
            file.write("".join(f"{guarded_text(line)}\n" for line in preamble).encode())
            for number, bad in enumerate(parts):
                guarded(bad).write_csv(file, include_header=number == 0)

    return replace_file(path, write)
