"""Leave-one-shard-out sensitivity: which period, maturity, strike or source moves the calibration most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.influence import influence
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.models.heston import Heston
from strikeout.paper.experiments.report import Column, Finding, Picture, Progress, Scale, Section, Table, tabulated
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.shards import shard

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCES = ("source A", "source B", "source C")
HIGH = 5e-4  # currency: by how much source C quotes too high, as much as the noise of the large set
CUTS = ("period", "maturity", "strike", "source")
PERIOD = 30  # days

SECTION = Section(
    "sensitivity",
    "Leave one shard out",
    "The paper names a use it does not try: asking which period affects the calibration most, or what happens without "
    "a data source. Each period, maturity, strike and source of the large set is left out on its own, by a block "
    f"downdate and by a refit. Its quotes are of three sources at random; source C quotes {100 * HIGH:g} cents too "
    "high.",
)


def run(scale: Scale, progress: Progress) -> Finding:
    """Return every shard of every cut, on the large set."""
    seed = scale.seeds[0]
    calibration = calibrate(sourced(paper_quotes("large", seed=seed), seed=seed), Heston())
    progress(0.1, "shards left out")
    found = list(shard_influences(calibration))
    progress(1.0, "done")

    def drawn_map() -> Figure:
        from strikeout.plots.influence_map import plot_influence_map

        return plot_influence_map(calibration, title="Influence of every date and maturity", down="trading days")

    return Finding(
        paragraphs=_paragraphs(found),
        tables={"shards": table(found)},
        figures={
            "shards": Picture(
                "How far the parameters move when a shard is left out: the worst parameter, in standard errors of the "
                "whole calibration. Dots are the block downdate, rings the refit without the shard.",
                lambda: _moves(found),
            ),
            "map": Picture(
                "Cook's distance of every date and maturity (the paper's trading days, 252 in a year) of the large "
                "set, each struck out as a whole. A distance of 1 is a move to the edge of the joint region of about "
                "one standard error.",
                drawn_map,
            ),
        },
    )


def table(found: Sequence[ShardInfluence]) -> Table:
    """Return one row per shard, the most influential of each cut first."""
    return tabulated(
        "Moves are of the worst parameter, in standard errors (SE) of the whole calibration.",
        [
            {
                "cut": one.cut,
                "left out": one.shard,
                Column("quotes", "count", "d"): one.quotes,
                "moves most": one.parameter.replace("_", " "),
                Column("downdate", "SE", ".3f"): one.one_step,
                Column("refit", "SE", ".3f"): one.refit if np.isfinite(one.refit) else "not determined",
                Column("largest price change", "cents", ".4f"): 100.0 * one.price_change,
                Column("RMSE change", "cents", "+.4f"): 100.0 * one.rmse_change,
            }
            for one in _ranked(found)
        ],
    )


def _ranked(found: Sequence[ShardInfluence]) -> list[ShardInfluence]:
    return sorted(found, key=lambda one: (CUTS.index(one.cut), -one.one_step))


def _paragraphs(found: Sequence[ShardInfluence]) -> tuple[str, ...]:
    firsts = {cut: next(one for one in _ranked(found) if one.cut == cut) for cut in CUTS}
    listed = "; ".join(
        f"by {cut}, {one.shard} ({one.one_step:.1f} standard errors of {one.parameter.replace('_', ' ')})"
        for cut, one in firsts.items()
    )
    apart = max(abs(one.one_step - one.refit) for one in found if np.isfinite(one.refit))
    source = firsts["source"]
    return (
        f"What moves the calibration most: {listed}. The downdate shows it without a refit and is within {apart:.2g} "
        f"standard errors of the refit everywhere. The source that quotes too high is {source.shard}: without it the "
        f"RMSE falls by {-100 * source.rmse_change:.4f} cents, more than without any other shard.",
    )


def _moves(found: Sequence[ShardInfluence]) -> Figure:
    from strikeout.plots import style

    with style.styled():
        figure = style.blank(height=4.4)
        style.title(
            figure,
            "What moves the calibration most",
            [("block downdate", style.MARKET, "o"), ("refit without the shard (ring)", style.MODEL, "o")],
        )
        counts = [sum(one.cut == cut for one in found) for cut in CUTS]
        axes = figure.subplots(len(CUTS), 1, sharex=True, gridspec_kw={"height_ratios": counts})
        for panel, cut in zip(axes, CUTS, strict=True):
            ours = [one for one in _ranked(found) if one.cut == cut]
            for row, one in enumerate(ours):
                panel.plot([0.0, one.one_step], [row, row], color="#dddddd", linewidth=1.0, zorder=1)
                panel.plot(one.one_step, row, "o", color=style.MARKET, markersize=4)
                panel.plot(one.refit, row, "o", color=style.MODEL, markerfacecolor="none", markersize=7)
                panel.annotate(
                    one.parameter.replace("_", " "),
                    (max(one.one_step, np.nan_to_num(one.refit)), row),
                    xytext=(8, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=7,
                    color=style.FAINT,
                )
            panel.set_yticks(range(len(ours)), [one.shard for one in ours])
            panel.set_ylim(len(ours) - 0.5, -0.5)
        axes[-1].set_xlabel("move of the worst parameter (standard errors)")
        axes[-1].set_xlim(0, 1.2 * max(one.one_step for one in found))
    return figure


@dataclass(frozen=True)
class ShardInfluence:
    """What leaving one shard out does. Moves are the worst parameter's, in standard errors of the whole calibration.

    ``one_step`` is the block downdate, ``refit`` the calibration of the other quotes (not-a-number if they do not
    determine the parameters).
    """

    cut: str
    shard: str
    quotes: int
    parameter: str  # the one that moves most
    one_step: float
    refit: float
    price_change: float  # currency, the largest of any quote
    rmse_change: float  # currency


def sourced(book: Quotes, *, seed: int) -> Quotes:
    """Return the quotes in periods of 30 days and of three random sources, of which source C quotes too high."""
    number = np.random.default_rng(seed).integers(0, len(SOURCES), len(book))
    labels = {name: np.array(column) for name, column in book.labels.items()}
    labels["source"] = np.array(SOURCES)[number]
    labels["period"] = _periods(book)
    labels["maturity"] = np.array([f"{days} trading days" for days in book.labels["expiry_days"].tolist()])
    labels["trading days"] = book.labels["expiry_days"]
    labels["strike"] = np.array([f"strike {strike:g}" for strike in book.contracts.strike.tolist()])
    observed = book.observed + np.where(number == len(SOURCES) - 1, HIGH, 0.0)
    return Quotes(ids=book.ids, contracts=book.contracts, observed=observed, weight=book.weight, labels=labels)


def _periods(book: Quotes) -> NDArray[np.str_]:
    begins = [int(name) for name in shard(book, f"day:{PERIOD}").names]
    days = np.asarray(book.labels["day"]) // PERIOD * PERIOD
    names = {begin: f"days {begin:03d}-{begin + PERIOD - 1:03d}" for begin in begins}
    return np.array([names[day] for day in days.tolist()])


def shard_influences(calibration: Calibration) -> Iterator[ShardInfluence]:
    """Return every shard of every cut left out on its own, each confirmed by a refit."""
    names = list(calibration.parameters)
    errors = np.array([calibration.standard_errors[name] for name in names])
    for cut in CUTS:
        count = len(np.unique(calibration.quotes.labels[cut]))
        found = influence(calibration, cut, confirm=count)
        one = np.abs(np.stack([found[f"change_{name}"] for name in names], axis=1)) / errors
        refit = np.abs(np.stack([found[f"confirmed_{name}"] for name in names], axis=1)) / errors
        for row in range(found.rows):
            yield ShardInfluence(
                cut=cut,
                shard=str(found[cut][row]),
                quotes=int(found["count"][row]),
                parameter=names[int(np.argmax(one[row]))],
                one_step=float(one[row].max()),
                refit=float(refit[row].max()),
                price_change=float(found["price_change"][row]),
                rmse_change=float(found["rmse_change"][row]),
            )
