"""Calls in one block of a file and their puts in another: a slice with enough of both, found without holding the file.

Block by block, what tells slices, strikes and rights apart goes to disk, in parts of whole slices. Part by part, a
slice that has enough is looked for. Its rows are then fetched from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import polars as pl

from strikeout.quotes.applying import stacked
from strikeout.quotes.routes import SLICE, paired_rows, rights
from strikeout.quotes.scratch import Place, Scratch

AT_ONCE = 500_000  # rows in a part, more or less; a slice is never divided

Blocks = Callable[[], Iterable[pl.DataFrame]]  # of a file, from its beginning


def pairs_across(blocks: Blocks, places: Mapping[str, str], *, scratch: Scratch, count: int) -> pl.DataFrame | None:
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
