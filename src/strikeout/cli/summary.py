"""``strikeout summary``: a book, its calibration and its quotes in a few lines."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import ONE_VALUE, book_argument, opened
from strikeout.cli.options import json_option


@click.command("summary")
@book_argument
@json_option
def command(book: str, as_json: bool) -> int:
    """Say in a few lines what BOOK holds, what it is calibrated to, and what its quotes are."""
    from strikeout.book.describe import described_version

    with opened(book) as held:
        text, version = held.summary(one_value=ONE_VALUE), held.status().version
    if as_json:
        terminal.show_json({"summary": text, "calibration": None if version is None else described_version(version)})
    else:
        terminal.show_lines(text)
    return exits.DONE
