"""``strikeout request``: a strike-out or an erasure asked for, to be approved by somebody else."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import terminal
from strikeout.cli.books import book_argument, opened, reason_of, why_options
from strikeout.cli.forget import chosen
from strikeout.cli.options import json_option
from strikeout.cli.requests import show


@click.command("request")
@book_argument
@click.argument("what", metavar="forget|erase", type=click.Choice(["forget", "erase"]))
@click.option("--where", help="The quotes for which this condition in SQL holds.")
@click.option("--ids", help="The quotes with these ids, separated by commas.")
@click.option("--ids-from", type=click.Path(path_type=str), help="The same from a file, one id a line.")
@why_options
@json_option
def command(
    book: str,
    what: Any,
    where: str | None,
    ids: str | None,
    ids_from: str | None,
    who: str | None,
    as_json: bool,
    **why: Any,
) -> int:
    """Ask that quotes of BOOK be struck out or erased. It is entered in the ledger; nothing happens to the quotes.

    Once somebody else approved it, ``strikeout forget BOOK ... --yes`` or ``erase BOOK ... --yes`` with the same quotes
    does it, once.
    """
    meant = chosen(where, ids, ids_from, verb=what)
    reason = reason_of(why["reason"], why["note"], why["ticket"])
    with opened(book, who=who) as held:
        asked = held.request(what, **meant, reason=reason)
    code = show(asked, as_json=as_json)
    terminal.hint(f"strikeout approve {book} {asked.number} --who SOMEBODY-ELSE")
    return code
