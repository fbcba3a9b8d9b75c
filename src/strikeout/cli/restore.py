"""``strikeout restore``: the quotes of a forget brought back."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, described_change, opened, reason_of, show_change, why_options
from strikeout.cli.options import json_option
from strikeout.errors import UsageError


@click.command("restore")
@book_argument
@click.argument("entry", type=click.IntRange(min=1), required=False)
@click.option("--last", is_flag=True, help="The latest forget that can be undone.")
@why_options
@json_option
def command(book: str, entry: int | None, last: bool, who: str | None, as_json: bool, **why: Any) -> int:
    """Bring back the quotes that ENTRY of the log of BOOK struck out, as if it had never been."""
    if (entry is None) is not last:
        raise UsageError("Say which forget to undo in one way: the number of its entry in the log, or --last.")
    reason = reason_of(why["reason"], why["note"], why["ticket"])
    with opened(book, who=who) as held:
        change = held.restore(entry, reason=reason)
    if as_json:
        terminal.show_json(described_change(change))
    else:
        show_change(change)
    return exits.DONE if change.after.converged else exits.REFUSED
