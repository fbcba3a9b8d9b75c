"""``strikeout calibrate``: a file of quotes in, parameters with standard errors out."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.books import ONE_VALUE, given, is_book, opened, reason_of, refuse_given, why_options
from strikeout.cli.calibrating import (
    READING,
    as_given,
    calibrated,
    calibration_options,
    described_reading,
    tell_reading,
)
from strikeout.cli.on_book import calibrate_book
from strikeout.cli.options import file_argument, json_option

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.quotes.reading import Reading


@click.command("calibrate")
@file_argument
@calibration_options
@click.option(
    "--plot", type=click.Path(path_type=str), help="A picture of the smiles: .png, .svg, .pdf, .html or .json."
)
@click.option(
    "--through",
    type=click.Choice(["auto", "quotes", "moments"]),
    help="Of a book: through moments it forgets at a cost that does not grow with it; auto where nothing is lost.",
)
@click.option("--fresh", is_flag=True, help="Of a book: what is not given is at its default, not as the last time.")
@click.option("--perturb", type=float, help="Of a book: a share of noise on the footprints it keeps, such as 1e-3.")
@click.option("--report", is_flag=True, help="Every start and every step too.")
@why_options
@json_option
def command(
    file: str,
    plot: str | None,
    fresh: bool,
    report: bool,
    through: Any,
    perturb: float | None,
    as_json: bool,
    reason: str | None,
    note: str,
    ticket: str,
    who: str | None,
    **options: Any,
) -> int:
    """Calibrate a model to the quotes of FILE (.csv, .csv.gz, .parquet) or of a book (NAME.book).

    A book keeps the result. What no option says is as it was the last time; --fresh begins anew. Where it has several
    dates and quotes enough, each date has an initial variance of its own (--panel auto).

    Ends with 3 where the search did not converge or the quotes do not determine the parameters; the result is printed
    all the same, and says so.
    """
    if plot is not None:
        from strikeout.plots.writing import check_ending

        check_ending(plot)
    if is_book(file):
        refuse_given(("report", *READING), "A book was read when it was imported:")
        how = {name: options[name] for name in given(set(options) - set(READING), or_configured=True)}
        how |= {name: x for name, x in (("through", through), ("perturb", perturb)) if x is not None}
        with opened(file, who=who) as book:
            why = reason_of(reason, note, ticket)
            return calibrate_book(book, how, fresh=fresh, reason=why, plot=plot, as_json=as_json)
    refuse_given(("reason", "note", "ticket", "through", "perturb", "fresh"), "A file keeps nothing:")
    reading, calibration = calibrated(file, **options)
    if plot is not None:
        from strikeout.plots import write_plot

        write_plot(calibration, plot)
    from strikeout.calibration.panel_calibration import PanelCalibration

    quarantine = options["quarantine"]
    if as_json:
        result = described(reading, calibration, quarantine=quarantine, plot=plot)
        terminal.show_json(
            result | ({"history": [exits.plain(step) for step in calibration.history]} if report else {})
        )
    else:
        _show(calibration, report=report)
        tell_reading(reading, quarantine)
        if plot:
            terminal.note(f"the {'path is' if isinstance(calibration, PanelCalibration) else 'smiles are'} in {plot}.")
        _hint(file, calibration, plot)
    return exits.DONE if calibration.converged else exits.REFUSED


def described(
    reading: Reading,
    calibration: Calibration | PanelCalibration,
    *,
    quarantine: str | None = None,
    plot: str | None = None,
) -> dict[str, Any]:
    """The calibration and what it was made from, as plain values."""
    return {**calibration.to_dict(), **described_reading(reading, quarantine), "plot": plot}


def parameter_table(calibration: Calibration | PanelCalibration) -> Any:
    """Parameters, standard errors and how well each is determined, as a table for the terminal."""
    rows = [
        (
            name,
            f"{value:.6g}",
            terminal.error_text(calibration.standard_errors[name]),
            calibration.identifiability[name],
        )
        for name, value in calibration.parameters.items()
    ]
    return terminal.table(("parameter", "value", "standard error", "identified"), rows, numbers=(1, 2), whole=(0,))


def _show(calibration: Calibration | PanelCalibration, *, report: bool) -> None:
    if report:
        terminal.say(calibration.report())
        return
    from strikeout.calibration.summary import fit_facts

    pairs = [*latent_facts(calibration), *(fact for fact in fit_facts(calibration) if fact[0] != "condition")]
    pairs += [("warning", sentence) for sentence in calibration.warnings]
    terminal.show(parameter_table(calibration), "", terminal.facts(pairs))


def latent_facts(calibration: Calibration | PanelCalibration) -> list[tuple[str, str]]:
    """The latent path of a panel in a line; for a plain calibration of several dates, what such a path would gain."""
    from strikeout.calibration.constancy import constancy
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.calibration.panel_groups import counted_groups
    from strikeout.calibration.panel_summary import one_value_facts

    if not isinstance(calibration, PanelCalibration):
        gain = constancy(calibration)
        return [] if gain is None else [(gain.latent, gain.said("--panel date"))]
    values = list(calibration.latent.values())
    span = f"{min(values):.6g} to {max(values):.6g}"
    each = f"{span}, one for each of {counted_groups(len(values), calibration.panel)}"
    return [(calibration.latent_name, each), *one_value_facts(calibration, ONE_VALUE)]


def remedy(calibration: Calibration | PanelCalibration) -> str:
    """The options that let a calibration which did not converge come to an answer.

    A parameter the quotes leave free is fixed. Those that ran into the model's own bounds, be it a panel's latent one
    in some group, are given these bounds: to end on a bound that was asked for is an answer.
    """
    from strikeout.calibration.panel_calibration import PanelCalibration

    space, asked = calibration.model.parameters, calibration.settings.bounds or {}
    latent: list[str] = []
    if isinstance(calibration, PanelCalibration) and calibration.latent_on_bound:
        latent = [calibration.latent_name]
    limits = dict(zip(space.names, zip(space.lower.tolist(), space.upper.tolist(), strict=True), strict=True))
    own = {name: limits[name] for name in (*calibration.on_bound, *latent) if name not in asked}
    if own and not calibration.unidentified and all(map(isfinite, sum(own.values(), ()))):
        return " ".join(f'--bound "{name}={low!r}:{high!r}"' for name, (low, high) in own.items())
    name = next(iter((*calibration.unidentified, *calibration.parameters)))
    return f'--fix "{name}={calibration.parameters[name]:.3g}"'


def _hint(file: str, calibration: Calibration | PanelCalibration, plot: str | None) -> None:
    if not calibration.converged:
        terminal.hint(f"strikeout inspect {file}", f"strikeout calibrate {file}{as_given()} {remedy(calibration)}")
    elif plot is None:
        terminal.hint(f"strikeout plot {file}{as_given()} --out smiles.html")
