"""``strikeout erase``: bytes taken away for good, after a rehearsal."""

from __future__ import annotations

from typing import Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import NOTHING_MEANT, book_argument, described_change, opened, reason_of, why_options
from strikeout.cli.forget import chosen
from strikeout.cli.options import json_option
from strikeout.errors import NothingMeantError


@click.command("erase")
@book_argument
@click.option("--where", help="Erase the quotes for which this condition in SQL holds, held or set aside.")
@click.option("--ids", help="Erase the quotes with these ids, separated by commas.")
@click.option("--ids-from", type=click.Path(path_type=str), help="The same from a file, one id a line.")
@click.option("--yes", is_flag=True, help="Do it. Without it, only say what would go and what would stay.")
@why_options
@json_option
def command(
    book: str,
    where: str | None,
    ids: str | None,
    ids_from: str | None,
    yes: bool,
    who: str | None,
    as_json: bool,
    **why: Any,
) -> int:
    """Erase quotes of BOOK: rows, states, certificates, plans and exports that held them. There is no undo.

    With --reason licence or subject-request the results of earlier calibrations they were part of go too; for other
    reasons these stay, and the quotes can be computed back from them. Without --yes nothing is changed. A condition
    that holds for no quote changes nothing, and says so. Ends with 1 if a trace of them is found in the files of the
    book afterwards.
    """
    meant = chosen(where, ids, ids_from, verb="erase")
    reason = reason_of(why["reason"], why["note"], why["ticket"])
    from strikeout.book.results import Erasure

    with opened(book, who=who) as held:
        try:
            done = held.erase(**meant, yes=yes, reason=reason)
        except NothingMeantError:
            done = Erasure(None, 0, 0, (), ())
    if as_json:
        result = {
            "entry": done.entry,
            "count": done.count,
            "forgotten": done.held,
            "gone": list(done.gone),
            "stays": list(done.stays),
            "beyond": list(done.beyond),
            "warnings": list(done.warnings),
            "results_kept": done.results_kept,
            "residue": done.residue,
            "change": None if done.change is None else described_change(done.change),
        }
        terminal.show_json(result)
    elif not done.count:
        terminal.note(f"{NOTHING_MEANT}, so nothing was erased.")
    else:
        terminal.show_lines(done.summary())
        if done.entry is None:
            terminal.note("nothing was changed; --yes erases them. There is no undo.")
    return exits.FINDINGS if done.residue else exits.DONE
