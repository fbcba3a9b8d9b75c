"""Read quotes from a file or frame: good rows become quotes; bad rows get a code and a sentence and are left out.

    1. chunk by chunk, each row by itself                                              chunked_reader
    2. rows that share an id, found by 64 bits of it and then by all of it             validate
    3. timestamp by timestamp (underlying, class, date, time): forwards, and every rule but one
    4. strike by strike, the rule that looks back in time
    5. chunk by chunk again, in the order of the file: the quotes that are left        here

The chunks are in memory, or on disk if the source does not fit there (`Chunking`); the result is the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import polars as pl

from strikeout.errors import RejectedError, UsageError
from strikeout.quotes.checks.catalogue import Checks
from strikeout.quotes.chunked_reader import LABEL, Chunks, ReadOptions, read_chunks
from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import Column
from strikeout.quotes.dividends import Dividends
from strikeout.quotes.exercise import check_style
from strikeout.quotes.forwards import Forwards, forwards_of, with_given
from strikeout.quotes.issues import REPEATED, Issues, IssueSummary, QuotesWarning, Screening
from strikeout.quotes.parity import AMERICAN_MID
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rates import DatedCurves, RateCurve
from strikeout.quotes.row_values import describe_derivation
from strikeout.quotes.spill import Spill
from strikeout.quotes.tables import Table
from strikeout.quotes.validate import Beside, Partitions, Verdict, apply_rules, column_names, remove_duplicates
from strikeout.quotes.writing import rows_as_found, write_parts
from strikeout.text import Argument, as_lines, many

DEFAULTS = {"forwards": "auto"}  # options that a reading does not list with these values
MAX_REJECT = 0.1  # a file with more bad rows than this is more likely misread than merely dirty

Progress = Callable[[str, float], None]  # the current step, and the share of it that is done


@dataclass(frozen=True)
class Chunking:
    """How to divide the work on a large file.

    Args:
        on_disk: keep the chunks on disk; memory then does not grow with the file.
        folder: on whose disk, in a file without a name, about as large as the source; temporary files by default.
        size: of a chunk: bytes of text, or rows of a Parquet file; the default size if 0.
        at_once: rows that are checked together, more or less; quotes of one timestamp are never divided.
        progress: called with the current step and the share of it that is done.
    """

    on_disk: bool = True
    folder: str | PathLike[str] | None = None
    size: int = 0
    at_once: int = 500_000
    progress: Progress | None = None


IN_MEMORY = Chunking(on_disk=False, at_once=1_000_000)


@dataclass(frozen=True, eq=False)
class Reading:
    """The content of a source and how it was understood: quotes, issues, columns.

    ``rows`` = ``count`` + ``rejected`` + ``repeated``; ``numbering`` is the kind of row number ("line" of a CSV, whose
    header is line 1, or "row", a position from 0); ``routes`` states what each quantity was computed from.
    ``unreadable`` of the rejected rows cannot be read; the others are expired, have no market or no price, or are
    sound and ``cut`` by a rule that was set to reject. ``unchecked`` are rules not run, and why.

    ``quotes`` are all quotes at once, ``chunks()`` yields them chunk by chunk. A reading with chunks on disk frees them
    with ``close()``, or at the end of a ``with`` statement.
    """

    source: str
    rows: int
    count: int
    rejected: int
    unreadable: int
    repeated: int
    cut: int
    issues: Issues | IssueSummary
    columns: tuple[Column, ...]
    routes: Mapping[str, str]
    unchecked: Mapping[str, str]
    numbering: str
    table: Table  # without rows
    options: Mapping[str, Any]  # keywords of `inspect_quotes`, as given
    screening: Screening
    _chunks: Chunks
    _parts: Partitions
    _verdict: Verdict
    _progress: Progress

    @property
    def layout(self) -> str:
        """The profile the source was read by, as text."""
        return self.table.layout

    @property
    def settings(self) -> dict[str, str]:
        """The options that it was read with and that are not the defaults, as text; constants and rules by name."""
        named: dict[str, Any] = {"exercise": "auto"}
        named |= {name: given for name, given in self.options.items() if name not in ("constants", "checks")}
        constants, rules = self.options.get("constants") or {}, self.options.get("checks") or {}
        named |= {**constants, **(rules if isinstance(rules, Mapping) else {"checks": rules})}
        words = {name: _as_word(given) for name, given in named.items() if given is not None}
        return {name: word for name, word in words.items() if word != DEFAULTS.get(name)}

    @property
    def conventions(self) -> dict[str, str]:
        """The layout and the settings, without the value of any constant but the rate.

        It can be kept longer than the quotes: a constant may be the strike, the price or the date of one.
        """
        hidden = self.options.get("constants") or {}
        shown = {name: "given" if name in hidden and name != "rate" else text for name, text in self.settings.items()}
        return {"layout": self.layout.partition(",")[0], **shown}

    @cached_property
    def quotes(self) -> Quotes:
        """The quotes, with their forwards."""
        return self._complete[0]

    @cached_property
    def forwards(self) -> Forwards | None:
        """The forwards by slice; None if no forward is derived."""
        if self._verdict.held is not None and not isinstance(self.issues, IssueSummary):
            return self._complete[1]
        return self._verdict.forwards

    @cached_property
    def _complete(self) -> tuple[Quotes, Forwards | None]:
        if self._verdict.made is not None:
            return self._verdict.complete(self._verdict.made)
        return self._verdict.complete(self._parts.quotes(pl.concat(self._chunks.rows())))

    def chunks(self) -> Iterator[Quotes]:
        """Yield the quotes in the order of the file, chunk by chunk; with placeholders for derived forwards."""
        done = 0
        for rows in self._chunks.rows():
            self._progress("writing", done / max(self.count, 1))
            if rows.height:
                yield self._parts.quotes(rows)
            done += rows.height

    def sample(self, count: int) -> Quotes:
        """Return the first quotes, with their forwards."""
        return self._parts.sample(count)

    def write_quarantine(self, path: str | PathLike[str], *, most: int | None = None) -> int:
        """Write the rejected rows to a CSV, whole or not at all, and return how many; the source is read again for it.

        Args:
            most: write no more than this number of rows, the first ones.

        Raises:
            UsageError: the file cannot be written.
        """
        return self._write(pl.col("is_rejected"), path, most)

    def write_rows(self, code: str, path: str | PathLike[str]) -> int:
        """Write the rows that issues with this code are about to a CSV, rejected or flagged; return how many there are.

        The columns are those of the source and of a quarantine file; the source is read again for it.

        Raises:
            UsageError: the file cannot be written.
        """
        return self._write(pl.col("code") == code, path)

    def _write(self, which: pl.Expr, path: str | PathLike[str], most: int | None = None) -> int:
        """Write the rows that these issues are about, and return how many; the source is read again for it."""
        count = 0

        def parts() -> Iterator[pl.DataFrame]:
            nonlocal count
            tables = self._chunks.plan.tables()
            for (table, _), (begin, issues) in zip(tables, self._chunks.log.chunks(), strict=True):
                faults = issues.with_columns(pl.col("at") - begin).filter(which) if issues.height else issues
                if faults.height:
                    rows = rows_as_found(table, faults)[: None if most is None else most - count]
                    count += rows.height
                    yield rows
                    if count == most:
                        return

        write_parts(self.table.preamble, parts(), path)
        return count

    def issues_of(self, code: str) -> Issues:
        """Return every issue with this code."""
        found = [found.filter(pl.col("code") == code) for _, found in self._chunks.log.chunks() if found.height]
        return Issues.joined(found)

    def all_forwards(self) -> Forwards:
        """Return the forward of every slice, given or derived."""
        return forwards_of(self.quotes)

    def conversion(self) -> Forwards | None:
        """Return the slices with American prices that are read as European ones; None if there are none."""
        if not has_american(self._chunks):
            return None
        every = with_given(self.forwards or Forwards.none(), self.quotes)
        return Forwards.joined([every], np.flatnonzero(every.converted)) if every.converted.any() else None

    def conversion_sentence(self) -> str:
        """Return how many American prices are read as European ones, and by how much this changes volatilities.

        Empty if there are none. Of a file on disk those with their own forwards are not counted: it may be closed.
        """
        found = self.forwards if isinstance(self.issues, IssueSummary) else self.conversion()
        return found.conversion_sentence() if found is not None and found.converted.any() else ""

    def close(self) -> None:
        """Free the disk space of the chunks."""
        self._chunks.store.close()

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def headline(self) -> str:
        """Return the counts of rows, with codes, in one line."""
        words = [f"{self.count:,} of {many(self.rows, 'row')} read"]
        if self.rejected:
            words.append(f"{self.rejected:,} rejected ({self.issues.rejections()})")
        flags = self.issues.flags()
        return "; ".join([*words, f"flagged: {flags}"] if flags else words)

    def summary(self) -> str:
        """Return the whole reading as plain text: columns, routes, counts, the first issues, the quotes."""
        width = max(len(column.name) for column in self.columns)
        lines = [f"{self.source}: {self.headline()}.", f"layout: {self.layout}"]
        lines += [*(f"note: {note}" for note in self.table.notes), "", "columns"]
        for column in self.columns:
            role = f"{column.role}, " if column.role else ""
            lines.append(
                f"  {column.name:<{width}}  {role}{column.meaning}{'' if column.is_used or not role else ' (label)'}"
            )
        lines += ["", "computed from", *(f"  {name:<{width}}  {route}" for name, route in self.routes.items())]
        if self.forwards is not None:
            lines += ["", f"forwards of {many(len(self.forwards), 'slice')}: {self.forwards.headline()}"]
        conversion = self.conversion()
        if conversion is not None:
            lines += ["", conversion.conversion_sentence()]
        if len(self.issues):
            lines += ["", *(f"  {line}".rstrip() for line in self.screening.table().splitlines())]
            lines += ["", f"issues, the first {min(5, len(self.issues))} of {len(self.issues):,}"]
            lines += [f"  {issue}" for issue in self.issues.listed(5)]
        return "\n".join([as_lines(lines), "", self.quotes.summary()])


class ReadKeywords(TypedDict, total=False):
    """How to read a source, as keywords of ``read_quotes`` and ``inspect_quotes``."""

    profile: str | PathLike[str] | None
    constants: Mapping[str, Any] | None
    rates: float | str | PathLike[str] | Mapping[Any, Any] | None
    checks: Checks | Mapping[str, float | str] | str | None
    forwards: str
    exercise: Literal["european", "american", "auto"]
    dividends: Any
    clock: Clock | None


def inspect_quotes(
    source: Any, *, beside: Beside | None = None, chunking: Chunking | None = None, **options: Unpack[ReadKeywords]
) -> Reading:
    """Read a source and report everything about it; no file is refused for its bad rows.

    Args:
        source: a path (.csv, .csv.gz, .parquet, .xlsx) or a pandas, Polars or Arrow frame.
        beside: returns the quotes that these will be added to, on which their forwards may depend too: a few corrected
            rows have none of their own. Called only if needed.
        chunking: how to read a file that does not fit in memory: ``Chunking(folder=...)``. Use the reading in a
            ``with`` statement then; its ``issues`` are counts, of which only the first are listed.
        options: see ``read_quotes``.

    Raises:
        UnreadableFileError: no such file, empty, or not the format of its ending.
        ColumnError: a needed column is missing, or two claim the same role.
        UsageError: the source is neither a path nor a frame, an option is invalid, or the disk is full.
    """
    how = chunking or IN_MEMORY
    progress = how.progress or _no_progress
    unknown = sorted(options.keys() - ReadKeywords.__annotations__.keys())
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is not a keyword of reading. They are {', '.join(ReadKeywords.__annotations__)}."
        )
    rules = Checks.of(options.get("checks"))
    given = dict(options.get("constants") or {})
    schedule, model = options.get("dividends", given.pop("dividends", None)), given.pop("dividend_model", None)
    paid = None if schedule is None else Dividends.of(schedule, model)
    fixed, curve = _split_curve(given, options.get("rates"))
    forwards, exercise = options.get("forwards", "auto"), options.get("exercise", "auto")
    check_style(exercise)
    asked = ReadOptions(
        options.get("profile"), fixed, forwards, options.get("clock"), beside is not None, curve, exercise, paid
    )
    store = Spill(how.folder, on_disk=how.on_disk)
    try:
        chunks = read_chunks(
            source, asked, store=store, progress=lambda share: progress("reading", share), size=how.size
        )
        remove_duplicates(chunks, how.at_once)
        parts = Partitions.of(chunks, how.at_once)
        verdict = apply_rules(parts, rules, beside, progress=lambda share: progress("checking", share))
        log = chunks.log
        rows, count, repeated = len(log.verdict), int(np.count_nonzero(log.kept)), log.removed_by(REPEATED)
        issues = log.summary() if how.on_disk else Issues(log.frame(), _names(chunks))
        return Reading(
            source=chunks.table.name, rows=rows, count=count, rejected=rows - count - repeated,
            unreadable=log.unreadable(_price_columns(chunks)), repeated=repeated, cut=verdict.cut, issues=issues,
            columns=chunks.layout.columns,
            routes=describe_derivation(chunks.layout, chunks.clock, curve, is_converted=has_american(chunks)),
            unchecked=verdict.unchecked, numbering=chunks.table.numbering, table=_with_notes(chunks, forwards),
            options=options,
            screening=log.screening(verdict.unchecked),
            _chunks=chunks, _parts=parts, _verdict=verdict, _progress=progress,
        )  # fmt: skip
    except BaseException:
        store.close()
        raise


def _split_curve(
    constants: Mapping[str, Any], rates: Any = None
) -> tuple[dict[str, float | str], RateCurve | DatedCurves | None]:
    """Return the constants and the curve of rates, if the rate is one: its column is then a placeholder."""
    if rates is not None and "rate" in constants:
        raise UsageError("rates and constants both give the rate. Leave one out.")
    constants = constants if rates is None else {**constants, "rate": rates}
    rate = constants.get("rate")
    if rate is None or isinstance(rate, (int, float)) or (isinstance(rate, str) and _is_number(rate)):
        return dict(constants), None
    return {**constants, "rate": 0.0}, RateCurve.of(rate)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_notes(chunks: Chunks, forwards: str) -> Table:
    """Return the table with a note if the source has forwards that are not used, and if American rows have no rate."""
    layout, table, notes = chunks.layout, chunks.table, []
    no_discount = not {"discount", "rate"} & layout.places.keys()
    if "forward" in layout.places and "given" not in layout.forward_sources:
        why = "there is no discount or rate beside it" if no_discount else f"forwards={forwards!r} was asked for"
        notes.append(f"column {layout.places['forward']} is not used: {why}; the forward is from {layout.forward_from}")
    if no_discount and has_american(chunks):
        notes.append("the rates of American rows are from their own prices, which determine them poorly; give a rate")
    return replace(table, notes=(*table.notes, *notes))


def has_american(chunks: Chunks) -> bool:
    """Return whether American rows are read as European ones."""
    return LABEL + AMERICAN_MID in chunks.columns


def _price_columns(chunks: Chunks) -> set[str]:
    names = column_names(chunks.rules(pl.DataFrame({"at": [], "row": []})))
    return {names[role] for role in ("bid", "ask", "price", "iv") if role in names}


def _as_word(given: Any) -> str:
    """Return an option as text: a file by its name alone, a table as the word "given"."""
    if isinstance(given, (str, PathLike)):
        return Path(given).name if isinstance(given, PathLike) or Path(given).is_file() else given
    return str(given) if isinstance(given, (int, float)) else "given"


def _no_progress(what: str, share: float) -> None:
    """Do nothing."""


def _names(chunks: Chunks) -> pl.DataFrame:
    """Return position and id of every row that became a quote."""
    return pl.concat([rows.select("at", "id") for rows in chunks.rows()])


def read_quotes(
    source: Any,
    *,
    max_reject: float = MAX_REJECT,
    quarantine: str | PathLike[str] | None = None,
    **options: Unpack[ReadKeywords],
) -> Quotes:
    """Return the good rows of a file or frame as quotes; warn of bad ones, and refuse a file with many unreadable ones.

    Args:
        source: a path (.csv, .csv.gz, .parquet, .xlsx) or a pandas, Polars or Arrow frame.
        max_reject: the largest share of rows that may be unreadable; 1.0 accepts any file with one good row. Rows that
            are expired or have no market or no price can be read and do not count.
        quarantine: a CSV to write the bad rows to, as found, with codes and sentences. Not written if there are none.
        profile: the layout to read it by: a name of `strikeout profiles` or the path of a TOML file; by default the
            one whose columns are there.
        constants: values for canonical columns the source does not have, such as ``{"quote_date": "2024-01-31"}``.
        rates: for discounts, continuously compounded, if the source has none: a number, a curve as a .csv with the
            columns years (or days) and rate, or as ``{0.25: 0.05, 1.0: 0.04}``; with a column date, or as a mapping
            from dates to such curves, one curve per quote date (the last before it, if the date has none).
        checks: how strict the rules are, if not by default: ``{"Q208": 0.3, "Q207": "reject", "Q213": "off"}``; or a
            preset, "desk" or "academic", alone or as ``{"preset": "desk", "Q214": "30,reject"}``.
        forwards: the source of forwards: "given", "parity", "spot", or "auto" for the first of these that is available,
            slice by slice.
        exercise: the rows whose American prices are read as European ones: "auto" (default) for those that the column
            exercise marks and that have a spot, "american" for all, "european" for none. See ``american.to_european``.
        dividends: cash dividends, for American rows and for forwards from spot: a file or frame with the columns
            underlying, ex_date and amount, a mapping from ex-dates to amounts, or ``Dividends``.
        clock: when contracts end and quotes were taken, and which hours count; the profile's own by default.

    Raises:
        UnreadableFileError: no such file, empty, or not the format of its ending.
        ColumnError: a needed column is missing, or two claim the same role.
        RejectedError: more than ``max_reject`` of the rows cannot be read, or none is good.
        UsageError: the source is neither a path nor a frame, or ``max_reject`` is not a share.
    """
    reading = inspect_quotes(source, **options)
    accept(reading, max_reject=max_reject, quarantine=quarantine)
    if len(reading.issues):
        warnings.warn(f"{reading.source}: {reading.headline()}.", QuotesWarning, stacklevel=2)
    return reading.quotes


def accept(reading: Reading, *, max_reject: float = MAX_REJECT, quarantine: str | PathLike[str] | None = None) -> None:
    """Write the rejected rows to ``quarantine``; raise RejectedError if too many cannot be read, or none is good."""
    if not 0.0 <= max_reject <= 1.0:
        raise UsageError(f"max_reject is {max_reject}; it is a share of the rows, from 0 to 1.", max_reject=max_reject)
    if quarantine is not None and reading.rejected:
        reading.write_quarantine(quarantine)
    if reading.unreadable / reading.rows <= max_reject and reading.count:
        return
    issues, first = reading.issues, reading.issues.first_rejected()
    assert first is not None, "no row was rejected"
    some = (
        f"{reading.source}: {reading.unreadable:,} of {many(reading.rows, 'row')} cannot be read, more than the "
        f"{max_reject:.0%} allowed ({issues.rejections()}). The first: {first.sentence} Correct the file, or raise "
    )
    none = (
        f"{reading.source}: none of the {reading.rows:,} rows is a quote ({issues.rejections()}). "
        f"The first: {first.sentence}"
    )
    raise RejectedError(
        *((some, Argument("max_reject"), ".") if reading.count else (none,)),
        issues=issues,
        counts=issues.counts,
        rows=reading.rows,
        rejected=reading.rejected,
        unreadable=reading.unreadable,
    )
