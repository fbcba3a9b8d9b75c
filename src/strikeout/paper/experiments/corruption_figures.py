"""Pictures of where the paper stops, drawn from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from strikeout.paper.experiments.dependence import Dependence, Relinearized
    from strikeout.paper.experiments.feeds import Purged
    from strikeout.paper.experiments.reconstruction import Rebuilt
    from strikeout.paper.experiments.removal import Left


def feed_distances(found: Mapping[str, Sequence[Purged]]) -> Figure:
    """A panel a book, a line a feed; three marks on a logarithmic axis."""
    from strikeout.plots import style

    with style.styled():
        figure = style.blank(height=3.6)
        style.title(
            figure,
            "Striking out corrupt feeds: how far from the refit",
            [
                ("the paper's one step", style.MODEL, "o"),
                ("resolved from moments", style.MARKET, "o"),
                ("the truth", style.INK, "o"),
            ],
        )
        axes = figure.subplots(1, len(found), sharey=True)
        for panel, (book, purges) in zip(np.atleast_1d(axes), found.items(), strict=True):
            for row, one in enumerate(purges):
                panel.plot([one.resolved, one.one_step], [row, row], color="#dddddd", linewidth=1.0, zorder=1)
                panel.plot(one.resolved, row, "o", color=style.MARKET, markersize=4)
                panel.plot(one.truth, row, "o", color=style.INK, markersize=4)
                face = "white" if one.outside else style.MODEL
                panel.plot(one.one_step, row, "o", color=style.MODEL, markerfacecolor=face, markersize=5)
            panel.set_xscale("log")
            panel.set_yticks(range(len(purges)), [one.name for one in purges])
            panel.set_ylim(len(purges) - 0.5, -0.5)
            panel.set_title(f"{book} set")
            panel.set_xlabel("standard errors")
    return figure


def remains(moved: Mapping[str, Sequence[Dependence]], partly: Sequence[Relinearized]) -> Figure:
    """Left: moves of the one step by altered values. Right: three ways to go on from it."""
    from strikeout.plots import style

    with style.styled():
        figure = style.blank(height=3.2)
        ways = (
            ("touched", "touched shards relinearized", style.MODEL),
            ("one_step", "one step", style.INK),
            ("all_retained", "all retained relinearized", style.MARKET),
        )
        style.title(
            figure,
            "Values that were forgotten still move the one step",
            [(words, colour, "-") for _, words, colour in ways],
        )
        left, right = figure.subplots(1, 2)
        for (book, found), colour, drop in zip(moved.items(), (style.FAINT, style.INK), (4, -28), strict=False):
            left.semilogy([100 * one.altered_by for one in found], [one.moved for one in found], "o-", color=colour)
            at = found[0]
            left.annotate(
                f"{book} set",
                (100 * at.altered_by, at.moved),
                xytext=(8, drop),
                textcoords="offset points",
                color=colour,
                va="bottom",
            )
        left.set_title("one step")
        left.set_ylim(top=left.get_ylim()[1] * 4)
        left.set_ylabel("move of the answer (standard errors)")
        x = [100 * one.altered_by for one in partly]
        for name, _, colour in ways:
            right.semilogy(x, [getattr(one, name) for one in partly], "o-", color=colour)
        right.set_title("large set")
        right.set_ylabel("distance from the refit (standard errors)")
        for panel in (left, right):
            for line in panel.lines:
                line.set_markersize(3)
            panel.set_xlabel("forgotten prices altered by (%)")
    return figure


def leaks(found: Mapping[str, Sequence[Rebuilt]]) -> Figure:
    """The share of quotes rebuilt to within an error, against that error."""
    from strikeout.plots import style

    with style.styled():
        figure = style.blank(height=2.8)
        colours = (style.OTHERS[1], style.MARKET)
        style.title(
            figure,
            "What the cache gives away",
            [
                (f"{book} set, {len(e)} quotes", colour, "-")
                for (book, e), colour in zip(found.items(), colours, strict=False)
            ],
        )
        panel = figure.subplots()
        for (_, errors), colour in zip(found.items(), colours, strict=False):
            worst = np.sort([max(one.worst, 1e-16) for one in errors])
            panel.step(worst, 100.0 * np.arange(1, len(worst) + 1) / len(worst), where="post", color=colour)
        panel.set_xscale("log")
        panel.set_xlim(1e-16, 1e-2)
        panel.set_ylim(0, 104)
        panel.set_xlabel("worst relative error of forward, strike, expiry and price")
        panel.set_ylabel("quotes rebuilt (%)")
    return figure


def remaining(found: Mapping[str, Sequence[Left]]) -> Figure:
    """Leverage, condition numbers and the bias of the ridge, over the share removed, of the large set."""
    from strikeout.plots import style

    lefts = found["large"]
    x = [100 * one.removed for one in lefts]
    with style.styled():
        figure = style.blank(height=2.9)
        style.title(figure, "What is left when ever more is removed")
        lost, condition, ridge = figure.subplots(1, 3)
        lost.plot(x, [one.leverage for one in lefts], "o-", color=style.MARKET, markersize=3)
        lost.set_ylabel("largest leverage (share)")
        lost.set_ylim(0, 1.05)
        for values, words, colour, drop in (
            ([one.condition for one in lefts], "plain", style.MODEL, -14),
            ([one.scaled_condition for one in lefts], "scaled", style.MARKET, 8),
        ):
            condition.semilogy(x, values, "o-", color=colour, markersize=3)
            condition.annotate(words, (40, values[0]), xytext=(0, drop), textcoords="offset points", color=colour)
        condition.set_ylabel("condition number of H' (ratio)")
        condition.set_ylim(10, 1e9)
        ridge.semilogy(x, [100 * one.ridge_bias for one in lefts], "o-", color=style.MODEL, markersize=3)
        ridge.set_ylabel("change of the step by 1e-6 I (%)")
        for panel in (lost, condition, ridge):
            panel.set_xlabel("removed (%)")
    return figure
