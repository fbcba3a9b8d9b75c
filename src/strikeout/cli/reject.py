"""``strikeout reject``: what somebody else asked for, declined."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli.books import book_argument, opened, reason_of, why_options
from strikeout.cli.options import json_option
from strikeout.cli.requests import show


@click.command("reject")
@book_argument
@click.argument("number", type=click.IntRange(min=1))
@why_options
@json_option
def command(book: str, number: int, who: str | None, as_json: bool, **why: Any) -> int:
    """Reject request NUMBER of BOOK, which somebody else made; to be done it must be asked for anew.

    Refused with 3 where the request is yours, or decided already.
    """
    reason = reason_of(why["reason"], why["note"], why["ticket"])
    with opened(book, who=who) as held:
        return show(held.reject(number, reason=reason), as_json=as_json)
