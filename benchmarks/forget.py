"""Forgetting: 27 and 675 of 2,700 quotes with the step, by the public call and inside it; flat in the book."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import books
from benchmarks.rows import Result, Row
from benchmarks.timing import Candidate, Work, interleave, same
from strikeout import paper
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import recompute, restep
from strikeout.kernels import exact
from strikeout.kernels.compiled import native
from strikeout.paper import cache as paper_method
from strikeout.paper.cache import fast
from strikeout.paper.experiments.complexity import numpy_restep
from strikeout.paper.experiments.tables import TABLE_2
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.shards import Shards, shard_states
from strikeout.statistics.system import FootprintBlocks

Floats = NDArray[np.float64]

FORGOTTEN = 27
SHARDS = 50
SMALL, LONG = 1_000, 100_000  # quotes: below, a call takes longer than they do; from there on, nothing beside them
LARGE = 675  # a quarter of the book, the most of the paper's Table 2
LONGEST = 25e-6  # seconds of the public call for 27 quotes


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """The exact downdate against subtraction in NumPy and in a Python loop; flat in the size of the book."""
    calibration = so.calibrate(books.paper(), so.Heston())
    rounds = 5 if is_quick else 41
    rows = _public(calibration, rounds=rounds) + _against(calibration.footprints.whole, rounds=rounds)
    rows += _papers(calibration, rounds=3 if is_quick else 11)
    rows += _papers_shards(calibration.quotes, rounds=1 if is_quick else 5)
    many = so.synthetic.random_quotes(20_000 if is_quick else 100_000, maturities=10)
    for quotes in (so.paper.quotes("small", seed=42), calibration.quotes, many):
        rows += _public_shards(so.calibrate(quotes, so.Heston(), starts=1), rounds=5 if is_quick else 21)
    rows += _sharded(calibration.quotes, rounds=5 if is_quick else 21)
    rows += _sharded(many, rounds=5)
    sizes = [1_000, 10_000] if is_quick else [1_000, 10_000, 100_000, 1_000_000]
    rows += _flat(sizes, rounds=5 if is_quick else 21) + _linear(max(sizes), rounds=5 if is_quick else 21)
    return Result("forget", is_quick, tuple(rows), {})


def _public(calibration: so.results.Calibration, *, rounds: int) -> list[Row]:
    """What a user calls: ids in, a frozen answer out, or a refusal. A certificate is made when it is asked for."""
    footprints, forget = calibration.footprints.whole, so.forget
    ids = np.random.default_rng(7).choice(footprints.ids, FORGOTTEN, replace=False).tolist()
    places = footprints.places(ids)
    table, H, G = _floating(footprints)
    asked = {"operator": "downdate"}
    timed = interleave(
        {
            "strikeout": same(lambda: forget(calibration, ids=ids, operator="downdate")),
            "NumPy": same(lambda: _numpy(table, H, G, places)),
            "strikeout, certificate": same(lambda: forget(calibration, ids=ids, **asked).certificate.to_bytes()),
        },
        rounds=rounds,
    )
    task = f"forget(calibration, ids={FORGOTTEN} of {len(footprints):,})"
    notes = {
        "strikeout": 'operator="downdate": exact, identified, in bounds',
        "NumPy": "floating-point subtraction and LAPACK at known rows",
        "strikeout, certificate": "with the certificate, in bytes",
    }
    required = {"NumPy": 1.0 / 3.0}
    rows = [Row(task, n, t.seconds, t.ratio, required.get(n), note=notes[n]) for n, t in timed.items()]
    return [*rows, Row.allowed(task, most=LONGEST, taken=timed["strikeout"].seconds)]


def _papers(calibration: so.results.Calibration, *, rounds: int) -> list[Row]:
    """The paper's Table 2: what it printed, and its operators as it describes them, on this machine."""
    quotes, footprints = calibration.quotes, calibration.footprints.whole
    reference = np.array(list(calibration.references[""].values()))
    cache = paper_method.cache_of(quotes, reference, size="large")
    state, rows = footprints.total(), []
    for count, share in ((FORGOTTEN, 0.01), (LARGE, 0.25)):
        gone = np.sort(np.random.default_rng(11).choice(len(quotes), count, replace=False))
        retained = quotes.without(quotes.ids[gone])
        timed = interleave(
            {
                "strikeout": same(_downdate(footprints, state.words, gone)),
                "the paper's refactor": same(lambda gone=gone: fast(cache, gone).theta),
                "strikeout, rebuilt": same(
                    lambda kept=retained: restep(books.fresh(kept), calibration.model, footprints.schema).change
                ),
                "NumPy, rebuilt": same(lambda kept=retained: numpy_restep(kept, reference)),
            },
            rounds=rounds,
        )
        task = f"{count} of {len(quotes):,} quotes, the paper's operators"
        notes = {
            "strikeout": "the kernel",
            "the paper's refactor": "one subtraction per quote in Python, one solve",
            "strikeout, rebuilt": "one step from the retained quotes",
            "NumPy, rebuilt": "the same, by a vectorised pass",
        }
        required = {"the paper's refactor": 5.0, "strikeout, rebuilt": 1.0, "NumPy, rebuilt": 5.0}
        rows += [Row(task, n, t.seconds, t.ratio, required.get(n), note=notes[n]) for n, t in timed.items()]
        printed = TABLE_2[share].fast
        note = "on the authors' machine: for orientation"
        rows.append(Row(task, "the paper, as printed", printed, printed / timed["strikeout"].seconds, 15.0, note=note))
    return rows


def _papers_shards(quotes: so.Quotes, *, rounds: int) -> list[Row]:
    """``paper.recompute`` against ``paper.retrain`` with the paper's pricer: in proportion to the touched quotes."""
    shards, rows = _cut(quotes), []
    cache = paper.Cache(quotes, model=paper.Heston(U_max=120, N_u=800), theta_ref=books.TRUTH, shards=shards)
    for touched in (SHARDS, SHARDS // 2, SHARDS // 10):
        gone = np.searchsorted(shards.codes, np.arange(touched))  # the first quote of each
        work = {
            "recompute": same(lambda gone=gone: paper.recompute(cache, gone).theta),
            "retrain": same(lambda gone=gone: paper.retrain(cache, gone).theta),
        }
        timed = interleave(work, rounds=rounds)
        task = f"{touched} of {SHARDS} shards touched, {len(quotes):,} quotes, the paper's pricer"
        least = 1 / 1.1 if touched == SHARDS else 0.5 * SHARDS / touched
        rows += [Row(task, name, t.seconds, t.ratio, least if name == "retrain" else None) for name, t in timed.items()]
    return rows


def _public_shards(calibration: so.results.Calibration, *, rounds: int) -> list[Row]:
    """``forget(operator="recompute", shards=)`` against ``restep``, the step from all retained quotes, as users call
    both."""
    quotes, shards, rows = calibration.quotes, _cut(calibration.quotes), []
    for touched in (SHARDS, SHARDS // 2, SHARDS // 10):
        asked = {"ids": quotes.ids[np.searchsorted(shards.codes, np.arange(touched))].tolist()}
        work = {
            "recompute": same(
                lambda asked=asked: so.forget(calibration, **asked, operator="recompute", shards=shards).parameters
            ),
            "restep": same(lambda asked=asked: so.forget(calibration, **asked, operator="restep").parameters),
        }
        timed = interleave(work, rounds=rounds)
        least = _least(touched, len(quotes))
        task = f"forget(calibration, operator=), {touched} of {SHARDS} shards touched, {len(quotes):,} quotes"
        rows += [Row(task, name, t.seconds, t.ratio, least if name == "restep" else None) for name, t in timed.items()]
    return rows


def _cut(quotes: so.Quotes) -> Shards:
    codes = np.arange(len(quotes)) * SHARDS // len(quotes)
    return Shards(quotes.ids, codes, tuple(f"{k:02d}" for k in range(SHARDS)))


def _sharded(quotes: so.Quotes, *, rounds: int) -> list[Row]:
    """Recompute against retrain: the same at full coverage, and below it what the touched quotes cost.

    A call costs about 0.1 ms however few quotes it has (15 microseconds of that are the contours of three maturities,
    which every shard touches), and a quote 60 nanoseconds: 100,000 quotes are proportional, 2,700 are not. Quotes are
    made new for every call, which is not measured: nothing that an earlier call sorted is there.
    """
    model = so.Heston()
    footprints = footprints_of(quotes, model, books.TRUTH)
    shards = _cut(quotes)
    codes = shards.codes
    states, rows = shard_states(footprints, shards), []
    for touched in (SHARDS, SHARDS // 2, SHARDS // 10):
        ids = quotes.ids[np.searchsorted(codes, np.arange(touched))]  # the first quote of each
        parts, left = shards.touched(ids)
        again, retained = quotes[left], quotes.without(ids)
        timed = interleave(
            {
                "recompute": _anew(again, lambda q, p=parts: recompute(states, p, q, model=model).step.change),
                "retrain": _anew(retained, lambda q: restep(q, model, footprints.schema).change),
            },
            rounds=rounds,
        )
        task = f"{touched} of {SHARDS} shards touched, {len(quotes):,} quotes"
        least = _least(touched, len(quotes))
        rows += [Row(task, name, t.seconds, t.ratio, least if name == "retrain" else None) for name, t in timed.items()]
    return rows


def _least(touched: int, count: int) -> float:
    """At full coverage at most 1.1 times retrain, and so in a small set, in which the call is most of both.

    Otherwise less than retrain, and in a long pass at most twice the share of the touched quotes.
    """
    if touched == SHARDS or count < SMALL:
        return 1 / 1.1
    return 0.5 * SHARDS / touched if count >= LONG else 1.0


def _anew(quotes: so.Quotes, work: Callable[[so.Quotes], object]) -> Candidate:
    def candidate() -> Work:
        made = books.fresh(quotes)
        return lambda: work(made)

    return candidate


def _floating(footprints: Footprints) -> tuple[Floats, Floats, Floats]:
    table = footprints.rows * np.exp2(-footprints.schema.grid.astype(float))
    return table, table[:, :-1].T @ table[:, :-1], table[:, :-1].T @ table[:, -1]


def _against(footprints: Footprints, *, rounds: int) -> list[Row]:
    rng = np.random.default_rng(7)
    ids = rng.choice(footprints.ids, FORGOTTEN, replace=False).tolist()
    places = footprints.places(ids)
    state, blocks = footprints.total(), FootprintBlocks.of(footprints)
    table, H, G = _floating(footprints)
    timed = interleave(
        {
            "strikeout": same(_downdate(footprints, state.words, places)),
            "strikeout, as a value": same(lambda: state.less(footprints, places).step()),
            "strikeout, by ids": same(lambda: downdate(blocks, ids).change),
            "NumPy": same(lambda: _numpy(table, H, G, places)),
            "a loop": same(lambda: _loop(table, H, G, places)),
        },
        rounds=rounds,
    )
    task = f"{FORGOTTEN} of {len(footprints):,} quotes, with the step"
    exactly = state.less(footprints, places).step()
    apart = np.max(np.abs(_numpy(table, H, G, places) - exactly) / np.abs(exactly))
    notes = {
        "strikeout": "the kernel: exact integers, as if the book had never held them",
        "strikeout, as a value": "NormalEquations.less and step",
        "strikeout, by ids": "the operator downdate, ids looked up",
        "NumPy": f"floating-point subtraction and LAPACK; {apart:.0e} from exact here",
        "a loop": "quote by quote in Python, as the paper did",
    }
    required = {"NumPy": 5.0, "a loop": 50.0}
    return [Row(task, n, t.seconds, t.ratio, required.get(n), note=notes[n]) for n, t in timed.items()]


def _flat(sizes: list[int], *, rounds: int) -> list[Row]:
    """The time does not depend on how many quotes stay: the smallest book takes at least half of the largest's."""
    work = {}
    for count in reversed(sizes):
        quotes = so.synthetic.random_quotes(count, maturities=10)
        footprints = footprints_of(quotes, so.Heston(), books.TRUTH)
        state, places = footprints.total(), np.sort(np.random.default_rng(3).choice(count, FORGOTTEN, replace=False))
        work[f"of {count:,} quotes"] = same(_downdate(footprints, state.words, places))
    timed, smallest = interleave(work, rounds=rounds), f"of {min(sizes):,} quotes"
    required = {smallest: 0.5}
    task = f"{FORGOTTEN} quotes, flat in the book"
    return [Row(task, n, t.seconds, t.ratio, required.get(n)) for n, t in timed.items()]


def _linear(size: int, *, rounds: int) -> list[Row]:
    """The time grows no faster than the quotes that go: the fewest take a quarter of their share, at least."""
    footprints = footprints_of(so.synthetic.random_quotes(size, maturities=10), so.Heston(), books.TRUTH)
    state, most = footprints.total(), min(12_800, size // 2)
    counts = [count for count in (most, 1_600, 100) if count <= most]
    rng, work = np.random.default_rng(3), {}
    for count in counts:
        places = np.sort(rng.choice(size, count, replace=False))
        work[f"{count:,} forgotten"] = same(_downdate(footprints, state.words, places))
    timed = interleave(work, rounds=rounds)
    required = {f"{counts[-1]:,} forgotten": 0.25 * counts[-1] / most}
    return [
        Row(f"linear in the quotes removed, of {size:,}", n, t.seconds, t.ratio, required.get(n))
        for n, t in timed.items()
    ]


def _downdate(footprints: Footprints, words: NDArray[np.uint64], places: NDArray[np.int64]) -> Work:
    """The kernel's own call: it returns bytes that are not read yet, as with NumPy's arrays."""
    rows, grid, kernel = footprints.rows, footprints.schema.grid, native()
    if kernel is None:
        return lambda: exact.downdate(words, rows, places, grid)
    return lambda: kernel.exact_downdate(words, rows, places, grid)


def _numpy(table: Floats, H: Floats, G: Floats, places: NDArray[np.int64]) -> Floats:
    gone = table[places]
    J = gone[:, :-1]
    return np.asarray(np.linalg.solve(H - J.T @ J, G - J.T @ gone[:, -1]))


def _loop(table: Floats, H: Floats, G: Floats, places: NDArray[np.int64]) -> Floats:
    H, G = H.copy(), G.copy()
    for place in places:
        J, r = table[place, :-1], table[place, -1]
        H -= np.outer(J, J)
        G -= J * r
    return np.asarray(np.linalg.solve(H, G))
