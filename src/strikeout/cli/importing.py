"""``strikeout import``: a file of quotes appended to a book."""

from __future__ import annotations

from collections.abc import Callable
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

if TYPE_CHECKING:
    from strikeout.book import Book
    from strikeout.quotes.reading import Reading

source_option = click.option("--source", help="Where the quotes come from, where the file has no column source.")


def arrival_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command every option of a file that is to become part of a book; for ``accepted_for``."""
    for option in (check_option, constant_option, profile_option, max_reject_option, source_option):
        command = option(command)
    return command


@click.command("import")
@book_argument
@file_argument
@arrival_options
@quarantine_option
@why_options
@json_option
def command(book: str, file: str, who: str | None, as_json: bool, **options: Any) -> int:
    """Append the quotes of FILE (.csv, .csv.gz, .parquet) to BOOK.

    Rows that are no quotes are left out; --quarantine keeps them to be corrected and imported again. The book remembers
    that file, and erasing takes it away.

    Quotes the book has already change nothing. Quotes that were erased are refused and named, and the command ends
    with 1. The calibration stays as it is until the book is calibrated again.
    """
    why = reason_of(options["reason"], options["note"], options["ticket"])
    quarantine = options["quarantine"]
    with opened(book, who=who) as held:
        reading = accepted_for(held, file, options)
        done = held.import_quotes(reading.quotes, quarantine=quarantine if reading.rejected else None, reason=why)
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
        click.echo(done.sentence)
        tell_reading(reading, quarantine)
        if done.erased:
            terminal.note(f"refused, for they were erased: {', '.join(done.erased[:5])}.")
        terminal.hint(f"strikeout calibrate {book}")
    return exits.FINDINGS if done.erased else exits.DONE


def accepted_for(book: Book, file: str, options: dict[str, Any]) -> Reading:
    """The reading of a file whose quotes are to be part of this book; their forwards may rest on what it holds.

    Raises:
        QuotesError: the file cannot be read as quotes, or too many of its rows are bad.
    """
    source = {} if options["source"] is None else {"source": options["source"]}
    return accepted(
        file,
        constants={**options["constants"], **source},
        max_reject=options["max_reject"],
        quarantine=options.get("quarantine"),
        profile=options["profile"],
        checks=options["checks"],
        beside=book.quotes,
    )
