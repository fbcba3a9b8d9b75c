"""Commands that add the quotes of a file to a book: import, learn and roll."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes
from strikeout.cli.book_commands import open_book, report_change
from strikeout.cli.fit_options import (
    file_options,
    open_file,
    read_file,
    reading_counts,
    reading_notes,
    refuse_bad_rows,
)
from strikeout.cli.options import (
    book_argument,
    file_argument,
    json_option,
    optional_file_argument,
    output_options,
    reason_options,
    source_option,
    with_options,
)
from strikeout.cli.terminal import ReadingLine
from strikeout.text import agreeing

if TYPE_CHECKING:
    from strikeout.book.import_quotes import How
    from strikeout.cli.terminal import Output
    from strikeout.quotes.reading import Reading
    from strikeout.store.entry import Reason

MOST = 5  # quotes that a note names
import_options = with_options(source_option, file_options)


@click.command("import")
@book_argument
@file_argument
@import_options
@reason_options
@json_option
def import_quotes(
    book: str, file: str, reason: Reason | None, who: str | None, output: Output, quarantine: str | None, **options: Any
) -> int:
    """Append the quotes of FILE (.csv, .csv.gz, .parquet) to BOOK.

    Bad rows are left out; --quarantine keeps them to be corrected and imported again. The book records that file, and
    erasing removes it.

    A file of any size is read in chunks, which are kept on the disk of BOOK until all are checked: memory hardly grows.

    Quotes the book has already change nothing. Quotes that were erased are refused and named, and the command ends
    with 1. The calibration stays as it is until the book is calibrated again.
    """
    max_reject = options.pop("max_reject")
    with (
        open_book(book, who=who) as held,
        ReadingLine() as line,
        open_file(
            file, on_disk=True, line=line, beside=held.quotes, folder=held.path.parent, **_named(options)
        ) as reading,
    ):
        refuse_bad_rows(reading, max_reject=max_reject, quarantine=quarantine)
        kept = quarantine if reading.rejected else None
        with _removed_if_refused(kept):
            how = _recorded(reading, kept, reason)
            done = held.import_chunks(reading.chunks(), **how)
    notes = reading_notes(reading, quarantine)
    if done.erased:
        more = f" and {len(done.erased) - MOST:,} more" if len(done.erased) > MOST else ""
        were = agreeing(len(done.erased), "it was", "they were")
        notes.append(f"refused, since {were} erased: {', '.join(done.erased[:MOST])}{more}.")
    return output.lines(
        {**reading_counts(reading, quarantine), "repeated_rows": reading.repeated, **done.to_dict()},
        done.sentence,
        notes=notes,
        hints=[f"strikeout calibrate {book}"],
        code=exit_codes.FINDINGS if done.erased else exit_codes.DONE,
    )


tolerance_option = click.option(
    "--tolerance",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    help="One step if it is certified to be within this many standard errors; otherwise all quotes are calibrated.",
)


@click.command("learn")
@book_argument
@file_argument
@tolerance_option
@import_options
@reason_options
@output_options
def learn(book: str, file: str, reason: Reason | None, who: str | None, output: Output, **options: Any) -> int:
    """Append the quotes of FILE to BOOK and calibrate it with them, or do nothing at all.

    Bad rows are left out; --quarantine keeps them, as in import. Ends with 3 if nothing is new or no calibration is
    found.
    """
    quarantine, tolerance = options.pop("quarantine"), options.pop("tolerance")
    with open_book(book, who=who) as held:
        reading = read_file(file, beside=held.quotes, quarantine=quarantine, **_named(options))
        kept = quarantine if reading.rejected else None
        with _removed_if_refused(kept):
            change = held.learn(reading.quotes, tolerance=tolerance, **_recorded(reading, kept, reason))
    return report_change(
        change, output, notes=reading_notes(reading, quarantine), **reading_counts(reading, quarantine)
    )


@click.command("roll")
@book_argument
@optional_file_argument
@click.option("--window", type=click.IntRange(min=1), required=True, help="How many of the last dates stay.")
@tolerance_option
@import_options
@reason_options
@output_options
def roll(book: str, file: str | None, window: int, reason: Reason | None, output: Output, **options: Any) -> int:
    """Learn the quotes of FILE, if there is one, and forget those of BOOK older than the last dates, in one step."""
    who, quarantine, tolerance = (options.pop(name) for name in ("who", "quarantine", "tolerance"))
    with open_book(book, who=who) as held:
        reading = None
        if file is not None:
            reading = read_file(file, beside=held.quotes, quarantine=quarantine, **_named(options))
        kept = quarantine if reading is not None and reading.rejected else None
        quotes = None if reading is None else reading.quotes
        with _removed_if_refused(kept):
            how = _recorded(reading, kept, reason)
            change = held.roll(quotes, window=window, tolerance=tolerance, **how)
    return report_change(
        change, output, notes=reading_notes(reading, quarantine), **reading_counts(reading, quarantine)
    )


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """Return how a file is to be read: the source of the quotes is a constant column."""
    source = options.pop("source")
    return {**options, "constants": {**options["constants"], **({} if source is None else {"source": source})}}


def _recorded(reading: Reading | None, quarantine: str | None, reason: Reason | None) -> How:
    """Return what a book records of a file that it was given."""
    if reading is None:
        return {"reason": reason}
    found: How = {"quarantine": quarantine, "quarantined": reading.rejected, "reading": reading.conventions}
    return {**found, "reason": reason}


@contextmanager
def _removed_if_refused(quarantine: str | None) -> Iterator[None]:
    """Delete a quarantine file if its command fails: no book would have recorded it."""
    try:
        yield
    except BaseException:
        if quarantine is not None:
            Path(quarantine).unlink(missing_ok=True)
        raise
