"""Total variance, volatility squared times expiry, over log-moneyness: slices that cross are calendar arbitrage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from strikeout.plots import style
from strikeout.plots.cells import length
from strikeout.plots.smiles import Day, Smile, expiries_shown, seen_in, smiles_of
from strikeout.plots.view import WHOLE, View, caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from strikeout.calibration.calibration import Calibration

MOST_SLICES = 12
MOST_NAMES = 7  # of expiries beside the bar


def variance_data(calibration: Calibration, *, at_most: int = MOST_SLICES, view: View = WHOLE) -> dict[str, Any]:
    """Return the slices as plain values for JSON: market and model, one entry per expiry.

    Raises:
        UsageError: ``at_most`` is below one, or the calibration holds no quotes.
    """
    return {
        "slices": [
            {
                "expiry_years": smile.expiry,
                "title": smile.title,
                "market": {
                    "log_moneyness": style.plain(smile.moneyness),
                    "total_variance": style.plain(smile.volatility**2 * smile.expiry),
                },
                "model": {
                    "log_moneyness": style.plain(smile.curve_moneyness),
                    "total_variance": style.plain(smile.curve**2 * smile.expiry),
                },
            }
            for smile in smiles_of(calibration, at_most=at_most, view=view)
        ]
    }


def plot_variance(
    calibration: Calibration, *, title: str | None = None, at_most: int = MOST_SLICES, view: View = WHOLE
) -> Figure:
    """Return a figure of total variance by expiry, in the colour of its expiry: dots are the market, lines the model.

    Total variance grows with expiry if there is no calendar arbitrage; the axis is logarithmic, so that both a week
    and five years can be read. For a panel, that of one group, by default its last.

    Raises:
        UsageError: ``at_most`` is below one, or the calibration holds no quotes.
    """
    seen = seen_in(calibration, view)
    smiles = smiles_of(seen, at_most=at_most)
    named = isinstance(seen, Day) and seen.name
    headline = f"Total variance by expiry, {named}" if named else "Total variance by expiry"
    expiries = np.array([smile.expiry for smile in smiles])
    with style.styled():
        figure = style.blank(height=4.6)
        marks: list[tuple[str, str, Literal["o", "-", "--"]]] = [("market", style.INK, "o"), ("model", style.INK, "-")]
        style.title(figure, title or headline, marks, caption=caption(calibration, view))
        panel = figure.subplots()
        low, high = float(expiries.min()), float(expiries.max())
        norm = LogNorm(low / 1.001, high * 1.001) if high > low else LogNorm(low / 2.0, high * 2.0)
        colours = style.IN_ORDER
        are_many = sum(len(smile.moneyness) for smile in smiles) > style.MANY
        for smile in smiles:
            _draw(panel, smile, colours(norm(smile.expiry)), are_many=are_many)
        panel.set_yscale("log")
        panel.set_ylim(*_window(smiles))
        panel.yaxis.set_major_locator(LogLocator(10.0, subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda variance, _: f"{variance:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.margins(x=0.02)
        panel.set_xlabel("log-moneyness, ln(strike / forward)")
        panel.set_ylabel("total variance, volatility² x years")
        bar = figure.colorbar(style.scale_of(norm, colours), ax=panel, pad=0.01, label="expiry")
        titles = {smile.expiry: smile.date or length(smile.expiry) for smile in smiles}
        shown = np.unique(np.linspace(0, len(smiles) - 1, min(MOST_NAMES, len(smiles))).round().astype(int))
        bar.ax.yaxis.set_major_locator(FixedLocator(expiries[shown].tolist()))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda years, _: titles.get(years, length(years))))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        notes = expiries_shown(seen, smiles)
        if notes:
            figure.supxlabel("; ".join(notes), fontsize=8.5)
    return figure


def _draw(panel: Axes, smile: Smile, colour: Any, *, are_many: bool) -> None:
    variance = smile.volatility**2 * smile.expiry
    size = 9.0 if len(smile.moneyness) < 60 else 3.0
    panel.scatter(smile.moneyness, variance, s=size, color=colour, alpha=0.6, linewidth=0, rasterized=are_many)
    panel.plot(smile.curve_moneyness, smile.curve**2 * smile.expiry, color=colour, linewidth=1.3)


def _window(smiles: tuple[Smile, ...]) -> tuple[float, float]:
    """Return the least and the largest total variance that the panels of the smiles would show."""
    lows = [max(smile.window()[0], 0.25 * smile.window()[1]) ** 2 * smile.expiry for smile in smiles]
    highs = [smile.window()[1] ** 2 * smile.expiry for smile in smiles]
    return max(min(lows), 1e-9), max(highs) * 1.1
