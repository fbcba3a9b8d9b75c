"""Large books: a million quotes on 250 maturities, 100,000 with all maturities distinct, time and memory a quote."""

from __future__ import annotations

import strikeout as so
from benchmarks import accuracy, books, memory, ours
from benchmarks.peers import numpy_peer
from benchmarks.rows import Result, Row
from benchmarks.timing import interleave

MOST_BYTES = 200


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Ours against the NumPy peer, one Gauss-Newton pass each; linearity in the number of quotes; bytes a quote."""
    shrink = 100 if is_quick else 1
    rounds = 3 if is_quick else 7
    million, many = 1_000_000 // shrink, 250 if not is_quick else 25
    distinct = 100_000 // shrink
    rows = [
        *_against(so.random_quotes(million, maturities=many), f"{million:,} quotes, {many} maturities", 15.0, rounds),
        *_against(so.random_quotes(distinct, maturities=distinct), f"{distinct:,}, all distinct", 20.0, min(rounds, 3)),
    ]
    counts = [10_000 // shrink, 100_000 // shrink, million]
    rows += _linear(counts, 25 if not is_quick else 5, rounds)
    return Result("scale", is_quick, tuple(rows), _memory(100_000 if not is_quick else 20_000))


def _against(quotes: so.Quotes, task: str, required: float, rounds: int) -> list[Row]:
    contracts, observed = books.in_order(quotes)
    tabulated = numpy_peer.prepare(contracts, observed)
    timed = interleave(
        {
            "strikeout": ours.one_pass(contracts, observed, books.TRUTH),
            "NumPy": lambda: numpy_peer.accumulate(books.TRUTH, tabulated),
        },
        rounds=rounds,
    )
    our_error = accuracy.book_error(ours.price, books.TRUTH, contracts)
    peer_error = accuracy.book_error(
        lambda theta, some: numpy_peer.price(theta, numpy_peer.prepare(some)), books.TRUTH, contracts
    )
    return [
        Row(task, "strikeout", timed["strikeout"].seconds, 1.0, error=our_error),
        Row(task, "NumPy", timed["NumPy"].seconds, timed["NumPy"].ratio, required, peer_error, "tables not counted"),
    ]


def _linear(counts: list[int], maturities: int, rounds: int) -> list[Row]:
    """The same maturities, more and more quotes: `over ours` here is over the smallest book's time."""
    work = {}
    for count in counts:
        contracts, observed = books.in_order(so.random_quotes(count, maturities=maturities))
        work[f"{count:,} quotes"] = ours.one_pass(contracts, observed, books.TRUTH)
    timed = interleave(work, rounds=rounds)
    return [
        Row(f"linear in the quotes, {maturities} maturities", name, timed[name].seconds, timed[name].ratio,
            note=f"{timed[name].seconds / count * 1e9:.1f} ns a quote")
        for name, count in zip(work, counts, strict=True)
    ]


def _memory(count: int) -> dict[str, float | str]:
    """Bytes a quote of a whole calibration, sorting included, beyond the quotes themselves."""
    quotes = so.random_quotes(count, maturities=25)
    plain = so.Contracts(
        forward=quotes.contracts.forward, strike=quotes.contracts.strike, expiry=quotes.contracts.expiry,
        discount=quotes.contracts.discount, is_call=quotes.contracts.is_call,
    )

    def calibrate() -> object:
        return so.calibrate(so.Quotes(ids=quotes.ids, contracts=plain[:], observed=quotes.observed), so.Heston())

    peak, seen = memory.peak_bytes(calibrate)
    verdict = "met" if peak / count <= MOST_BYTES else "missed"
    return {f"bytes a quote, calibrating {count:,} ({seen}; at most {MOST_BYTES}: {verdict})": peak / count}
