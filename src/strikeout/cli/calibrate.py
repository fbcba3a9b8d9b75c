"""``strikeout calibrate`` and ``compare-models``: one model on a file of quotes or a book, or several side by side."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.book_commands import ONE_VALUE, calibrate_book, is_book, open_book
from strikeout.cli.fit_options import (
    OF_OBJECTIVE,
    READING,
    calibrate_file,
    calibrate_groups,
    file_options,
    filtered_options,
    matching,
    objective_options,
    options_as_given,
    read_file,
    reading_counts,
    reading_notes,
    select_option,
)
from strikeout.cli.options import (
    file_argument,
    given_options,
    only_option,
    output_options,
    reason_options,
    refuse_given,
)
from strikeout.errors import UsageError
from strikeout.models.named import MODELS
from strikeout.tables import Table, number
from strikeout.text import did_you_mean, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.terminal import Output
    from strikeout.quotes.quotes import Quotes
    from strikeout.quotes.reading import Reading

OF_BOOKS = ("through", "perturb", "fresh")
MOST_EXPIRIES = 16  # in the table of fit errors below the parameters


@click.command("calibrate")
@file_argument
@filtered_options
@click.option(
    "--plot", type=click.Path(path_type=str), help="A picture of the smiles: .png, .svg, .pdf, .html or .json."
)
@click.option(
    "--through",
    type=click.Choice(["auto", "quotes", "moments"]),
    help="For a book: through moments it forgets at a cost that does not grow with it; auto if nothing is lost.",
)
@click.option(
    "--fresh", is_flag=True, help="For a book: options that are not given have their defaults, not the last values."
)
@click.option("--perturb", type=float, help="For a book: a share of noise on the footprints it keeps, such as 1e-3.")
@click.option(
    "--fit-errors", is_flag=True, help="For a file: print the fit errors of every expiry instead of parameters."
)
@click.option("--diagnostics", is_flag=True, help="For a file: also what residuals share and the quotes determine.")
@click.option("--by", metavar="LABELS", help="Calibrate each group apart: labels, such as underlying,date.")
@click.option("--report", is_flag=True, help="Show every start and every step too.")
@reason_options
@output_options
def calibrate(file: str, plot: str | None, report: bool, output: Output, **options: Any) -> int:
    """Calibrate a model to the quotes of FILE (.csv, .csv.gz, .parquet) or of a book (NAME.book).

    A book stores the result. Options that are not given are as the last time; --fresh restores their defaults. If a
    book has several dates and enough quotes, each date has an initial variance of its own (--panel auto).

    Ends with 3 if the search did not converge or the quotes do not determine the parameters; the result is printed
    nevertheless, with a warning.
    """
    if plot is not None:
        from strikeout.plots.writing import check_ending

        check_ending(plot)
    asked = {name: options.pop(name) for name in (*OF_BOOKS, "reason", "who", "fit_errors", "diagnostics", "by")}
    if is_book(file):
        refuse_given(("diagnostics",), "The diagnostics of a book are in strikeout summary --diagnostics:")
        refuse_given(("report", "fit_errors", "by", *READING), "A book was read when it was imported:")
        if options["only"] is not None:
            return _calibrate_part(file, options["only"], output)
        taken = set(options) - {*READING, "only"}
        how = {name: options[name] for name in given_options(taken, or_configured=True)}
        how |= {name: asked[name] for name in ("through", "perturb") if asked[name] is not None}
        with open_book(file, who=asked["who"]) as book:
            own = {name: asked[name] for name in ("fresh", "reason")}
            return calibrate_book(book, how, **own, plot=plot, output=output)
    refuse_given(("reason", "note", "ticket", *OF_BOOKS), "A file keeps nothing:")
    if asked["by"] is not None:
        refuse_given(
            ("plot", "report", "fit_errors", "diagnostics"), "A table of calibrations has no picture and no steps:"
        )
        return _calibrate_each(file, asked["by"], output, options)
    if output.form not in ("table", "json"):
        refuse_given(("report", "diagnostics"), f"--format {output.form} prints tables alone:")
    reading, calibration = calibrate_file(file, **options)
    if plot is not None:
        from strikeout.plots import View, write_plot

        write_plot(calibration, plot, view=View(source=Path(file).name))
    quarantine = options["quarantine"]
    found = calibration.diagnostics() if asked["diagnostics"] else None
    facts = {**reading_counts(reading, quarantine), "plot": plot}
    facts |= {} if found is None else {"diagnostics": found.to_dict()}
    facts |= {"history": [exit_codes.plain(step) for step in calibration.history]} if report else {}
    if asked["fit_errors"] and not output.is_json:
        output.result({}, calibration.fit_errors.to_table(), notes=calibration.warnings)
    else:
        _show(calibration, output, report=report, **facts)
    if not output.is_json:
        if found is not None:
            terminal.show_lines(f"\n{found.summary()}")
        for note in (*reading_notes(reading, quarantine), *([f"the picture is in {plot}."] if plot else [])):
            terminal.note(note)
        _hint(file, calibration, plot)
    return exit_codes.DONE if calibration.converged else exit_codes.REFUSED


def _calibrate_part(file: str, only: str, output: Output) -> int:
    """Calibrate the quotes of a book that match a condition, as the book was calibrated last; store nothing.

    What a book stores is the calibration of every quote it holds: plans, certificates and erasures depend on that.
    """
    others = [name for name in click.get_current_context().params if name not in ("file", "only", "as_json", "form")]
    refuse_given(others, "A part of a book is calibrated as the book was last:")
    with open_book(file) as book:
        calibration = book.calibration(only)
    _show(calibration, output, stored=False)
    if not output.is_json:
        terminal.note(
            "nothing was stored: the calibration of a book covers every quote it holds. "
            f"strikeout forget {file} --only {quote(only)} keeps these alone."
        )
    return exit_codes.DONE if calibration.converged else exit_codes.REFUSED


def _calibrate_each(file: str, by: str, output: Output, options: dict[str, Any]) -> int:
    """Calibrate each group of a file and show one row per group."""
    reading, fleet = calibrate_groups(file, by, **options)
    done = sum(fit.converged for fit in fleet.fits)
    return output.result(
        {**fleet.to_dict(), **reading_counts(reading, options["quarantine"])},
        fleet.to_table(),
        "",
        f"{done:,} of {many(len(fleet.fits), 'calibration')} converged.",
        notes=reading_notes(reading, options["quarantine"]),
        code=exit_codes.DONE if fleet.converged else exit_codes.REFUSED,
    )


def parameter_table(calibration: Calibration) -> Table:
    """Return parameters, standard errors and how well the quotes determine each."""
    from strikeout.calibration.smiles import dated_names
    from strikeout.calibration.summary import HEADINGS

    names = dated_names(calibration)
    rows = [
        (
            names[n],
            number(value),
            number(calibration.errors.standard_errors[n], ".2g"),
            number(calibration.standard_errors[n], ".2g"),
            calibration.identifiability[n],
        )
        for n, value in calibration.parameters.items()
    ]
    return Table(HEADINGS, rows, numbers=(1, 2, 3), whole=(0,), spare=(3,))


def _show(calibration: Calibration, output: Output, *, report: bool = False, **more: Any) -> None:
    """Print a calibration; ``more`` goes into the JSON."""
    if output.is_json:
        output.result({**calibration.to_dict(), **more})
        return
    if report:
        terminal.say(calibration.report())
        return
    from strikeout.calibration.smiles import has_smiles, smile_table
    from strikeout.calibration.summary import fit_facts

    pairs = [*latent_facts(calibration), *(fact for fact in fit_facts(calibration) if fact[0] != "condition")]
    pairs += [("warning", sentence) for sentence in calibration.warnings]
    is_by_smile = has_smiles(calibration)  # each row has its fit error
    errors = calibration.fit_errors.to_table() if calibration.moments is None and not is_by_smile else None
    table = smile_table(calibration) if is_by_smile else parameter_table(calibration)
    parts: list[Any] = [table, "", terminal.facts(pairs)]
    if errors is not None and output.form == "table" and 1 < len(errors.rows) <= MOST_EXPIRIES + 1:
        parts += ["\nfit error by expiry (root mean square)", errors]
    elif errors is not None and output.form == "table" and len(errors.rows) > 1:
        terminal.note(f"fit errors of {len(errors.rows) - 1:,} expiries: add --fit-errors.")
    # A table printed alone has no facts below it, so the warnings are notes.
    output.result({}, *parts, notes=() if output.form == "table" else calibration.warnings)


def latent_facts(calibration: Calibration) -> list[tuple[str, str]]:
    """Return the latent path of a panel in a line; for a plain calibration of several dates, what it would gain."""
    from strikeout.calibration.latent_test import latent_test
    from strikeout.calibration.panels import counted_groups
    from strikeout.calibration.summary import one_value_facts

    if calibration.panel is None:
        gain = latent_test(calibration)
        return [] if gain is None else [(gain.latent, gain.sentence("--panel date"))]
    values = list(calibration.latent.values())
    span = f"{min(values):.6g} to {max(values):.6g}"
    each = f"{span}, one for each of {counted_groups(len(values), calibration.panel)}"
    return [(str(calibration.latent_name), each), *one_value_facts(calibration, ONE_VALUE)]


def remedy(calibration: Calibration) -> str:
    """Return the options with which a calibration that did not converge may converge.

    A parameter that the quotes leave free is fixed. Parameters on the model's own bounds, a panel's latent ones
    included, are given these bounds: a search that ends on a bound of the user has converged.
    """

    space, asked = calibration.model.parameters, calibration.settings.bounds or {}
    latent: list[str] = []
    if calibration.latent_on_bound:
        latent = [str(calibration.latent_name)]
    limits = dict(zip(space.names, zip(space.lower.tolist(), space.upper.tolist(), strict=True), strict=True))
    own = {name: limits[name] for name in (*calibration.on_bound, *latent) if name not in asked}
    if own and not calibration.unidentified and all(map(isfinite, sum(own.values(), ()))):
        return " ".join(f'--bound "{name}={low!r}:{high!r}"' for name, (low, high) in own.items())
    name = next(iter((*calibration.unidentified, *calibration.parameters)))
    return f'--fix "{name}={calibration.parameters[name]:.3g}"'


def _hint(file: str, calibration: Calibration, plot: str | None) -> None:
    if not calibration.converged:
        terminal.hint(
            f"strikeout inspect {file}", f"strikeout calibrate {file}{options_as_given()} {remedy(calibration)}"
        )
    elif plot is None:
        terminal.hint(f"strikeout plot {file}{options_as_given()} --out smiles.html")


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
def compare_models(file: str, models: str, top: int, output: Output, **options: Any) -> int:
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
    with terminal.ComparingLine() as line:
        found = compare(quotes, names, most=top, progress=line, **how).ranked(options["rank"])
    rows = found.rows(exit_codes.spelled)
    best = found.best()
    latent = (
        f"{fit.name}: {name} has {sentence}."
        for fit in found.values()
        for name, sentence in (latent_facts(fit.calibration) if fit.calibration else ())
    )
    return output.result(
        {**found.to_dict(), **reading_counts(reading, options["quarantine"])},
        Table(found.headings, rows, numbers=(1, 2, 3, 4, 5, 6), whole=(0,), spare=(8, 6, 5, 3, 1)),
        "",
        *found.sentences,
        notes=(*reading_notes(reading, options["quarantine"]), *(() if output.is_json else latent)),
        hints=[] if best is None else [f"strikeout calibrate {file} --model {best.name}{options_as_given()}"],
        code=exit_codes.DONE if any(fit.converged for fit in found.values()) else exit_codes.REFUSED,
    )


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
