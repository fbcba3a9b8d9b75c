"""Equality of shards, subtraction and rebuild: in the paper's floats and in our integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import recompute, recompute_shards, restep
from strikeout.kernels.arrays import Floats, Rows
from strikeout.models.heston import Heston
from strikeout.paper import cache as paper_method
from strikeout.paper.cache import SHARD_DAYS, SHORT, SIZES, Cache, Size
from strikeout.paper.cache import fast as paper_fast
from strikeout.paper.cache import recompute as paper_recompute
from strikeout.paper.experiments.report import Column, Finding, Picture, Progress, Scale, Section, Table, tabulated
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import PAPER_RIDGE
from strikeout.statistics.shards import Shards, shard, shard_states
from strikeout.statistics.system import FootprintBlocks
from strikeout.synthetic.heston_quotes import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CUTS = {
    "10 days": "day:10",
    "30 days": "day:30",
    "maturity and moneyness": "product",
    "30 days and maturity": "day:30,maturity",
}


@dataclass(frozen=True)
class Exactness:
    """One strike-out done three ways.

    ``is_equal``: state and parameters of all three are the same bits. ``in_doubles``: by what share of the step's
    largest entry subtraction and rebuild differ where both sum doubles, as the paper does.
    """

    cut: str
    shards: int
    touched: int
    forgotten: int
    is_equal: bool
    in_doubles: float


def exactness(calibration: Calibration, *, fractions: Sequence[float], seed: int) -> Iterator[Exactness]:
    """Return every sharding at every fraction, quotes drawn at random."""
    rng = np.random.default_rng(seed)
    quotes = calibration.quotes
    for name, cuts in CUTS.items():
        shards = shard(quotes, cuts)
        for fraction in fractions:
            ids = rng.choice(quotes.ids, max(1, round(fraction * len(quotes))), replace=False)
            yield struck(calibration, ids, shards=shards, cut=name)


def struck(calibration: Calibration, ids: NDArray[np.str_], *, shards: Shards, cut: str = "") -> Exactness:
    """Return one strike-out by subtraction, by shards and by a rebuild, compared bit for bit."""
    footprints = calibration.footprints
    steps = [
        downdate(footprints, ids),
        recompute_shards(calibration, calibration.quotes.places(ids), shards=shards).step,
        restep(calibration.quotes.without(ids), calibration.model, footprints.whole.schema),
    ]
    states = {step.equations.digest() for step in steps}
    moves = {step.change.tobytes() for step in steps}
    return Exactness(
        cut=cut,
        shards=len(shards),
        touched=len(shards.of(ids)),
        forgotten=len(ids),
        is_equal=len(states) == len(moves) == 1,
        in_doubles=_in_doubles(calibration, ids),
    )


def _in_doubles(calibration: Calibration, ids: NDArray[np.str_]) -> float:
    H, G = _sums(calibration, calibration.quotes)
    gone = _sums(calibration, calibration.quotes.only(ids))
    kept = _sums(calibration, calibration.quotes.without(ids))
    ridge = PAPER_RIDGE * np.eye(len(G))
    fast = np.linalg.solve(H - gone[0] + ridge, G - gone[1])
    rebuilt = np.linalg.solve(kept[0] + ridge, kept[1])
    return float(np.max(np.abs(fast - rebuilt)) / np.max(np.abs(rebuilt)))


def _sums(calibration: Calibration, quotes: Quotes) -> tuple[Floats, Floats]:
    price, J = calibration.model.linearize(calibration.parameters, quotes.contracts)
    return J.T @ J, J.T @ (quotes.observed - price)


SECTION = Section(
    "equivalence",
    "Equivalence (Figures 1 and 2)",
    "The paper compares its fast refactor with its own retrain, which is one Gauss-Newton step rebuilt from the "
    "retained quotes, and finds differences near 1e-13. Is that so with its method as described, does it hold for the "
    "sharded operator too, and what is left of the difference when the sums are exact integers?",
)
OPERATORS = ("the paper's fast", "the paper's sharded", "ours, both")


@dataclass(frozen=True, eq=False)
class Runs:
    """Forgettings on one book, a row a run: each operator minus retrain, and what retrain itself gave."""

    size: Size
    forgotten: Rows  # how many quotes, per run
    fast: Floats  # (runs, 5)
    sharded: Floats
    retrain: Floats
    shuffled: Floats  # fast minus retrain if both sum in another order for every run
    settled: Floats  # fast minus retrain where the search had converged
    ours_fast: Floats
    ours_sharded: Floats
    ours_retrain: Floats
    equal_digests: int  # runs in which all three of our states have one digest


def run(scale: Scale, progress: Progress) -> Finding:
    """Return both sets; 30 runs each in the quick scale, 200 in the whole."""
    count = 30 if scale.is_quick else 200
    found = []
    for place, size in enumerate(SIZES):
        progress(place / 2, f"the {size} set")
        found.append(measured(size, seed=scale.seeds[0], fractions=scale.fractions, runs=count))
    return Finding(
        paragraphs=_conclusions(found),
        tables={"differences": _table(found), "runs": _every_run(found)},
        figures={
            f"figure-{number}-{panel}": picture
            for number, one in enumerate(found, start=1)
            for panel, picture in _pictures(number, one).items()
        },
    )


def _pictures(number: int, one: Runs) -> dict[str, Picture]:
    """Return both kinds of panels of the paper's Figure 1 (the small set) or 2 (the large one)."""
    others, words = ("b-f", "(b) to (f)") if number == 1 else ("b", "(b), which has mean reversion only")
    return {
        "a": Picture(
            f"The paper's Figure {number} (a), the {one.size} set: operator minus retrain over {len(one.forgotten)} "
            "forgettings of 1 to 25 %. Each dot is one run; differences are in the units of the parameter, on a scale "
            "that is linear below 1e-16.",
            lambda: _distributions(one),
        ),
        others: Picture(
            f"The paper's Figure {number} {words}: difference against the mean of the two answers, {one.size} set. "
            "The paper's fast refactor differs at rounding level, and not without bias: the mean is up to "
            f"{np.abs(offsets(one.fast)).max():.1f} of its standard errors from zero, because every run carries the "
            "rounding of the same sums. Ours is zero in every run.",
            lambda: _against_mean(one),
        ),
    }


def measured(size: Size, *, seed: int, fractions: tuple[float, ...], runs: int) -> Runs:
    """Forget random sets, the fractions in turn, by the paper's method in floats and ours in integers."""
    quotes = paper_method.paper_book(size, seed=seed)
    reference = paper_method.paper_reference(size, seed=seed, steps=SHORT)
    cache = paper_method.cache_of(quotes, reference, size=size)
    settled = paper_method.cache_of(quotes, paper_method.paper_reference(size, seed=seed), size=size)
    shards = shard(quotes, f"day:{SHARD_DAYS[size]}")
    model = Heston()
    footprints = footprints_of(quotes, model, reference)
    states = shard_states(footprints, shards)
    rng = np.random.default_rng(seed)
    rows: list[list[Floats]] = []
    counts, equal = [], 0
    for number in range(runs):
        count = max(1, round(fractions[number % len(fractions)] * len(quotes)))
        gone = np.sort(rng.choice(len(quotes), count, replace=False))
        kept = np.setdiff1d(np.arange(len(quotes)), gone, assume_unique=True)
        ids = quotes.ids[gone]
        fresh = restep(quotes[kept], model, footprints.schema)
        touched, rows_left = shards.touched(ids)
        down = downdate(FootprintBlocks.of(footprints), ids)
        again = recompute(states, touched, quotes[rows_left], model=model).step
        equal += len({state.equations.digest() for state in (fresh, down, again)}) == 1
        counts.append(count)
        rows.append(
            [
                paper_method.retrained(cache, kept),
                paper_fast(cache, gone).theta,
                paper_recompute(cache, gone).theta,
                _shuffled(cache, gone, kept, rng),
                paper_method.retrained(settled, kept),
                paper_fast(settled, gone).theta,
                *(np.array(list(step.parameters.values())) for step in (fresh, down, again)),
            ]
        )
    retrain, fast, sharded, shuffled, rest, rested, ours, ours_fast, ours_sharded = np.moveaxis(np.array(rows), 1, 0)
    return Runs(
        size,
        np.array(counts),
        fast - retrain,
        sharded - retrain,
        retrain,
        shuffled,
        rested - rest,
        ours_fast - ours,
        ours_sharded - ours,
        ours,
        equal,
    )


def _shuffled(cache: Cache, gone: Rows, kept: Rows, rng: np.random.Generator) -> Floats:
    """Return the paper's fast operator minus its retrain, every sum in a new random order."""
    order, gone = rng.permutation(len(cache.quotes)), rng.permutation(gone)
    H, G = np.add.reduce(cache.psi[order], axis=0), np.add.reduce(cache.u[order], axis=0)
    H = np.subtract.reduce(np.concatenate([H[None], cache.psi[gone]]), axis=0)
    G = np.subtract.reduce(np.concatenate([G[None], cache.u[gone]]), axis=0)
    return paper_method.solved(cache.theta_ref, H, G) - paper_method.retrained(cache, rng.permutation(kept))


def offsets(differences: Floats) -> Floats:
    """Return the mean of each column over the standard error of that mean; 0 for a column of equal numbers."""
    error = differences.std(axis=0, ddof=1) / np.sqrt(len(differences))
    found: Floats = np.divide(differences.mean(axis=0), error, out=np.zeros_like(error), where=error > 0.0)
    return found


def _conclusions(found: list[Runs]) -> tuple[str, ...]:
    worst = [float(np.max(np.abs(one.fast))) for one in found]
    settled = max(float(np.max(np.abs(one.settled))) for one in found)
    norms = max(float(np.linalg.norm(d, axis=1).max()) for one in found for d in (one.fast, one.sharded))
    moved = sum(int(np.count_nonzero(d)) for one in found for d in (one.ours_fast, one.ours_sharded))
    runs = sum(len(one.forgotten) for one in found)
    equal = sum(one.equal_digests for one in found)
    offset, cured = (
        max(float(np.abs(offsets(values)).max()) for values in sets)
        for sets in ([one.fast for one in found], [one.shuffled for one in found])
    )
    return (
        f"The paper's claim holds against its own baseline: in floats the fast refactor is within {worst[0]:.1e} of "
        f"retrain on the small set and {worst[1]:.1e} on the large one, mean reversion being the widest, and neither "
        f"operator is ever further than {norms:.1e} in norm (the paper: below 1e-8). What is left is the order in "
        f"which floats were added. Its 1e-13 is that of a reference {SHORT} steps into the search, where the step is "
        f"long; from converged parameters the same floats differ by at most {settled:.0e}.",
        'The paper concludes "no systematic bias". Both sides round: every run subtracts from one rounded H and G, and '
        "retrain adds nearly the same quotes in the same order every time, so runs share an offset. The mean of fast "
        f"- retrain is up to {offset:.1f} standard errors of that mean from zero here, more or less by the set and "
        "the seed. If every sum is taken in a new order for every run, roundings differ from run to run and the "
        f"offset goes: {cured:.1f} standard errors at most.",
        "In exact integers nothing is left: retrain, recompute and the fast refactor gave states with one digest in "
        f"{equal} of {runs} runs, and {moved} of {runs * 10} parameters differ in any bit. Equal to this baseline is "
        "not yet equal to a refit: the baseline is one step from a reference that was calibrated to the forgotten "
        "quotes too. The section on where the paper stops measures that.",
    )


def _table(found: list[Runs]) -> Table:
    def largest(*differences: Floats) -> float:
        return max(float(np.abs(one).max()) for one in differences)

    return tabulated(
        f"|operator - retrain| over {len(found[0].forgotten)} runs, in the unit of each parameter: mean reversion, "
        f"variances and vol of vol in 1/year, correlation without one. The paper's method in floats, from {SHORT} "
        "steps of its search, and from where the search converges; ours is the fast and the sharded operator.",
        [
            {
                "set": one.size,
                "parameter": name.replace("_", " "),
                Column("fast, median", "own unit", ".1e"): float(np.median(np.abs(one.fast[:, n]))),
                Column("fast, largest", "own unit", ".1e"): largest(one.fast[:, n]),
                Column("fast, mean over its error", "", ".1f"): float(offsets(one.fast)[n]),
                Column("sharded, largest", "own unit", ".1e"): largest(one.sharded[:, n]),
                Column("fast, converged, largest", "own unit", ".1e"): largest(one.settled[:, n]),
                Column("ours, largest", "own unit", ".3g"): largest(one.ours_fast[:, n], one.ours_sharded[:, n]),
            }
            for one in found
            for n, name in enumerate(NAMES)
        ],
    )


def _every_run(found: list[Runs]) -> Table:
    names = ("retrain", "fast", "sharded")
    return tabulated(
        "Every run.",
        [
            {
                "set": one.size,
                "run": number,
                Column("forgotten", "quotes"): int(forgotten),
                "parameter": parameter,
                **{
                    Column(f"{who} {name}{'' if name == 'retrain' else ' - retrain'}", "own unit"): float(
                        getattr(one, prefix + name)[number, place]
                    )
                    for who, prefix in (("paper", ""), ("ours", "ours_"))
                    for name in names
                },
            }
            for one in found
            for number, forgotten in enumerate(one.forgotten.tolist())
            for place, parameter in enumerate(NAMES)
        ],
        is_shown=False,
    )


def _distributions(one: Runs) -> Figure:
    from strikeout.paper.experiments.figures import LABELS, strips

    panels = {
        f"{one.size} set": {
            label: (one.fast[:, place], one.sharded[:, place], one.ours_fast[:, place])
            for place, label in enumerate(LABELS)
        }
    }
    return strips(panels, OPERATORS, words="Operator minus retrain, by parameter", axis="difference (own unit)")


def _against_mean(one: Runs) -> Figure:
    from strikeout.paper.experiments.figures import difference_against_mean

    return difference_against_mean(
        {"the paper's fast": (one.retrain, one.fast), "ours": (one.ours_retrain, one.ours_fast)},
        words=f"Fast minus retrain against their mean, {one.size} set",
        letters="bcdef" if one.size == "small" else "b",
    )
