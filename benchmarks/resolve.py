"""The optimum of what is left, without data: from moments after forgetting, flat in the number of quotes."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

import strikeout as so
from benchmarks import books
from benchmarks.peers import scipy_peer
from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same

FORGOTTEN = 27
PIECE = 1_000_000  # quotes taken at a time in books larger than that


def run(*, is_quick: bool, is_full: bool) -> Result:
    """Resolving after 27 of 2,700 quotes are struck out, against refitting them; then from larger and larger books."""
    rows, facts = _against(rounds=5 if is_quick else 21)
    sizes = [2_700, 20_000] if is_quick else [2_700, 100_000, 1_000_000, *([10_000_000] if is_full else [])]
    flat, built = _flat(sizes, rounds=5 if is_quick else 11)
    return Result("resolve", is_quick, tuple(rows + flat), facts | built)


def _against(*, rounds: int) -> tuple[list[Row], dict[str, float | str]]:
    quotes, model = books.paper(), so.Heston()
    gone = quotes[np.random.default_rng(7).choice(len(quotes), FORGOTTEN, replace=False)]
    retained = quotes.without(gone.ids)
    whole, taken = so.states.moments_of(quotes), so.states.moments_of(gone)
    left = whole - taken
    contracts, observed = retained.contracts, retained.observed
    method = scipy_peer.faster_that_converges(contracts, observed, books.START)
    scipy = same(lambda: scipy_peer.calibrate(contracts, observed, books.START, method=method))
    one = f"without {FORGOTTEN} of {len(quotes):,} quotes, 1 start"
    four, all_of_it = "the same, all canonical starts", f"the same, the {FORGOTTEN} taken and subtracted first"
    timed = {
        one: interleave(
            {"strikeout": same(lambda: so.calibrate(left, model, starts=1)), "SciPy": scipy}, rounds=rounds
        ),
        four: interleave(
            {
                "strikeout": same(lambda: so.calibrate(left, model)),
                "strikeout, from quotes": lambda: partial(so.calibrate, books.fresh(retained), model),
                "SciPy, 1 start": scipy,
            },
            rounds=rounds,
        ),
        all_of_it: interleave(
            {
                "strikeout": lambda: partial(_forgotten, whole, books.fresh(gone), model),
                "SciPy, 1 start": scipy,
            },
            rounds=rounds,
        ),
    }
    resolved, raw = so.calibrate(left, model), so.calibrate(retained, model)
    apart = max(abs(resolved.parameters[name] / value - 1.0) for name, value in raw.parameters.items())
    notes = {
        (one, "strikeout"): "no quote in memory",
        (one, "SciPy"): f"{method} over NumPy, cold from the paper's start, tables included",
        (four, "strikeout"): f"no quote in memory; {apart:.0e} relative from calibrating the retained quotes",
        (four, "strikeout, from quotes"): "all retained quotes sorted and priced",
        (four, "SciPy, 1 start"): "from the paper's start alone",
        (all_of_it, "strikeout"): f"moments of {FORGOTTEN} quotes, subtraction, four starts",
        (all_of_it, "SciPy, 1 start"): "the retained quotes at hand; from the paper's start alone",
    }
    rows = [
        Row(task, name, timing.seconds, timing.ratio, 5.0 if "SciPy" in name else None, note=notes[task, name])
        for task, timings in timed.items()
        for name, timing in timings.items()
    ]
    facts: dict[str, float | str] = {
        "interpolation error in standard errors": so.states.interpolation_error(resolved, retained),
        "numbers in place of the quotes": float(left.numbers),
    }
    return rows, facts


def _forgotten(whole: so.states.Moments, gone: so.Quotes, model: so.Heston) -> so.results.Calibration:
    """All that a user waits for who keeps the moments of a book and gets the quotes to strike out."""
    return so.calibrate(whole - so.states.moments_of(gone), model)


def _flat(sizes: list[int], *, rounds: int) -> tuple[list[Row], dict[str, float | str]]:
    """The same three maturities, more and more quotes; the ratios are over the smallest book's time."""
    model, work, facts = so.Heston(), {}, {}
    for count in sizes:
        begin = time.perf_counter()
        moments = _moments(count)
        facts[f"microseconds a quote, taking the moments of {count:,}"] = (time.perf_counter() - begin) / count * 1e6
        work[f"of {count:,} quotes"] = same(lambda moments=moments: so.calibrate(moments, model))
    timed = interleave(work, rounds=rounds)
    return [Row("resolving, flat in the book", n, t.seconds, t.ratio) for n, t in timed.items()], facts


def _moments(count: int) -> so.states.Moments:
    """Of ``count`` quotes on three maturities, in chunks: the same contracts, seen again and again with new noise."""
    piece = so.synthetic.random_quotes(min(count, PIECE), maturities=3, seed=4)
    total = so.states.moments_of(piece)
    for seed in range(1, count // len(piece)):
        noise = 5e-4 * np.random.default_rng(seed).standard_normal(len(piece))
        total = total + so.states.moments_of(piece.with_observed(piece.observed + noise))
    return total
