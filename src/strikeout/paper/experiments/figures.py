"""The figures of all sections, drawn from their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from strikeout.kernels.arrays import Floats
from strikeout.paper.experiments.report import time_text
from strikeout.plots import style
from strikeout.plots.style import FAINT, INK, MARKET, MODEL, OTHERS, blank, styled, title

if TYPE_CHECKING:
    from strikeout.paper.experiments.complexity import Growth
    from strikeout.paper.experiments.computing_back import Rebuilt
    from strikeout.paper.experiments.conditions import Condition, Pull, Relinearizing
    from strikeout.paper.experiments.corruption import Dependence, Purged, Relinearized
    from strikeout.paper.experiments.erasure import Left


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
OPERATORS = {"retrain": OTHERS[0], "recompute": MODEL, "fast": MARKET}
SETS = {"small": OTHERS[2], "large": OTHERS[1]}


def strips(
    panels: Mapping[str, Mapping[str, Sequence[Floats]]], groups: Sequence[str], *, words: str, axis: str
) -> Figure:
    """Draw one panel per book, a group of dots per parameter, a colour per operator; bars are medians."""
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
                    _strip(panel, at, values, COLOURS[group], width=0.09)
            panel.set_xticks(range(len(parameters)), list(parameters))
            panel.grid(visible=False, axis="x")
            _zero_and_powers(panel, [-1e-12, -1e-14, -1e-16, 0.0, 1e-16, 1e-14, 1e-12])
        axes[0].set_ylabel(axis)
    return figure


def _strip(panel: Axes, at: float, values: Floats, colour: str, *, width: float) -> None:
    """Draw dots around one place, and a bar at their median."""
    spread = width * np.sin(np.arange(len(values)) * 2.399963)  # a fixed fan for jitter: the same picture every time
    panel.plot(at + spread, values, ".", color=colour, markersize=2.8, alpha=0.55, mew=0)
    middle, half = float(np.median(values)), width + 0.02
    panel.plot([at - half, at + half], [middle, middle], color=colour, linewidth=1.4)


def _zero_and_powers(panel: Axes, ticks: Sequence[float]) -> None:
    """Set the ticks of a scale that is linear near zero."""
    panel.set_yticks(ticks)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else f"{value:.0e}"))
    panel.minorticks_off()


def difference_against_mean(answers: Mapping[str, tuple[Floats, Floats]], *, words: str, letters: str) -> Figure:
    """Draw one panel per parameter: (retrain, difference) of each operator, as dots.

    Args:
        letters: of the paper's panels, for the first parameters.
    """
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
            panel.set_title(f"({letters[place]})" if place < len(letters) else "")
            panel.set_xlabel(WORDS[place])
            panel.set_ylabel(f"difference (1e{power})")
            panel.locator_params(axis="x", nbins=3)
            panel.ticklabel_format(axis="x", useOffset=False)
    return figure


def errors_and_times(share: Floats, errors: Mapping[str, Floats], times: Mapping[str, Floats]) -> Figure:
    """Draw relative errors on the left, run times (quartiles) on the right, over the share forgotten."""
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
        _zero_and_powers(left, [0.0, 1e-16, 1e-14, 1e-12])
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
    """Draw dots of relative errors per place, one colour per group, a bar at each median; zeros have a row."""
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
                _strip(panel, at, values, colour, width=0.05)
        panel.set_xticks(range(len(places)), list(places))
        panel.set_ylim(-2e-17, 1e-11)
        _zero_and_powers(panel, [0.0, 1e-16, 1e-14, 1e-12])
        panel.set_xlabel("quotes forgotten")
        panel.set_ylabel("|fast - retrain| / |retrain|")
    return figure


def label_ends(panel: Axes, ends: Mapping[str, tuple[float, float, str]], *, apart: float = 2.3) -> None:
    """Write a name at the end of each line (x, y, colour), on a log axis, at least a factor of `apart` apart."""
    last = 0.0
    for name, (x, y, colour) in sorted(ends.items(), key=lambda item: item[1][1]):
        at = max(y, last * apart)
        last = at
        panel.annotate(
            name, (x, at), xytext=(6, 0), textcoords="offset points", va="center", color=colour, fontsize=7.5
        )


def time_panels(share: Floats, panels: Mapping[str, Mapping[str, Floats]]) -> Figure:
    """Draw one panel per set and path: our operators solid, the paper's dashed, over per cent forgotten."""
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
    """Draw one panel per cut, a colour per set: our ratios over touched shards as dots, the paper's as rings."""
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


def feed_distances(found: Mapping[str, Sequence[Purged]]) -> Figure:
    """Draw one panel per book and one line per feed; three marks on a logarithmic axis."""
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
    """Draw, left, moves of the one step by altered values. and right, three ways to go on from it."""
    with style.styled():
        figure = style.blank(height=3.5)
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
    """Return the share of quotes rebuilt to within an error, against that error."""
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
    """Draw leverage, condition numbers and the bias of the ridge, over the share removed, of the large set."""
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


def relinearization(lines: Sequence[Relinearizing]) -> Figure:
    """Draw the second step against the first, log-log, one line per noise."""
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
    """Return a matrix: bounds down, forgotten quotes across, the share that meets the condition in every cell."""
    counts = list(dict.fromkeys(one.forgotten for one in found))
    kinds = [
        kind for kind in dict.fromkeys((one.bound, one.scaled) for one in found) if not kind[0].startswith("stability")
    ]
    kinds.sort(key=lambda kind: kind[1])
    shares = np.array(
        [
            [next(o.holds for o in found if (o.bound, o.scaled, o.forgotten) == (*kind, count)) for count in counts]
            for kind in kinds
        ]
    )
    with style.styled():
        figure = style.blank(height=2.9)
        style.title(figure, "How often the condition of a bound holds")
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
    """Return the pull of one quote against how wrong it is, under two losses."""
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
    """Draw one panel each against quotes, nodes, forgotten quotes and parameters, with the exponent of every line."""
    panels = {
        "quotes": [one for one in found if one.against.startswith("quotes")],
        "quadrature nodes": [one for one in found if one.against == "nodes"],
        "forgotten quotes": [one for one in found if one.against == "forgotten quotes"],
        "parameters": [one for one in found if one.against == "parameters"],
    }
    colours = {
        "the paper's loop": style.MODEL,
        "our retrain": style.MARKET,
        "sharded recompute": style.OTHERS[1],
        "the solution": style.OTHERS[0],
    }
    aside = {"our retrain": 13, "sharded recompute": -13}  # two lines that nearly coincide
    with style.styled():
        figure = style.blank(height=5.4)
        style.title(figure, "Run times and their exponents")
        axes = figure.subplots(2, 2, gridspec_kw={"width_ratios": [1.5, 1]}).ravel()
        for panel, (against, lines) in zip(axes, panels.items(), strict=True):
            for one in lines:
                colour = colours.get(one.what, style.OTHERS[2])
                panel.loglog(one.sizes, one.seconds, "o-", color=colour, markersize=3, linewidth=1.2)
                is_beside = (
                    against == "quotes" and one.what != "the paper's loop"
                )  # the space left of the line is empty
                panel.annotate(
                    f"{one.what}\nexponent {one.slope.value:.2f}",
                    (one.sizes[0], one.seconds[0] if is_beside else one.seconds.max()),
                    xytext=(-8, aside.get(one.what, 0)) if is_beside else (0, 6),
                    textcoords="offset points",
                    color=colour,
                    ha="right" if is_beside else "left",
                    va="center" if is_beside else "bottom",
                )
            panel.set_ylim(panel.get_ylim()[0] / 2, panel.get_ylim()[1] * 12)
            if against in ("quadrature nodes", "parameters"):  # about a decade: both ends named, nothing between them
                ends = [float(min(one.sizes[0] for one in lines)), float(max(one.sizes[-1] for one in lines))]
                panel.set_xticks(ends, [f"{size:,.0f}" for size in ends])
                panel.set_xticks([], minor=True)
            panel.set_xlabel(against)
        for panel in axes[::2]:
            panel.set_ylabel("seconds")
    return figure
