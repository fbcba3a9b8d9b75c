"""Where bad rows go: a CSV of them as they were found, with what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

import polars as pl

from strikeout.quotes.columns import QUARANTINE, as_text
from strikeout.quotes.issues import Issues
from strikeout.quotes.replacing import replace_file
from strikeout.quotes.spreadsheets import guarded, guarded_text
from strikeout.quotes.tables import Table


def quarantined(table: Table, issues: Issues) -> pl.DataFrame:
    """The rejected rows, all columns as text, and quarantine_row, quarantine_code, quarantine_sentence of each.

    A row with several faults is there once; its codes and sentences follow one another. So is a row that holds a call
    and a put, of which one or both are rejected.
    """
    faults = (
        issues.frame.filter("is_rejected")
        .group_by(pl.col("row").alias("quarantine_row"), maintain_order=True)
        .agg(
            pl.col("at").first(),
            pl.col("code").str.join(" ").alias("quarantine_code"),
            pl.col("sentence").str.join(" ").alias("quarantine_sentence"),
        )
    )
    found = table.as_found(faults["at"]).drop(QUARANTINE, strict=False)  # of a file that was one already
    return pl.DataFrame([as_text(found, name) for name in found.columns]).hstack(faults.drop("at"))


def write_quarantine(table: Table, issues: Issues, path: str | PathLike[str]) -> Path:
    """Writes the rejected rows to a CSV, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    return write_parts(table.preamble, [quarantined(table, issues)], path)


def write_parts(preamble: Sequence[str], parts: Iterable[pl.DataFrame], path: str | PathLike[str]) -> Path:
    """Writes rejected rows that come in parts, whole or not at all. ``preamble`` stands above the vendor's header.

    Raises:
        UsageError: the file cannot be written.
    """

    def write(target: Path) -> None:
        with target.open("wb") as file:
            # What stands above a vendor's header (the day, the underlying) is needed to read the rows again.
            file.write("".join(f"{guarded_text(line)}\n" for line in preamble).encode())
            for number, bad in enumerate(parts):
                guarded(bad).write_csv(file, include_header=number == 0)

    return replace_file(path, write)
