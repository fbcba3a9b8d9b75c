"""``strikeout import``: a file of quotes appended to a book."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, opened, reason_of, why_options
from strikeout.cli.calibrating import (
    accepted,
    described_reading,
    max_reject_option,
    quarantine_option,
    tell_reading,
)
from strikeout.cli.options import check_option, constant_option, file_argument, json_option, profile_option
from strikeout.cli.reading import reading_of, refuse_bad_rows
from strikeout.wording import agreeing

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.quotes.reading import Reading

MOST = 5  # quotes that a note names
source_option = click.option("--source", help="Where the quotes come from, where the file has no column source.")


def arrival_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command every option of a file that is to become part of a book; for ``accepted_for``."""
    for option in (quarantine_option, check_option, constant_option, profile_option, max_reject_option, source_option):
        command = option(command)
    return command


@click.command("import")
@book_argument
@file_argument
@arrival_options
@why_options
@json_option
def command(book: str, file: str, who: str | None, as_json: bool, **options: Any) -> int:
    """Append the quotes of FILE (.csv, .csv.gz, .parquet) to BOOK.

    Rows that are no quotes are left out; --quarantine keeps them to be corrected and imported again. The book remembers
    that file, and erasing takes it away.

    A file of any size is read in chunks, which stay on the disk of BOOK until all are checked: memory hardly grows.

    Quotes the book has already change nothing. Quotes that were erased are refused and named, and the command ends
    with 1. The calibration stays as it is until the book is calibrated again.
    """
    why = reason_of(options["reason"], options["note"], options["ticket"])
    quarantine = options["quarantine"]
    line = terminal.ReadingLine()
    how = {name: value for name, value in reading_options(options).items() if name not in ("max_reject", "quarantine")}
    with (
        opened(book, who=who) as held,
        reading_of(file, on_disk=True, line=line, beside=held.quotes, folder=held.path.parent, **how) as reading,
    ):
        refuse_bad_rows(reading, max_reject=options["max_reject"], quarantine=quarantine)
        kept = quarantine if reading.rejected else None
        with taken_back(kept):
            done = held.import_pieces(reading.chunks(), quarantine=kept, reason=why)
            line.end()
    if as_json:
        result = {
            "entry": done.entry,
            "imported": done.imported,
            "repeated": done.repeated,
            "set_aside": done.set_aside,
            "erased": list(done.erased),
            "held": done.held,
        }
        terminal.show_json({**described_reading(reading, quarantine), "repeated_rows": reading.repeated, **result})
    else:
        terminal.say(done.sentence)
        tell_reading(reading, quarantine)
        if done.erased:
            more = f" and {len(done.erased) - MOST:,} more" if len(done.erased) > MOST else ""
            were = agreeing(len(done.erased), "it was", "they were")
            terminal.note(f"refused, for {were} erased: {', '.join(done.erased[:MOST])}{more}.")
        terminal.hint(f"strikeout calibrate {book}")
    return exits.FINDINGS if done.erased else exits.DONE


@contextmanager
def taken_back(quarantine: str | None) -> Iterator[None]:
    """Takes a file of rows that are no quotes away again where its verb is refused: no book would know of it."""
    try:
        yield
    except BaseException:
        if quarantine is not None:
            Path(quarantine).unlink(missing_ok=True)
        raise


def accepted_for(book: Book, file: str, options: dict[str, Any]) -> Reading:
    """The reading of a file whose quotes are to be part of this book; their forwards may rest on what it holds.

    Raises:
        QuotesError: the file cannot be read as quotes, or too many of its rows are bad.
    """
    return accepted(file, beside=book.quotes, **reading_options(options))


def reading_options(options: dict[str, Any]) -> dict[str, Any]:
    """What the options of a command say of how a file is to be read."""
    source = {} if options["source"] is None else {"source": options["source"]}
    plain = {name: options[name] for name in ("max_reject", "quarantine", "profile", "checks")}
    return {**plain, "constants": {**options["constants"], **source}}
