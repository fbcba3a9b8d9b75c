"""``strikeout erase``: quotes made unrecoverable, after a rehearsal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import NO_QUOTE, open_book
from strikeout.cli.options import book_argument, choice_options, json_option, reason_options
from strikeout.errors import NothingMeantError

if TYPE_CHECKING:
    from strikeout.store.entry import Reason


@click.command("erase")
@book_argument
@choice_options("erase")
@click.option("--yes", is_flag=True, help="Erase. Without it, only show what would be removed and what would stay.")
@reason_options
@json_option
def erase(book: str, chosen: dict[str, Any], yes: bool, reason: Reason | None, who: str | None, as_json: bool) -> int:
    """Erase quotes of BOOK: rows, states, certificates, plans and exports that held them. There is no undo.

    With --reason licence or subject-request the results of earlier calibrations they were part of are removed too; for
    other reasons these stay, and the quotes can be computed back from them. Without --yes nothing is changed. A
    condition that no quote matches changes nothing. Ends with 1 if a trace of them is found in the files of the book
    afterwards.
    """
    from strikeout.book.results import Erasure

    with open_book(book, who=who) as held:
        try:
            done = held.erase(**chosen, yes=yes, reason=reason)
        except NothingMeantError:
            done = Erasure(None, 0, 0, (), ())
    if as_json:
        terminal.show_json(done.to_dict())
    elif not done.count:
        terminal.note(f"{NO_QUOTE}; nothing was erased.")
    else:
        terminal.show_lines(done.summary())
        if done.entry is None:
            terminal.note("nothing was changed; --yes erases them. There is no undo.")
    return exit_codes.FINDINGS if done.residue else exit_codes.DONE
