"""``strikeout roll``: the window of a book moved on."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, described_change, opened, reason_of, show_change, why_options
from strikeout.cli.calibrating import described_reading, tell_reading
from strikeout.cli.importing import accepted_for, arrival_options, taken_back
from strikeout.cli.options import json_option


@click.command("roll")
@book_argument
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--window", type=click.IntRange(min=1), required=True, help="How many of the last dates stay.")
@arrival_options
@why_options
@json_option
def command(book: str, file: str | None, window: int, who: str | None, as_json: bool, **options: Any) -> int:
    """Learn the quotes of FILE, if there is one, and forget those of BOOK older than the last dates, in one step."""
    quarantine = options["quarantine"]
    why = reason_of(options["reason"], options["note"], options["ticket"])
    with opened(book, who=who) as held:
        reading = None if file is None else accepted_for(held, file, options)
        kept = quarantine if reading is not None and reading.rejected else None
        quotes = None if reading is None else reading.quotes
        with taken_back(kept):
            change = held.roll(quotes, window=window, quarantine=kept, reason=why)
    if as_json:
        read = {} if reading is None else described_reading(reading, quarantine)
        terminal.show_json({**read, **described_change(change)})
        return exits.DONE if change.after.converged else exits.REFUSED
    show_change(change)
    if reading is not None:
        tell_reading(reading, quarantine)
    return exits.DONE if change.after.converged else exits.REFUSED
