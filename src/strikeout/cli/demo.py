"""``strikeout demo``: three bad days, found, struck out, restored and checked; with a page of pictures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from strikeout.cli import exit_codes, terminal
from strikeout.cli.options import json_option
from strikeout.tables import Cell, Table, number

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.demo_data import Story

SHOWN_GROUPS = 5
COSTS = ("cooks_d", "price_change")
HEADS = ("parameter", "truth", "one step, the paper's", "from moments", "refitted")
PARAMETER_HEADS = ("parameter", "truth", "found", "standard error", "SEs off")


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=str), default="demo.html", show_default=True, help="Where the page goes."
)
@click.option("--no-page", is_flag=True, help="Print to the terminal only.")
@click.option(
    "--book", type=click.Path(path_type=str), help="Write the quotes as they arrived to this .csv or .parquet."
)
@click.option("--picture", type=click.Path(path_type=str), help="Write the picture of the README to this .png or .svg.")
@json_option
def demo(out: str, no_page: bool, book: str | None, picture: str | None, as_json: bool) -> int:
    """Show how three bad days spoil a calibration, and how they are found, struck out, restored and checked.

    Every number is computed now; nothing is downloaded.
    """
    from strikeout.cli.demo_data import story

    begun = time.perf_counter()
    told = story()
    seconds = time.perf_counter() - begun
    files = _write(told, page=None if no_page else out, book=book, picture=picture)
    if as_json:
        terminal.show_json(described(told) | files)
        return exit_codes.DONE
    _show(told, seconds)
    if any(files.values()):
        terminal.say("")
    for what, path in files.items():
        if path:
            terminal.say(f"the {what} is in {path}")
    _hint(book)
    return exit_codes.DONE


def described(told: Story) -> dict[str, Any]:
    """Return the story as plain values; errors are in standard errors of the clean calibration."""
    calibrations = {"clean": told.clean, "arrived": told.arrived, "without": told.without, "resolved": told.resolved}
    steps = {"one_step": told.paper, "robust_step": told.robust}
    return {
        "truth": dict(told.truth),
        "bad_days": [exit_codes.plain(day) for day in told.bad_days],
        **{
            name: {**calibration.to_dict(), "errors": told.errors(calibration.parameters)}
            for name, calibration in calibrations.items()
        },
        **{name: {"parameters": values, "errors": told.errors(values)} for name, values in steps.items()},
        "influence": {
            name: [exit_codes.plain(x) for x in held.tolist()] for name, held in told.influence.top(5).items()
        },
        "condition": told.condition,
        "path": list(told.forgetting.path),
        "claims": told.forgetting.certificate.made,
        "is_as_never_seen": told.is_as_never_seen,
        "is_restored": told.is_restored,
        "verification": told.verification.to_dict(),
        "refuted": told.refuted.to_dict(),
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
    commands = [] if book else [(f"strikeout demo --no-page --book {name}", "the quotes as they arrived, as a file")]
    commands += [
        (f"strikeout inspect {name}", "how strikeout reads it"),
        (f"strikeout calibrate {name}", "ends with 3: the quotes do not determine every parameter"),
        (f"strikeout influence {name} --by date,source", "which feed spoils it"),
        (f"strikeout forget {name} --where \"source = 'b' and date = '2024-03-05'\" --preview", "only a preview"),
    ]
    terminal.say("")
    for command, why in commands:
        terminal.say(f"next: {terminal.typed(command)}  # {why}")


def _show(told: Story, seconds: float) -> None:
    """Print the story; ``seconds`` is how long its numbers took."""
    from strikeout.assurance.verification import word_of

    clean, arrived = told.clean, told.arrived
    bad, every = len(told.bad_ids), clean.count
    terminal.show(
        f"1. A book of {every:,} synthetic calls from two feeds, a and b, over 180 days; Heston's parameters behind it "
        "are known. Calibrated as it should be:\n",
        parameter_table(told, clean),
        f"\nRMSE {clean.rmse:.3g} in price. {clean.termination.sentence}\n",
        f"2. On three days feed b is wrong ({bad} quotes, {bad / every:.1%} of the book):\n",
        fault_table(told),
        "\nCalibrated as it arrived (SEs off: counted in the standard errors of 1):\n",
        parameter_table(told, arrived),
        f"\nRMSE {arrived.rmse:.3g}, {arrived.rmse / clean.rmse:,.0f} times the noise. {arrived.termination.sentence}",
        f"{smiles_off(told)}\n",
        "3. Which quotes are bad? The effect of striking out each day of each feed:\n",
        group_table(told),
        f"\n{standing_out(told)}\n",
        f"4. Struck out: {told.condition}\n",
        Table(HEADS, ways(told), numbers=(1, 2, 3, 4), whole=(0,)),
        f"\n{paper_sentence(told)}",
        f"{robust_sentence(told)}\n",
        "5. Is it removed?\n",
        terminal.facts(checks(told)),
        "\nThe certificate, every claim computed again from the retained quotes alone:\n",
        terminal.facts(
            [(check.name, f"{word_of(check)}: {check.found}") for check in told.verification.checks],
        ),
        f"\nEverything above was computed just now, in {seconds:.2f} s.",
    )


def ways(told: Story) -> list[list[str]]:
    """Return every parameter by each way of striking out, then how far off it is, and its RMSE."""
    answers: tuple[Mapping[str, float], ...] = (told.paper, told.resolved.parameters, told.without.parameters)
    rows = [[name, f"{truth:g}", *(f"{answer[name]:.6g}" for answer in answers)] for name, truth in told.truth.items()]
    rows.append(["SEs off, at most", "0", *(f"{told.worst(answer):,.1f}" for answer in answers)])
    rows.append(["RMSE", "", *(f"{_rmse(told, answer):.3g}" for answer in answers)])
    return rows


def fault_table(told: Story) -> Table:
    """Return what feed b sent on its bad days."""
    rows = [(day.date, day.fault, number(len(day.ids), "d")) for day in told.bad_days]
    return Table(("day", "what feed b sent", "quotes"), rows, numbers=(2,), whole=(0,))


def group_table(told: Story) -> Table:
    """Return the most influential days of a feed."""
    first = told.influence.top(SHOWN_GROUPS)
    rows: list[list[Cell]] = [
        [
            str(first["date"][n]),
            str(first["source"][n]),
            number(int(first["count"][n]), "d"),
            *(number(float(first[cost][n]), ".2g") for cost in COSTS),
        ]
        for n in range(SHOWN_GROUPS)
    ]
    return Table(("day", "feed", "quotes", "Cook's distance", "price moves"), rows, numbers=(2, 3, 4))


def standing_out(told: Story) -> str:
    """Return whether the bad days are first, and by how much, in a sentence."""
    distance, bad = told.influence["cooks_d"], len(told.bad_days)
    found = set(told.influence["date"][:bad].tolist()) == {day.date for day in told.bad_days}
    words = "These are the three bad days" if found else "These are not the three bad days"
    return (
        f"The first {bad} of {told.influence.rows:,} stand out, the last of them by a factor of "
        f"{distance[bad - 1] / distance[bad]:,.0f}. {words}."
    )


def paper_sentence(told: Story) -> str:
    """Return how good one step from spoiled parameters is, in a sentence."""
    own = told.paper == told.paper_baseline
    return (
        "The paper's fast operator takes one Gauss-Newton step from the spoiled parameters. By its own measure, the "
        f"same step rebuilt from the retained quotes, it is {'right to the last bit' if own else 'not right either'}; "
        f"from the truth it is {told.worst(told.paper):,.0f} standard errors away. Solving again, from moments (no "
        f"quote is looked at) or from the retained quotes, is {told.worst(told.without.parameters):.1f} off, as the "
        "noise allows."
    )


def robust_sentence(told: Story) -> str:
    """Return how good the same step is from a reference that bad quotes hardly move, in a sentence."""
    return (
        "The same single step from a robust reference, which bad quotes hardly move, misses the refit by "
        f"{told.from_refit(told.robust):.1g} standard errors; the moments miss it by "
        f"{told.from_refit(told.resolved.parameters):.0e}."
    )


def checks(told: Story) -> list[tuple[str, str]]:
    """Return the checks of the strike-out, each with a sentence."""
    same, other = "the same bits", "OTHER BITS"
    return [
        ("never seen", f"{same if told.is_as_never_seen else other} as the good book without those days"),
        ("undone", f"{same if told.is_restored else other} as before, when the quotes are restored"),
        ("verified", "the certificate holds" if told.verification.holds else "THE CERTIFICATE DOES NOT HOLD"),
        ("and not", f"with the bad days in the book: {refuted(told)}"),
    ]


def refuted(told: Story) -> str:
    """Return which checks fail if the quotes are still there."""
    failed = [check.name for check in told.refuted.checks if check.holds is False]
    return f"{', '.join(failed)} fail" if failed else "NOTHING FAILS"


def smiles_off(told: Story) -> str:
    """Return which smiles are off, and by how much, in a sentence."""
    import numpy as np

    from strikeout.cli.demo_data import MONEYNESS, volatilities

    expiries, right = volatilities(told.clean)
    moved = 100 * (volatilities(told.arrived)[1] - right)
    row, column = np.unravel_index(np.argmax(np.abs(moved)), moved.shape)
    off = int((np.abs(moved).max(axis=1) > 0.1).sum())
    return (
        f"{off} of {len(expiries)} smiles are off by more than 0.1 volatility points; the worst by "
        f"{moved[row, column]:+.2f}, at {expiries[row]:.3g} years and log-moneyness {MONEYNESS[column]:+.1f}."
    )


def parameter_table(told: Story, calibration: Calibration) -> Table:
    """Return the parameters beside the truth, and how far off each is in standard errors of the clean calibration."""
    errors = told.errors(calibration.parameters)
    rows = [
        (
            name,
            number(told.truth[name], "g"),
            number(value),
            number(calibration.standard_errors[name], ".2g"),
            number(errors[name], "+,.1f"),
        )
        for name, value in calibration.parameters.items()
    ]
    return Table(PARAMETER_HEADS, rows, numbers=(1, 2, 3, 4), whole=(0,))


def _rmse(told: Story, parameters: Mapping[str, float]) -> float:
    import numpy as np

    retained = told.without.quotes
    left = retained.observed - told.without.model.price(parameters, retained.contracts)
    return float(np.sqrt(np.mean(left * left)))
