"""A file read for a command: by its profile, with a line that says how far a large one is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strikeout.cli import terminal
from strikeout.errors import RejectedError

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading
    from strikeout.quotes.survey import Survey


def reading_of(file: str, *, profile: str | None, constants: dict[str, float | str], **options: Any) -> Reading:
    """How this file reads; the options are those of `inspect_quotes`.

    Raises:
        QuotesError: the file cannot be read as quotes.
        UsageError: there is no such profile, or an option cannot be.
    """
    from strikeout.quotes.reading import inspect_quotes
    from strikeout.quotes.tables import open_table

    line = terminal.ReadingLine()
    try:
        table = open_table(file, profile=profile, given=frozenset(constants), progress=line)
    finally:
        line.end()
    return inspect_quotes(table, profile=profile, constants=constants, **options)


@contextmanager
def survey_of(file: str, *, line: terminal.ReadingLine | None = None, **options: Any) -> Iterator[Survey]:
    """How this file reads, however large it is; the options are those of `survey_quotes`.

    Raises:
        QuotesError: the file cannot be read as quotes.
        UsageError: there is no such profile, or an option cannot be.
    """
    from strikeout.quotes.survey import survey_quotes

    line = line or terminal.ReadingLine()
    try:
        survey = survey_quotes(file, progress=line.step, **options)
    finally:
        line.end()
    with survey:
        yield survey


def written(survey: Survey, line: terminal.ReadingLine) -> Iterator[Quotes]:
    """The quotes of a survey piece by piece, with a word on how many are done."""
    done = 0
    for piece in survey.pieces():
        line.step("writing", done / max(survey.count, 1))
        yield piece
        done += len(piece)
    line.end()


def refuse_bad_rows(reading: Reading | Survey, *, max_reject: float, quarantine: str | None) -> None:
    """Nothing, where few enough rows are bad; they go to the quarantine, where one is named.

    Raises:
        RejectedError: too many are, or none is good.
        UsageError: the quarantine cannot be written.
    """
    from strikeout.quotes.reading import refuse_bad

    try:
        refuse_bad(reading, max_reject=max_reject, quarantine=quarantine)
    except RejectedError as error:
        if quarantine is None:
            raise
        raise error.extended(f" The bad rows are in {quarantine}.", quarantine=quarantine) from error
