"""``strikeout calibrate``: a file of quotes in, parameters with standard errors out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.options import Distinct, Named, NamedRange, constant_option, file_argument, json_option
from strikeout.errors import RejectedError

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.models.model import Model
    from strikeout.quotes.reading import Reading

MODELS = ("heston",)


@click.command("calibrate")
@file_argument
@click.option("--model", type=click.Choice(MODELS), default="heston", show_default=True, help="What is calibrated.")
@click.option(
    "--weights",
    type=click.Choice(["given", "none", "vega", "spread"]),
    default="given",
    show_default=True,
    help="What each quote counts for: its weight column, all the same, 1/vega², 1/spread².",
)
@click.option(
    "--residual",
    type=click.Choice(["price", "implied_vol"]),
    default="price",
    show_default=True,
    help="What is compared with the model.",
)
@click.option(
    "--loss",
    type=click.Choice(["squared", "huber"]),
    default="squared",
    show_default=True,
    help="How a residual is charged; huber bears with outliers.",
)
@click.option("--bound", "bounds", cls=Distinct, type=NamedRange(), multiple=True, help="Keep a parameter in a range.")
@click.option("--fix", "fixed", cls=Distinct, type=Named(), multiple=True, help="Take a parameter as known.")
@click.option(
    "--feller",
    type=click.Choice(["warn", "enforce", "ignore"]),
    default="warn",
    show_default=True,
    help="Say when Feller's condition is not met, keep to it, or leave it.",
)
@click.option(
    "--starts", type=click.IntRange(min=1), default=4, show_default=True, help="At most so many canonical starts."
)
@click.option(
    "--max-reject",
    type=click.FloatRange(0.0, 1.0),
    default=0.1,
    show_default=True,
    help="The share of bad rows above which the file is refused.",
)
@click.option("--quarantine", type=click.Path(path_type=str), help="A CSV for the bad rows, each with what is wrong.")
@click.option("--plot", type=click.Path(path_type=str), help="A picture of the smiles: .png, .svg or .html.")
@click.option("--report", is_flag=True, help="Every start and every step too.")
@constant_option
@json_option
def command(
    file: str,
    model: str,
    max_reject: float,
    quarantine: str | None,
    plot: str | None,
    report: bool,
    constants: dict[str, float | str],
    as_json: bool,
    **options: Any,
) -> int:
    """Calibrate a model to the quotes of FILE (.csv, .csv.gz, .parquet).

    Ends with 3 where the search did not converge or the quotes do not determine the parameters; the result is printed
    all the same, and says so.
    """
    from strikeout.quotes.reading import inspect_quotes

    if plot is not None:
        from strikeout.plots.writing import check_ending

        check_ending(plot)
    reading = inspect_quotes(file, constants=constants)
    _accept(reading, max_reject, quarantine)
    calibration = _calibrated(reading, _model(model), options)
    if plot is not None:
        from strikeout.plots import write_plot

        write_plot(calibration, plot)
    written = quarantine if reading.rejected else None
    if as_json:
        result = described(reading, calibration, quarantine=written, plot=plot)
        terminal.show_json(
            result | ({"history": [exits.plain(step) for step in calibration.history]} if report else {})
        )
    else:
        _show(calibration, report=report)
        _tell(reading, written, plot)
        _hint(file, calibration, plot)
    return exits.DONE if calibration.converged else exits.REFUSED


def described(
    reading: Reading, calibration: Calibration, *, quarantine: str | None = None, plot: str | None = None
) -> dict[str, Any]:
    """The calibration and what it was made from, as plain values."""
    return {
        **calibration.to_dict(),
        "source": reading.source,
        "rows": reading.rows,
        "rejected": reading.rejected,
        "repeated": reading.repeated,
        "issues": reading.issues.counts,
        "quarantine": quarantine,
        "plot": plot,
    }


def parameter_table(calibration: Calibration) -> Any:
    """Parameters, standard errors and how well each is determined, as a table for the terminal."""
    rows = [
        (name, f"{value:.6g}", _error(calibration.standard_errors[name]), calibration.identifiability[name])
        for name, value in calibration.parameters.items()
    ]
    return terminal.table(("parameter", "value", "standard error", "identified"), rows, numbers=(1, 2), whole=(0,))


def _accept(reading: Reading, max_reject: float, quarantine: str | None) -> None:
    from strikeout.quotes.reading import accept

    try:
        accept(reading, max_reject=max_reject, quarantine=quarantine)
    except RejectedError as error:
        if quarantine is None:
            raise
        sentence = f"{error.sentence} The bad rows are in {quarantine}."
        raise RejectedError(sentence, **error.facts, quarantine=quarantine) from error


def _model(name: str) -> Model:
    from strikeout.models.heston import Heston

    return {"heston": Heston}[name]()


def _calibrated(reading: Reading, model: Model, options: dict[str, Any]) -> Calibration:
    from strikeout.calibration.calibrate import calibrate

    progress = terminal.ProgressLine(starts=min(options["starts"], len(model.parameters.starts)))
    try:
        return calibrate(reading.quotes, model, progress=progress, **options)
    finally:
        progress.end()


def _show(calibration: Calibration, *, report: bool) -> None:
    if report:
        click.echo(calibration.report())
        return
    pairs = [
        ("status", str(calibration.termination)),
        ("quotes", f"{calibration.count:,}"),
        ("RMSE", f"{calibration.rmse:.4g} in price"),
        ("objective", f"{calibration.residual} residuals, {calibration.loss} loss, weights {calibration.weights}"),
        ("starts", f"{calibration.agreement} of {len(calibration.starts)} ended here"),
    ]
    ratio = calibration.feller_ratio
    if ratio is not None and calibration.feller != "ignore":
        pairs.append(("Feller ratio", f"{ratio:.3g} ({'met' if ratio >= 1.0 else 'not met'})"))
    pairs += [("warning", sentence) for sentence in calibration.warnings]
    terminal.show(parameter_table(calibration), "", terminal.facts(pairs))


def _error(value: float) -> str:
    return f"{value:.2g}" if value == value else "-"


def _tell(reading: Reading, quarantine: str | None, plot: str | None) -> None:
    if reading.rejected:
        first = next(issue for issue in reading.issues if issue.is_rejected)
        where = f"quarantined in {quarantine}" if quarantine else "left out"
        terminal.note(f"{reading.source}: {reading.rejected:,} of {reading.rows:,} rows {where}. The first: {first}")
    if reading.repeated:
        terminal.note(f"{reading.source}: {reading.repeated:,} rows repeat an earlier one exactly; kept once.")
    flags = reading.issues.tally("Q2")
    if flags:
        terminal.note(f"{reading.source}: kept, but look at them: {flags}.")
    if plot:
        terminal.note(f"the smiles are in {plot}.")


def _hint(file: str, calibration: Calibration, plot: str | None) -> None:
    if not calibration.converged:
        terminal.hint(f"strikeout inspect {file}", f"strikeout calibrate {file} --fix mean_reversion=2")
    elif plot is None:
        terminal.hint(f"strikeout calibrate {file} --plot smiles.html")
