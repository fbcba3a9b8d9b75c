"""Paths of a panel: its latent parameter with standard errors, its filtered and smoothed variance, its regimes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from strikeout.kernels.arrays import Floats
from strikeout.plots import style
from strikeout.plots.style import WHOLE, View, caption
from strikeout.text import many, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from strikeout.calibration.latent_filter import VariancePath
    from strikeout.calibration.regime_path import RegimePath

MOST_NAMES = 6
BAND = 2.0  # standard errors to either side: all but a twentieth of normal errors


def path_data(panel: Any) -> dict[str, Any]:
    """Return the path as plain values for JSON; a value on a bound has None for its standard error."""
    return {
        "parameter": panel.latent_name,
        "by": panel.panel,
        "groups": list(panel.groups),
        "values": list(panel.latent.values()),
        "standard_errors": style.plain(np.array(list(panel.latent_standard_errors.values()))),
    }


def plot_latent_path(panel: Any, *, title: str | None = None, view: View = WHOLE) -> Figure:
    """Return a figure of the latent parameter, group by group; the band is twice its standard error.

    A value that is held on a bound has no standard error and is drawn as a cross.
    """
    values = np.array(list(panel.latent.values()))
    errors = np.array(list(panel.latent_standard_errors.values()))
    places = np.arange(float(len(values)))
    held = ~np.isfinite(errors)
    wide = np.where(held, 0.0, BAND * errors)
    with style.styled():
        figure = style.blank(height=3.0)
        headline = title or f"{panel.latent_name} by {panel.panel}, {many(len(values), 'value')}"
        style.title(figure, headline, caption=caption(panel, view))
        axes = figure.subplots()
        axes.fill_between(places, values - wide, values + wide, color=style.MARKET, alpha=0.2, linewidth=0)
        axes.plot(
            places, values, color=style.MARKET, linewidth=1.2, marker="o" if len(values) < 40 else "", markersize=3
        )
        axes.plot(places[held], values[held], linestyle="", marker="x", color=style.MODEL, markersize=5)
        name_dates(axes, places, [str(group)[:10] for group in panel.groups])
        axes.set_xlabel(panel.panel)
        axes.set_ylabel(panel.latent_name)
    return figure


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


def name_dates(axes: Axes, place: Floats, dates: Sequence[str]) -> None:
    """Name a few of the dates below an axis, those nearest to even distances; none close to another."""
    named: list[int] = []
    for at in np.linspace(place[0], place[-1], min(MOST_NAMES, len(place))):
        n = int(np.argmin(np.abs(place - at)))
        if not named or place[n] - place[named[-1]] > (place[-1] - place[0]) / (MOST_NAMES + 2):
            named.append(n)
    axes.set_xticks(place[named], [dates[n] for n in named])


def _volatility(variance: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return 100.0 * np.sqrt(np.maximum(variance, 0.0))


COLOURS = (style.MARKET, style.MODEL, style.OTHERS[2])


def plot_regimes(path: RegimePath, *, title: str | None = None, source: str = "") -> Figure:
    """Return a figure of the latent parameter by date, coloured by regime, and the probabilities of regimes below it.

    Args:
        source: the name of the file or book, for the caption.
    """
    place, most = np.arange(float(len(path.groups))), np.array(list(path.regimes.values()))
    values = np.array(list(path.latent.values()))
    entries: list[tuple[str, str, Literal["o", "-", "--"]]] = [
        (", ".join([f"regime {r + 1}", *(f"{name} {each[name]:.3g}" for name in path.switching)]), COLOURS[r], "o")
        for r, each in enumerate(path.parameters)
    ]
    facts = [path.model, many(len(path.groups), "date"), f"log-likelihood {path.log_likelihood:.4g}"]
    with style.styled():
        figure = style.blank(height=4.0)
        style.title(
            figure,
            title or f"{path.latent_name} and the regimes of {', '.join(path.switching)}",
            entries,
            caption=printable(" · ".join([*([source] if source else []), *facts])),
        )
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        above.plot(place, values, color=style.FAINT, linewidth=0.8)
        bottom = np.zeros(len(place))
        for r in range(path.count):
            here = most == r + 1
            above.plot(place[here], values[here], linestyle="", marker="o", markersize=3.5, color=COLOURS[r])
            below.bar(place, path.smoothed[:, r], bottom=bottom, width=1.0, color=COLOURS[r], linewidth=0)
            bottom = bottom + path.smoothed[:, r]
        above.set_ylabel(path.latent_name)
        below.set_ylabel("probability")
        below.set_ylim(0.0, 1.0)
        name_dates(below, place, [str(group)[:10] for group in path.groups])
    return figure
