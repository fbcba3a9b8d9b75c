"""Diagnostics of a calibration in one picture: autocorrelation, leverage, and the correlation of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.plots import style
from strikeout.plots.style import WHOLE, View, caption
from strikeout.text import many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.diagnostics import Diagnostics


MOST_LAGS = 20
PALE = 0.75  # correlations whose colour is too dark for dark text


def diagnostics_data(calibration: Calibration) -> dict[str, Any]:
    """Return what the picture draws as plain values for JSON."""
    found = calibration.diagnostics(profiles="none")
    return {
        **found.to_dict(),
        "leverage": style.plain(found.leverage),
        "studentized": style.plain(found.studentized),
    }


def plot_diagnostics(calibration: Calibration, *, title: str | None = None, view: View = WHOLE) -> Figure:
    """Return a figure of the autocorrelation of residuals, of leverage, and of the correlation of the parameters."""
    found = calibration.diagnostics(profiles="none")
    with style.styled():
        figure = style.blank(height=3.2)
        headline = title or f"Diagnostics: {found.effective:,.0f} effective of {many(found.count, 'quote')}"
        style.title(figure, headline, caption=caption(calibration, view))
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 1.25, 1.15))
        _draw_autocorrelation(left, found)
        _draw_leverage(middle, found)
        _draw_correlation(figure, right, found)
    return figure


def _draw_autocorrelation(panel: Axes, found: Diagnostics) -> None:
    shown = found.strike_correlation[:MOST_LAGS]
    lags = np.arange(1, len(shown) + 1)
    limit = 2.0 / np.sqrt(max(found.count, 1))
    panel.axhspan(-limit, limit, color=style.FAINT, alpha=0.15, linewidth=0)
    panel.axhline(0.0, color=style.FAINT, linewidth=0.8)
    panel.bar(lags, shown, width=0.6, color=style.MARKET)
    panel.set_ylim(min(-0.25, *(x - 0.05 for x in shown), 0.0), 1.0)
    dates = f"\nfrom one date to the next {found.date_correlation:.2f}" if np.isfinite(found.date_correlation) else ""
    panel.set_xlabel(f"strikes apart{dates}")
    panel.set_title("autocorrelation of residuals")


def _draw_leverage(panel: Axes, found: Diagnostics) -> None:
    high = found.high_leverage
    are_many = len(high) > style.MANY // 3
    for rows, colour, size in ((~high, style.MARKET, 5.0), (high, style.MODEL, 9.0)):
        panel.scatter(
            found.leverage[rows],
            found.studentized[rows],
            s=size,
            color=colour,
            alpha=0.6,
            linewidth=0,
            rasterized=are_many,
        )
    panel.set_xscale("log")
    positive = found.leverage[found.leverage > 0.0]
    if len(positive):
        panel.set_xlim(max(float(np.quantile(positive, 0.01)) / 2.0, 1e-9), 2.0 * float(positive.max()))
    panel.set_xlabel("leverage\norange: over three times the mean")
    panel.set_ylabel("studentized residual, size")
    panel.set_title("leverage")


def _draw_correlation(figure: Figure, panel: Axes, found: Diagnostics) -> None:
    size = len(found.names)
    lower = np.tril(np.ones((size, size), bool), -1)
    shown = np.where(lower, found.correlation, np.nan)[1:, :-1] if size > 1 else np.zeros((0, 0))
    panel.grid(visible=False)
    panel.set_title("correlation of parameters")
    if not shown.size:
        panel.set_axis_off()
        return
    drawn = panel.imshow(shown, cmap=style.apart(), vmin=-1.0, vmax=1.0, aspect="auto")
    for i in range(size - 1):
        for j in range(i + 1):
            ink = "white" if abs(shown[i, j]) > PALE else style.INK
            panel.text(j, i, f"{shown[i, j]:+.2f}", ha="center", va="center", fontsize=6.5, color=ink)
    panel.set_xticks(range(size - 1), [_short(name) for name in found.names[:-1]], rotation=90)
    panel.set_yticks(range(size - 1), [_short(name) for name in found.names[1:]])
    figure.colorbar(drawn, ax=panel, shrink=0.8, aspect=18, pad=0.02)


def _short(name: str) -> str:
    """Return a name on two lines.

    >>> _short("vol_of_vol").splitlines()
    ['vol', 'of vol']
    """
    return name.replace("_", "\n", 1).replace("_", " ")
