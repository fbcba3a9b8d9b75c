"""``strikeout plot``: pictures of a calibration, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import is_book, open_book
from strikeout.cli.fit_options import calibrate_file, filtered_options, note_reading, reading_counts
from strikeout.cli.options import file_argument, json_option, refuse_given, who_option
from strikeout.errors import UsageError

if TYPE_CHECKING:
    from strikeout.book import Book

PICTURES = (
    "smiles",
    "residuals",
    "variance",
    "influence",
    "diagnostics",
    "path",
)  # as in plots, by a test
CALLED = {".html": "The page is", ".json": "The numbers of the picture are"}


@click.command("plot")
@file_argument
@click.option(
    "--kind",
    type=click.Choice(PICTURES),
    metavar="KIND",
    help=f"The picture: {', '.join(PICTURES)}. By default the smiles (for a panel its path), and in an .html all of "
    "them.",
)
@click.option(
    "--out",
    type=click.Path(path_type=str),
    help="The file: .png, .svg, .pdf, .html, or .json for the numbers of the picture. By default KIND.png.",
)
@click.option("--by", help="For influence: the label across, instead of the date.")
@click.option("--expiries", help="Show only these expiries: dates, separated by commas.")
@click.option("--date", help="Show only this quote date; for smiles of a panel, this one instead of the last.")
@click.option(
    "--unit", type=click.Choice(["spreads", "vol_points", "price"]), help="The unit of residuals; spreads if known."
)
@filtered_options
@who_option
@json_option
def plot(file: str, kind: Any, out: str | None, by: str | None, who: str | None, as_json: bool, **options: Any) -> int:
    """Draw the calibration of FILE or of a book (NAME.book): market against model, residuals, variance or influence.

    A picture of a book shows its quotes: it is entered in the ledger, and erasing quotes removes it. Ends with 3 if
    the search did not converge or the quotes do not determine the parameters; it is drawn nevertheless.
    """
    from strikeout.plots.style import View
    from strikeout.plots.writing import check_ending, first_kind, write_plot

    if out is not None:
        check_ending(out)  # before anything is calibrated
    if by is not None and kind != "influence":
        raise UsageError(f"--by {by} is the label across a map of influence. Give --kind influence too.", option="--by")
    dates = tuple(name.strip() for name in (options.pop("expiries") or "").split(",") if name.strip())
    view = View(dates, options.pop("date"), options.pop("unit"), source=Path(file).name)
    if is_book(file):
        refuse_given(options.keys() - {"only"}, "A book is calibrated as it was last:")
        only = options["only"]
        with open_book(file, who=who) as book:
            reading, calibration = None, book.calibration(only)
            path = out or f"{kind or first_kind(calibration)}.png"
            written = write_book_plot(book, path, kind, by=by, view=view, only=only)
    else:
        refuse_given(("who",), "A file keeps no record:")
        reading, calibration = calibrate_file(file, **options)
        written = write_plot(calibration, out or f"{kind or first_kind(calibration)}.png", kind, by=by, view=view)
    if as_json:
        read = reading_counts(reading, options["quarantine"])
        facts = {"converged": calibration.converged, "count": calibration.count, **read}
        terminal.show_json({"plot": str(written), "kind": kind, "bytes": written.stat().st_size, **facts})
    else:
        terminal.say(f"{CALLED.get(written.suffix.lower(), 'The picture is')} in {written}.")
        note_reading(reading, options["quarantine"])
        for sentence in calibration.warnings:
            terminal.note(f"the calibration itself: {sentence}")
    return exit_codes.DONE if calibration.converged else exit_codes.REFUSED


def write_book_plot(
    book: Book,
    path: str,
    kind: Any = None,
    *,
    by: str | None = None,
    view: Any = None,
    only: str | None = None,
) -> Path:
    """Write a picture of a book, which records it: a picture shows quotes, and erasing has to find it.

    Args:
        only: a condition; the picture is of the matching quotes, calibrated alone.

    Raises:
        UsageError: an unknown ending or kind, or the file cannot be written.
        RefusedError: the book is not calibrated, or changed meanwhile.
    """
    from strikeout.plots.style import View
    from strikeout.plots.writing import write_plot

    def prepared() -> Callable[[Path], Path]:
        calibration = book.calibration(only)
        shown = view or View(source=book.path.name)
        return lambda target: write_plot(calibration, target, kind, by=by, view=shown)

    return book.hand_out(Path(path), prepared, what="plot")
