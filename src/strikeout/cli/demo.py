"""``strikeout demo``: three bad days, found, struck out, restored and checked; with a page of pictures.

Also the picture of the README.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from strikeout.assurance.verify import word_of
from strikeout.cli import exit_codes, terminal
from strikeout.cli.options import json_option
from strikeout.errors import UsageError
from strikeout.plots.influence_map import plot_influence_map
from strikeout.plots.page import figure_of, page_of, table_of
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.style import to_bytes, to_inline
from strikeout.quotes.writing import replace_file
from strikeout.tables import Cell, Table, cell_text, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
def demo(out: str, no_page: bool, book: str | None, picture: str | None, output: terminal.Output) -> int:
    """Show how three bad days spoil a calibration, and how they are found, struck out, restored and checked.

    Every number is computed now; nothing is downloaded.
    """
    from strikeout.cli.demo_data import build_story

    begun = time.perf_counter()
    story = build_story()
    seconds = time.perf_counter() - begun
    files = _write(story, page=None if no_page else out, book=book, picture=picture)
    if output.is_json:
        return output.result(described(story) | files)
    _show(story, seconds)
    if any(files.values()):
        terminal.say("")
    for what, path in files.items():
        if path:
            terminal.say(f"the {what} is in {path}")
    _hint(book)
    return exit_codes.DONE


def described(story: Story) -> dict[str, Any]:
    """Return the story as plain values; errors are in standard errors of the clean calibration."""
    calibrations = {
        "clean": story.clean,
        "arrived": story.arrived,
        "without": story.without,
        "resolved": story.resolved,
    }
    steps = {"one_step": story.paper, "robust_step": story.robust}
    return {
        "truth": dict(story.truth),
        "bad_days": [exit_codes.plain(day) for day in story.bad_days],
        **{
            name: {**calibration.to_dict(), "errors": story.errors(calibration.parameters)}
            for name, calibration in calibrations.items()
        },
        **{name: {"parameters": values, "errors": story.errors(values)} for name, values in steps.items()},
        "influence": {
            name: [exit_codes.plain(x) for x in held.tolist()] for name, held in story.influence.top(5).items()
        },
        "condition": story.condition,
        "path": list(story.forgetting.path),
        "claims": story.forgetting.certificate.made,
        "is_as_never_seen": story.is_as_never_seen,
        "is_restored": story.is_restored,
        "verification": story.verification.to_dict(),
        "refuted": story.refuted.to_dict(),
    }


def _write(story: Story, *, page: str | None, book: str | None, picture: str | None) -> dict[str, str | None]:
    if book is not None:
        from strikeout.quotes.writing import write_quotes

        write_quotes(story.arrived.quotes, book)
    if page is not None or picture is not None:
        if page is not None:
            write_page(story, page)
        if picture is not None:
            write_picture(story, picture)
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


def _show(story: Story, seconds: float) -> None:
    """Print the story; ``seconds`` is how long its numbers took."""
    from strikeout.assurance.verify import word_of

    clean, arrived = story.clean, story.arrived
    bad, every = len(story.bad_ids), clean.count
    terminal.show(
        f"1. A book of {every:,} synthetic calls from two feeds, a and b, over 180 days; Heston's parameters behind it "
        "are known. Calibrated as it should be:\n",
        parameter_table(story, clean),
        f"\nRMSE {clean.rmse:.3g} in price. {clean.termination.sentence}\n",
        f"2. On three days feed b is wrong ({bad} quotes, {bad / every:.1%} of the book):\n",
        fault_table(story),
        "\nCalibrated as it arrived (SEs off: counted in the standard errors of 1):\n",
        parameter_table(story, arrived),
        f"\nRMSE {arrived.rmse:.3g}, {arrived.rmse / clean.rmse:,.0f} times the noise. {arrived.termination.sentence}",
        f"{smiles_off(story)}\n",
        "3. Which quotes are bad? The effect of striking out each day of each feed:\n",
        group_table(story),
        f"\n{influence_sentence(story)}\n",
        f"4. Struck out: {story.condition}\n",
        Table(HEADS, ways(story), numbers=(1, 2, 3, 4), whole=(0,)),
        f"\n{paper_sentence(story)}",
        f"{robust_sentence(story)}\n",
        "5. Is it removed?\n",
        terminal.facts(checks(story)),
        "\nThe certificate, every claim computed again from the retained quotes alone:\n",
        terminal.facts(
            [(check.name, f"{word_of(check)}: {check.found}") for check in story.verification.checks],
        ),
        f"\nEverything above was computed just now, in {seconds:.2f} s.",
    )


def ways(story: Story) -> list[list[str]]:
    """Return every parameter by each way of striking out, then how far off it is, and its RMSE."""
    answers: tuple[Mapping[str, float], ...] = (story.paper, story.resolved.parameters, story.without.parameters)
    rows = [[name, f"{truth:g}", *(f"{answer[name]:.6g}" for answer in answers)] for name, truth in story.truth.items()]
    rows.append(["SEs off, at most", "0", *(f"{story.worst(answer):,.1f}" for answer in answers)])
    rows.append(["RMSE", "", *(f"{_rmse(story, answer):.3g}" for answer in answers)])
    return rows


def fault_table(story: Story) -> Table:
    """Return what feed b sent on its bad days."""
    rows = [(day.date, day.fault, number(len(day.ids), "d")) for day in story.bad_days]
    return Table(("day", "what feed b sent", "quotes"), rows, numbers=(2,), whole=(0,))


def group_table(story: Story) -> Table:
    """Return the most influential days of a feed."""
    first = story.influence.top(SHOWN_GROUPS)
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


def influence_sentence(story: Story) -> str:
    """Return whether the bad days are first, and by how much, in a sentence."""
    distance, bad = story.influence["cooks_d"], len(story.bad_days)
    found = set(story.influence["date"][:bad].tolist()) == {day.date for day in story.bad_days}
    words = "These are the three bad days" if found else "These are not the three bad days"
    return (
        f"The first {bad} of {story.influence.rows:,} stand out, the last of them by a factor of "
        f"{distance[bad - 1] / distance[bad]:,.0f}. {words}."
    )


def paper_sentence(story: Story) -> str:
    """Return how good one step from spoiled parameters is, in a sentence."""
    own = story.paper == story.paper_baseline
    return (
        "The paper's fast operator takes one Gauss-Newton step from the spoiled parameters. By its own measure, the "
        f"same step rebuilt from the retained quotes, it is {'right to the last bit' if own else 'not right either'}; "
        f"from the truth it is {story.worst(story.paper):,.0f} standard errors away. Solving again, from moments (no "
        f"quote is looked at) or from the retained quotes, is {story.worst(story.without.parameters):.1f} off, as the "
        "noise allows."
    )


def robust_sentence(story: Story) -> str:
    """Return how good the same step is from a reference that bad quotes hardly move, in a sentence."""
    return (
        "The same single step from a robust reference, which bad quotes hardly move, misses the refit by "
        f"{story.from_refit(story.robust):.1g} standard errors; the moments miss it by "
        f"{story.from_refit(story.resolved.parameters):.0e}."
    )


def checks(story: Story) -> list[tuple[str, str]]:
    """Return the checks of the strike-out, each with a sentence."""
    same, other = "the same bits", "OTHER BITS"
    return [
        ("never seen", f"{same if story.is_as_never_seen else other} as the good book without those days"),
        ("undone", f"{same if story.is_restored else other} as before, when the quotes are restored"),
        ("verified", "the certificate holds" if story.verification.holds else "THE CERTIFICATE DOES NOT HOLD"),
        ("and not", f"with the bad days in the book: {refuted(story)}"),
    ]


def refuted(story: Story) -> str:
    """Return which checks fail if the quotes are still there."""
    failed = [check.name for check in story.refuted.checks if check.holds is False]
    return f"{', '.join(failed)} fail" if failed else "NOTHING FAILS"


def smiles_off(story: Story) -> str:
    """Return which smiles are off, and by how much, in a sentence."""
    import numpy as np

    from strikeout.cli.demo_data import MONEYNESS, volatilities

    expiries, right = volatilities(story.clean)
    moved = 100 * (volatilities(story.arrived)[1] - right)
    row, column = np.unravel_index(np.argmax(np.abs(moved)), moved.shape)
    off = int((np.abs(moved).max(axis=1) > 0.1).sum())
    return (
        f"{off} of {len(expiries)} smiles are off by more than 0.1 volatility points; the worst by "
        f"{moved[row, column]:+.2f}, at {expiries[row]:.3g} years and log-moneyness {MONEYNESS[column]:+.1f}."
    )


def parameter_table(story: Story, calibration: Calibration) -> Table:
    """Return the parameters beside the truth, and how far off each is in standard errors of the clean calibration."""
    errors = story.errors(calibration.parameters)
    rows = [
        (
            name,
            number(story.truth[name], "g"),
            number(value),
            number(calibration.standard_errors[name], ".2g"),
            number(errors[name], "+,.1f"),
        )
        for name, value in calibration.parameters.items()
    ]
    return Table(PARAMETER_HEADS, rows, numbers=(1, 2, 3, 4), whole=(0,))


def _rmse(story: Story, parameters: Mapping[str, float]) -> float:
    import numpy as np

    retained = story.without.quotes
    left = retained.observed - story.without.model.price(parameters, retained.contracts)
    return float(np.sqrt(np.mean(left * left)))


TITLE = "Three bad days"


def write_page(story: Story, path: str) -> Path:
    """Write the story as one offline page."""
    if not path.lower().endswith(".html"):
        raise UsageError(f"{Path(path).name}: the demo's page ends in .html.")
    page = page_of(f"strikeout: {TITLE.lower()}", _parts(story))
    return replace_file(path, lambda target: target.write_text(page, encoding="utf-8"))


def write_picture(story: Story, path: str) -> Path:
    """Write the smiles with the bad days and without them as a picture."""
    ending = Path(path).suffix.lower()
    if ending not in (".png", ".svg"):
        raise UsageError(f"{Path(path).name}: a picture ends in .png or .svg.")
    kind: Literal["png", "svg"] = "png" if ending == ".png" else "svg"
    content = to_bytes(picture(story), kind)
    return replace_file(path, lambda target: target.write_bytes(content))


def picture(story: Story) -> Figure:
    """Return the smiles of the good quotes, with the model fitted with the bad days and without them."""
    # Only to draw: standard errors and termination are not of these parameters.
    stepped = replace(story.arrived, parameters=story.paper)
    return plot_smiles(
        story.without,
        title=f"{len(story.bad_ids)} bad quotes of {story.clean.count:,} move every smile; "
        "without them the fit is right",
        name="struck out",
        others={"with the bad days": story.arrived, "struck out by the paper's one step": stepped},
    )


def _parts(story: Story) -> list[str]:
    return [*_spoiled(story), *_found(story), *_struck_out(story), *_checked(story)]


def _spoiled(story: Story) -> list[str]:
    bad, every = len(story.bad_ids), story.clean.count
    marked = plot_residuals(
        story.arrived,
        title=f"Residuals of the book as it arrived, RMSE {story.arrived.rmse:.3g}",
        marked=story.bad_ids,
        marked_as="feed b on the three days",
    )
    return [
        f"<h1>{TITLE}</h1>",
        f'<p class="lead">A synthetic book of {every:,} calls from two feeds, with a known answer. On three days feed '
        f"b is wrong: {bad} quotes, {bad / every:.1%} of the book. The calibration is then off by up to "
        f"{story.worst(story.arrived.parameters):,.0f} standard errors. The bad days are found, struck out as if they "
        "had never been seen, restored, and all of it is checked.</p>",
        "<h2>1. The book as it should be</h2>",
        _calibrated(story, story.clean),
        "<h2>2. The book as it arrived</h2>",
        _html(fault_table(story), words=(1,)),
        _calibrated(story, story.arrived),
        figure_of(to_inline(marked), "Observed minus model. The band is twice the RMSE, which the bad days enlarge."),
    ]


def _found(story: Story) -> list[str]:
    drawn = plot_influence_map(story.arrived, title="Influence by day and expiry: three days stand out")
    return [
        "<h2>3. Which quotes are bad?</h2>",
        "<p>The effect of striking out each day of each feed on the parameters and on prices:</p>",
        _html(group_table(story), words=(1,)),
        f"<p>{escape(influence_sentence(story))}</p>",
        figure_of(
            to_inline(drawn),
            "Cook's distance of every day and expiry, both feeds together: how far the parameters move if that cell is "
            "struck out.",
        ),
    ]


def _struck_out(story: Story) -> list[str]:
    rows = ways(story)
    wrong = [(row, 2) for row in range(len(rows))]
    return [
        "<h2>4. Struck out</h2>",
        f"<p><code>{escape(story.condition)}</code></p>",
        table_of(HEADS, rows, wrong=wrong),
        f"<p>{escape(paper_sentence(story))}</p>",
        f"<p>{escape(robust_sentence(story))}</p>",
        figure_of(
            to_inline(picture(story)),
            "Implied volatility by expiry. Dots are the good quotes, the line is the model without the bad days; "
            "dashed, the model with them, and after the paper's one step.",
        ),
    ]


def _checked(story: Story) -> list[str]:
    verified = [(check.name, word_of(check), check.found) for check in story.verification.checks]
    certificate = story.forgetting.certificate
    return [
        "<h2>5. Is it removed?</h2>",
        table_of(("", ""), checks(story), words=(1,)),
        "<p>The certificate, every claim computed again from the retained quotes alone:</p>",
        table_of(("claim", "result", "found"), verified, words=(1, 2)),
        "<p>What it does not claim:</p>",
        f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in certificate.not_claimed)}</ul>",
    ]


def _calibrated(story: Story, calibration: Calibration) -> str:
    errors = story.errors(calibration.parameters)
    wrong = [(row, 4) for row, error in enumerate(errors.values()) if abs(error) > 5]
    return (
        f"{_html(parameter_table(story, calibration), wrong=wrong)}"
        f"<p>RMSE {calibration.rmse:.3g} in price. {escape(calibration.termination.sentence)}</p>"
    )


def _html(table: Table, *, words: tuple[int, ...] = (), wrong: list[tuple[int, int]] | None = None) -> str:
    return table_of(table.headings, [tuple(map(cell_text, row)) for row in table.rows], words=words, wrong=wrong or ())
