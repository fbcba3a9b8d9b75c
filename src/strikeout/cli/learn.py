"""``strikeout learn``: a file of quotes into a book and into its calibration, in one step."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, described_change, opened, reason_of, show_change, why_options
from strikeout.cli.calibrating import described_reading, tell_reading
from strikeout.cli.importing import accepted_for, arrival_options, taken_back
from strikeout.cli.options import file_argument, json_option


@click.command("learn")
@book_argument
@file_argument
@arrival_options
@why_options
@json_option
def command(book: str, file: str, who: str | None, as_json: bool, **options: Any) -> int:
    """Append the quotes of FILE to BOOK and calibrate it with them, or do nothing at all.

    Rows that are no quotes are left out; --quarantine keeps them, as in import.

    Ends with 3 where nothing is new or no calibration is found.
    """
    quarantine = options["quarantine"]
    why = reason_of(options["reason"], options["note"], options["ticket"])
    with opened(book, who=who) as held:
        reading = accepted_for(held, file, options)
        kept = quarantine if reading.rejected else None
        with taken_back(kept):
            change = held.learn(reading.quotes, quarantine=kept, reason=why)
    if as_json:
        terminal.show_json({**described_reading(reading, quarantine), **described_change(change)})
    else:
        show_change(change)
        tell_reading(reading, quarantine)
    return exits.DONE if change.after.converged else exits.REFUSED
