"""Requests that a second person approves: request, requests, approve, reject and withdraw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli.book_commands import audit_key_option, open_book
from strikeout.cli.options import book_argument, choice_options, json_option, output_options, reason_options
from strikeout.cli.terminal import facts
from strikeout.tables import Table, number
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.book.approvals import Request
    from strikeout.cli.terminal import Output
    from strikeout.store.entry import Reason

MOST_IDS = 5
HEADINGS = ("request", "asks to", "quotes", "asked by", "state", "decided by", "which", "why")
number_argument = click.argument("number", type=click.IntRange(min=1))


@click.command("request")
@book_argument
@click.argument("what", metavar="forget|erase|one-person", type=click.Choice(["forget", "erase", "one-person"]))
@choice_options("request")
@reason_options
@json_option
def request(
    book: str, what: Any, chosen: dict[str, Any], is_all: bool, reason: Reason | None, who: str | None, output: Output
) -> int:
    """Ask that quotes of BOOK be struck out or erased, or that one person be enough. It changes no quote.

    Once another person approved it, `strikeout forget BOOK ... --yes` or `erase BOOK ... --yes` with the same
    quotes does it, once.
    """
    with open_book(book, who=who) as held:
        asked = held.request(what, **chosen, all_quotes=is_all, reason=reason)
    return _show(asked, output, f"strikeout approve {book} {asked.number} --who ANOTHER-PERSON")


@click.command("requests")
@book_argument
@click.option("--open", "is_open", is_flag=True, help="Only those that are not decided yet.")
@audit_key_option
@output_options
def requests(book: str, keys: tuple[str, ...], is_open: bool, output: Output) -> int:
    """List every request in the ledger of BOOK, the first first, with its outcome."""
    with open_book(book, keys=keys) as held:
        asked = [one for one in held.requests() if not is_open or one.state == "open"]
    rows = [
        (
            number(one.number, "d"),
            one.what,
            number(one.count, ",d"),
            one.who,
            one.state,
            one.by,
            _wording(one),
            "" if one.why is None else str(one.why),
        )
        for one in asked
    ]
    table = Table(HEADINGS, rows, numbers=(0, 2), whole=(1, 4), spare=(7, 5))
    shown = table if rows or output.form != "table" else "There are no requests."
    return output.result({"requests": [one.to_dict() for one in asked]}, shown)


@click.command("approve")
@book_argument
@number_argument
@reason_options
@json_option
def approve(book: str, number: int, reason: Reason | None, who: str | None, output: Output) -> int:
    """Approve request NUMBER of BOOK, which another person made; it may then be done, once.

    Refused with 3 if the request is yours, or decided already.
    """
    with open_book(book, who=who) as held:
        asked = held.approve(number, reason=reason)
    return _show(
        asked, output, *([f'strikeout {asked.what} {book} --where "{asked.where}" --yes'] if asked.where else [])
    )


@click.command("reject")
@book_argument
@number_argument
@reason_options
@json_option
def reject(book: str, number: int, reason: Reason | None, who: str | None, output: Output) -> int:
    """Reject request NUMBER of BOOK, which another person made; to be done it must be requested again.

    Refused with 3 if the request is yours, or decided already.
    """
    with open_book(book, who=who) as held:
        return _show(held.reject(number, reason=reason), output)


@click.command("withdraw")
@book_argument
@number_argument
@reason_options
@json_option
def withdraw(book: str, number: int, reason: Reason | None, who: str | None, output: Output) -> int:
    """Withdraw request NUMBER of BOOK, which you made, also if it was approved but not done.

    Refused with 3 if the request is another person's, or no longer waits.
    """
    with open_book(book, who=who) as held:
        return _show(held.withdraw(number, reason=reason), output)


def _wording(asked: Request) -> str:
    """Return which quotes, in the words of the request."""
    if asked.where or not asked.ids:
        return asked.where or "(an erasure removed the wording)"
    more = len(asked.ids) - MOST_IDS
    return ", ".join(asked.ids[:MOST_IDS]) + (f" and {more:,} more" if more > 0 else "")


def _show(asked: Request, output: Output, *hints: str) -> int:
    pairs = [
        ("request", f"{asked.number}: {asked.what} {many(asked.count, 'quote')}, asked by {asked.who}"),
        ("which", _wording(asked)),
        ("state", f"{asked.state}{f' by {asked.by}' if asked.by else ''}"),
    ]
    pairs += [] if asked.why is None else [("why", str(asked.why))]
    return output.result(asked.to_dict(), facts(pairs), hints=hints)
