"""``strikeout demo``: the story told in the terminal, with a page of pictures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exits, terminal
from strikeout.cli.options import json_option

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.story import Story


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=str), default="demo.html", show_default=True, help="Where the page goes."
)
@click.option("--no-page", is_flag=True, help="Tell the story in the terminal only.")
@click.option("--book", type=click.Path(path_type=str), help="Write the book as it arrived to this .csv or .parquet.")
@click.option("--picture", type=click.Path(path_type=str), help="Write the picture of the README to this .png or .svg.")
@json_option
def command(out: str, no_page: bool, book: str | None, picture: str | None, as_json: bool) -> int:
    """See a calibration with a known answer, what three bad days do to it, and a page of pictures.

    Every number is computed while you watch; nothing is fetched from anywhere.
    """
    from strikeout.cli.story import story

    begun = time.perf_counter()
    told = story()
    seconds = time.perf_counter() - begun
    files = _write(told, page=None if no_page else out, book=book, picture=picture)
    if as_json:
        terminal.show_json(described(told) | files)
        return exits.DONE
    _tell(told, seconds)
    for what, path in files.items():
        if path:
            click.echo(f"the {what} is in {path}")
    _hint(book)
    return exits.DONE


def described(told: Story) -> dict[str, Any]:
    """The story as plain values; errors are in standard errors of the clean calibration."""
    return {
        "truth": dict(told.truth),
        "bad_days": [exits.plain(day) for day in told.bad_days],
        **{
            name: {**calibration.to_dict(), "errors": told.errors(calibration)}
            for name, calibration in (("clean", told.clean), ("arrived", told.arrived), ("without", told.without))
        },
    }


def _write(told: Story, *, page: str | None, book: str | None, picture: str | None) -> dict[str, str | None]:
    if book is not None:
        from strikeout.quotes.writing import write_quotes

        write_quotes(told.arrived.quotes, book)
    if page is not None or picture is not None:
        from strikeout.cli.demo_page import write_page, write_picture

        if page is not None:
            write_page(told, page)
        if picture is not None:
            write_picture(told, picture)
    return {"page": page, "book": book, "picture": picture}


def _hint(book: str | None) -> None:
    name = book or "book.csv"
    commands = [] if book else [(f"strikeout demo --no-page --book {name}", "the book as it arrived, as a file")]
    commands += [
        (f"strikeout inspect {name}", "how strikeout reads it"),
        (f"strikeout calibrate {name}", "ends with 3: the quotes do not agree on an answer"),
        (f"strikeout calibrate {name} --loss huber --plot smiles.html", "a loss that bears with outliers"),
    ]
    click.echo("")
    for command, why in commands:
        click.echo(f"next: {command}  # {why}")


def _tell(told: Story, seconds: float) -> None:
    clean, arrived, without = told.clean, told.arrived, told.without
    bad, every = len(told.bad_ids), clean.count
    terminal.show(
        f"1. A book of {every:,} synthetic calls from two feeds, a and b, over 180 days; Heston's parameters behind it "
        "are known. Calibrated as it should be:\n",
        _table(told, clean),
        f"\nRMSE {clean.rmse:.3g} in price. {_sentence(clean)}\n",
        f"2. On three days feed b is wrong ({bad} quotes, {bad / every:.1%} of the book):\n",
        terminal.table(
            ("day", "what feed b sent", "quotes"),
            [(day.date, day.fault, str(len(day.ids))) for day in told.bad_days],
            numbers=(2,),
            whole=(0,),
        ),
        "\nCalibrated as it arrived (SEs off: counted in the standard errors of 1):\n",
        _table(told, arrived),
        f"\nRMSE {arrived.rmse:.3g}, {arrived.rmse / clean.rmse:,.0f} times the noise. {_sentence(arrived)}",
        f"{_smiles(told)}\n",
        "3. Calibrated once more, without those three days of feed b:\n",
        _table(told, without),
        f"\nRMSE {without.rmse:.3g}. {_sentence(without)}\n",
        f"Three calibrations of {every:,} quotes, four starts each: {1000 * seconds:.0f} ms with making the book.",
        "What comes next: here the bad days were known and the whole book was calibrated again. Striking quotes out of "
        "a calibration that has already seen them, as if it never had, and proving it, is the next release.\n",
    )


def _table(told: Story, calibration: Calibration) -> Any:
    rows = [
        (name, f"{told.truth[name]:g}", f"{value:.6g}", _number(calibration.standard_errors[name]), f"{error:+,.1f}")
        for (name, value), error in zip(calibration.parameters.items(), told.errors(calibration).values(), strict=True)
    ]
    return terminal.table(
        ("parameter", "truth", "found", "standard error", "SEs off"), rows, numbers=(1, 2, 3, 4), whole=(0,)
    )


def _number(value: float) -> str:
    return f"{value:.2g}" if value == value else "-"


def _sentence(calibration: Calibration) -> str:
    sentence = str(calibration.termination)
    return sentence[0].upper() + sentence[1:] + "."


def _smiles(told: Story) -> str:
    """Which smiles are off, and by how much."""
    import numpy as np

    from strikeout.cli.story import MONEYNESS, volatilities

    expiries, right = volatilities(told.clean)
    moved = 100 * (volatilities(told.arrived)[1] - right)
    row, column = np.unravel_index(np.argmax(np.abs(moved)), moved.shape)
    off = int((np.abs(moved).max(axis=1) > 0.1).sum())
    return (
        f"{off} of {len(expiries)} smiles are off by more than 0.1 volatility points; the worst by "
        f"{moved[row, column]:+.2f}, at {expiries[row]:.3g} years and log-moneyness {MONEYNESS[column]:+.1f}."
    )
