"""The page of the demo and the picture of the README."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strikeout.assurance.verification import word_of
from strikeout.cli.demo import (
    HEADS,
    checks,
    fault_table,
    group_table,
    paper_sentence,
    parameter_table,
    robust_sentence,
    standing_out,
    ways,
)
from strikeout.errors import UsageError
from strikeout.plots.influence_map import plot_influence_map
from strikeout.plots.page import figure_of, page_of, table_of
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.style import to_bytes, to_inline
from strikeout.quotes.writing import replace_file
from strikeout.tables import Table, cell_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.demo_data import Story

TITLE = "Three bad days"


def write_page(told: Story, path: str) -> Path:
    """Write the story as one offline page.

    Raises:
        UsageError: the ending is not .html, or the file cannot be written.
    """
    if not path.lower().endswith(".html"):
        raise UsageError(f"{Path(path).name}: the demo's page ends in .html.")
    page = page_of(f"strikeout: {TITLE.lower()}", _parts(told))
    return replace_file(path, lambda target: target.write_text(page, encoding="utf-8"))


def write_picture(told: Story, path: str) -> Path:
    """Write the smiles with the bad days and without them as a picture.

    Raises:
        UsageError: the ending is neither .png nor .svg, or the file cannot be written.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".png", ".svg"):
        raise UsageError(f"{Path(path).name}: a picture ends in .png or .svg.")
    kind: Literal["png", "svg"] = "png" if ending == ".png" else "svg"
    content = to_bytes(picture(told), kind)
    return replace_file(path, lambda target: target.write_bytes(content))


def picture(told: Story) -> Figure:
    """Return the smiles of the good quotes, with the model fitted with the bad days and without them."""
    # Only to draw: standard errors and termination are not of these parameters.
    stepped = replace(told.arrived, parameters=told.paper)
    return plot_smiles(
        told.without,
        title=f"{len(told.bad_ids)} bad quotes of {told.clean.count:,} move every smile; without them the fit is right",
        name="struck out",
        others={"with the bad days": told.arrived, "struck out by the paper's one step": stepped},
    )


def _parts(told: Story) -> list[str]:
    return [*_spoiled(told), *_found(told), *_struck_out(told), *_checked(told)]


def _spoiled(told: Story) -> list[str]:
    bad, every = len(told.bad_ids), told.clean.count
    marked = plot_residuals(
        told.arrived,
        title=f"Residuals of the book as it arrived, RMSE {told.arrived.rmse:.3g}",
        marked=told.bad_ids,
        marked_as="feed b on the three days",
    )
    return [
        f"<h1>{TITLE}</h1>",
        f'<p class="lead">A synthetic book of {every:,} calls from two feeds, with a known answer. On three days feed '
        f"b is wrong: {bad} quotes, {bad / every:.1%} of the book. The calibration is then off by up to "
        f"{told.worst(told.arrived.parameters):,.0f} standard errors. The bad days are found, struck out as if they "
        "had never been seen, restored, and all of it is checked.</p>",
        "<h2>1. The book as it should be</h2>",
        _calibrated(told, told.clean),
        "<h2>2. The book as it arrived</h2>",
        _html(fault_table(told), words=(1,)),
        _calibrated(told, told.arrived),
        figure_of(to_inline(marked), "Observed minus model. The band is twice the RMSE, which the bad days enlarge."),
    ]


def _found(told: Story) -> list[str]:
    drawn = plot_influence_map(told.arrived, title="Influence by day and expiry: three days stand out")
    return [
        "<h2>3. Which quotes are bad?</h2>",
        "<p>The effect of striking out each day of each feed on the parameters and on prices:</p>",
        _html(group_table(told), words=(1,)),
        f"<p>{escape(standing_out(told))}</p>",
        figure_of(
            to_inline(drawn),
            "Cook's distance of every day and expiry, both feeds together: how far the parameters move if that cell is "
            "struck out.",
        ),
    ]


def _struck_out(told: Story) -> list[str]:
    rows = ways(told)
    wrong = [(row, 2) for row in range(len(rows))]
    return [
        "<h2>4. Struck out</h2>",
        f"<p><code>{escape(told.condition)}</code></p>",
        table_of(HEADS, rows, wrong=wrong),
        f"<p>{escape(paper_sentence(told))}</p>",
        f"<p>{escape(robust_sentence(told))}</p>",
        figure_of(
            to_inline(picture(told)),
            "Implied volatility by expiry. Dots are the good quotes, the line is the model without the bad days; "
            "dashed, the model with them, and after the paper's one step.",
        ),
    ]


def _checked(told: Story) -> list[str]:
    verified = [(check.name, word_of(check), check.found) for check in told.verification.checks]
    certificate = told.forgetting.certificate
    return [
        "<h2>5. Is it removed?</h2>",
        table_of(("", ""), checks(told), words=(1,)),
        "<p>The certificate, every claim computed again from the retained quotes alone:</p>",
        table_of(("claim", "", "found"), verified, words=(1, 2)),
        "<p>What it does not claim:</p>",
        f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in certificate.not_claimed)}</ul>",
    ]


def _calibrated(told: Story, calibration: Calibration) -> str:
    errors = told.errors(calibration.parameters)
    wrong = [(row, 4) for row, error in enumerate(errors.values()) if abs(error) > 5]
    return (
        f"{_html(parameter_table(told, calibration), wrong=wrong)}"
        f"<p>RMSE {calibration.rmse:.3g} in price. {escape(calibration.termination.sentence)}</p>"
    )


def _html(table: Table, *, words: tuple[int, ...] = (), wrong: list[tuple[int, int]] | None = None) -> str:
    return table_of(table.headings, [tuple(map(cell_text, row)) for row in table.rows], words=words, wrong=wrong or ())
