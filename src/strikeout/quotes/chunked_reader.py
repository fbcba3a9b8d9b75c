"""Read a source chunk by chunk: values and faults of every row by itself.

How a table is understood depends on its columns and on facts that some row shows: a column has a value, an empty cell,
or a word among its numbers; a slice has calls and puts at one strike. A few rows show all of these facts. They are
collected while chunks are read (`SchemaSample`); if a later chunk changes how the file is understood, the file is read
again with what is known by then (`Plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from strikeout.errors import ColumnError
from strikeout.kernels.arrays import Words
from strikeout.quotes.applying import filled_columns, stacked
from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import BESIDE, NO_ROAD, SLICE, Layout, once, paired_rows, rights, with_constants
from strikeout.quotes.dividends import Dividends
from strikeout.quotes.issues import BY_ITSELF, IssueLog, Issues
from strikeout.quotes.limits import check_bad
from strikeout.quotes.rates import DatedCurves, RateCurve
from strikeout.quotes.row_values import VALUES, Rows, clock_of, read_rows
from strikeout.quotes.rules import Rules
from strikeout.quotes.spill import Place, Spill
from strikeout.quotes.tables import Opened, Table, open_sheet, opened, understood
from strikeout.quotes.text_files import Progress
from strikeout.text import Argument

WORK, LABEL = "w:", "l:"  # prefixes of the columns of stored rows: values of a quote, and its labels
NUMBER_OR_NAME = "underlying"  # a ticker, or the spot if all of its cells are numbers
AT_ONCE = 500_000  # rows of a partition when pairs are searched; a slice is never divided


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """How to read a source; see ``inspect_quotes``."""

    profile: str | PathLike[str] | None
    constants: Mapping[str, float | str]
    forwards: str
    clock: Clock | None
    is_beside: bool  # whether forwards may depend on quotes that are elsewhere
    curve: RateCurve | DatedCurves | None = None  # the rate of each row, whose column is a placeholder
    exercise: str = "auto"  # which rows are American and read as European: see ``exercise``
    dividends: Dividends | None = None  # cash dividends, which become labels of the rows

    def layout(self, table: Table) -> Layout:
        """Return how this table will be read."""
        is_asked = self.profile is not None
        try:
            found = understood(table, self.constants, forwards=self.forwards, is_asked=is_asked)[1]
        except ColumnError as error:
            if not self.is_beside or self.forwards != "auto" or not lacks_forward(error):
                raise
            found = understood(table, self.constants, forwards=BESIDE, is_asked=is_asked)[1]
        if self.exercise == "american" and "spot" not in found.places:
            raise ColumnError(
                "No column for spot, on which early exercise depends. Add one (",
                Argument("constants", {"spot": 450.81}),
                "), or read the quotes as European.",
                missing="spot",
                columns=table.frame.columns,
            )
        if self.dividends is not None and "quote_date" not in found.places:
            raise ColumnError(
                "No column for quote_date, from which the time to an ex-date is counted. Add one (",
                Argument("constants", {"quote_date": "YYYY-MM-DD"}),
                "), or leave the dividends out.",
                missing="quote_date",
                columns=table.frame.columns,
            )
        return found


def lacks_forward(error: ColumnError) -> bool:
    """Return whether all that is missing is a source of forwards."""
    return error.facts.get("missing") in NO_ROAD


@dataclass(frozen=True, eq=False)
class SchemaSample:
    """Rows that show a fact about their columns that no earlier row showed; ``shown`` are these facts."""

    frame: pl.DataFrame | None = None
    shown: frozenset[tuple[str, str]] = frozenset()

    @property
    def rows(self) -> pl.DataFrame:
        """The rows; a table without columns if there are none yet."""
        return pl.DataFrame() if self.frame is None else self.frame

    def extended(self, rows: pl.DataFrame) -> SchemaSample:
        """Return the sample with the rows that show something new; the same object if none does."""
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
        return self.with_rows(rows[list(wanted)], frozenset(shown))

    def with_rows(self, more: pl.DataFrame, shown: frozenset[tuple[str, str]] | None = None) -> SchemaSample:
        """Return the sample with these rows too, in the columns it has."""
        rows = more if self.frame is None else stacked([self.frame, more])
        return SchemaSample(rows, self.shown if shown is None else shown)


def _is_word(column: pl.Series) -> pl.Series:
    return column.str.strip_chars().cast(pl.Float64, strict=False).is_null() & column.is_not_null()


def _facts(column: pl.Series) -> dict[str, pl.Series]:
    """Return the facts a cell can show, and which cells show them."""
    facts = {"empty": column.is_null(), "filled": column.is_not_null()}
    if column.name.strip().lower() == NUMBER_OR_NAME and column.dtype == pl.String:
        facts["word"] = once(column, _is_word)
    return facts


@dataclass(frozen=True, eq=False)
class Plan:
    """What is known of a source before a pass over it: its layout, its columns with values, a sample of its rows."""

    opened: Opened
    filled: frozenset[str] = frozenset()  # columns with values, if they affect the layout of a profile
    sample: SchemaSample = SchemaSample()

    def tables(self, progress: Progress | None = None) -> Iterator[tuple[Table, frozenset[str]]]:
        """Yield every block as a table, and the columns that have values so far."""
        seen, filled = self.filled, self.filled
        for block in self.opened.sheet.blocks(progress):
            seen |= filled_columns(block.frame) if self.opened.profile is not None else frozenset()
            filled = filled or seen
            yield self.opened.table(block, filled, seen), seen


@dataclass(frozen=True, eq=False)
class Chunks:
    """A source of which every row was read by itself.

    ``table`` has no rows: it describes the source. ``fingerprints`` are 64 bits of the id of every good row.
    """

    plan: Plan
    table: Table
    layout: Layout
    clock: Clock | None
    log: IssueLog
    fingerprints: Words
    places: tuple[Place, ...]
    store: Spill
    columns: Mapping[str, pl.DataType]  # of all chunks; one without an American row lacks their label

    def rows(self) -> Iterator[pl.DataFrame]:
        """Yield the rows that no rule has removed so far, chunk by chunk: at, row, id, values and labels."""
        for place in self.places:
            rows = self.store.get(place)
            if rows.columns != [*self.columns]:
                absent = (name for name in self.columns if name not in rows.columns)
                rows = rows.with_columns(pl.lit(None, self.columns[name]).alias(name) for name in absent)
                rows = rows.select(*self.columns)
            yield self.kept(rows)

    def kept(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return those of these rows that no rule has removed so far."""
        is_kept = self.log.kept[rows["at"].to_numpy()]
        return rows if is_kept.all() else rows.filter(pl.Series(is_kept))

    def rules(self, rows: pl.DataFrame) -> Rules:
        """Return the rules, to report issues of these rows."""
        return Rules(replace(self.table, rows=rows["row"]), rows.select("at"), self.layout)


def read_chunks(
    source: Any, how: ReadOptions, *, store: Spill, progress: Progress | None = None, size: int = 0
) -> Chunks:
    """Read a source once; again only if a later chunk changes how the first is understood.

    Args:
        size: of a chunk: bytes of text, or rows of a Parquet file; the default size if 0.
    """
    plan = Plan(open_sheet(source, profile=how.profile, given=frozenset(how.constants), size=size))
    while True:
        outcome = _read_once(plan, how, store, progress)
        if isinstance(outcome, Chunks):
            return outcome
        plan = outcome
        store.clear()


def _read_once(plan: Plan, how: ReadOptions, store: Spill, progress: Progress | None) -> Chunks | Plan:
    """Read every chunk; return a better plan if one of them shows that this one is wrong."""
    try:
        return _Pass(plan, how, store).run(progress)
    except UnicodeDecodeError:  # the beginning of the file was UTF-8, and the rest is not
        western = plan.opened.sheet.western
        if western is None:
            raise
        return Plan(opened(western(), how.profile, frozenset(how.constants)))


class _Pass:
    """One pass over the chunks of a source."""

    def __init__(self, plan: Plan, how: ReadOptions, store: Spill) -> None:
        self._plan, self._how, self._store = plan, how, store
        self._log = IssueLog(store)
        self._places: list[Place] = []
        self._columns: dict[str, pl.DataType] = {}
        self._fingerprints: list[Words] = []
        self._layout: Layout | None = None
        self._missing: ColumnError | None = None
        self._bad, self._first_bad = 0, ""

    def run(self, progress: Progress | None) -> Chunks | Plan:
        """Read every chunk, or return the plan to read the source by."""
        plan, sample, table, count = self._plan, self._plan.sample, None, 0
        for table, seen in plan.tables(progress):
            filled = plan.filled or seen
            if not plan.filled:
                plan = replace(plan, filled=filled)
            if not plan.opened.reads_alike(filled, seen):
                return Plan(plan.opened, seen)
            count += table.frame.height
            larger = sample.extended(table.frame)
            if larger is not sample or self._layout is None:
                sample, is_stale = self._understand(larger, table)
                if is_stale:
                    return replace(plan, sample=sample)
            if self._layout is not None:
                self._read(table, self._layout)
        if table is None or not count:
            raise plan.opened.no_rows()
        if self._layout is None:
            if self._missing is None or not lacks_forward(self._missing):
                raise self._missing or plan.opened.no_rows()
            # No chunk alone has calls and puts at enough strikes of one slice. The whole file may.
            self._store.clear()
            return replace(plan, sample=_paired_across(plan, sample, self._how, table, self._store, count))
        layout = self._how.layout(replace(table, frame=sample.rows))
        bare = replace(table, frame=table.frame.clear(), rows=table.rows.clear(), overflow=None, found=None)
        return Chunks(
            plan=plan, table=bare, layout=layout, clock=clock_of(bare, self._how.clock), log=self._log,
            fingerprints=np.concatenate(self._fingerprints), places=tuple(self._places), store=self._store,
            columns=self._columns,
        )  # fmt: skip

    def _understand(self, sample: SchemaSample, table: Table) -> tuple[SchemaSample, bool]:
        """Update the layout; return the sample, and whether earlier chunks were read or skipped by another layout."""
        sample, layout, missing = _layout_of(sample, table, self._how)
        skipped = self._missing is not None and layout is not None
        before = self._layout
        other = before is not None and (layout is None or replace(layout, columns=()) != replace(before, columns=()))
        self._layout, self._missing = layout, missing
        return sample, skipped or other

    def _read(self, table: Table, layout: Layout) -> None:
        """Read the rows of a chunk and store the good ones."""
        clock = clock_of(table, self._how.clock)
        rules = Rules(table, with_constants(table.frame, self._how.constants), layout)
        rows = read_rows(rules, clock, self._how.curve, exercise=self._how.exercise, dividends=self._how.dividends)
        begin = self._log.begin(table.frame.height)
        for found in (found for found in rows.found if found.height):
            self._log.add(found.with_columns(pl.col("at") + begin), BY_ITSELF)
        self._bad += int((~rows.good).sum())
        if self._bad and not self._first_bad:
            self._first_bad = str(Issues.joined(rows.found).first_rejected())
        check_bad(table.name, self._bad, self._first_bad)
        good = _packed(rows, table, begin)
        self._places.append(self._store.put(good))
        self._columns |= good.schema
        self._fingerprints.append(good["id"].hash().to_numpy())


def _layout_of(
    sample: SchemaSample, table: Table, how: ReadOptions
) -> tuple[SchemaSample, Layout | None, ColumnError | None]:
    """Return how the file is understood so far, or what is missing; the sample gets a slice of pairs if that helps."""
    seen = replace(table, frame=sample.rows)
    try:
        return sample, how.layout(seen), None
    except ColumnError as error:
        missing = error
    places = _pair_places(seen, how) if lacks_forward(missing) else None
    if places is not None:
        paired = paired_rows(with_constants(table.frame, how.constants), places)
        if paired.height:
            sample = _in_columns(sample.with_rows(paired), table)
        try:
            return sample, how.layout(replace(table, frame=sample.rows)), None
        except ColumnError as error:
            missing = error
    return sample, None, missing


def _paired_across(
    plan: Plan, sample: SchemaSample, how: ReadOptions, table: Table, store: Spill, count: int
) -> SchemaSample:
    """Return the sample with rows of a slice whose pairs are spread over chunks."""

    def frames() -> Iterator[pl.DataFrame]:
        return (with_constants(block.frame, how.constants) for block, _ in plan.tables())

    places = _pair_places(replace(table, frame=sample.rows), how)
    rows = None if places is None else pairs_across(frames, places, store=store, count=count)
    sample = sample if rows is None else _in_columns(sample.with_rows(rows), table)
    how.layout(replace(table, frame=sample.rows))
    return sample


def _in_columns(sample: SchemaSample, table: Table) -> SchemaSample:
    return replace(sample, frame=sample.rows.select(table.frame.columns))


def _pair_places(seen: Table, how: ReadOptions) -> Mapping[str, str] | None:
    """Return the columns that pair calls and puts; None if forwards come from elsewhere or there are no prices."""
    if how.forwards not in ("auto", "parity"):
        return None
    try:
        return understood(seen, how.constants, forwards=BESIDE)[1].places
    except ColumnError:
        return None


def pairs_across(
    frames: Callable[[], Iterable[pl.DataFrame]], places: Mapping[str, str], *, store: Spill, count: int
) -> pl.DataFrame | None:
    """Return rows of a slice with calls and puts at enough strikes for a parity line; None if no slice has them.

    Args:
        frames: the chunks of a file, from its beginning.
        places: the columns of slices, strikes and rights.
        count: rows of the file.
    """
    parts: tuple[list[Place], ...] = tuple([] for _ in range(max(1, -(-count // AT_ONCE))))
    begin = 0
    for frame in frames():
        named = rights(frame, places).with_columns(pl.col("at").cast(pl.Int64) + begin)
        named = named.unique(named.columns[1:], keep="first", maintain_order=True)
        key = row_hash(named, SLICE)
        part = (key % len(parts)).to_numpy()
        for number in np.unique(part).tolist():
            parts[number].append(store.put(named.filter(pl.Series(part == number))))
        begin += frame.height
    for part_places in parts:
        if part_places:
            named = stacked([store.get(place) for place in part_places])
            found = paired_rows(named, {role: role for role in places if role in named.columns})
            if found.height:
                return _fetched(frames(), found["at"])
    return None


def row_hash(table: pl.DataFrame, names: Iterable[str]) -> pl.Series:
    """Return a number that rows with equal texts in these columns share."""
    key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, table.height)
    for name in (name for name in names if name in table.columns):
        key = (key + table[name].cast(pl.String).fill_null("").hash()).hash()
    return key


def _fetched(frames: Iterable[pl.DataFrame], at: pl.Series) -> pl.DataFrame:
    found, begin = [], 0
    for frame in frames:
        here = at.filter((at >= begin) & (at < begin + frame.height)) - begin
        found += [frame[here]] if here.len() else []
        begin += frame.height
    return stacked(found)


def _packed(rows: Rows, table: Table, begin: int) -> pl.DataFrame:
    """Return the good rows as one table: position, row number, id, values, labels."""
    at = pl.int_range(begin, begin + rows.ids.len(), eager=True)
    columns = {"at": at, "row": table.rows.cast(pl.Int64), "id": rows.ids}
    columns |= {WORK + name: rows.work[name] for name in VALUES if name in rows.work.columns}
    columns |= {LABEL + name: rows.labels[name] for name in rows.labels.columns}
    # Columns in chunks of different lengths would be copied by every later select.
    packed = pl.DataFrame(columns).rechunk()
    return packed if rows.good.all() else packed.filter(rows.good)


def unpacked(rows: pl.DataFrame, mark: str) -> pl.DataFrame:
    """Return the columns with this prefix, without it."""
    return rows.select(pl.col(name).alias(name.removeprefix(mark)) for name in rows.columns if name.startswith(mark))
