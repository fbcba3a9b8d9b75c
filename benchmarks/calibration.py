"""A whole calibration of the paper's large set, cold from the paper's start, and from all canonical starts."""

from __future__ import annotations

import time
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from benchmarks import books
from benchmarks.peers import jax_peer, quantlib_peer, scipy_peer
from benchmarks.rows import Result, Row
from benchmarks.timing import Candidate, interleave, same

Floats = NDArray[np.float64]


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Ours against SciPy over the NumPy peer, QuantLib and, where installed, JAX with optimistix."""
    quotes = books.paper()
    contracts, observed = quotes.contracts, quotes.observed
    method = scipy_peer.faster_that_converges(contracts, observed, books.START)
    model = so.Heston()
    start = model.parameters.named(books.START)
    candidates: dict[str, Candidate] = {
        "strikeout": lambda: partial(so.calibrate, books.fresh(quotes), model, starts=start),
        "SciPy": same(lambda: scipy_peer.calibrate(contracts, observed, books.START, method=method)),
    }
    if jax_peer.is_installed():
        solve = jax_peer.compile_calibrate(contracts, observed)
        candidates["JAX, optimistix"] = same(lambda: solve(books.START))
    rounds = 5 if is_quick else 31
    timed = interleave(candidates, rounds=rounds)
    all_starts = interleave(
        {"strikeout": lambda: partial(so.calibrate, books.fresh(quotes), model), "SciPy": candidates["SciPy"]},
        rounds=rounds,
    )
    cold = so.calibrate(quotes, model, starts=start)
    best = so.calibrate(quotes, model)
    fit = scipy_peer.calibrate(contracts, observed, books.START, method=method)
    task, wide = "from the paper's start", "from the canonical starts"
    starts = len(model.parameters.starts)
    rows = [
        Row(task, "strikeout", timed["strikeout"].seconds, 1.0, note=str(cold.termination)),
        Row(
            task,
            f"SciPy {method} over NumPy",
            timed["SciPy"].seconds,
            timed["SciPy"].ratio,
            8.0,
            note=f"tables included, {fit.evaluations} evaluations, {_apart(fit.theta, cold)}",
        ),
        _jax(task, timed["JAX, optimistix"].seconds, timed["JAX, optimistix"].ratio, solve(books.START), cold)
        if jax_peer.is_installed()
        else Row(task, "JAX, optimistix", note="not installed: skipped"),
        _quantlib(task, quotes, timed["strikeout"].seconds, cold, is_quick=is_quick),
        Row(wide, f"strikeout, {starts} starts", all_starts["strikeout"].seconds, 1.0, note=str(best.termination)),
        Row(
            wide,
            f"SciPy {method}, 1 start",
            all_starts["SciPy"].seconds,
            all_starts["SciPy"].ratio,
            3.0,
            note="from the paper's start alone",
        ),
    ]
    return Result("calibrate", is_quick, tuple(rows), {"rmse": cold.rmse, "rmse from the canonical starts": best.rmse})


def _apart(theta: Floats, cold: so.results.Calibration) -> str:
    """How far a peer's answer is from ours, in the largest of the five standard errors' units."""
    names = so.Heston().parameters.names
    errors = [abs(theta[j] - cold.parameters[name]) / cold.standard_errors[name] for j, name in enumerate(names)]
    return f"{max(errors):.0e} SE from ours"


def _jax(task: str, seconds: float, ratio: float, theta: Floats, cold: so.results.Calibration) -> Row:
    return Row(task, "JAX, optimistix", seconds, ratio, note=f"compiled beforehand, {_apart(theta, cold)}")


def _quantlib(task: str, quotes: so.Quotes, our_seconds: float, cold: so.results.Calibration, *, is_quick: bool) -> Row:
    """Timed once: it takes seconds, and its noise is small beside the ratio."""
    if find_spec("QuantLib") is None:
        return Row(task, "QuantLib", note="not installed: skipped")
    rows = np.arange(0, len(quotes), 49 if is_quick else 1)  # 49 meets every strike and maturity of the fifteen a day
    begin = time.perf_counter()
    helpers = quantlib_peer.prepare(quotes.contracts[rows], quotes.observed[rows])
    theta = quantlib_peer.calibrate(helpers, books.START)
    seconds = (time.perf_counter() - begin) * len(quotes) / len(rows)
    note = f"{helpers.count:,} quotes with an implied vol, {_apart(theta, cold)}"
    return Row(task, "QuantLib", seconds, seconds / our_seconds, note=f"{note}; scaled" if is_quick else note)
