"""The latent parameter of a panel from group to group, with its standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from strikeout.plots import style
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

MOST_NAMES = 6
BAND = 2.0  # standard errors to either side: all but a twentieth of normal errors


def path_data(panel: Calibration) -> dict[str, Any]:
    """The path as plain values for JSON; a value on a bound has no standard error, and None for one."""
    return {
        "parameter": panel.latent_name,
        "by": panel.panel,
        "groups": list(panel.groups),
        "values": list(panel.latent.values()),
        "standard_errors": style.plain(np.array(list(panel.latent_standard_errors.values()))),
    }


def plot_latent_path(panel: Calibration, *, title: str | None = None) -> Figure:
    """A figure of the latent parameter, group by group in their order; the band is twice its standard error.

    A value that is held on a bound has no standard error and is drawn as a cross.
    """
    values = np.array(list(panel.latent.values()))
    errors = np.array(list(panel.latent_standard_errors.values()))
    places = np.arange(len(values))
    held = ~np.isfinite(errors)
    wide = np.where(held, 0.0, BAND * errors)
    with style.styled():
        figure = style.blank(height=2.8)
        style.title(figure, title or f"{panel.latent_name} by {panel.panel}, {many(len(values), 'value')}")
        axes = figure.subplots()
        axes.fill_between(places, values - wide, values + wide, color=style.MARKET, alpha=0.2, linewidth=0)
        axes.plot(
            places, values, color=style.MARKET, linewidth=1.2, marker="o" if len(values) < 40 else "", markersize=3
        )
        axes.plot(places[held], values[held], linestyle="", marker="x", color=style.MODEL, markersize=5)
        named = np.unique(np.linspace(0, len(values) - 1, min(MOST_NAMES, len(values))).round().astype(int))
        axes.set_xticks(named, [str(panel.groups[n])[:10] for n in named])
        axes.set_xlabel(str(panel.panel))
        axes.set_ylabel(str(panel.latent_name))
    return figure
