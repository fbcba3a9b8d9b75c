"""One Gauss-Newton pass over the paper's 2,700 quotes: prices, sensitivities, normal equations."""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import accuracy, books, ours
from benchmarks.peers import jax_peer, numpy_peer, paper_peer, quantlib_peer
from benchmarks.rows import Result, Row
from benchmarks.timing import Candidate, Timing, interleave, same
from strikeout.paper import heston as paper_scheme

Floats = NDArray[np.float64]

LOOPED = 20  # quotes of the paper's loop that are timed, unless --full


def run(*, is_quick: bool, is_full: bool) -> Result:
    """Ours against the NumPy peer, the paper's loop, QuantLib and, where installed, JAX."""
    contracts, observed = books.in_order(books.paper())
    theta = books.TRUTH
    rounds = 5 if is_quick else 41
    tabulated = numpy_peer.prepare(contracts, observed)
    candidates: dict[str, Candidate] = {
        "strikeout": same(ours.one_pass(contracts, observed, theta)),
        "NumPy": same(lambda: numpy_peer.accumulate(theta, tabulated)),
        "NumPy, prices alone": same(lambda: numpy_peer.price(theta, tabulated)),
        "NumPy, its tables": same(lambda: numpy_peer.prepare(contracts, observed)),
    }
    if jax_peer.is_installed():
        compiled = jax_peer.compile_pass(contracts, observed)
        candidates["JAX"] = same(lambda: compiled(theta))
    timed = interleave(candidates, rounds=rounds)
    task = f"one pass, {len(contracts):,} quotes"
    peer_error = accuracy.book_error(_numpy_price, theta, contracts)
    our_error = accuracy.book_error(ours.price, theta, contracts)
    rows = [
        _row(task, "strikeout", timed, error=our_error, note=so.Heston().name),
        _row(task, "NumPy", timed, required=8.0, error=peer_error, note="48 nodes, tables made beforehand"),
        _row(task, "NumPy, prices alone", timed, error=peer_error),
        _row(task, "NumPy, its tables", timed, note="once a book; strikeout needs none"),
        _row(task, "JAX", timed) if "JAX" in timed else Row(task, "JAX", note="not installed: skipped"),
        _loop(task, contracts, observed, timed["strikeout"].seconds, count=len(contracts) if is_full else LOOPED),
        _quantlib(task, contracts, observed, timed["strikeout"].seconds, every=49 if is_quick else 1),
        *_twin(contracts, observed, tabulated, rounds=5 if is_quick else 21, error=peer_error),
    ]
    return Result("pass", is_quick, tuple(rows), _corners())


def _row(
    task: str,
    name: str,
    timed: dict[str, Timing],
    *,
    required: float | None = None,
    error: float | None = None,
    note: str = "",
) -> Row:
    return Row(task, name, timed[name].seconds, timed[name].ratio, required, error, note)


def _loop(task: str, contracts: so.Contracts, observed: Floats, our_seconds: float, *, count: int) -> Row:
    """The paper's loop is timed once over some of the quotes and scaled: all of it is 18 s of repetition."""
    picked = np.linspace(0, len(contracts) - 1, count).astype(int)
    some, seen = contracts[picked], observed[picked]
    begin = time.perf_counter()
    paper_peer.accumulate(books.TRUTH, some, seen)
    seconds = (time.perf_counter() - begin) * len(contracts) / count
    note = "in full" if count == len(contracts) else f"{count} quotes timed, scaled to {len(contracts):,}"
    error = accuracy.book_error(_paper_price, books.TRUTH, contracts)
    return Row(task, "the paper's loop", seconds, seconds / our_seconds, 100_000.0, error, note)


def _quantlib(task: str, contracts: so.Contracts, observed: Floats, our_seconds: float, *, every: int) -> Row:
    if find_spec("QuantLib") is None:
        return Row(task, "QuantLib, prices alone", note="not installed: skipped")
    helpers = quantlib_peer.prepare(contracts[::every], observed[::every])
    begin = time.perf_counter()
    quantlib_peer.price(books.TRUTH, helpers)
    seconds = (time.perf_counter() - begin) * len(contracts) / helpers.count
    return Row(task, "QuantLib, prices alone", seconds, seconds / our_seconds, note=f"{helpers.count:,} quotes, scaled")


def _twin(
    contracts: so.Contracts, observed: Floats, tabulated: numpy_peer.Book, *, rounds: int, error: float
) -> list[Row]:
    """Our own NumPy code against theirs: without a compiler we must still be no slower."""
    task = "the same without a compiler"
    timed = interleave(
        {
            "strikeout, NumPy twin": same(ours.one_pass(contracts, observed, books.TRUTH, kernel="numpy")),
            "NumPy": same(lambda: numpy_peer.accumulate(books.TRUTH, tabulated)),
        },
        rounds=rounds,
    )
    once = interleave(
        {
            "strikeout, once": same(lambda: ours.one_pass(contracts, observed, books.TRUTH, kernel="numpy")()),
            "NumPy, once": same(lambda: numpy_peer.accumulate(books.TRUTH, numpy_peer.prepare(contracts, observed))),
        },
        rounds=rounds,
    )
    rows = accuracy.sample(contracts)
    twin_error = accuracy.book_error(lambda theta, _: ours.twin_prices(theta, contracts, rows), books.TRUTH, contracts)
    return [
        _row(task, "strikeout, NumPy twin", timed, error=twin_error, note="polynomials of the strikes made beforehand"),
        _row(task, "NumPy", timed, required=1.0, error=error),
        _row(f"{task}, once", "strikeout, once", once, note="the twin, with all that is made beforehand"),
        _row(f"{task}, once", "NumPy, once", once, note="with its tables"),
    ]


def _corners() -> dict[str, float | str]:
    """The worst price errors where pricing is hard; speed without this line would be half the story."""
    found = {
        "strikeout": accuracy.corner_error(ours.price),
        "NumPy": accuracy.corner_error(_numpy_price),
        "the paper": accuracy.corner_error(_paper_price),
        "sensitivities of strikeout": accuracy.corner_error(ours.sensitivities, of="gradient"),
    }
    return {
        f"worst error / forward in the corners, {name}": "no reference file here" if error is None else error
        for name, error in found.items()
    }


def _numpy_price(theta: Floats, contracts: so.Contracts) -> Floats:
    return numpy_peer.price(theta, numpy_peer.prepare(contracts))


def _paper_price(theta: Floats, contracts: so.Contracts) -> Floats:
    return paper_scheme.price(
        theta,
        contracts.forward,
        contracts.strike,
        contracts.expiry,
        contracts.discount,
        contracts.is_call,
        u_max=paper_peer.U_MAX,
        nodes=paper_peer.NODES,
    )
