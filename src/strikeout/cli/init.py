"""``strikeout init``: a new, empty book."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, created, who_option
from strikeout.cli.options import json_option


@click.command("init")
@book_argument
@click.option("--encrypt", is_flag=True, help="Keep quotes and states under keys that an erasure destroys.")
@click.option(
    "--smallest-erasure",
    type=click.IntRange(min=1),
    default=12,  # SMALLEST of the desk, which a test compares; importing it takes as long as the command
    show_default=True,
    metavar="K",
    help="Warn if fewer than K quotes are erased together: results of before give them away.",
)
@who_option
@json_option
def command(book: str, encrypt: bool, smallest_erasure: int, who: str | None, as_json: bool) -> int:
    """Make a new book: BOOK is a file NAME.book; its secrets go to NAME.book.key beside it.

    A file that is there already is left alone, and the command ends with 2.
    """
    from strikeout.store.keyring import key_file

    with created(book, who=who, is_encrypted=encrypt, smallest_erasure=smallest_erasure) as made:
        status, keys = made.status(), str(key_file(made.path))
    if as_json:
        terminal.show_json({"book": book, "name": status.book, "key": status.key, "key_file": keys})
    else:
        terminal.show(terminal.facts([("book", book), ("signed by", status.key), ("secrets in", keys)]))
        terminal.hint(f"strikeout import {book} quotes.csv")
    return exits.DONE
