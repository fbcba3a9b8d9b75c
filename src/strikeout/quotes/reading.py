"""Reading quotes: good rows become a book, bad rows get a code and a sentence and stay out of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from strikeout.errors import ColumnError, RejectedError, UsageError
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import Column, Layout
from strikeout.quotes.derivation import BESIDE, NO_ROAD
from strikeout.quotes.duplicates import twins
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.issues import Issues, QuotesWarning
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.row_values import clock_of, read_rows, routes_told, twin_issues
from strikeout.quotes.rules import Rules
from strikeout.quotes.screening import Screening, screening_of
from strikeout.quotes.tables import Table, open_table, understood
from strikeout.quotes.validate import Beside, judged
from strikeout.quotes.writing import write_quarantine
from strikeout.wording import Argument, as_lines, many

if TYPE_CHECKING:
    from strikeout.quotes.survey import Survey

MAX_REJECT = 0.1  # a file with more bad rows than this is more likely misread than merely dirty


@dataclass(frozen=True, eq=False)
class Reading:
    """What a source holds and how it was understood: the book, every issue, every column.

    ``rows`` = ``len(quotes)`` + ``rejected`` + ``repeated``; ``numbering`` says what a row number is ("line" of a CSV,
    whose header is line 1, or "row", a position from 0); ``routes`` says what each quantity was computed from. ``cut``
    of the rejected are sound rows that a rule was told to leave out; ``unchecked`` are rules not run, and why.
    """

    source: str
    quotes: Quotes
    issues: Issues
    columns: tuple[Column, ...]
    routes: Mapping[str, str]
    rows: int
    rejected: int
    repeated: int
    cut: int
    unchecked: Mapping[str, str]
    numbering: str
    table: Table
    forwards: Forwards | None = None  # slice by slice, where forwards were derived

    @property
    def layout(self) -> str:
        """The profile the source was read by, in words."""
        return self.table.layout

    @property
    def count(self) -> int:
        """How many rows became quotes."""
        return len(self.quotes)

    def sample(self, count: int) -> Quotes:
        """The first quotes."""
        return self.quotes[:count]

    def write_quarantine(self, path: str | PathLike[str]) -> None:
        """Writes the rejected rows to a CSV, whole or not at all.

        Raises:
            UsageError: the file cannot be written.
        """
        write_quarantine(self.table, self.issues, path)

    def headline(self) -> str:
        """How many rows went where, with the codes."""
        words = [f"{len(self.quotes):,} of {many(self.rows, 'row')} read"]
        if self.rejected:
            words.append(f"{self.rejected:,} rejected ({self.issues.rejections()})")
        flags = self.issues.flags()
        return "; ".join([*words, f"flagged: {flags}"] if flags else words)

    @property
    def screening(self) -> Screening:
        """From rows to quotes, rule by rule: ``print(reading.screening.table("latex"))`` is for a paper."""
        return screening_of(self.issues, self.rows, self.unchecked)

    def summary(self) -> str:
        """The whole reading in plain text: columns, routes, counts, the first issues, the book."""
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
        if len(self.issues):
            lines += ["", *(f"  {line}".rstrip() for line in self.screening.table().splitlines())]
            lines += ["", f"issues, the first {min(5, len(self.issues))} of {len(self.issues):,}"]
            lines += [f"  {issue}" for issue in self.issues[:5]]
        return "\n".join([as_lines(lines), "", self.quotes.summary()])


def inspect_quotes(
    source: Any,
    *,
    profile: str | PathLike[str] | None = None,
    constants: Mapping[str, float | str] | None = None,
    checks: Checks | Mapping[str, float | str] | None = None,
    forwards: str = "auto",
    clock: Clock | None = None,
    beside: Beside | None = None,
) -> Reading:
    """Reads a source and says everything about it; refuses no file for its bad rows.

    Args:
        source: a path (.csv, .csv.gz, .parquet) or a pandas, Polars or Arrow frame.
        profile: the layout to read it by: a name of `strikeout profiles` or the path of a TOML file; by default the
            one whose columns are there.
        constants: values for canonical columns the source does not have, such as ``{"rate": 0.0}``.
        checks: how strict the rules are, where not by default: ``{"Q208": 0.3, "Q207": "reject", "Q213": "off"}``.
        forwards: the road to the forwards: "given", "parity", "spot", or "auto" for the first of these that is open,
            slice by slice.
        clock: when contracts end and quotes were taken, and which hours count; the profile's own where not given.
        beside: gives the book these quotes will be part of, on which their forwards may rest too: a few corrected rows
            have none of their own. Asked only where it is needed.

    Raises:
        UnreadableFileError: no such file, empty, or not the format its name says.
        ColumnError: a needed column is missing, or two claim the same role.
        UsageError: the source is neither a path nor a frame.
    """
    table = open_table(source, profile=profile, given=frozenset(constants or {}))
    frame, layout = _understood(table, constants, forwards, is_asked=profile is not None, is_beside=beside is not None)
    rules = Rules(table, frame, layout)
    clock = clock_of(table, clock)
    rows = read_rows(rules, clock)
    good, ids = rows.good, rows.ids
    repeats, clashes = twins(ids, rows.work, rows.labels, good)
    parts = [*rows.found, *twin_issues(rules, repeats, clashes)]
    good &= ~(repeats | clashes)
    book = rows.only(good)
    del rows  # the book has what they held; of ten million rows it is gigabytes
    judgement = judged(book, good, rules, Checks.of(checks), beside=beside)
    quotes = judgement.quotes
    parts += judgement.found
    names = pl.select(pl.when(pl.Series(np.isin(np.arange(frame.height), judgement.at))).then(ids)).to_series()
    return Reading(
        source=table.name, quotes=quotes, issues=Issues.joined(parts, names), columns=layout.columns,
        routes=routes_told(layout, clock),
        rows=frame.height, rejected=frame.height - len(quotes) - int(repeats.sum()), repeated=int(repeats.sum()),
        cut=judgement.cut, unchecked=judgement.unchecked, numbering=table.numbering, table=table,
        forwards=judgement.forwards,
    )  # fmt: skip


def _understood(
    table: Table, constants: Mapping[str, float | str] | None, forwards: str, *, is_asked: bool, is_beside: bool
) -> tuple[pl.DataFrame, Layout]:
    try:
        return understood(table, constants, forwards=forwards, is_asked=is_asked)
    except ColumnError as error:
        if not is_beside or forwards != "auto" or error.facts.get("missing") not in NO_ROAD:
            raise
        return understood(table, constants, forwards=BESIDE, is_asked=is_asked)


def read_quotes(
    source: Any,
    *,
    max_reject: float = MAX_REJECT,
    quarantine: str | PathLike[str] | None = None,
    profile: str | PathLike[str] | None = None,
    constants: Mapping[str, float | str] | None = None,
    checks: Checks | Mapping[str, float | str] | None = None,
    forwards: str = "auto",
    clock: Clock | None = None,
) -> Quotes:
    """The good rows of a file or frame as a book; warns of bad ones, and refuses a file with too many.

    Args:
        source: a path (.csv, .csv.gz, .parquet) or a pandas, Polars or Arrow frame.
        max_reject: the largest share of rows that may be bad; 1.0 accepts any file with one good row.
        quarantine: a CSV to write the bad rows to, as found, with codes and sentences. Not written if there are none.
        profile: the layout to read it by: a name of `strikeout profiles` or the path of a TOML file; by default the
            one whose columns are there.
        constants: values for canonical columns the source does not have, such as ``{"rate": 0.0}``.
        checks: how strict the rules are, where not by default: ``{"Q208": 0.3, "Q207": "reject", "Q213": "off"}``.
        forwards: the road to the forwards: "given", "parity", "spot", or "auto" for the first of these that is open.
        clock: when contracts end and quotes were taken, and which hours count; the profile's own where not given.

    Raises:
        UnreadableFileError: no such file, empty, or not the format its name says.
        ColumnError: a needed column is missing, or two claim the same role.
        RejectedError: more than ``max_reject`` of the rows are bad, or none is good.
        UsageError: the source is neither a path nor a frame, or ``max_reject`` is no share.
    """
    reading = inspect_quotes(
        source, profile=profile, constants=constants, checks=checks, forwards=forwards, clock=clock
    )
    accept(reading, max_reject=max_reject, quarantine=quarantine)
    if len(reading.issues):
        warnings.warn(f"{reading.source}: {reading.headline()}.", QuotesWarning, stacklevel=2)
    return reading.quotes


def accept(
    reading: Reading, *, max_reject: float = MAX_REJECT, quarantine: str | PathLike[str] | None = None
) -> Quotes:
    """The book of a reading, its bad rows written to ``quarantine``; refused if too many rows are bad.

    Raises:
        RejectedError: more than ``max_reject`` of the rows are bad, or none is good.
        UsageError: ``max_reject`` is no share, or the quarantine file cannot be written.
    """
    refuse_bad(reading, max_reject=max_reject, quarantine=quarantine)
    return reading.quotes


def refuse_bad(
    reading: Reading | Survey, *, max_reject: float = MAX_REJECT, quarantine: str | PathLike[str] | None = None
) -> None:
    """Nothing, where few enough rows are bad; they are written to ``quarantine`` either way.

    Raises:
        RejectedError: more than ``max_reject`` of the rows are bad, or none is good.
        UsageError: ``max_reject`` is no share, or the quarantine file cannot be written.
    """
    if not 0.0 <= max_reject <= 1.0:
        raise UsageError(f"max_reject is {max_reject}; it is a share of the rows, from 0 to 1.")
    if quarantine is not None and reading.rejected:
        reading.write_quarantine(quarantine)
    if (reading.rejected - reading.cut) / reading.rows <= max_reject and reading.count:
        return
    issues, first = reading.issues, reading.issues.first_rejected()
    assert first is not None, "no row was rejected"
    some = (
        f"{reading.source}: {reading.rejected:,} of {many(reading.rows, 'row')} are bad, more than the "
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
    )
