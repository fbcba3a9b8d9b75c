"""The first way through a large file: every row by itself, a block at a time; the good ones are put away on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.errors import ColumnError
from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import Layout, with_constants
from strikeout.quotes.derivation import BESIDE, NO_ROAD
from strikeout.quotes.duplicates import VALUES
from strikeout.quotes.issue_log import BY_ITSELF, IssueLog
from strikeout.quotes.issues import Issues
from strikeout.quotes.limits import check_bad
from strikeout.quotes.row_values import Rows, clock_of, read_rows
from strikeout.quotes.rules import Rules
from strikeout.quotes.schema_sample import SchemaSample, pairs_across
from strikeout.quotes.spill import Place, Spill
from strikeout.quotes.tables import Opened, Refilled, Table, open_sheet, opened, understood
from strikeout.quotes.text_files import Progress

WORK, LABEL = "w:", "l:"  # in front of the columns of rows put away: what a quote is, and what else is known of it


@dataclass(frozen=True, eq=False)
class How:
    """How a source is to be read; see ``inspect_quotes``."""

    profile: str | PathLike[str] | None
    constants: Mapping[str, float | str]
    forwards: str
    clock: Clock | None
    is_beside: bool  # whether forwards may rest on quotes that are elsewhere

    def layout(self, table: Table) -> Layout:
        """How this table will be read.

        Raises:
            ColumnError: a needed column is missing, or two claim the same role.
            UsageError: a constant has no canonical name.
        """
        is_asked = self.profile is not None
        try:
            return understood(table, self.constants, forwards=self.forwards, is_asked=is_asked)[1]
        except ColumnError as error:
            if not self.is_beside or self.forwards != "auto" or not is_roadless(error):
                raise
            return understood(table, self.constants, forwards=BESIDE, is_asked=is_asked)[1]


def is_roadless(error: ColumnError) -> bool:
    """Whether all that is missing is a way to the forwards."""
    return error.facts.get("missing") in NO_ROAD


@dataclass(frozen=True, eq=False)
class Sifted:
    """A file of which every row was looked at by itself.

    ``table`` is without rows: how the file is laid out. ``prints`` are 64 bits of the id of every good row.
    """

    sheet: Opened
    filled: frozenset[str]  # columns, see ``Opened.pieces``
    table: Table
    layout: Layout
    clock: Clock | None
    findings: IssueLog
    prints: NDArray[np.uint64]
    places: tuple[Place, ...]
    scratch: Spill

    def blocks(self) -> Iterator[pl.DataFrame]:
        """The rows that no rule has taken out so far, block by block: at, row, id, and what they hold."""
        for place in self.places:
            rows = self.scratch.get(place)
            yield rows.filter(pl.Series(self.findings.kept[rows["at"].to_numpy()]))

    def rules(self, rows: pl.DataFrame) -> Rules:
        """The rules, to speak of these rows."""
        return Rules(replace(self.table, rows=rows["row"]), rows.select("at"), self.layout)


class _Understood(Exception):  # noqa: N818 - it tells of something found, not of an error
    """A later block shows that the file is to be understood in another way."""

    def __init__(self, witness: SchemaSample) -> None:
        super().__init__()
        self.witness = witness


def sift(source: Any, how: How, *, scratch: Spill, progress: Progress | None = None, size: int = 0) -> Sifted:
    """Reads a file once, row by row; more than once only where a later block changes how the first is understood.

    Args:
        size: of a block: bytes of text, or rows of a Parquet file; as usual where 0.

    Raises:
        UnreadableFileError: no such file, empty, or not the format its name says.
        ColumnError: a needed column is missing, or two claim the same role.
        UsageError: there is no such profile, or no room on disk.
    """
    given = frozenset(how.constants)
    sheet = open_sheet(source, profile=how.profile, given=given, size=size)
    filled, witness = frozenset[str](), SchemaSample()
    while True:
        try:
            return _sifted(sheet, how, filled, witness, scratch, progress)
        except Refilled as found:
            filled, witness = found.filled, SchemaSample()
        except _Understood as found:
            witness = found.witness
        except _NoPairs as found:
            # No block alone has calls and puts at enough strikes of one slice. The whole file may.
            scratch.clear()
            witness = _paired_across(sheet, filled, how, found, scratch)
        except UnicodeDecodeError:
            if sheet.sheet.western is None:
                raise
            sheet, filled, witness = opened(sheet.sheet.western(), how.profile, given), frozenset(), SchemaSample()
        scratch.clear()


class _NoPairs(Exception):  # noqa: N818
    """All that is missing is a slice with enough pairs, and it may be spread over blocks.

    ``table`` is the last block, ``count`` is of the rows of the file.
    """

    def __init__(self, witness: SchemaSample, table: Table, count: int) -> None:
        super().__init__()
        self.witness, self.table, self.count = witness, table, count


def _sifted(
    sheet: Opened, how: How, filled: frozenset[str], witness: SchemaSample, scratch: Spill, progress: Progress | None
) -> Sifted:
    findings, places, prints = IssueLog(scratch), [], []
    layout: Layout | None = None
    missing: ColumnError | None = None
    table: Table | None = None
    count, bad, first = 0, 0, ""
    for piece in sheet.pieces(filled, progress):
        table = piece.table
        count += table.frame.height
        grown = witness.of(table.frame)
        if grown is not witness or layout is None:
            witness, new, why = _understood(grown, table, how)
            if missing is not None and new is not None:
                raise _Understood(witness)  # blocks before this one were left lying
            if layout is not None and (new is None or replace(new, columns=()) != replace(layout, columns=())):
                raise _Understood(witness)
            layout, missing = new, why
        if layout is None:
            continue
        clock = clock_of(table, how.clock)
        rows = read_rows(Rules(table, with_constants(table.frame, how.constants), layout), clock)
        begin = findings.begin(table.frame.height)
        for part in rows.found:
            findings.add(part.with_columns(pl.col("at") + begin), BY_ITSELF)
        bad += int((~rows.good).sum())
        if bad and not first:
            first = str(Issues.joined(rows.found).first_rejected())
        check_bad(table.name, bad, first)
        good = _packed(rows, table, begin)
        places.append(scratch.put(good))
        prints.append(good["id"].hash().to_numpy())
    if table is None or not count:
        raise sheet.no_rows()
    if layout is None:
        if missing is not None and is_roadless(missing):
            raise _NoPairs(witness, table, count)
        raise missing or sheet.no_rows()
    final = how.layout(replace(table, frame=witness.rows))
    bare = replace(table, frame=table.frame.clear(), rows=table.rows.clear(), overflow=None, found=None)
    return Sifted(
        sheet, filled, bare, final, clock_of(bare, how.clock), findings, np.concatenate(prints), tuple(places), scratch
    )


def _understood(
    witness: SchemaSample, table: Table, how: How
) -> tuple[SchemaSample, Layout | None, ColumnError | None]:
    """How the file is understood as far as it is known, or what is missing; with a slice of pairs where that helps."""
    seen = replace(table, frame=witness.rows)
    try:
        return witness, how.layout(seen), None
    except ColumnError as error:
        missing = error
    places = _pair_places(seen, how) if is_roadless(missing) else None
    if places is not None:
        witness = _paired(witness, table, how, places)
        try:
            return witness, how.layout(replace(table, frame=witness.rows)), None
        except ColumnError as error:
            missing = error
    return witness, None, missing


def _paired_across(sheet: Opened, filled: frozenset[str], how: How, found: _NoPairs, scratch: Spill) -> SchemaSample:
    """The witness with rows of a slice whose pairs are spread over blocks.

    Raises:
        ColumnError: there is none, or it would not help.
    """

    def blocks() -> Iterator[pl.DataFrame]:
        return (with_constants(piece.table.frame, how.constants) for piece in sheet.pieces(filled))

    seen = replace(found.table, frame=found.witness.rows)
    places = _pair_places(seen, how)
    rows = None if places is None else pairs_across(blocks, places, scratch=scratch, count=found.count)
    witness = found.witness if rows is None else found.witness.and_rows(rows)
    witness = replace(witness, frame=witness.rows.select(seen.frame.columns))
    how.layout(replace(seen, frame=witness.rows))
    return witness


def _pair_places(seen: Table, how: How) -> Mapping[str, str] | None:
    """The columns by which calls and puts would be paired; None where that is not asked for or they have no prices."""
    if how.forwards not in ("auto", "parity"):
        return None
    try:
        return understood(seen, how.constants, forwards=BESIDE)[1].places
    except ColumnError:
        return None


def _paired(witness: SchemaSample, table: Table, how: How, places: Mapping[str, str]) -> SchemaSample:
    paired = witness.with_pairs(with_constants(table.frame, how.constants), places)
    return replace(paired, frame=paired.rows.select(table.frame.columns))


def _packed(rows: Rows, table: Table, begin: int) -> pl.DataFrame:
    """The good rows as one table: where each was, its id, what it is, what else is known of it."""
    at = pl.int_range(begin, begin + rows.ids.len(), eager=True)
    columns = {"at": at, "row": table.rows.cast(pl.Int64), "id": rows.ids}
    columns |= {WORK + name: rows.work[name] for name in VALUES if name in rows.work.columns}
    columns |= {LABEL + name: rows.labels[name] for name in rows.labels.columns}
    return pl.DataFrame(columns).filter(rows.good)


def unpacked(rows: pl.DataFrame, mark: str) -> pl.DataFrame:
    """The columns with this mark, without it."""
    return rows.select(pl.col(name).alias(name.removeprefix(mark)) for name in rows.columns if name.startswith(mark))
