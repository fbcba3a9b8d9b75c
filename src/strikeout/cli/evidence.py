"""``strikeout evidence``: one printable page on what was removed from a book, who asked and who approved."""

from __future__ import annotations

from pathlib import Path

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import open_book
from strikeout.cli.options import book_argument, json_option
from strikeout.cli.public_keys import audit_key_option, public_keys_of
from strikeout.errors import UsageError
from strikeout.text import many


@click.command("evidence")
@book_argument
@click.option("--request", type=click.IntRange(min=1), help="Only the removal of this request, by its number.")
@click.option("--out", type=click.Path(path_type=str), help="The page, .html.  [default: NAME-evidence.html]")
@audit_key_option
@json_option
def evidence(book: str, request: int | None, out: str | None, keys: tuple[str, ...], as_json: bool) -> int:
    """Write one printable page on the removals from BOOK: who asked, who approved, when, why, and what can be checked.

    The page contains no quote, so it may be given away. It verifies the book first; ends with 1 if the book is refuted,
    with 3 if it cannot be checked here.
    """
    out = f"{Path(book).stem}-evidence.html" if out is None else out
    if not out.lower().endswith(".html"):
        raise UsageError(f"{Path(out).name}: evidence is one page and ends in .html.", path=out)
    from strikeout.book import Book
    from strikeout.book.evidence import evidence_facts
    from strikeout.plots.page import evidence_page
    from strikeout.quotes.writing import replace_file

    with open_book(book, keys=keys) as held:
        audit = Book.verify_copy(book, key=public_keys_of(keys)) if keys else held.verify()
        facts = evidence_facts(held, audit, request=request)
    page = evidence_page(facts)
    path = replace_file(Path(out), lambda part: part.write_text(page, encoding="utf-8"))
    if as_json:
        terminal.show_json({**facts, "evidence": str(path)})
    else:
        terminal.say(f"The evidence on {many(len(facts['removals']), 'removal')} is in {path}.")
    verdict = facts["verification"]["verdict"]
    return {"verified": exit_codes.DONE, "refuted": exit_codes.FINDINGS}.get(verdict, exit_codes.REFUSED)
