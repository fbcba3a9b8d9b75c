"""``strikeout export``: a book's quotes or results for other programs."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, opened, who_option
from strikeout.cli.options import json_option


@click.command("export")
@book_argument
@click.argument("out", type=click.Path(path_type=str))
@who_option
@json_option
def command(book: str, out: str, who: str | None, as_json: bool) -> int:
    """Write what BOOK holds to OUT: quotes (.csv, .parquet), the calibration (.json), Python for QuantLib (.py).

    A file of quotes is entered in the ledger, and erasing takes it away too.
    """
    with opened(book, who=who) as held:
        written = held.export(out)
        is_result, is_current = written.suffix.lower() in (".json", ".py"), held.status().is_current
    if as_json:
        terminal.show_json({"out": str(written)})
    else:
        terminal.say(f"written to {written}")
    if is_result and not is_current:
        terminal.note(
            f"quotes came or went since the calibration in {written}. To renew it: strikeout calibrate {book}"
        )
    return exits.DONE
