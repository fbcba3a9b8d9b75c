"""The few rows of a file that decide how all of it is understood.

How a table is read depends on its columns and on what is true of some row: a column has a value, or an empty cell, or a
word among its numbers; a slice has calls and puts at one strike. A handful of rows shows all of that, so a file that is
read in pieces is understood as if it were there as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from strikeout.quotes.applying import stacked
from strikeout.quotes.routes import paired_rows

NUMBER_OR_NAME = "underlying"  # a ticker, or where all of its cells are numbers the spot


@dataclass(frozen=True, eq=False)
class Witness:
    """Rows seen so far that show something no earlier one did; ``shown`` is what."""

    frame: pl.DataFrame | None = None
    shown: frozenset[tuple[str, str]] = frozenset()

    @property
    def rows(self) -> pl.DataFrame:
        """The rows; a table without columns where none was seen."""
        return pl.DataFrame() if self.frame is None else self.frame

    def of(self, rows: pl.DataFrame) -> Witness:
        """With the rows among these that show something new; the same witness where none does."""
        wanted: dict[int, None] = {}
        shown = set(self.shown)
        for column in rows.get_columns():
            for what, is_there in _facts(column).items():
                at = None if (column.name, what) in shown else is_there.arg_max()
                if at is not None and is_there[at]:
                    shown.add((column.name, what))
                    wanted[at] = None
        if not wanted and self.frame is not None:
            return self
        return self._with(rows[list(wanted)], frozenset(shown))

    def with_pairs(self, rows: pl.DataFrame, places: Mapping[str, str]) -> Witness:
        """With the rows of a slice that has enough calls and puts at one strike; the same where none has."""
        slice_ = paired_rows(rows, places)
        return self if not slice_.height else self.and_rows(slice_)

    def and_rows(self, rows: pl.DataFrame) -> Witness:
        """With these rows too."""
        return self._with(rows, self.shown)

    def _with(self, more: pl.DataFrame, shown: frozenset[tuple[str, str]]) -> Witness:
        return Witness(more if self.frame is None else stacked([self.frame, more]), shown)


def _facts(column: pl.Series) -> dict[str, pl.Series]:
    """What can be true of a cell, and where it is."""
    facts = {"empty": column.is_null(), "filled": column.is_not_null()}
    if column.name.strip().lower() == NUMBER_OR_NAME and column.dtype == pl.String:
        number = column.str.strip_chars().cast(pl.Float64, strict=False)
        facts["word"] = number.is_null() & column.is_not_null()
    return facts
