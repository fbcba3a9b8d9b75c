"""``strikeout filter`` and ``strikeout regimes``: the dates of a panel as a path."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes
from strikeout.cli.book_commands import is_book, open_book
from strikeout.cli.fit_options import calibrate_file, filtered_options, reading_counts, reading_notes
from strikeout.cli.options import file_argument, output_options, refuse_given
from strikeout.cli.terminal import RoundsLine
from strikeout.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.regime_path import RegimePath
    from strikeout.cli.terminal import Output
    from strikeout.quotes.reading import Reading

plot_option = click.option(
    "--plot", type=click.Path(path_type=str), help="A picture of the path: .png, .svg, .pdf, or .json for its numbers."
)


@click.command("filter")
@file_argument
@click.option(
    "--strength",
    type=click.FloatRange(min=0.0),
    default=1.0,
    show_default=True,
    help="How strong the prior is: 1 is the model's, 0 none, inf one variance for all dates.",
)
@click.option("--at", "dates", metavar="DATES", help="Further dates without quotes, separated by commas.")
@plot_option
@filtered_options
@output_options
def filter_path(file: str, strength: float, dates: str | None, plot: str | None, output: Output, **options: Any) -> int:
    """Filter and smooth the variance of FILE or of a book (NAME.book) from date to date.

    The quotes are calibrated as a panel. Each date's own variance is then an observation, and the model's dynamics tie
    the dates to each other. Ends with 3 if the search did not converge; the path is shown nevertheless.
    """
    from strikeout.plots.paths import plot_variance_path

    asked = tuple(name.strip() for name in (dates or "").split(",") if name.strip())
    return _show(
        file,
        plot,
        lambda panel: panel.filter(strength=strength, dates=asked),
        lambda path: plot_variance_path(path, source=Path(file).name),
        output,
        options,
    )


@click.command("regimes")
@file_argument
@click.option(
    "--count", type=click.IntRange(1, 3), default=2, show_default=True, help="The number of regimes; 1 is the panel."
)
@click.option(
    "--switching",
    metavar="NAMES",
    default="vol_of_vol",
    show_default=True,
    help="The parameters that differ between regimes, separated by commas.",
)
@plot_option
@filtered_options
@output_options
def regimes(file: str, count: int, switching: str, plot: str | None, output: Output, **options: Any) -> int:
    """Find regimes in the dates of FILE or of a book (NAME.book): parameters that switch between a few values.

    The quotes are calibrated as a panel. A Markov chain decides on the regime of each date; the table shows the
    probabilities given all dates. Compare the BIC of several --count. Ends with 3 if the search did not converge.
    """
    from strikeout.plots.paths import plot_regimes

    names = [name.strip() for name in switching.split(",") if name.strip()]

    def find(panel: Calibration) -> RegimePath:
        with RoundsLine() as line:
            return panel.regimes(count=count, switching=names, progress=line)

    return _show(file, plot, find, lambda path: plot_regimes(path, source=Path(file).name), output, options)


def _show(
    file: str,
    plot: str | None,
    find: Callable[[Calibration], Any],
    draw: Callable[[Any], Figure],
    output: Output,
    options: dict[str, Any],
) -> int:
    """Calibrate a panel, compute a path from it, and show it."""
    if plot is not None and Path(plot).suffix.lower() not in (".png", ".svg", ".pdf", ".json"):
        raise UsageError(f"{Path(plot).name}: the picture of a path ends in .png, .svg, .pdf or .json.")
    reading, panel = _panel(file, options)
    found = find(panel)
    converged = getattr(found, "converged", panel.converged)
    if plot is not None:
        _write(file, plot, found, draw)
    read = reading_counts(reading, options["quarantine"])
    has_parameters = hasattr(found, "parameter_table") and output.form == "table"
    return output.result(
        {**found.to_dict(), "converged": converged, **read, "plot": plot},
        *([found.parameter_table(), ""] if has_parameters else []),
        found.table(),
        "",
        *(f"{sentence}." for sentence in found.facts()),
        notes=[
            *reading_notes(reading, options["quarantine"]),
            *(f"the calibration itself: {sentence}" for sentence in panel.warnings),
        ],
        code=exit_codes.DONE if converged else exit_codes.REFUSED,
    )


def _panel(file: str, options: dict[str, Any]) -> tuple[Reading | None, Calibration]:
    if is_book(file):
        refuse_given(options, "A book is calibrated as it was last:")
        with open_book(file) as book:
            return None, book.calibration()
    options["panel"] = options["panel"] or "date"
    return calibrate_file(file, **options)


def _write(file: str, path: str, found: Any, draw: Callable[[Any], Figure]) -> None:
    """Write a picture or its numbers. That of a book is entered in its ledger, so that erasing finds it."""
    from strikeout.plots import style
    from strikeout.quotes.writing import replace_file

    ending = Path(path).suffix.lower()
    if ending == ".json":
        content = (json.dumps(found.to_dict(), allow_nan=False) + "\n").encode()
    else:
        content = style.to_bytes(draw(found), style.format_of(ending))

    def write(target: str | Path) -> Path:
        return replace_file(target, lambda place: Path(place).write_bytes(content))

    if is_book(file):
        with open_book(file) as book:
            book.hand_out(Path(path), lambda: write, what="plot")
    else:
        write(path)
