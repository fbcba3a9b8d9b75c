"""The search of a book's files for erased quotes: 29,000 out of a book of 327,000, and 160 out of the same."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import strikeout as so
from benchmarks.rows import Result, Row

HELD, ERASED, FEW = 327_000, 29_000, 160
MOST = 20.0  # seconds of the processor for a search


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Erase quotes of a book and search its files; the search alone, and the erasure with it."""
    held, erased = (HELD // 20, ERASED // 20) if is_quick else (HELD, ERASED)
    quotes = _ticks(held)
    rows: list[Row] = []
    facts: dict[str, float | str] = {"quotes held": float(held)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ticks.book"
        with so.Book.create(path) as book:
            book.import_quotes(quotes)
            facts["bytes of the book"] = float(path.stat().st_size)
            for count, start in ((erased, 0), (FEW, erased)):
                gone = quotes.ids[start : start + count]
                begun = time.process_time()  # all threads counted: a busy machine does not change it
                done = book.erase(ids=gone, reason="licence")
                whole = time.process_time() - begun
                begun = time.process_time()
                again = book.residue()
                taken = time.process_time() - begun
                task = f"search for {count:,} erased quotes of {held:,}"
                note = f"{len(again.traces)} traces; the erasure with its search {whole:.1f} s"
                rows.append(Row(task, "strikeout", taken, 1.0, note=note))
                if not is_quick:
                    rows.append(Row.allowed(task, most=MOST, taken=taken))
                facts[f"traces after erasing {count:,}"] = float(done.residue + len(again.traces))
    return Result("residue", is_quick, tuple(rows), facts)


def _ticks(count: int) -> so.Quotes:
    """Quotes of a panel with prices on ticks of 0.05, as markets have: bytes of neighbours that are often equal."""
    rng = np.random.default_rng(17)
    days, expiry = np.arange(count) // 2_000, rng.choice([0.1, 0.25, 0.5, 1.0], count)
    strike = 50.0 + 1.0 * rng.integers(0, 101, count)
    contracts = so.Contracts(forward=100.0, strike=strike, expiry=expiry, discount=0.98, is_call=strike >= 100.0)
    price = np.maximum(np.round(20.0 * so.BlackScholes().price([0.2], contracts)) / 20.0, 0.05)
    first = np.datetime64("2024-01-01")
    labels = {"date": np.array([str(first + int(day)) for day in days], object)}
    return so.Quotes(ids=[f"tick-{n:06d}" for n in range(count)], contracts=contracts, observed=price, labels=labels)
