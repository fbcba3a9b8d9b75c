"""``strikeout log``: who did what to a book, when and why."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import ENTRY, book_argument, described_entry, entry_row, opened
from strikeout.cli.options import json_option


@click.command("log")
@book_argument
@json_option
def command(book: str, as_json: bool) -> int:
    """List every entry of the ledger of BOOK, the first first."""
    with opened(book) as held:
        entries = held.log()
    if as_json:
        terminal.show_json({"entries": [described_entry(entry) for entry in entries]})
        return exits.DONE
    terminal.show(
        terminal.table(ENTRY, [entry_row(entry) for entry in entries], numbers=(0,), whole=(1,), spare=(2, 5))
    )
    return exits.DONE
