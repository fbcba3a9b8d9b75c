"""Shapes that several sections draw: strips of differences, differences against means, lines over fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from strikeout.paper.experiments.section import time_text
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


def errors_and_times(share: Floats, errors: Mapping[str, Floats], times: Mapping[str, Floats]) -> Figure:
    """Relative errors on the left, run times (lower quartile, median, upper) on the right, over per cent forgotten."""
    colours = dict(zip(times, (*COLOURS[:2], *COLOURS[3:], COLOURS[0], COLOURS[2]), strict=False))
    with styled():
        figure = blank(3.8)
        title(figure, "Relative error and run time over the forgotten share")
        left, right = figure.subplots(1, 2, width_ratios=(2, 3))
        left.set_title("|fast - retrain| / |retrain|")
        left.set_yscale("symlog", linthresh=LINEAR)
        for name, values in errors.items():
            left.plot(share, values, "o-", color=colours[name], markersize=3.5, linewidth=1.2, label=name)
        left.set_ylim(-2e-17, 1e-11)
        left.set_yticks([0.0, 1e-16, 1e-14, 1e-12])
        left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else f"{value:.0e}"))
        left.minorticks_off()
        left.legend(loc="upper left", frameon=False, labelcolor="linecolor")
        left.set_ylabel("relative error")
        right.set_title("run time")
        right.set_yscale("log")
        for name, values in times.items():
            right.fill_between(share, values[:, 0], values[:, 2], color=colours[name], alpha=0.18, linewidth=0)
            right.plot(share, values[:, 1], "o-", color=colours[name], markersize=3.5, linewidth=1.2)
        label_ends(right, {name: (float(share[-1]), float(v[-1, 1]), colours[name]) for name, v in times.items()})
        right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: time_text(value)))
        for panel in (left, right):
            panel.set_xlabel("quotes forgotten (%)")
            panel.set_xticks([1, 5, 10, 25])
        right.set_xlim(0, 41)
        right.set_ylabel("time of one forgetting")
    return figure


def error_strips(places: Sequence[str], groups: Mapping[str, Sequence[Floats]]) -> Figure:
    """Dots of relative errors per place, one colour per group, a bar at each median; zeros have a row of their own."""
    with styled():
        figure = blank(3.4)
        title(
            figure,
            "Relative error of the paper's fast refactor",
            [(name, COLOURS[number % len(COLOURS)], "o") for number, name in enumerate(groups)],
        )
        panel = figure.subplots()
        panel.set_yscale("symlog", linthresh=LINEAR)
        for number, columns in enumerate(groups.values()):
            colour = COLOURS[number % len(COLOURS)]
            for place, values in enumerate(columns):
                at = place + 0.18 * (number - (len(groups) - 1) / 2)
                spread = 0.05 * np.sin(np.arange(len(values)) * 2.399963)  # a fixed fan: the same picture every time
                panel.plot(at + spread, values, ".", color=colour, markersize=3, alpha=0.6, mew=0)
                middle = float(np.median(values))
                panel.plot([at - 0.07, at + 0.07], [middle, middle], color=colour, linewidth=1.4)
        panel.set_xticks(range(len(places)), list(places))
        panel.set_ylim(-2e-17, 1e-11)
        panel.set_yticks([0.0, 1e-16, 1e-14, 1e-12])
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else f"{value:.0e}"))
        panel.minorticks_off()
        panel.set_xlabel("quotes forgotten")
        panel.set_ylabel("|fast - retrain| / |retrain|")
    return figure


def label_ends(panel: Axes, ends: Mapping[str, tuple[float, float, str]], *, apart: float = 2.3) -> None:
    """A name beside the end of each line (x, y, colour), on a log axis, pushed at least a factor of `apart` apart."""
    last = 0.0
    for name, (x, y, colour) in sorted(ends.items(), key=lambda item: item[1][1]):
        at = max(y, last * apart)
        last = at
        panel.annotate(
            name, (x, at), xytext=(6, 0), textcoords="offset points", va="center", color=colour, fontsize=7.5
        )
