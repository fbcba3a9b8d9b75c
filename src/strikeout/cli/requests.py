"""``strikeout requests``: what was asked for, and who decided; and how a request is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, opened
from strikeout.cli.options import json_option
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.book.approvals import Request

MOST_IDS = 5


@click.command("requests")
@book_argument
@click.option("--open", "is_open", is_flag=True, help="Only those nobody has decided yet.")
@json_option
def command(book: str, is_open: bool, as_json: bool) -> int:
    """List every request in the ledger of BOOK, the first first, with what came of it."""
    with opened(book) as held:
        asked = [request for request in held.requests() if not is_open or request.state == "open"]
    if as_json:
        terminal.show_json({"requests": [described(request) for request in asked]})
        return exits.DONE
    rows = [
        (
            str(request.number),
            request.what,
            f"{request.count:,}",
            request.who,
            request.state,
            request.by,
            wording(request),
            "" if request.why is None else str(request.why),
        )
        for request in asked
    ]
    heads = ("request", "asks to", "quotes", "asked by", "state", "decided by", "which", "why")
    terminal.show(
        terminal.table(heads, rows, numbers=(0, 2), whole=(1, 4), spare=(7, 5)) if rows else "Nothing was asked for."
    )
    return exits.DONE


def described(request: Request) -> dict[str, Any]:
    """A request as plain values."""
    return {
        "request": request.number,
        "what": request.what,
        "who": request.who,
        "at": request.at,
        "why": None if request.why is None else request.why.to_plain(),
        "count": request.count,
        "where": request.where,
        "ids": list(request.ids),
        "state": request.state,
        "by": request.by,
        "done": request.done,
    }


def wording(request: Request) -> str:
    """Which quotes, in the words they were asked for."""
    if request.where or not request.ids:
        return request.where or "(an erasure took the wording away)"
    more = len(request.ids) - MOST_IDS
    return ", ".join(request.ids[:MOST_IDS]) + (f" and {more:,} more" if more > 0 else "")


def show(request: Request, *, as_json: bool) -> int:
    """One request, told; the command is done with it."""
    if as_json:
        terminal.show_json(described(request))
        return exits.DONE
    pairs = [
        ("request", f"{request.number}: {request.what} {many(request.count, 'quote')}, asked by {request.who}"),
        ("which", wording(request)),
        ("state", f"{request.state}{f' by {request.by}' if request.by else ''}"),
    ]
    terminal.show(terminal.facts(pairs + ([] if request.why is None else [("why", str(request.why))])))
    return exits.DONE
