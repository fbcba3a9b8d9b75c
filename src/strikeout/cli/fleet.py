"""``strikeout fleet``: the same removal in every book of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes
from strikeout.cli.options import Group, json_option, output_options, reason_options
from strikeout.cli.terminal import ComparingLine
from strikeout.errors import UsageError
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.book.folder import FolderOutcome, Removal
    from strikeout.cli.terminal import Output
    from strikeout.store.entry import Reason

folder_argument = click.argument("folder", type=click.Path(path_type=str))
where_option = click.option("--where", required=True, metavar="CONDITION", help="The quotes, such as licence = 'X'.")
yes_option = click.option("--yes", is_flag=True, help="Do it; without it the effect is shown and nothing changes.")


@click.group("fleet", cls=Group)
def fleet() -> None:
    """Remove quotes from every book of a folder."""


@fleet.command("forget")
@folder_argument
@where_option
@yes_option
@reason_options
@output_options
def forget(folder: str, output: Output, **asked: Any) -> int:
    """Strike matching quotes out of every book of FOLDER: a plan per book, and with --yes the change.

    A book that needs a second person's approval gets a request; after the approval (fleet approve) run it again. Ends
    with 3 if a book refuses; the other books are changed all the same.
    """
    return _remove(folder, "forget", output, **asked)


@fleet.command("erase")
@folder_argument
@where_option
@yes_option
@reason_options
@output_options
def erase(folder: str, output: Output, **asked: Any) -> int:
    """Erase matching quotes from every book of FOLDER, for good: a rehearsal, and with --yes the erasure.

    A book that needs a second person's approval gets a request; after the approval (fleet approve) run it again. Ends
    with 3 if a book refuses; the other books are changed all the same.
    """
    return _remove(folder, "erase", output, **asked)


def _remove(folder: str, what: Removal, output: Output, *, yes: bool, **asked: Any) -> int:
    from strikeout.book.folder import remove_in_folder

    with ComparingLine(what="books") as line:
        found = remove_in_folder(Path(folder), what, **asked, is_plan=not yes, progress=line)
    return _show(found, output, notes=[] if yes else ["nothing was changed. Add --yes to do it."])


@fleet.command("approve")
@folder_argument
@click.option("--for", "asked", required=True, metavar="TICKET", help="The ticket of the requests.")
@reason_options
@output_options
def approve(folder: str, asked: str, reason: Reason | None, who: str | None, output: Output) -> int:
    """Approve what another person asked for under one ticket, in every book of FOLDER."""
    from strikeout.book.folder import approve_in_folder

    return _show(approve_in_folder(Path(folder), asked, reason=reason, who=who), output)


@fleet.command("evidence")
@folder_argument
@click.option("--for", "asked", metavar="TICKET", help="Only removals with this ticket.")
@click.option("--out", type=click.Path(path_type=str), default="evidence.html", show_default=True, help="The page.")
@json_option
def evidence(folder: str, asked: str | None, out: str, output: Output) -> int:
    """Write one printable page on the removals from all books of FOLDER. It verifies each book first.

    Ends with 1 if a book is refuted.
    """
    if not out.lower().endswith(".html"):
        raise UsageError(f"{Path(out).name}: evidence is one page and ends in .html.", path=out)
    from strikeout.book.folder import evidence_of_folder
    from strikeout.plots.page import evidence_page
    from strikeout.quotes.writing import replace_file

    found = evidence_of_folder(Path(folder), ticket=asked)
    page = evidence_page(*found)
    path = replace_file(Path(out), lambda part: part.write_text(page, encoding="utf-8"))
    removals = sum(len(facts["removals"]) for facts in found)
    text = f"The evidence on {many(removals, 'removal')} from {many(len(found), 'book')} is in {path}."
    verdicts = {facts["verification"]["verdict"] for facts in found}
    code = exit_codes.DONE if verdicts == {"verified"} else exit_codes.REFUSED
    code = exit_codes.FINDINGS if "refuted" in verdicts else code
    return output.lines({"books": found, "evidence": str(path)}, text, code=code)


def _show(found: FolderOutcome, output: Output, *, notes: Iterable[str] = ()) -> int:
    code = exit_codes.DONE if found.is_whole else exit_codes.REFUSED
    return output.result(found.to_dict(), found.to_table(), "", found.summary(), notes=notes, code=code)
