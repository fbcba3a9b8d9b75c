"""A file of quotes from text to book: seconds of the processor and peak memory, by rows.

The rows are made up: days of 20 expiries, 500 strikes, calls and puts at bid and ask with forwards, 80 bytes per row. A
million of them, ten million with ``--full``. Each size is read in a process of its own, so that its peak is its own:
once as one book in memory, and once as `strikeout import` does it, in chunks into a book on disk. The second must not
grow with the file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.rows import Result, Row
from strikeout.kernels import black

QUICK, USUAL, FULL = 40_000, 1_000_000, 10_000_000
DAY = 20_000  # rows of a day
MEGABYTE = 1 << 20
MEASURE = """
import resource, sys, time
from strikeout.quotes.reading import inspect_quotes

def used():
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

begun, empty = used()
reading = inspect_quotes(sys.argv[1])
checked, on_the_way = used()
count = len(reading.quotes)
ended, as_book = used()
print(count, checked - begun, on_the_way - empty, ended - checked, as_book - empty)
"""
IMPORT = """
import resource, sys, time
from pathlib import Path
from strikeout.book import Book
from strikeout.quotes.reading import Chunking, inspect_quotes

def used():
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

begun, empty = used()
file = Path(sys.argv[1])
with Book.create(file.with_suffix(".book")) as book, inspect_quotes(
    file, chunking=Chunking(folder=file.parent)
) as reading:
    checked, on_the_way = used()
    done = book.import_chunks(reading.chunks())
ended, at_most = used()
print(done.imported, checked - begun, on_the_way - empty, ended - checked, at_most - empty)
"""


def run(*, is_quick: bool, is_full: bool) -> Result:
    """A file of ``count`` rows, opened as a table and read as a book."""
    rows, facts = [], {}
    for count in (QUICK,) if is_quick else (USUAL, FULL) if is_full else (USUAL,):
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder) / "quotes.csv", count)
            size = path.stat().st_size
            opening, as_table, reading, as_book = _measured(MEASURE, path, count)
            checking, surveyed, writing, imported = _measured(IMPORT, path, count)
        task = f"{count:,} rows, {size / MEGABYTE:,.0f} MB"
        rows += [
            Row(task, "strikeout, in memory, checked", opening, note=f"peak {as_table / MEGABYTE:,.0f} MB"),
            Row(task, "strikeout, in memory, to quotes", reading, note=f"peak {as_book / MEGABYTE:,.0f} MB"),
            Row(task, "strikeout, in chunks, checked", checking, note=f"peak {surveyed / MEGABYTE:,.0f} MB"),
            Row(
                task,
                "strikeout, in chunks, imported",
                writing,
                note=f"peak {imported / MEGABYTE:,.0f} MB, {count / (checking + writing):,.0f} rows a second with both",
            ),
        ]
        facts[f"{count:,} rows: bytes per row at the peak"] = as_book / count
        facts[f"{count:,} rows: megabytes at the peak of an import"] = imported / MEGABYTE
    return Result("reading", is_quick, tuple(rows), facts)


def _measured(program: str, path: Path, count: int) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    read, *found = map(float, done.stdout.split())
    assert read == count, "every row of this file is a quote"
    return found


def written(path: Path, count: int) -> Path:
    """A file of ``count`` quotes within their bounds, a day after another."""
    strike = np.tile(np.repeat(1000.0 + 5 * np.arange(500), 2), 20)
    is_call = np.tile([True, False], DAY // 2)
    month = np.repeat(np.arange(1, 21), DAY // 20)
    years = month * 30 / 365
    with path.open("wb") as file:
        file.write(b"underlying,quote_date,expiry,strike,right,bid,ask,forward,discount,source\n")
        for number in range(count // DAY):
            day, forward = np.datetime64("2000-01-03") + number, 2000.5 + number % 50
            volatility = 0.2 - 0.1 * np.log(strike / forward)
            price = black.price(np.full(DAY, forward), strike, years, volatility, np.exp(-0.02 * years), is_call)
            pl.DataFrame({
                "underlying": ["SPX"] * DAY, "quote_date": [str(day)] * DAY, "expiry": (day + 30 * month).astype(str),
                "strike": strike, "right": np.where(is_call, "C", "P"), "bid": (price * 0.99).round(2),
                "ask": (price * 1.01 + 0.05).round(2), "forward": np.full(DAY, forward),
                "discount": np.exp(-0.02 * years), "source": ["vendor"] * DAY,
            }).write_csv(file, include_header=False)  # fmt: skip
    return path
