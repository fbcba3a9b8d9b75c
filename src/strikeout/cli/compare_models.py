"""``strikeout compare-models``: several models on the same quotes, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import is_book, open_book
from strikeout.cli.calibrate import latent_facts
from strikeout.cli.fit_options import (
    OF_OBJECTIVE,
    READING,
    file_options,
    matching,
    note_reading,
    objective_options,
    options_as_given,
    read_file,
    reading_counts,
    select_option,
)
from strikeout.cli.options import file_argument, given_options, only_option, output_options, refuse_given
from strikeout.errors import UsageError
from strikeout.models.named import MODELS
from strikeout.tables import Table
from strikeout.text import did_you_mean

if TYPE_CHECKING:
    from strikeout.cli.terminal import Format
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading


@click.command("compare-models")
@file_argument
@click.option(
    "--models",
    default=",".join(MODELS),
    show_default=True,
    help="The names of the models, separated by commas.",
)
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Influential quotes to name.")
@click.option(
    "--rank",
    type=click.Choice(["aic", "bic", "vol_points", "spreads", "rmse"]),
    default="aic",
    show_default=True,
    help="The measure of the order, shown first: aic, bic, or a fit error: vol_points, spreads, rmse (in price).",
)
@objective_options
@select_option
@only_option
@file_options
@output_options
def compare_models(file: str, models: str, top: int, as_json: bool, form: Format, **options: Any) -> int:
    """Calibrate several models to the quotes of FILE or of a book (NAME.book) and compare them.

    AIC and BIC are differences to the lowest. For a book, weights, residual, loss and selection are as it was
    calibrated last unless options change them; every model is plain, with one value for all dates. Ends with 3 if no
    model converged.
    """
    from strikeout.assurance.comparison import compare_models as compare

    names = [name.strip() for name in models.split(",") if name.strip()]
    unknown = [name for name in names if name not in MODELS]
    if unknown or not names:
        raise UsageError(
            f"--models {models!r}: {', '.join(unknown) or 'nothing'} is not a model."
            f"{did_you_mean(''.join(unknown[:1]), MODELS)} There are {', '.join(MODELS)}."
        )
    reading, quotes = _quotes(file, options)
    how = {name: options[name] for name in OF_OBJECTIVE}
    line = terminal.ComparingLine()
    try:
        found = compare(quotes, names, most=top, progress=line, **how)
    finally:
        line.end()
    found = found.ranked(options["rank"])
    if as_json:
        terminal.show_json({**found.to_dict(), **reading_counts(reading, options["quarantine"])})
    else:
        rows = found.rows(exit_codes.spelled)
        table = Table(found.headings, rows, numbers=(1, 2, 3, 4, 5, 6), whole=(0,), spare=(8, 6, 5))
        terminal.show_result(form, table, "", *found.sentences)
        note_reading(reading, options["quarantine"])
        for fit in found.values():
            for name, sentence in latent_facts(fit.calibration) if fit.calibration else ():
                terminal.note(f"{fit.name}: {name} has {sentence}.")
        best = found.best()
        if best is not None:
            terminal.hint(f"strikeout calibrate {file} --model {best.name}{options_as_given()}")
    return exit_codes.DONE if any(fit.converged for fit in found.values()) else exit_codes.REFUSED


def _quotes(file: str, options: dict[str, Any]) -> tuple[Reading | None, Quotes]:
    if is_book(file):
        refuse_given(READING, "A book was read when it was imported:")
        with open_book(file) as book:
            version = book.status().version
            last = {} if version is None else {name: version.options[name] for name in OF_OBJECTIVE}
            given = given_options(OF_OBJECTIVE, or_configured=True)
            options |= {name: value for name, value in last.items() if name not in given}
            return None, matching(book.quotes(), options["only"])
    reading = read_file(file, **{name: options[name] for name in READING})
    quotes = matching(reading.quotes, options["only"], reading=reading)
    return reading, quotes
