"""The demo's page and the README's picture."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strikeout.errors import UsageError
from strikeout.plots.page import figure_of, page_of
from strikeout.plots.residuals import plot_residuals
from strikeout.plots.smiles import plot_smiles
from strikeout.plots.style import to_bytes, to_inline
from strikeout.quotes.replacing import replace_file

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
    """Writes the smiles with and without the bad days as a picture.

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
    """The smiles of the good quotes: the model with the bad days in the book, and without them."""
    bad = len(told.bad_ids)
    return plot_smiles(
        told.without,
        title=f"{bad} bad quotes of {told.clean.count:,} move every smile; without them it is right again",
        name="without the bad days",
        others={"with them": told.arrived},
    )


def _parts(told: Story) -> list[str]:
    bad, every = len(told.bad_ids), told.clean.count
    days = "".join(
        f"<tr><td>{escape(day.date)}</td><td class=words>{escape(day.fault)}</td><td>{len(day.ids)}</td></tr>"
        for day in told.bad_days
    )
    worst = max(abs(error) for error in told.errors(told.arrived).values())
    marked = plot_residuals(
        told.arrived,
        title=f"Residuals of the book as it arrived, RMSE {told.arrived.rmse:.3g}",
        marked=told.bad_ids,
        marked_as="feed b on the three days",
    )
    return [
        f"<h1>{TITLE}</h1>",
        f'<p class="lead">A synthetic book of {every:,} calls from two feeds, with a known answer. On three days feed '
        f"b is wrong: {bad} quotes, {bad / every:.1%} of the book. The calibration is then off by up to {worst:,.0f} "
        "standard errors.</p>",
        "<h2>The book as it should be</h2>",
        _table(told, told.clean),
        "<h2>The book as it arrived</h2>",
        "<table><thead><tr><th>day</th><th class=words>what feed b sent</th><th>quotes</th></tr></thead>"
        f"<tbody>{days}</tbody></table>",
        _table(told, told.arrived),
        figure_of(
            to_inline(marked), "Observed minus model. The band is twice the RMSE, which the bad days have blown up."
        ),
        "<h2>Without those three days</h2>",
        _table(told, told.without),
        figure_of(
            to_inline(picture(told)),
            "Implied volatility by expiry. Dots are the good quotes, the line is the model calibrated without the bad "
            "days, the dashed line the model calibrated with them.",
        ),
        "<h2>What comes next</h2>",
        "<p>Here the bad days were known and the whole book was calibrated again. Striking quotes out of a calibration "
        "that has already seen them, as if it never had, and proving it, is the next release.</p>",
    ]


def _table(told: Story, calibration: Calibration) -> str:
    errors = told.errors(calibration)
    rows = "".join(
        f"<tr><td>{name}</td><td>{told.truth[name]:g}</td><td>{value:.6g}</td>"
        f"<td>{_number(calibration.standard_errors[name])}</td>"
        f"<td{' class=wrong' if abs(errors[name]) > 5 else ''}>{errors[name]:+,.1f}</td></tr>"
        for name, value in calibration.parameters.items()
    )
    heads = "".join(
        f"<th>{words}</th>"
        for words in ("parameter", "truth", "found", "standard error", "off by, in standard errors of the good book")
    )
    return (
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>RMSE {calibration.rmse:.3g} in price. {escape(str(calibration.termination).capitalize())}.</p>"
    )


def _number(value: float) -> str:
    return f"{value:.2g}" if value == value else "-"
