"""``strikeout init``: a new, empty book."""

from __future__ import annotations

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, created, who_option
from strikeout.cli.options import json_option


@click.command("init")
@book_argument
@click.option("--encrypt", is_flag=True, help="Keep quotes and states under keys that an erasure destroys.")
@who_option
@json_option
def command(book: str, encrypt: bool, who: str | None, as_json: bool) -> int:
    """Make a new book: BOOK is a file NAME.book; its secrets go to NAME.book.key beside it.

    A file that is there already is left alone, and the command ends with 2.
    """
    from strikeout.store.keyring import key_file

    with created(book, who=who, is_encrypted=encrypt) as made:
        status, keys = made.status(), str(key_file(made.path))
    if as_json:
        terminal.show_json({"book": book, "name": status.book, "key": status.key, "key_file": keys})
    else:
        terminal.show(terminal.facts([("book", book), ("signed by", status.key), ("secrets in", keys)]))
        terminal.hint(f"strikeout import {book} quotes.csv")
    return exits.DONE
