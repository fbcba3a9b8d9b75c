"""``strikeout rotate-key``: another key signs the ledger from now on."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, opened, reason_of, why_options
from strikeout.cli.options import json_option


@click.command("rotate-key")
@book_argument
@why_options
@json_option
def command(book: str, who: str | None, as_json: bool, **why: Any) -> int:
    """Give BOOK a new key to sign its ledger with; the old one hands over, signed, and is thrown away.

    Everything signed before stays checkable. Keep the new public key where others look for it.
    """
    from strikeout.store.keyring import key_file

    with opened(book, who=who) as held:
        done = held.rotate_key(reason=reason_of(why["reason"], why["note"], why["ticket"]))
        keys = str(key_file(held.path))
    if as_json:
        terminal.show_json({"entry": done.entry, "old": done.old, "new": done.new, "key_file": keys})
    else:
        terminal.show(
            terminal.facts(
                [("entry", str(done.entry)), ("signed by", done.new), ("before", done.old), ("secrets in", keys)]
            )
        )
        terminal.hint(f"strikeout verify {book}")
    return exits.DONE
