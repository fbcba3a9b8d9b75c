"""A file too large to hold, read as if it were held: pieces of it in memory, everything else on disk.

    1. block by block, each row by itself           sifting
    2. rows that share an id, found by 64 bits of it and then by all of it
    3. moment by moment (underlying, class, date and time), in parts of whole moments: forwards, and every rule but one
    4. strike by strike, the rule that looks back in time
    5. block by block again, in the order of the file: the quotes that are left

A part holds all that a rule looks at, so what is found is what would be found in the whole file, sentence by sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from types import TracebackType

import numpy as np
import polars as pl

from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.chunked_reader import LABEL, WORK, How, Sifted, sift, unpacked
from strikeout.quotes.clock import Clock
from strikeout.quotes.columns import Column
from strikeout.quotes.duplicates import twins
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.issue_log import AS_A_TWIN, CODES, Tally
from strikeout.quotes.issues import Issues
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.row_values import routes_told, twin_issues
from strikeout.quotes.screening import REPEATED, Screening
from strikeout.quotes.spill import Spill
from strikeout.quotes.tables import Table
from strikeout.quotes.validate import Beside, Parts, judged_in_parts
from strikeout.quotes.writing import quarantined, write_parts

AT_ONCE = 500_000  # rows in a part, more or less; a moment is never divided

Steps = Callable[[str, float], None]  # what is being done, and the share of it that is done


@dataclass(frozen=True, eq=False)
class Survey:
    """What a large file holds and how it was understood; ``pieces`` gives its quotes. Close it, or use it in ``with``.

    ``rows`` = ``count`` + ``rejected`` + ``repeated``. The names are those of a `Reading`; see there.
    """

    source: str
    rows: int
    count: int
    rejected: int
    repeated: int
    cut: int
    issues: Tally
    columns: tuple[Column, ...]
    routes: Mapping[str, str]
    unchecked: Mapping[str, str]
    numbering: str
    table: Table  # without rows
    forwards: Forwards | None
    screening: Screening
    _sifted: Sifted
    _parts: Parts

    @property
    def layout(self) -> str:
        """The profile the source was read by, in words."""
        return self.table.layout

    def pieces(self) -> Iterator[Quotes]:
        """The quotes in the order of the file, a block at a time; stand-ins for forwards that are derived."""
        for rows in self._sifted.blocks():
            if rows.height:
                yield self._parts.quotes(rows)

    def sample(self, count: int) -> Quotes:
        """The first quotes, with their forwards."""
        return self._parts.sample(count)

    def write_quarantine(self, path: str | PathLike[str]) -> None:
        """Writes the rejected rows to a CSV, whole or not at all; the file is read again for it.

        Raises:
            UsageError: the file cannot be written.
        """
        write_parts(self.table.preamble, self._bad(), path)

    def _bad(self) -> Iterator[pl.DataFrame]:
        pieces = self._sifted.sheet.pieces(self._sifted.filled)
        for piece, (begin, found) in zip(pieces, self._sifted.findings.blocks(), strict=True):
            if found.height and found["is_rejected"].any():
                here = found.with_columns(pl.col("at") - begin)
                yield quarantined(piece.table, Issues(here))

    def close(self) -> None:
        """Gives the room on disk back."""
        self._sifted.scratch.close()

    def __enter__(self) -> Survey:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def survey_quotes(
    source: str | PathLike[str],
    *,
    profile: str | PathLike[str] | None = None,
    constants: Mapping[str, float | str] | None = None,
    checks: Checks | Mapping[str, float | str] | None = None,
    forwards: str = "auto",
    clock: Clock | None = None,
    beside: Beside | None = None,
    folder: str | PathLike[str] | None = None,
    progress: Steps | None = None,
    size: int = 0,
    at_once: int = AT_ONCE,
) -> Survey:
    """Reads a file as ``inspect_quotes`` does, a piece at a time: what grows with it are some tens of bytes a row.

    Args:
        source: a path (.csv, .csv.gz, .parquet).
        profile: as ``constants`` to ``beside``: see ``inspect_quotes``.
        folder: on whose disk the pieces are kept meanwhile, in a file without a name; about as large as the source.
        progress: called with what is being done and the share of it that is done.
        size: of a block: bytes of text, or rows of a Parquet file; as usual where 0.
        at_once: how many rows are looked at together, more or less.

    Raises:
        UnreadableFileError: no such file, empty, or not the format its name says.
        ColumnError: a needed column is missing, or two claim the same role.
        UsageError: no room on disk, or an option that cannot be.
    """
    told = progress or _in_silence
    rules = Checks.of(checks)
    how = How(profile, dict(constants or {}), forwards, clock, beside is not None)
    scratch = Spill(folder)
    try:
        sifted = sift(source, how, scratch=scratch, progress=lambda share: told("reading", share), size=size)
        _find_twins(sifted, at_once)
        parts = Parts.of(sifted, at_once)
        judgement = judged_in_parts(parts, rules, beside, progress=lambda share: told("checking", share))
        findings = sifted.findings
        repeated = int(np.count_nonzero(findings.verdict == CODES.index(REPEATED)))
        rows, count = len(findings.verdict), int(np.count_nonzero(findings.kept))
        return Survey(
            source=sifted.table.name, rows=rows, count=count, rejected=rows - count - repeated, repeated=repeated,
            cut=judgement.cut, issues=findings.tally(), columns=sifted.layout.columns,
            routes=routes_told(sifted.layout, sifted.clock), unchecked=judgement.unchecked,
            numbering=sifted.table.numbering, table=sifted.table, forwards=judgement.forwards,
            screening=findings.screening(judgement.unchecked), _sifted=sifted, _parts=parts,
        )  # fmt: skip
    except BaseException:
        scratch.close()
        raise


def _in_silence(what: str, share: float) -> None:
    """Nothing: nobody asked how far it is."""


def _find_twins(sifted: Sifted, at_once: int) -> None:
    """Takes out rows that repeat an earlier one, and those whose id another row has with other values."""
    ordered = np.sort(sifted.prints)
    is_twin = np.zeros(len(ordered), bool)
    is_twin[1:] = ordered[1:] == ordered[:-1]
    shared = np.unique(ordered[is_twin])
    if not shared.size:
        return
    count = -(-2 * int(is_twin.sum()) // at_once)  # of as many ways through the file, so that each holds few rows
    for group in np.array_split(shared, count):
        alike = pl.Series(group).implode()
        rows = pl.concat([block.filter(block["id"].hash().is_in(alike)) for block in sifted.blocks()])
        good = pl.Series([True]).new_from_index(0, rows.height)
        repeats, clashes = twins(rows["id"], unpacked(rows, WORK), unpacked(rows, LABEL), good)
        for issues in twin_issues(sifted.rules(rows), repeats, clashes):
            sifted.findings.add(issues.with_columns(rows["at"].gather(issues["at"]).alias("at")), AS_A_TWIN)
