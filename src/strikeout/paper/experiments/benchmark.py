"""The paper's benchmark on one book: its operators as described, ours, and what stands between them, timed together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import recompute, restep
from strikeout.kernels import exact
from strikeout.models.heston import Heston
from strikeout.paper import method as paper_method
from strikeout.paper.cache import Cache
from strikeout.paper.cache import fast as paper_fast
from strikeout.paper.experiments.complexity import numpy_restep
from strikeout.paper.experiments.measuring import Times, timed
from strikeout.paper.experiments.report import Scale
from strikeout.paper.method import SHARD_DAYS, SHORT, Size
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.shards import shard, shard_states
from strikeout.statistics.system import FootprintBlocks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loop:
    """What a turn of the paper's loop takes, and over how many quotes that was found."""

    sampled: int
    a_quote: Times


@dataclass(frozen=True, eq=False)
class Point:
    """One book, one fraction. Times by operator; parameters by operator; RMSE of the retained quotes, in currency."""

    seed: int
    fraction: float
    forgotten: int
    retained: int
    sampled: int  # quotes over which the paper's loop was timed, then scaled to all
    touched: int  # shards
    shards: int
    times: dict[str, Times]
    rmse: dict[str, float]
    deviation: dict[str, float]  # |fast - retrain| / |retrain|
    is_equal: bool  # our three states have one digest, our three answers the same bits


def benchmark(
    size: Size, *, seed: int, scale: Scale, fractions: tuple[float, ...], progress: Callable[[float], None]
) -> list[Point]:
    """Return every fraction, the forget sets fixed across runs, the reference where Levenberg-Marquardt ends."""
    quotes = paper_method.paper_book(size, seed=seed)
    cache = paper_method.cache_of(quotes, paper_method.paper_reference(size, seed=seed), size=size)
    early = paper_method.cache_of(quotes, paper_method.paper_reference(size, seed=seed, steps=SHORT), size=size)
    loop = timed_loop(quotes, cache.theta_ref, size=size, scale=scale)
    rng = np.random.default_rng(seed)
    points = []
    for place, fraction in enumerate(fractions):
        progress(place / len(fractions))
        gone = np.sort(rng.choice(len(quotes), round(fraction * len(quotes)), replace=False))
        points.append(measured(quotes, (cache, early), gone, loop=loop, size=size, seed=seed, runs=scale.runs))
    return points


def timed_loop(quotes: Quotes, reference: Floats, *, size: Size, scale: Scale) -> Loop:
    """Return the paper's loop over every so-manieth quote: its time is proportional to the quotes it sees."""
    sample = quotes[np.arange(0, len(quotes), len(quotes) // (45 if scale.is_quick else 270))]
    work = timed(lambda: paper_method.retrain_loop(sample, reference, size=size), runs=3 if scale.is_quick else 5)
    return Loop(len(sample), work.scaled(1.0 / len(sample)))


def measured(
    quotes: Quotes,
    caches: tuple[Cache, Cache],
    gone: NDArray[np.intp],
    *,
    loop: Loop,
    size: Size,
    seed: int,
    runs: int,
) -> Point:
    """Return one forget set under every operator. The second cache is that of a reference early in the search."""
    cache, early = caches
    reference = cache.theta_ref
    kept = np.setdiff1d(np.arange(len(quotes)), gone, assume_unique=True)
    retained, ids = quotes[kept], quotes.ids[gone].tolist()
    shards = shard(quotes, f"day:{SHARD_DAYS[size]}")
    touched, again = shards.touched(ids)
    left = quotes[again]
    model = Heston()
    footprints = footprints_of(quotes, model, reference)
    blocks = FootprintBlocks.of(footprints)
    total, states = footprints.total(), shard_states(footprints, shards)
    rows, grid = footprints.places(ids), footprints.schema.grid
    times = {
        "paper retrain": loop.a_quote.scaled(len(retained)),
        "paper recompute": loop.a_quote.scaled(len(left)),
        "paper fast": timed(lambda: paper_fast(cache, gone).theta, runs=runs),
        "NumPy pass": timed(lambda: numpy_restep(retained, reference), runs=runs),
        "retrain": timed(lambda: restep(_fresh(retained), model, footprints.schema).change, runs=runs),
        "recompute": timed(lambda: recompute(states, touched, _fresh(left), model=model).step.change, runs=runs),
        "fast": timed(lambda: exact.downdate(total.words, footprints.rows, rows, grid), runs=runs),
        "fast, by ids": timed(lambda: downdate(blocks, ids).change, runs=runs),
        "recalibration": timed(lambda: calibrate(_fresh(retained), model), runs=runs),
    }
    steps = (
        restep(retained, model, footprints.schema),
        recompute(states, touched, left, model=model).step,
        downdate(blocks, ids),
    )
    answers = {
        "paper retrain": paper_method.retrained(cache, kept),
        "paper fast": paper_fast(cache, gone).theta,
        "retrain": np.array(list(steps[0].parameters.values())),
        "fast": np.array(list(steps[2].parameters.values())),
        "recalibration": np.array(list(calibrate(retained, model).parameters.values())),
    }
    return Point(
        seed=seed,
        fraction=len(gone) / len(quotes),
        forgotten=len(gone),
        retained=len(kept),
        sampled=loop.sampled,
        touched=len(touched),
        shards=len(shards),
        times=times,
        rmse={name: _rmse(retained, theta) for name, theta in answers.items()},
        deviation={
            "paper": _apart(answers["paper fast"], answers["paper retrain"]),
            "paper, early": _apart(paper_fast(early, gone).theta, paper_method.retrained(early, kept)),
            "ours": _apart(answers["fast"], answers["retrain"]),
        },
        is_equal=len({step.equations.digest() for step in steps}) == 1
        and len({step.change.tobytes() for step in steps}) == 1,
    )


def _fresh(quotes: Quotes) -> Quotes:
    """Return the quotes as new objects: what an earlier run sorted must not make the next one cheaper."""
    return Quotes(ids=quotes.ids, contracts=quotes.contracts[:], observed=quotes.observed)


def _rmse(quotes: Quotes, theta: Floats) -> float:
    return float(np.sqrt(np.mean((quotes.observed - Heston().price(theta, quotes.contracts)) ** 2)))


def _apart(a: Floats, b: Floats) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))
