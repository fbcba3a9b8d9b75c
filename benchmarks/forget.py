"""Forgetting: 27 of 2,700 quotes with the step, the same from larger and larger books, the optimum without data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import books
from benchmarks.rows import Result, Row
from benchmarks.timing import Work, interleave, same
from strikeout.forgetting.downdate import downdate
from strikeout.kernels import exact
from strikeout.kernels.compiled import native
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints

Floats = NDArray[np.float64]

FORGOTTEN = 27


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """The exact downdate against subtraction in NumPy and in a Python loop; flat in the size of the book."""
    quotes = books.paper()
    footprints = so.calibrate(quotes, so.Heston()).footprints
    rows = _against(footprints, rounds=5 if is_quick else 41)
    sizes = [1_000, 10_000] if is_quick else [1_000, 10_000, 100_000, 1_000_000]
    rows += _flat(sizes, rounds=5 if is_quick else 21)
    return Result("forget", is_quick, tuple(rows), {})


def _against(footprints: Footprints, *, rounds: int) -> list[Row]:
    rng = np.random.default_rng(7)
    ids = rng.choice(footprints.ids, FORGOTTEN, replace=False).tolist()
    places = footprints.places(ids)
    state = footprints.total()
    table = footprints.rows * np.exp2(-footprints.schema.grid.astype(float))
    H, G = table[:, :-1].T @ table[:, :-1], table[:, :-1].T @ table[:, -1]
    timed = interleave(
        {
            "strikeout": same(_downdate(footprints, state.words, places)),
            "strikeout, as a value": same(lambda: state.less(footprints, places).step()),
            "strikeout, by ids": same(lambda: downdate(footprints, state, ids).change),
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
    """The time does not depend on how many quotes stay; the ratios are over the smallest book's time."""
    work = {}
    for count in sizes:
        quotes = so.random_quotes(count, maturities=10)
        footprints = footprints_of(quotes, so.Heston(), books.TRUTH)
        state, places = footprints.total(), np.sort(np.random.default_rng(3).choice(count, FORGOTTEN, replace=False))
        work[f"of {count:,} quotes"] = same(_downdate(footprints, state.words, places))
    timed = interleave(work, rounds=rounds)
    return [Row(f"{FORGOTTEN} quotes, flat in the book", n, t.seconds, t.ratio) for n, t in timed.items()]


def _downdate(footprints: Footprints, words: NDArray[np.uint64], places: NDArray[np.int64]) -> Work:
    """The kernel's own call: what comes back is bytes, and nobody has looked at them yet, as with NumPy's arrays."""
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
