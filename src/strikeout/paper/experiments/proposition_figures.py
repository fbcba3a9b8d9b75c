"""Pictures of the propositions, drawn from their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.paper.experiments.complexity import Growth
    from strikeout.paper.experiments.conditions import Condition, Pull
    from strikeout.paper.experiments.relinearizing import Relinearizing


def relinearization(lines: Sequence[Relinearizing]) -> Figure:
    """Second step against first, log-log, one line a noise, named at its end."""
    from strikeout.plots import style

    with style.styled():
        figure = style.blank(height=3.4)
        colours = (style.MARKET, style.OTHERS[2], style.MODEL)
        words = [
            f"{'no noise' if line.noise == 0.0 else f'noise {line.noise:g}'}: exponent {line.slope.value:.2f}"
            for line in lines
        ]
        style.title(
            figure,
            "One relinearization: second order, as long as residuals are small",
            [(word, colour, "-") for word, colour in zip(words, colours, strict=False)],
        )
        panel = figure.subplots()
        for line, colour in zip(lines, colours, strict=False):
            panel.loglog(line.first, line.second, "o-", color=colour, markersize=3, linewidth=1.2)
        panel.set_xlabel("length of the first step (each parameter over its size)")
        panel.set_ylabel("length of the second (same)")
    return figure


def condition_shares(found: Sequence[Condition]) -> Figure:
    """A matrix: bounds down, forgotten quotes across, the share that meets the condition in every cell."""
    from strikeout.plots import style

    counts = list(dict.fromkeys(one.forgotten for one in found))
    kinds = [kind for kind in dict.fromkeys((one.bound, one.scaled) for one in found) if kind[0] != "stability"]
    kinds.sort(key=lambda kind: kind[1])
    shares = np.array(
        [
            [next(o.holds for o in found if (o.bound, o.scaled, o.forgotten) == (*kind, count)) for count in counts]
            for kind in kinds
        ]
    )
    with style.styled():
        figure = style.blank(height=2.9)
        style.title(figure, "How often a bound may say anything")
        panel = figure.subplots()
        panel.grid(visible=False)
        panel.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.2, aspect="auto")
        for row, values in enumerate(shares):
            for column, value in enumerate(values):
                panel.text(
                    column, row, f"{value:.0%}", ha="center", va="center", color="white" if value > 0.6 else style.INK
                )
        panel.set_xticks(range(len(counts)), [f"{count:,}" for count in counts])
        panel.set_yticks(range(len(kinds)), [f"{name}, {'scaled' if scaled else 'plain'}" for name, scaled in kinds])
        panel.set_xlabel("forgotten quotes, of 2,700")
    return figure


def influence_control(found: Sequence[Pull]) -> Figure:
    """The pull of one quote against how wrong it is, under two losses."""
    from strikeout.plots import style

    x = [one.wrong_by for one in found]
    with style.styled():
        figure = style.blank(height=3.0)
        style.title(figure, "Huber's loss holds a wrong quote; squared loss does not")
        panel = figure.subplots()
        panel.loglog(x, [one.squared for one in found], "o-", color=style.MODEL, markersize=3)
        panel.loglog(x, [one.huber for one in found], "o-", color=style.MARKET, markersize=3)
        panel.loglog(x, [one.bound for one in found], "--", color=style.INK, linewidth=1.0)
        middle = x[len(x) // 2]
        for words, colour, at, drop in (
            ("squared loss", style.MODEL, found[len(x) // 2].squared, 10),
            ("Huber's loss", style.MARKET, found[-1].huber, -12),
            ("bound for Huber's loss", style.INK, found[-1].bound, 6),
        ):
            panel.annotate(words, (middle, at), xytext=(0, drop), textcoords="offset points", color=colour, ha="right")
        panel.set_ylim(bottom=min(one.huber for one in found) / 4)
        panel.set_xlabel("the quote is wrong by (currency)")
        panel.set_ylabel("pull (standard errors)")
    return figure


def run_times(found: Sequence[Growth]) -> Figure:
    """Three panels: against quotes, nodes and forgotten quotes; every line carries its exponent."""
    from strikeout.plots import style

    panels = {
        "quotes": [one for one in found if one.against in ("quotes", "quotes in the book")],
        "quadrature nodes": [one for one in found if one.against == "nodes"],
        "forgotten quotes": [one for one in found if one.against == "forgotten quotes"],
    }
    colours = {"the paper's loop": style.MODEL, "one pass of ours": style.MARKET}
    with style.styled():
        figure = style.blank(height=3.3)
        style.title(figure, "Run times and their exponents")
        axes = figure.subplots(1, 3, gridspec_kw={"width_ratios": [1.5, 1, 1]})
        for panel, (against, lines) in zip(axes, panels.items(), strict=True):
            for one in lines:
                colour = colours.get(one.what, style.OTHERS[2])
                panel.loglog(one.sizes, one.seconds, "o-", color=colour, markersize=3, linewidth=1.2)
                is_left = against == "quotes" and one.what == "the paper's loop"
                panel.annotate(
                    f"{one.what}\nexponent {one.slope.value:.2f}",
                    (one.sizes[0] if is_left or against != "quotes" else one.sizes[-1], one.seconds.max()),
                    xytext=(0, 6),
                    textcoords="offset points",
                    color=colour,
                    ha="left" if is_left or against != "quotes" else "right",
                    va="bottom",
                )
            panel.set_ylim(top=panel.get_ylim()[1] * 12)
            if against == "quadrature nodes":  # less than a decade: both ends named, and nothing between them
                ends = [float(lines[0].sizes[0]), float(lines[0].sizes[-1])]
                panel.set_xticks(ends, [f"{size:,.0f}" for size in ends])
                panel.set_xticks([], minor=True)
            panel.set_xlabel(against)
        axes[0].set_ylabel("seconds")
    return figure
