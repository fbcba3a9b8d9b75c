"""Shapes that several sections draw: strips of differences, differences against means, lines over fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from strikeout.plots.style import FAINT, MARKET, MODEL, OTHERS, blank, styled, title

Floats = NDArray[np.float64]

# In the order of Heston's parameters: the paper's letters, for readers who have it beside them.
LABELS = ("κ", "θᵥ", "σᵥ", "ρ", "v₀")
WORDS = (
    "mean reversion κ (1/year)",
    "long variance θᵥ (1/year)",
    "vol of vol σᵥ (1/year)",
    "correlation ρ",
    "initial variance v₀ (1/year)",
)
COLOURS = (MODEL, OTHERS[1], MARKET, OTHERS[2], OTHERS[0])
LINEAR = 1e-16  # differences below this are drawn on a linear scale, so that zero has a place


def strips(
    panels: Mapping[str, Mapping[str, Sequence[Floats]]], groups: Sequence[str], *, words: str, axis: str
) -> Figure:
    """A panel a book, a group of dots a parameter, a colour an operator; a bar marks each median."""
    with styled():
        figure = blank(3.6)
        title(figure, words, [(name, COLOURS[place], "o") for place, name in enumerate(groups)])
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for panel, (name, parameters) in zip(axes, panels.items(), strict=True):
            panel.set_title(name)
            panel.set_yscale("symlog", linthresh=LINEAR)
            panel.axhline(0.0, color=FAINT, linewidth=0.6)
            for place, columns in enumerate(parameters.values()):
                for group, values in enumerate(columns):
                    at = place + 0.26 * (group - (len(columns) - 1) / 2)
                    # A fixed fan in place of random jitter: the same picture every time.
                    spread = 0.09 * np.sin(np.arange(len(values)) * 2.399963)
                    panel.plot(at + spread, values, ".", color=COLOURS[group], markersize=2.6, alpha=0.55, mew=0)
                    middle = float(np.median(values))
                    panel.plot([at - 0.11, at + 0.11], [middle, middle], color=COLOURS[group], linewidth=1.4)
            panel.set_xticks(range(len(parameters)), list(parameters))
            panel.grid(visible=False, axis="x")
            panel.set_yticks([-1e-12, -1e-14, -1e-16, 0.0, 1e-16, 1e-14, 1e-12])
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else f"{value:.0e}"))
            panel.minorticks_off()
        axes[0].set_ylabel(axis)
    return figure


def difference_against_mean(answers: Mapping[str, tuple[Floats, Floats]], *, words: str) -> Figure:
    """A panel a parameter: (retrain, difference) of each operator, as dots."""
    with styled():
        figure = blank(4.4)
        title(figure, words, [(name, COLOURS[2 * place], "o") for place, name in enumerate(answers)])
        axes = figure.subplots(2, 3).ravel()
        axes[-1].set_axis_off()
        for place, panel in enumerate(axes[:-1]):
            largest = max(float(np.max(np.abs(difference[:, place]))) for _, difference in answers.values())
            power = int(np.floor(np.log10(largest))) if largest > 0 else -16
            for group, (retrain, difference) in enumerate(answers.values()):
                mean = retrain[:, place] + difference[:, place] / 2
                scaled = difference[:, place] / 10.0**power
                panel.plot(mean, scaled, ".", color=COLOURS[2 * group], markersize=4, alpha=0.6, mew=0)
            panel.set_xlabel(WORDS[place])
            panel.set_ylabel(f"difference (1e{power})")
            panel.locator_params(axis="x", nbins=3)
            panel.ticklabel_format(axis="x", useOffset=False)
    return figure
