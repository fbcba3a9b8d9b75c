"""The demo's page and the README's picture."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strikeout.assurance.verification import word_of
from strikeout.cli.demo_terminal import (
    HEADS,
    checks,
    groups,
    paper_sentence,
    robust_sentence,
    standing_out,
    ways,
)
from strikeout.cli.terminal import error_text
from strikeout.errors import UsageError
from strikeout.plots.influence_map import plot_influence_map
from strikeout.plots.page import figure_of, page_of, table_of
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.style import to_bytes, to_inline
from strikeout.quotes.atomic_write import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration
    from strikeout.cli.story import Story

TITLE = "Three bad days"


def write_page(told: Story, path: str) -> Path:
    """Writes the story as one page that works offline.

    Raises:
        UsageError: the ending is not .html, or the file cannot be written.
    """
    if not path.lower().endswith(".html"):
        raise UsageError(f"{Path(path).name}: the demo's page ends in .html.")
    page = page_of(f"strikeout: {TITLE.lower()}", _parts(told))
    return replace_file(path, lambda target: target.write_text(page, encoding="utf-8"))


def write_picture(told: Story, path: str) -> Path:
    """Writes the smiles with the bad days and once they are struck out as a picture.

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
    """The smiles of the good quotes: the model with the bad days in the book, and once they are struck out."""
    stepped = replace(
        told.arrived, parameters=told.paper
    )  # to draw: its errors and its end are not of these parameters
    return plot_smiles(
        told.without,
        title=f"{len(told.bad_ids)} bad quotes of {told.clean.count:,} move every smile; struck out, it is right again",
        name="struck out",
        others={"with the bad days": told.arrived, "struck out by the paper's one step": stepped},
    )


def _parts(told: Story) -> list[str]:
    return [*_spoiled(told), *_found(told), *_struck_out(told), *_checked(told)]


def _spoiled(told: Story) -> list[str]:
    bad, every = len(told.bad_ids), told.clean.count
    days = [(day.date, day.fault, str(len(day.ids))) for day in told.bad_days]
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
        "had never been seen, brought back, and all of it is checked.</p>",
        "<h2>1. The book as it should be</h2>",
        _calibrated(told, told.clean),
        "<h2>2. The book as it arrived</h2>",
        table_of(("day", "what feed b sent", "quotes"), days, words=(1,)),
        _calibrated(told, told.arrived),
        figure_of(
            to_inline(marked), "Observed minus model. The band is twice the RMSE, which the bad days have blown up."
        ),
    ]


def _found(told: Story) -> list[str]:
    drawn = plot_influence_map(told.arrived, title="Influence by day and expiry: three days stand out")
    return [
        "<h2>3. Who spoils it?</h2>",
        "<p>What would striking out each day of each feed do to the parameters, and to prices?</p>",
        table_of(("day", "feed", "quotes", "Cook's distance", "price moves by"), groups(told), words=(1,)),
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
            "Implied volatility by expiry. Dots are the good quotes, the line is the model once the bad days are "
            "struck out; dashed, the model with them in the book, and after the paper's one step.",
        ),
    ]


def _checked(told: Story) -> list[str]:
    verified = [(check.name, word_of(check), check.found) for check in told.verification.checks]
    certificate = told.forgetting.certificate
    return [
        "<h2>5. Is it gone?</h2>",
        table_of(("", ""), checks(told), words=(1,)),
        "<p>The certificate, every claim computed again by somebody who holds the retained quotes only:</p>",
        table_of(("claim", "", "found"), verified, words=(1, 2)),
        "<p>What it does not claim:</p>",
        f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in certificate.not_claimed)}</ul>",
    ]


def _calibrated(told: Story, calibration: Calibration) -> str:
    errors = told.errors(calibration.parameters)
    heads = ("parameter", "truth", "found", "standard error", "off by, in standard errors of the good book")
    rows = [
        (
            name,
            f"{told.truth[name]:g}",
            f"{value:.6g}",
            error_text(calibration.standard_errors[name]),
            f"{errors[name]:+,.1f}",
        )
        for name, value in calibration.parameters.items()
    ]
    wrong = [(row, 4) for row, error in enumerate(errors.values()) if abs(error) > 5]
    return (
        f"{table_of(heads, rows, wrong=wrong)}"
        f"<p>RMSE {calibration.rmse:.3g} in price. {escape(calibration.termination.sentence)}</p>"
    )
