"""``strikeout erase`` and ``residue``: quotes made unrecoverable after a rehearsal, and a search for what is left.

``strikeout evidence`` prints one page on what was removed, who asked and who approved.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes
from strikeout.cli.book_commands import audit_key_option, open_book, public_keys_of
from strikeout.cli.fit_options import read_file
from strikeout.cli.options import (
    book_argument,
    choice_options,
    json_option,
    layout_options,
    max_reject_option,
    reason_options,
)
from strikeout.cli.terminal import SearchingLine
from strikeout.errors import UsageError
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.cli.terminal import Output
    from strikeout.store.entry import Reason


@click.command("erase")
@book_argument
@choice_options("erase")
@click.option("--yes", is_flag=True, help="Erase. Without it, only show what would be removed and what would stay.")
@reason_options
@json_option
def erase(
    book: str, chosen: dict[str, Any], is_all: bool, yes: bool, reason: Reason | None, who: str | None, output: Output
) -> int:
    """Erase quotes of BOOK: rows, states, certificates, plans and exports that held them. There is no undo.

    With --reason licence or subject-request the results of earlier calibrations they were part of are removed too; for
    other reasons these stay, and the quotes can be computed back from them. Without --yes nothing is changed. Ends with
    1 if a trace of them is found in the files of the book afterwards, and with 3 if no quote matches the condition.
    """
    with open_book(book, who=who) as held, SearchingLine() as progress:
        if yes:
            done = held.erase(**chosen, all_quotes=is_all, reason=reason, progress=progress)
        else:
            done = held.plan_erase(**chosen, all_quotes=is_all, reason=reason)
    notes = ["nothing was changed; --yes erases them. There is no undo."] if done.entry is None else []
    is_done = done.entry is None or (done.search is not None and done.search.is_clean)
    code = exit_codes.DONE if is_done else exit_codes.FINDINGS
    return output.lines(done.to_dict(), done.summary(), notes=notes, code=code)


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
def residue(book: str, file: str | None, who: str | None, output: Output, **options: Any) -> int:
    """Search the files of BOOK for what its erasures should have removed, and record the result in its ledger.

    Checks that every byte of the file is accounted for, that no quote is one that was erased, and that no file an
    erasure had to delete exists. The book has no copy of the erased numbers: give the file they were imported from with
    --quotes to search for them as well. Ends with 1 if something is found.
    """
    from strikeout.book.results import search_lines

    erased = None if file is None else read_file(file, **options).quotes
    with open_book(book, who=who) as held, SearchingLine() as progress:
        found = held.residue(erased, progress=progress)
    code = exit_codes.DONE if found.is_clean else exit_codes.FINDINGS
    return output.lines(found.to_dict(), "\n".join(search_lines(found)), code=code)


@click.command("evidence")
@book_argument
@click.option("--request", type=click.IntRange(min=1), help="Only the removal of this request, by its number.")
@click.option("--out", type=click.Path(path_type=str), help="The page, .html.  [default: NAME-evidence.html]")
@audit_key_option
@json_option
def evidence(book: str, request: int | None, out: str | None, keys: tuple[str, ...], output: Output) -> int:
    """Write one printable page on the removals from BOOK: who asked, who approved, when, why, and what can be checked.

    The page contains no quote, so it may be given away. It verifies the book first; ends with 1 if the book is refuted,
    with 3 if it cannot be checked here.
    """
    out = f"{Path(book).stem}-evidence.html" if out is None else out
    if not out.lower().endswith(".html"):
        raise UsageError(f"{Path(out).name}: evidence is one page and ends in .html.", path=out)
    from strikeout.book import Book
    from strikeout.book.approvals import evidence_facts
    from strikeout.plots.page import evidence_page
    from strikeout.quotes.writing import replace_file

    with open_book(book, keys=keys) as held:
        audit = Book.verify_copy(book, key=public_keys_of(keys)) if keys else held.verify()
        facts = evidence_facts(held, audit, request=request)
    page = evidence_page(facts)
    path = replace_file(Path(out), lambda part: part.write_text(page, encoding="utf-8"))
    text = f"The evidence on {many(len(facts['removals']), 'removal')} is in {path}."
    code = exit_codes.OF_VERDICT[facts["verification"]["verdict"].upper()]
    return output.lines({**facts, "evidence": str(path)}, text, code=code)
