"""``strikeout compare-models``: several models on the same quotes, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import given, is_book, opened, refuse_given
from strikeout.cli.calibrate import latent_facts
from strikeout.cli.calibrating import (
    READING,
    accepted,
    as_given,
    described_reading,
    loss_option,
    max_reject_option,
    quarantine_option,
    residual_option,
    select_option,
    tell_reading,
    weights_option,
)
from strikeout.cli.options import check_option, constant_option, file_argument, json_option, profile_option
from strikeout.errors import UsageError
from strikeout.models.named import MODELS

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading

HOW = ("weights", "residual", "loss", "select")  # of a calibration's options, those that mean the same to every model


@click.command("compare-models")
@file_argument
@click.option(
    "--models",
    default=",".join(MODELS),
    show_default=True,
    help="Names with commas between them, of the models to compare.",
)
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Influential quotes to name.")
@weights_option
@residual_option
@loss_option
@select_option
@max_reject_option
@quarantine_option
@profile_option
@constant_option
@check_option
@json_option
def command(file: str, models: str, top: int, as_json: bool, **options: Any) -> int:
    """Calibrate several models to the quotes of FILE or of a book (NAME.book) and put them side by side.

    AIC and BIC are given as what they are above the lowest. Of a book weights, residual, loss and selection are as it
    was calibrated last, where no option says otherwise; every model is plain, with one value for all dates. Ends with 3
    where no model converged.
    """
    from strikeout.assurance.comparison import HEADINGS, compare_models

    names = [name.strip() for name in models.split(",") if name.strip()]
    unknown = [name for name in names if name not in MODELS]
    if unknown or not names:
        raise UsageError(
            f"--models {models!r}: {', '.join(unknown) or 'nothing'} is no model. There are {', '.join(MODELS)}."
        )
    reading, quotes = _quotes(file, options)
    how = {name: options[name] for name in HOW}
    line = terminal.ComparingLine()
    try:
        found = compare_models(quotes, names, most=top, progress=line, **how)
    finally:
        line.end()
    if as_json:
        source = {} if reading is None else described_reading(reading, options["quarantine"])
        terminal.show_json({**found.to_dict(), **source})
    else:
        rows = found.rows(exits.spelled)
        terminal.show(
            terminal.table(HEADINGS, rows, numbers=(1, 2, 3, 4), whole=(0,), spare=(6,)), "", *found.sentences
        )
        if reading is not None:
            tell_reading(reading, options["quarantine"])
        for fit in found.values():
            for name, sentence in latent_facts(fit.calibration) if fit.calibration else ():
                terminal.note(f"{fit.name}: {name} has {sentence}.")
        best = found.best()
        if best is not None:
            terminal.hint(f"strikeout calibrate {file} --model {best.name}{as_given()}")
    return exits.DONE if any(fit.converged for fit in found.values()) else exits.REFUSED


def _quotes(file: str, options: dict[str, Any]) -> tuple[Reading | None, Quotes]:
    if is_book(file):
        refuse_given(READING, "A book was read when it was imported:")
        with opened(file) as book:
            version = book.status().version
            last = {} if version is None else {name: version.asking[name] for name in HOW}
            options |= {name: value for name, value in last.items() if name not in given(HOW, or_configured=True)}
            return None, book.quotes()
    reading = accepted(file, **{name: options[name] for name in READING})
    return reading, reading.quotes
