"""``strikeout apply``: a planned strike-out done, exactly as it was shown."""

from __future__ import annotations

from pathlib import Path

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, described_change, opened, show_change, who_option
from strikeout.cli.options import json_option
from strikeout.errors import UnreadableFileError


@click.command("apply")
@book_argument
@click.argument("plan", type=click.Path(path_type=str), required=False)
@who_option
@json_option
def command(book: str, plan: str | None, who: str | None, as_json: bool) -> int:
    """Do what the PLAN of ``strikeout forget BOOK`` says; by default the one beside the book.

    Refused with 3 where the book moved since the plan was made. An applied plan is deleted: it names quotes.
    """
    from strikeout.book.plan import Plan

    with opened(book, who=who) as held:
        path = held.plan_path if plan is None else Path(plan)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UnreadableFileError(
                f"{path}: cannot be read ({error.strerror}). Make a plan with strikeout forget {book} --where ...",
                path=str(path),
            ) from error
        change = held.apply(Plan.from_bytes(data))
        path.unlink(missing_ok=True)
    if as_json:
        terminal.show_json(described_change(change))
    else:
        show_change(change)
        terminal.hint(f"strikeout restore {book} {change.entry}", f"strikeout verify {book}")
    return exits.DONE
