"""The pictures of the locality section: run times over fractions, time ratios over touched shards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from strikeout.paper.experiments.section import time_text
from strikeout.plots.style import FAINT, INK, MARKET, MODEL, OTHERS, blank, styled, title

Floats = NDArray[np.float64]

OPERATORS = {"retrain": OTHERS[0], "recompute": MODEL, "fast": MARKET}
SETS = {"small": OTHERS[2], "large": OTHERS[1]}


def time_panels(share: Floats, panels: Mapping[str, Mapping[str, Floats]]) -> Figure:
    """A panel a kind of forget set: our operators solid, the paper's dashed, over per cent forgotten."""
    with styled():
        figure = blank(5.2)
        title(
            figure,
            "Run time over the forgotten share, shards by time",
            [(name, colour, "-") for name, colour in OPERATORS.items()]
            + [("the paper's method", FAINT, "--"), ("ours", FAINT, "-")],
        )
        axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        for panel, (name, lines) in zip(axes, panels.items(), strict=True):
            panel.set_title(name)
            panel.set_xscale("log")
            panel.set_yscale("log")
            for operator, colour in OPERATORS.items():
                panel.plot(share, lines[operator], "o-", color=colour, markersize=3, linewidth=1.2)
                panel.plot(share, lines[f"paper_{operator}"], "o--", color=colour, markersize=3, linewidth=1.0)
            panel.set_xticks(share.tolist(), [f"{value:g}" for value in share])
            panel.minorticks_off()
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
        for panel in axes[2:]:
            panel.set_xlabel("quotes forgotten (%)")
        for panel in axes[::2]:
            panel.set_ylabel("time of one forgetting")
    return figure


def ratio_panels(panels: Mapping[str, Mapping[str, Floats]]) -> Figure:
    """A panel a sharding, a colour a set: our ratios over touched shards as dots, the paper's loop as rings."""
    with styled():
        figure = blank(3.3)
        title(
            figure,
            "Time of recompute over time of retrain",
            [(f"{name} set", colour, "o") for name, colour in SETS.items()],
        )
        axes = figure.subplots(1, len(panels), sharey=True)
        for panel, (name, sets) in zip(axes, panels.items(), strict=True):
            panel.set_title(name)
            panel.set_yscale("log")
            panel.axhline(1.0, color=INK, linewidth=0.8)
            for size, values in sets.items():
                touched, ours, loop = values.T
                panel.plot(touched, ours, "o", color=SETS[size], markersize=3.5, mew=0, alpha=0.75)
                panel.plot(touched, loop, "o", color=SETS[size], markersize=4, markerfacecolor="none", mew=0.8)
            panel.set_xlabel("touched shards (count)")
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes[0].set_ylabel("time ratio (times)")
    return figure
