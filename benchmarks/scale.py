"""Large books: a million quotes on 250 maturities, 100,000 with all maturities distinct, time and memory a quote."""

from __future__ import annotations

import strikeout as so
from benchmarks import accuracy, books, memory, ours
from benchmarks.peers import numpy_peer
from benchmarks.rows import Result, Row
from benchmarks.timing import Timing, interleave, same

MOST_BYTES = 200
LONGEST_CUT = 2.0  # seconds
LONGEST_MAKING = 20.0


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Ours against the NumPy peer, one Gauss-Newton pass each; linearity in the number of quotes; bytes per quote."""
    if is_quick:  # other books, so no promise applies
        rows = [*_against(10_000, 25, None, 3), *_against(1_000, 1_000, None, 3), *_linear([100, 1_000, 10_000], 5, 3)]
        return Result("scale", is_quick, tuple(rows), _memory(20_000))
    rows = [
        *_against(1_000_000, 250, 15.0, 7),
        *_against(100_000, 100_000, 20.0, 5),
        *_linear([10_000, 100_000, 1_000_000], 25, 7),
        *_handled(1_000_000),
    ]
    return Result("scale", is_quick, tuple(rows), _memory(1_000_000))


def _against(count: int, maturities: int, required: float | None, rounds: int) -> list[Row]:
    task = f"{count:,} quotes, {'all maturities distinct' if count == maturities else f'{maturities} maturities'}"
    contracts, observed = books.in_order(so.synthetic.random_quotes(count, maturities=maturities))
    tabulated = numpy_peer.prepare(contracts, observed)
    timed = interleave(
        {
            "strikeout": same(ours.one_pass(contracts, observed, books.TRUTH)),
            "NumPy": same(lambda: numpy_peer.accumulate(books.TRUTH, tabulated)),
            "NumPy, tables in the pass": same(
                lambda: numpy_peer.accumulate(books.TRUTH, numpy_peer.prepare(contracts, observed))
            ),
        },
        rounds=rounds,
    )
    our_error = accuracy.book_error(ours.price, books.TRUTH, contracts)
    peer_error = accuracy.book_error(
        lambda theta, some: numpy_peer.price(theta, numpy_peer.prepare(some)), books.TRUTH, contracts
    )
    return [
        Row(task, "strikeout", timed["strikeout"].seconds, 1.0, error=our_error),
        Row(
            task,
            "NumPy",
            timed["NumPy"].seconds,
            timed["NumPy"].ratio,
            required,
            peer_error,
            "tables of 768 bytes per quote kept, and not counted",
        ),
        _uncounted(task, timed["NumPy, tables in the pass"]),
    ]


def _uncounted(task: str, timed: Timing) -> Row:
    """What a pass costs who has not 768 bytes per quote to spare, or passes once."""
    return Row(task, "NumPy, tables in the pass", timed.seconds, timed.ratio)


def _linear(counts: list[int], maturities: int, rounds: int) -> list[Row]:
    """The same maturities, more and more quotes; the ratios are over the smallest book's time."""
    work = {}
    for count in counts:
        contracts, observed = books.in_order(so.synthetic.random_quotes(count, maturities=maturities))
        work[f"{count:,} quotes"] = same(ours.one_pass(contracts, observed, books.TRUTH))
    timed = interleave(work, rounds=rounds)
    return [
        Row(
            f"linear in the quotes, {maturities} maturities",
            name,
            timed[name].seconds,
            timed[name].ratio,
            note=f"{timed[name].seconds / count * 1e9:.1f} ns a quote",
        )
        for name, count in zip(work, counts, strict=True)
    ]


def _handled(count: int) -> list[Row]:
    """What is done to a book before it is priced: making a synthetic one, and cutting quotes out by their ids."""
    quotes = so.synthetic.random_quotes(count, maturities=250)
    struck = quotes.ids[::37]
    gone = set(struck.tolist())
    timed = interleave(
        {
            "without": same(lambda: quotes.without(struck)),
            "a loop": same(lambda: quotes[[i for i, name in enumerate(quotes.ids.tolist()) if name not in gone]]),
            "random_quotes": same(lambda: so.synthetic.random_quotes(count, maturities=250)),
        },
        rounds=3,
    )
    cut, made = f"{len(struck):,} ids cut out of {count:,} quotes", f"{count:,} synthetic quotes"
    taken = {name: timing.seconds for name, timing in timed.items()}
    return [
        Row(cut, "strikeout", taken["without"], 1.0),
        Row(cut, "a loop", taken["a loop"], timed["a loop"].ratio, note="over the rows in Python, names in a set"),
        Row.allowed(cut, most=LONGEST_CUT, taken=taken["without"]),
        Row(made, "strikeout", taken["random_quotes"], 1.0),
        Row.allowed(made, most=LONGEST_MAKING, taken=taken["random_quotes"]),
    ]


def _memory(count: int) -> dict[str, float | str]:
    """Bytes per quote of a whole calibration, sorting included, beyond the quotes themselves."""
    quotes = so.synthetic.random_quotes(count, maturities=25)
    # A fresh copy for each call: what one calibration sorted and kept would not be counted in the next.
    copies = [books.fresh(quotes) for _ in range(memory.CALLS)]
    share = memory.peak_bytes(lambda: so.calibrate(copies.pop(), so.Heston())) / count
    verdict = "met" if share <= MOST_BYTES else "missed"
    return {f"bytes per quote, calibrating {count:,} (at most {MOST_BYTES}: {verdict})": share}
