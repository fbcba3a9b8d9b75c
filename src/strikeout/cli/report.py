"""``strikeout report``: one page on a book that works offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import book_argument, opened, who_option
from strikeout.cli.options import json_option
from strikeout.errors import UsageError


@click.command("report")
@book_argument
@click.option("--out", type=click.Path(path_type=str), default="fit.html", show_default=True, help="The page, .html.")
@click.option("--by", help="The label whose values the influence goes by; dates, of a single day expiries.")
@who_option
@json_option
def command(book: str, out: str, by: str | None, who: str | None, as_json: bool) -> int:
    """Write one page on BOOK: its fit, smiles, residuals, total variance, influence, log and last certificate.

    The page shows quotes: it is entered in the ledger, and erasing quotes takes it away.
    """
    if not out.lower().endswith(".html"):
        raise UsageError(f"{Path(out).name}: a report is one page and ends in .html.", path=out)
    from strikeout.cli.book_page import book_page
    from strikeout.quotes.atomic_write import replace_file

    with opened(book, who=who) as held:

        def prepared() -> Callable[[Path], Path]:
            page = book_page(held, by=by)
            return lambda target: replace_file(target, lambda part: part.write_text(page, encoding="utf-8"))

        path = held.hand_out(Path(out), prepared, what="report")
    if as_json:
        terminal.show_json({"report": str(path), "bytes": path.stat().st_size})
    else:
        terminal.say(f"The report is in {path} ({path.stat().st_size / 1e6:.1f} MB); it works offline.")
    return exits.DONE
