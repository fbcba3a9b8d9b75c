"""The regimes of a panel, date by date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure

from strikeout.plots import style
from strikeout.plots.variance_path import name_dates
from strikeout.text import many, printable

if TYPE_CHECKING:
    from strikeout.calibration.regime_path import RegimePath

COLOURS = (style.MARKET, style.MODEL, style.OTHERS[2])


def plot_regimes(path: RegimePath, *, title: str | None = None, source: str = "") -> Figure:
    """Return a figure of the latent parameter by date, coloured by regime, and the probabilities of regimes below it.

    Args:
        source: the name of the file or book, for the caption.
    """
    place, most = np.arange(len(path.groups)), np.array(list(path.regimes.values()))
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
        name_dates(below, place, tuple(str(group)[:10] for group in path.groups))
    return figure
