"""The few rows of a file that decide how all of it is understood.

How a table is read depends on its columns and on what is true of some row: a column has a value, or an empty cell, or a
word among its numbers; a slice has calls and puts at one strike. A handful of rows shows all of that, so a file that is
read in pieces is understood as if it were there as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from strikeout.quotes.applying import stacked
from strikeout.quotes.derivation import SLICE, paired_rows, rights
from strikeout.quotes.spill import Place, Spill

NUMBER_OR_NAME = "underlying"  # a ticker, or where all of its cells are numbers the spot


@dataclass(frozen=True, eq=False)
class SchemaSample:
    """Rows seen so far that show something no earlier one did; ``shown`` is what."""

    frame: pl.DataFrame | None = None
    shown: frozenset[tuple[str, str]] = frozenset()

    @property
    def rows(self) -> pl.DataFrame:
        """The rows; a table without columns where none was seen."""
        return pl.DataFrame() if self.frame is None else self.frame

    def of(self, rows: pl.DataFrame) -> SchemaSample:
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

    def with_pairs(self, rows: pl.DataFrame, places: Mapping[str, str]) -> SchemaSample:
        """With the rows of a slice that has enough calls and puts at one strike; the same where none has."""
        slice_ = paired_rows(rows, places)
        return self if not slice_.height else self.and_rows(slice_)

    def and_rows(self, rows: pl.DataFrame) -> SchemaSample:
        """With these rows too."""
        return self._with(rows, self.shown)

    def _with(self, more: pl.DataFrame, shown: frozenset[tuple[str, str]]) -> SchemaSample:
        return SchemaSample(more if self.frame is None else stacked([self.frame, more]), shown)


def _facts(column: pl.Series) -> dict[str, pl.Series]:
    """What can be true of a cell, and where it is."""
    facts = {"empty": column.is_null(), "filled": column.is_not_null()}
    if column.name.strip().lower() == NUMBER_OR_NAME and column.dtype == pl.String:
        number = column.str.strip_chars().cast(pl.Float64, strict=False)
        facts["word"] = number.is_null() & column.is_not_null()
    return facts


AT_ONCE = 500_000  # rows in a part, more or less; a slice is never divided

Blocks = Callable[[], Iterable[pl.DataFrame]]  # of a file, from its beginning


def pairs_across(blocks: Blocks, places: Mapping[str, str], *, scratch: Spill, count: int) -> pl.DataFrame | None:
    """Rows of a slice of the file that has calls and puts at enough strikes for a line; None where no slice has.

    Args:
        places: which columns of the blocks tell slices, strikes and rights.
        count: rows of the file.

    Raises:
        UsageError: no room on disk.
    """
    parts: tuple[list[Place], ...] = tuple([] for _ in range(max(1, -(-count // AT_ONCE))))
    begin = 0
    for block in blocks():
        named = rights(block, places).with_columns(pl.col("at").cast(pl.Int64) + begin)
        named = named.unique(named.columns[1:], keep="first", maintain_order=True)
        part = (_slices(named) % len(parts)).to_numpy()
        for number in np.unique(part).tolist():
            parts[number].append(scratch.put(named.filter(pl.Series(part == number))))
        begin += block.height
    for part_places in parts:
        if part_places:
            named = stacked([scratch.get(place) for place in part_places])
            found = paired_rows(named, {role: role for role in places if role in named.columns})
            if found.height:
                return _fetched(blocks(), found["at"])
    return None


def _slices(named: pl.DataFrame) -> pl.Series:
    """A number that rows of one slice share."""
    key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, named.height)
    for role in (role for role in SLICE if role in named.columns):
        key = (key + named[role].cast(pl.String).fill_null("").hash()).hash()
    return key


def _fetched(blocks: Iterable[pl.DataFrame], at: pl.Series) -> pl.DataFrame:
    found, begin = [], 0
    for block in blocks:
        here = at.filter((at >= begin) & (at < begin + block.height)) - begin
        found += [block[here]] if here.len() else []
        begin += block.height
    return stacked(found)
