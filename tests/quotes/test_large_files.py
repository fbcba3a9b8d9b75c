"""A file too large to hold as text is read in a memory that follows from its rows, not from its bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROWS = 1_000_000
HEADER = "underlying,quote_date,expiry,strike,right,bid,ask,forward,discount,source,comment\n"
# Peak memory of a process, in kilobytes: before the file is opened, when it is checked, and when it is quotes.
MEASURE = """
import resource, sys
from strikeout.quotes.reading import inspect_quotes
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = peak()
reading = inspect_quotes(sys.argv[1])
checked = peak()
print(len(reading.quotes), checked - begun, peak() - begun)
"""


def written(path: Path, comment: str) -> Path:
    """A million quotes of fifty days, twenty expiries and 500 strikes, every price within its bounds."""
    with path.open("w") as file:
        file.write(HEADER)
        for day in range(50):
            for month in range(20):
                begin = f"SPX,2024-{1 + day // 25:02}-{1 + day % 25:02},2025-{1 + month % 12:02}-{10 + month // 12:02}"
                for step in range(500):
                    strike = 1000 + 5 * step
                    call = 0.99 * max(2000.5 - strike, 0) + 40 + month
                    put = 0.99 * max(strike - 2000.5, 0) + 40 + month
                    for right, price in (("C", call), ("P", put)):
                        file.write(
                            f"{begin},{strike},{right},{price:.2f},{price + 1:.2f},2000.5,0.99,vendor,{comment}\n"
                        )
    return path


@pytest.mark.slow
def test_a_million_rows_take_little_memory_however_long_their_text_is(tmp_path: Path) -> None:
    found = {}
    for name, comment in (("short", "-"), ("long", "x" * 400)):
        path = written(tmp_path / f"{name}.csv", comment)
        run = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
        count, opened, whole = map(int, run.stdout.split())
        found[name] = (count, opened / 1024, whole / 1024, path.stat().st_size / (1 << 20))
        path.unlink()
    assert found["short"][0] == found["long"][0] == ROWS
    # Measured: 350 MB as a table, 1 GB as a book with everything on the way to it, of a file of 65 MB.
    assert found["short"][1] < 600
    assert found["short"][2] < 1500
    # A label of 400 letters is kept and counts once; the 450 MB of text as a whole would count on top of that.
    assert found["long"][1] < found["short"][1] + 1.6 * 400
