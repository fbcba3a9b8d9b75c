"""The filtered and smoothed variance of a panel, date by date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from strikeout.plots import style
from strikeout.plots.latent_path import BAND, MOST_NAMES
from strikeout.text import many, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from strikeout.calibration.latent_filter import VariancePath


def plot_variance_path(path: VariancePath, *, title: str | None = None, source: str = "") -> Figure:
    """Return a figure of volatilities by date: observed, filtered and smoothed, and below them the surprises.

    The band is twice the standard error of the smoothed path. Dates are at their distance in days.

    Args:
        source: the name of the file or book, for the caption.
    """
    columns = path.columns()
    days = np.array(path.dates, "datetime64[D]")
    place = (days - days[0]).astype(float)
    low, high = (_volatility(columns["smoothed"] + sign * BAND * columns["smoothed_error"]) for sign in (-1.0, 1.0))
    facts = [path.shared.model.name, many(len(path.observations), "date"), f"strength {path.strength:g}"]
    with style.styled():
        figure = style.blank(height=4.2)
        style.title(
            figure,
            title or f"square root of {path.shared.latent}, in percent",
            (
                ("observed: quotes of the date alone", style.INK, "o"),
                ("filtered", style.MODEL, "--"),
                ("smoothed, with two standard errors", style.MARKET, "-"),
            ),
            caption=printable(" · ".join([*([source] if source else []), *facts])),
        )
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        above.fill_between(place, low, high, color=style.MARKET, alpha=0.2, linewidth=0)
        above.plot(place, _volatility(columns["smoothed"]), color=style.MARKET, linewidth=1.2)
        above.plot(place, _volatility(columns["filtered"]), color=style.MODEL, linewidth=1.0, linestyle="--")
        above.plot(place, _volatility(columns["observed"]), linestyle="", marker="o", color=style.INK, markersize=2.5)
        above.set_ylabel("volatility, %")
        below.axhspan(-2.0, 2.0, color=style.NOTHING, linewidth=0)
        below.vlines(place, 0.0, columns["surprise"], color=style.MARKET, linewidth=1.0)
        below.set_ylabel("surprise, sd")
        name_dates(below, place, path.dates)
    return figure


def name_dates(axes: Axes, place: Any, dates: tuple[str, ...]) -> None:
    """Name a few of the dates below an axis."""
    named = np.unique(np.linspace(0, len(dates) - 1, min(MOST_NAMES, len(dates))).round().astype(int))
    axes.set_xticks(place[named], [dates[n] for n in named])


def _volatility(variance: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return 100.0 * np.sqrt(np.maximum(variance, 0.0))
