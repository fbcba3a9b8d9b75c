"""When does sharding pay? Run times over scattered and clustered forget sets, and over the number of touched shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from strikeout.forgetting.recompute import recompute, restep
from strikeout.kernels import exact
from strikeout.kernels.arrays import Rows
from strikeout.models.heston import Heston
from strikeout.paper import cache as paper_method
from strikeout.paper.cache import SHARD_DAYS, SIZES, Size
from strikeout.paper.cache import fast as fast_operator
from strikeout.paper.experiments.measuring import fresh, timed, timed_in_turn
from strikeout.paper.experiments.report import (
    Column,
    Finding,
    Picture,
    Progress,
    Scale,
    Section,
    Table,
    tabulated,
    time_text,
)
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import NormalEquations, Schema
from strikeout.statistics.shards import Shards, shard, shard_states

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECTION = Section(
    "locality",
    "Locality of sharding (Figures 3 and 4)",
    "Sharded recompute builds only the touched shards again. The paper finds that random forget sets touch nearly all "
    "of them, so that it costs as much as retrain, and that only local ones save time. Here are both kinds of forget "
    "set on both sets of quotes, and shards by time, by product (maturity and moneyness) and by both at once.",
)
FRACTIONS = (0.01, 0.02, 0.05, 0.10, 0.25, 0.50)
SPREADS = ("scattered", "clustered")
CUTS = ("time", "product", "hybrid")
PATHS = (42, 60)  # seeds of the paths: the paper shows two for each set
FIRSTS = (0, 3)  # the first shard that is touched: the paper's Figure 4 (a) and (b)


@dataclass(frozen=True)
class Point:
    """One forget set under one sharding, in seconds. The paper's: its loop's time per quote times quotes visited."""

    size: Size
    seed: int
    spread: str
    cut: str
    fraction: float
    touched: int
    shards: int
    retained: int  # quotes, which the paper's retrain visits
    visited: int  # those of them in the touched shards, which its recompute visits
    retrain: float
    recompute: float
    fast: float
    paper_quote: float
    paper_fast: float

    @property
    def paper_retrain(self) -> float:
        return self.paper_quote * self.retained

    @property
    def paper_recompute(self) -> float:
        return self.paper_quote * self.visited

    @property
    def ratio(self) -> float:
        """Recompute over retrain, ours."""
        return self.recompute / self.retrain

    @property
    def paper_ratio(self) -> float:
        """The same of the paper's loop: quotes of the touched shards over retained quotes."""
        return self.visited / self.retained


def run(scale: Scale, progress: Progress) -> Finding:
    """Return both sets on the paper's two paths; a third path in the whole scale."""
    points: list[Point] = []
    seeds = PATHS if scale.is_quick else tuple(dict.fromkeys((*PATHS, *scale.seeds)))
    books = [(size, seed) for size in SIZES for seed in seeds]
    for place, (size, seed) in enumerate(books):
        progress(place / len(books), f"the {size} set, path {seed}")
        points += measured(size, seed=seed, runs=scale.runs)
    placed = [one for size in SIZES for one in positions(size, seed=seeds[0], runs=scale.runs)]
    return Finding(
        paragraphs=_conclusions(points, placed),
        tables={"shards": _table(points), "positions": _positions_table(placed), "points": _every_point(points)},
        figures={
            "figure-3": Picture(
                "The paper's Figure 3: run times over the forgotten fraction, scattered forget sets, shards by time "
                "(30 days in the large set, 10 in the small one), one panel per path: (a), (b) above, (c), (d) below. "
                "Dashed: the paper's method, its measured time per quote (a sample of 20) times the quotes it prices; "
                "its fast operator is timed. Solid: ours, timed.",
                lambda: _times(points),
            ),
            "figure-4": Picture(
                "The paper's Figure 4: time of recompute over that of retrain against the number of touched shards; "
                "(a) from the first shard on, (b) with the first three shards never touched. Rings: the paper's loop, "
                "a ratio of counts (quotes of the touched shards over retained quotes); dots: ours, timed.",
                lambda: _placed(placed),
            ),
            "cuts": Picture(
                "The same ratio for every forget set, scattered and clustered, with shards by time, by product and by "
                "both. Rings are ratios of counts, dots are timed.",
                lambda: _ratios(points),
            ),
        },
    )


@dataclass(frozen=True)
class Position:
    """One quote in ten forgotten from ``touched`` shards next to each other, from shard ``first`` on."""

    size: Size
    first: int
    touched: int
    shards: int
    ratio: float  # time of recompute over that of retrain, ours
    paper_ratio: float  # quotes of the touched shards over retained quotes


def positions(size: Size, *, seed: int, runs: int) -> Iterator[Position]:
    """Forget in the first shards, then with the first three left alone."""
    quotes, model = paper_method.paper_book(size, seed=seed), Heston()
    footprints = footprints_of(quotes, model, paper_method.paper_reference(size, seed=seed))
    shards = cut_by(quotes, "time", size=size)
    states = shard_states(footprints, shards)
    order = np.argsort([int(name) for name in shards.names])  # names are first days, in the order of text
    for first in FIRSTS:
        for touched in range(1, len(shards) - first + 1):
            rows = np.flatnonzero(np.isin(shards.codes, order[first : first + touched]))[::10]
            parts, left = shards.touched(quotes.ids[rows])
            kept, again = quotes.without(quotes.ids[rows]), quotes[left]
            works: dict[str, Callable[[], object]] = {
                "retrain": partial(_retrain, kept, model, footprints.schema),
                "recompute": partial(_recompute, states, parts, again, model),
            }
            taken = timed_in_turn(works, runs=runs)
            ratio = taken["recompute"].median / taken["retrain"].median
            yield Position(size, first, touched, len(shards), ratio, len(left) / len(kept))


def measured(size: Size, *, seed: int, runs: int) -> Iterator[Point]:
    """Return every fraction, scattered and clustered, under each sharding."""
    quotes = paper_method.paper_book(size, seed=seed)
    reference = paper_method.paper_reference(size, seed=seed)
    cache = paper_method.cache_of(quotes, reference, size=size)
    sample = quotes[np.arange(0, len(quotes), len(quotes) // 20)]
    a_quote = timed(lambda: paper_method.retrain_loop(sample, reference, size=size), runs=1).median / len(sample)
    model = Heston()
    footprints = footprints_of(quotes, model, reference)
    total, grid = footprints.total(), footprints.schema.grid
    rng = np.random.default_rng(seed)
    for spread in SPREADS:
        for fraction in FRACTIONS:
            gone = forget_set(len(quotes), fraction, spread, rng)
            kept = np.setdiff1d(np.arange(len(quotes)), gone, assume_unique=True)
            retained = quotes[kept]
            rows = gone.astype(np.int64)
            fast = timed(lambda: exact.downdate(total.words, footprints.rows, rows, grid), runs=runs)  # noqa: B023
            paper_fast = timed(lambda: fast_operator(cache, gone).theta, runs=runs)  # noqa: B023
            works: dict[str, Callable[[], object]] = {"retrain": partial(_retrain, retained, model, footprints.schema)}
            found = {}
            for cut in CUTS:
                shards = cut_by(quotes, cut, size=size)
                states = shard_states(footprints, shards)
                touched, left = shards.touched(quotes.ids[gone])
                works[cut] = partial(_recompute, states, touched, quotes[left], model)
                found[cut] = len(touched), len(shards), len(left)
            taken = timed_in_turn(works, runs=runs)
            for cut, (touched_shards, all_shards, visited) in found.items():
                yield Point(
                    size=size,
                    seed=seed,
                    spread=spread,
                    cut=cut,
                    fraction=fraction,
                    touched=touched_shards,
                    shards=all_shards,
                    retained=len(retained),
                    visited=visited,
                    retrain=taken["retrain"].median,
                    recompute=taken[cut].median,
                    fast=fast.median,
                    paper_quote=a_quote,
                    paper_fast=paper_fast.median,
                )


def forget_set(count: int, fraction: float, spread: str, rng: np.random.Generator) -> Rows:
    """Return rows to forget: anywhere in the book, or next to each other in time."""
    gone = max(1, round(fraction * count))
    if spread == "scattered":
        return np.sort(rng.choice(count, gone, replace=False))
    begin = int(rng.integers(0, count - gone + 1))
    return np.arange(begin, begin + gone)


def cut_by(quotes: Quotes, cut: str, *, size: Size) -> Shards:
    """Cut by blocks of days, by maturity and moneyness, or by both."""
    if cut == "product":
        return shard(quotes, "product")
    if cut == "hybrid":
        return shard(quotes, [f"day:{SHARD_DAYS[size]}", "product"])
    return shard(quotes, f"day:{SHARD_DAYS[size]}")


def _retrain(quotes: Quotes, model: Heston, schema: Schema) -> object:
    return restep(fresh(quotes), model, schema).change


def _recompute(states: Mapping[str, NormalEquations], touched: Shards, left: Quotes, model: Heston) -> object:
    return recompute(states, touched, fresh(left), model=model).step.change


def _some(points: list[Point], **wanted: object) -> list[Point]:
    return [point for point in points if all(getattr(point, name) == value for name, value in wanted.items())]


def _middle(points: list[Point], name: str) -> float:
    return float(np.median([getattr(point, name) for point in points]))


def _conclusions(points: list[Point], placed: list[Position]) -> tuple[str, ...]:
    large = _some(points, size="large", cut="time")
    wide = [point for point in large if point.spread == "scattered" and point.fraction >= 0.02]
    near = _some(large, spread="clustered", fraction=0.01)
    fast = [point.fast for point in points]
    every = sum(point.touched == point.shards for point in wide)
    cluster = {
        cut: _middle(_some(points, size="large", cut=cut, spread="clustered", fraction=0.01), "paper_ratio")
        for cut in CUTS
    }
    return (
        f"As in the paper, scattered forgetting spoils the saving: from 2 % on, {every} of {len(wide)} forget sets in "
        "the large set touched every shard of days, and recompute then does what retrain does. A cluster of 1 % "
        f"touches {_middle(near, 'touched'):.0f} of {near[0].shards}, and the paper's loop then needs "
        f"{cluster['time']:.0%} of its time; {cluster['product']:.0%} with shards by product, because a day holds "
        f"nearly every product, and {cluster['hybrid']:.0%} with both. Shards must be cut the way requests come.",
        "Where the touched shards are does not matter, only how many quotes they have (Figure 4). One touched shard "
        f"of {placed[-1].shards} in the large set costs {_ratio_at(placed, 0):.2f} of retrain if it is the first and "
        f"{_ratio_at(placed, 3):.2f} if it is the fourth.",
        "With our passes the question loses its weight. Retrain over the whole large set takes "
        f"{time_text(_middle(large, 'retrain'))}. All touched shards are priced in one pass, so recompute takes at "
        f"most {max(point.ratio for point in points):.2f} times as long as retrain, and less in "
        f"{sum(point.ratio < 1 for point in points)} of {len(points)} points; its least, "
        f"{min(point.ratio for point in points):.2f}, is the fixed cost of a pass. The fast refactor took "
        f"{time_text(min(fast))} to {time_text(max(fast))}, whatever the shards.",
    )


def _ratio_at(placed: list[Position], first: int) -> float:
    return next(one.ratio for one in placed if (one.size, one.first, one.touched) == ("large", first, 1))


def _positions_table(placed: list[Position]) -> Table:
    return tabulated(
        "One quote in ten forgotten from shards next to each other.",
        [
            {
                "set": one.size,
                Column("first touched shard", "", "d"): one.first + 1,
                "shards touched": f"{one.touched} of {one.shards}",
                Column("recompute over retrain", "times", ".2f"): one.ratio,
                Column("the paper's ratio", "times", ".2f"): one.paper_ratio,
            }
            for one in placed
        ],
        is_shown=False,
    )


def _table(points: list[Point]) -> Table:
    paths = len({point.seed for point in points})
    whose = f"medians over {paths} paths" if paths > 1 else "one path"
    return tabulated(
        f"Ours, {whose}; the last column is the ratio of the paper's loop.",
        [
            {
                "set": size,
                "forget set": spread,
                "shards by": cut,
                "forgotten": f"{fraction:.0%}",
                "shards touched": f"{_middle(some, 'touched'):.0f} of {_middle(some, 'shards'):.0f}",
                **{Column(name, "s"): _middle(some, name) for name in ("retrain", "recompute", "fast")},
                Column("recompute over retrain", "times", ".2f"): _middle(some, "ratio"),
                Column("the paper's ratio", "times", ".2f"): _middle(some, "paper_ratio"),
            }
            for size in SIZES
            for spread in SPREADS
            for cut in CUTS
            for fraction in (0.01, 0.10)
            for some in [_some(points, size=size, spread=spread, cut=cut, fraction=fraction)]
        ],
    )


def _every_point(points: list[Point]) -> Table:
    words = ("size", "seed", "spread", "cut", "fraction", "touched", "shards")
    seconds = ("retrain", "recompute", "fast", "paper_retrain", "paper_recompute", "paper_fast")
    columns: dict[str, Column | str] = {name: name for name in words} | {name: Column(name, "s") for name in seconds}
    records = [{column: getattr(point, name) for name, column in columns.items()} for point in points]
    return tabulated("Every point.", records, is_shown=False)


def _times(points: list[Point]) -> Figure:
    from strikeout.paper.experiments.figures import time_panels

    names = ("retrain", "recompute", "fast", "paper_retrain", "paper_recompute", "paper_fast")
    panels = zip("abcd", ((size, seed) for size in reversed(SIZES) for seed in PATHS), strict=True)
    lines = {
        f"({letter}) {size} set, path {seed}": {
            name: np.array([getattr(point, name) for point in found]) for name in names
        }
        for letter, (size, seed) in panels
        for found in [_some(points, size=size, seed=seed, spread="scattered", cut="time")]
    }
    return time_panels(100.0 * np.array(FRACTIONS), lines)


def _placed(placed: list[Position]) -> Figure:
    from strikeout.paper.experiments.figures import ratio_panels

    titles = ("(a) from the first shard on", "(b) first three shards not touched")
    return ratio_panels(
        {
            title: {
                size: np.array(
                    [(p.touched, p.ratio, p.paper_ratio) for p in placed if (p.size, p.first) == (size, first)]
                )
                for size in SIZES
            }
            for title, first in zip(titles, FIRSTS, strict=True)
        }
    )


def _ratios(points: list[Point]) -> Figure:
    from strikeout.paper.experiments.figures import ratio_panels

    return ratio_panels(
        {
            f"shards by {cut}" if cut != "hybrid" else "shards by time and product": {
                size: np.array([(p.touched, p.ratio, p.paper_ratio) for p in _some(points, size=size, cut=cut)])
                for size in SIZES
            }
            for cut in CUTS
        }
    )
