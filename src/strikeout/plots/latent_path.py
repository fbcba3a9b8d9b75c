"""The latent parameter of a panel from group to group, with its standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from strikeout.plots import style
from strikeout.plots.view import WHOLE, View, caption
from strikeout.text import many

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
    places = np.arange(len(values))
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
        named = np.unique(np.linspace(0, len(values) - 1, min(MOST_NAMES, len(values))).round().astype(int))
        axes.set_xticks(named, [str(panel.groups[n])[:10] for n in named])
        axes.set_xlabel(panel.panel)
        axes.set_ylabel(panel.latent_name)
    return figure
