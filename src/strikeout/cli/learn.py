"""``strikeout learn``: a file of quotes into a book and into its calibration, in one step."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, described_change, opened, reason_of, show_change, why_options
from strikeout.cli.calibrating import accepted, described_reading, max_reject_option, tell_reading
from strikeout.cli.importing import constants_of, source_option
from strikeout.cli.options import check_option, constant_option, file_argument, json_option, profile_option


@click.command("learn")
@book_argument
@file_argument
@source_option
@max_reject_option
@profile_option
@constant_option
@check_option
@why_options
@json_option
def command(book: str, file: str, who: str | None, as_json: bool, **options: Any) -> int:
    """Append the quotes of FILE to BOOK and calibrate it with them, or do nothing at all.

    Ends with 3 where nothing is new or no calibration is found.
    """
    why = reason_of(options["reason"], options["note"], options["ticket"])
    reading = accepted(
        file,
        constants=constants_of(options),
        max_reject=options["max_reject"],
        profile=options["profile"],
        checks=options["checks"],
    )
    with opened(book, who=who) as held:
        change = held.learn(reading.quotes, reason=why)
    if as_json:
        terminal.show_json({**described_reading(reading), **described_change(change)})
    else:
        show_change(change)
        tell_reading(reading)
    return exits.DONE
