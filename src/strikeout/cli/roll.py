"""``strikeout roll``: the window of a book moved on."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, described_change, opened, reason_of, show_change, why_options
from strikeout.cli.calibrating import accepted, max_reject_option
from strikeout.cli.importing import constants_of, source_option
from strikeout.cli.options import check_option, constant_option, json_option, profile_option


@click.command("roll")
@book_argument
@click.argument("file", type=click.Path(path_type=str), required=False)
@click.option("--window", type=click.IntRange(min=1), required=True, help="How many of the last dates stay.")
@source_option
@max_reject_option
@profile_option
@constant_option
@check_option
@why_options
@json_option
def command(book: str, file: str | None, window: int, who: str | None, as_json: bool, **options: Any) -> int:
    """Learn the quotes of FILE, if there is one, and forget those of BOOK older than the last dates, in one step."""
    why = reason_of(options["reason"], options["note"], options["ticket"])
    quotes = None
    if file is not None:
        quotes = accepted(
            file,
            constants=constants_of(options),
            max_reject=options["max_reject"],
            profile=options["profile"],
            checks=options["checks"],
        ).quotes
    with opened(book, who=who) as held:
        change = held.roll(quotes, window=window, reason=why)
    if as_json:
        terminal.show_json(described_change(change))
    else:
        show_change(change)
    return exits.DONE
