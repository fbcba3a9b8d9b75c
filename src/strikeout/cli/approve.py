"""``strikeout approve``: what somebody else asked for, allowed."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import terminal
from strikeout.cli.books import book_argument, opened, reason_of, why_options
from strikeout.cli.options import json_option
from strikeout.cli.requests import show


@click.command("approve")
@book_argument
@click.argument("number", type=click.IntRange(min=1))
@why_options
@json_option
def command(book: str, number: int, who: str | None, as_json: bool, **why: Any) -> int:
    """Approve request NUMBER of BOOK, which somebody else made; it may then be done, once.

    Refused with 3 where the request is yours, or decided already.
    """
    reason = reason_of(why["reason"], why["note"], why["ticket"])
    with opened(book, who=who) as held:
        asked = held.approve(number, reason=reason)
    code = show(asked, as_json=as_json)
    if asked.where:
        terminal.hint(f'strikeout {asked.what} {book} --where "{asked.where}" --yes')
    return code
