"""``strikeout erase`` and ``residue``: quotes made unrecoverable after a rehearsal, and a search for what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import open_book
from strikeout.cli.fit_options import read_file
from strikeout.cli.options import (
    book_argument,
    choice_options,
    json_option,
    layout_options,
    max_reject_option,
    reason_options,
)

if TYPE_CHECKING:
    from strikeout.store.entry import Reason


@click.command("erase")
@book_argument
@choice_options("erase")
@click.option("--yes", is_flag=True, help="Erase. Without it, only show what would be removed and what would stay.")
@reason_options
@json_option
def erase(
    book: str, chosen: dict[str, Any], is_all: bool, yes: bool, reason: Reason | None, who: str | None, as_json: bool
) -> int:
    """Erase quotes of BOOK: rows, states, certificates, plans and exports that held them. There is no undo.

    With --reason licence or subject-request the results of earlier calibrations they were part of are removed too; for
    other reasons these stay, and the quotes can be computed back from them. Without --yes nothing is changed. Ends with
    1 if a trace of them is found in the files of the book afterwards, and with 3 if no quote matches the condition.
    """
    progress = terminal.SearchingLine()
    with open_book(book, who=who) as held:
        try:
            if yes:
                done = held.erase(**chosen, all_quotes=is_all, reason=reason, progress=progress)
            else:
                done = held.plan_erase(**chosen, all_quotes=is_all, reason=reason)
        finally:
            progress.end()
    if as_json:
        terminal.show_json(done.to_dict())
    else:
        terminal.show_lines(done.summary())
        if done.entry is None:
            terminal.note("nothing was changed; --yes erases them. There is no undo.")
    is_done = done.entry is None or (done.search is not None and done.search.is_clean)
    return exit_codes.DONE if is_done else exit_codes.FINDINGS


@click.command("residue")
@book_argument
@click.option(
    "--quotes",
    "file",
    type=click.Path(path_type=str),
    help="A file with quotes that were erased: their numbers and names are searched for too.",
)
@click.option("--who", help="The name in the entry of the ledger.")
@max_reject_option
@layout_options
@json_option
def residue(book: str, file: str | None, who: str | None, as_json: bool, **options: Any) -> int:
    """Search the files of BOOK for what its erasures should have removed, and record the result in its ledger.

    Checks that every byte of the file is accounted for, that no quote is one that was erased, and that no file an
    erasure had to delete exists. The book has no copy of the erased numbers: give the file they were imported from with
    --quotes to search for them as well. Ends with 1 if something is found.
    """
    from strikeout.book.results import search_lines

    erased = None if file is None else read_file(file, **options).quotes
    progress = terminal.SearchingLine()
    with open_book(book, who=who) as held:
        try:
            found = held.residue(erased, progress=progress)
        finally:
            progress.end()
    if as_json:
        terminal.show_json(found.to_dict())
    else:
        terminal.show_lines("\n".join(search_lines(found)))
    return exit_codes.DONE if found.is_clean else exit_codes.FINDINGS
