"""A book in a file: import and calibrate a million quotes; forget 27 durably from a small and from a large book."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

import strikeout as so
from benchmarks import books
from benchmarks.rows import Result, Row
from benchmarks.timing import Candidate, Work, interleave, same

FORGOTTEN = 27
FARTHEST = 1.5  # times: the large book over the small one
TOLERANCE = 0.05  # standard errors
Road = Literal["auto", "quotes", "one step", "moments"]


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """The verbs people wait for, on disk and with every fsync; in the folder for temporary files (``TMPDIR``)."""
    large, small = (20_000, 10_000) if is_quick else (1_000_000, 10_000)
    with TemporaryDirectory(prefix="strikeout-") as name, ExitStack() as closing:
        folder = Path(name)
        quotes = {count: so.synthetic.random_quotes(count, maturities=25) for count in (large, small)}
        files = {n: closing.enter_context(so.Book.create(folder / f"{n}.book")) for n in quotes}
        rows = [row for n, book in files.items() for row in _first_day(book, books.fresh(quotes[n]))]
        drawn = {n: _drawn(quotes[n]) for n in quotes}
        few, many = 3, 3 if is_quick else 21
        rows += _apart("auto", {n: _verbs(book, drawn[n]) for n, book in files.items()}, rounds=many)
        facts: dict[str, float | str] = {f"source of {n:,}": _source(book) for n, book in files.items()}
        for source, rounds in (("quotes", few), ("moments", many)):
            rows += _calibrated(source, files)
            rows += _apart(source, {n: _verbs(book, drawn[n]) for n, book in files.items()}, rounds=rounds)
            if source == "quotes":  # the source whose footprints are kept
                stepping = {n: _verbs(book, drawn[n], tolerance=TOLERANCE) for n, book in files.items()}
                rows += _apart("one step", stepping, rounds=many)
        closing.close()  # until then a part of a book is in the log beside it
        facts |= {
            "seconds of one fsync here": interleave({"fsync": same(_fsync(folder))}, rounds=21)["fsync"].seconds,
            **{f"bytes per quote in the file, {n:,}": book.path.stat().st_size / n for n, book in files.items()},
        }
    return Result("book", is_quick, tuple(rows), facts)


def _first_day(book: so.Book, quotes: so.Quotes) -> list[Row]:
    """Timed once: a book is made once."""
    task, rows = f"a new book of {len(quotes):,} quotes", []
    for name, work in (("import", lambda: book.import_quotes(quotes)), ("calibrate", book.calibrate)):
        begin = time.perf_counter()
        work()
        taken = time.perf_counter() - begin
        rows.append(Row(task, f"strikeout, {name}", taken, note=f"{taken / len(quotes) * 1e6:.2f} us a quote"))
    return rows


def _apart(source: Road, work: dict[int, Candidate], *, rounds: int) -> list[Row]:
    """The large book first: its row is what ratios divide by, so a promise of "at most" becomes one of "at least"."""
    timed = interleave({f"{count:,}": candidate for count, candidate in work.items()}, rounds=rounds)
    flat = f"27 rows read, subtracted, solved; at most {FARTHEST} times apart is promised"
    note, required = {
        "auto": (f"as it comes; {flat}", 1 / FARTHEST),
        "quotes": ("what is left is calibrated again: the cost grows with the book", None),
        "one step": (f"27 footprints subtracted, certified to {TOLERANCE} standard errors", 1 / FARTHEST),
        "moments": (flat, 1 / FARTHEST),
    }[source]
    (large, first), (small, second) = timed.items()
    task = f"{FORGOTTEN} quotes planned and forgotten durably, through {source}"
    return [
        Row(task, f"strikeout, of {large}", first.seconds, first.ratio, note=note),
        Row(
            task,
            f"strikeout, of {small}",
            second.seconds,
            second.ratio,
            required,
            note=f"the large book takes {1 / second.ratio:.3g} times as long",
        ),
    ]


def _calibrated(source: Literal["quotes", "moments"], files: dict[int, so.Book]) -> list[Row]:
    """Calibrate from the named source; timed once."""
    rows = []
    for count, book in files.items():
        begin = time.perf_counter()
        book.calibrate(through=source)
        taken = time.perf_counter() - begin
        rows.append(Row(f"calibrate a book through {source}", f"strikeout, of {count:,}", taken))
    return rows


def _source(book: so.Book) -> str:
    version = book.status().version
    assert version is not None
    return version.fit_source.sentence


def _verbs(book: so.Book, drawn: Iterator[list[str]], *, tolerance: float | None = None) -> Candidate:
    """Each turn strikes out other quotes: the plan, its execution, the certificate, the signed entry, the commit."""

    def one() -> Work:
        ids = next(drawn)
        return lambda: book.forget(ids=ids, tolerance=tolerance, reason="test")

    return one


def _drawn(quotes: so.Quotes) -> Iterator[list[str]]:
    """Other ids every time, from all over the book, until none are left."""
    ids = quotes.ids[np.random.default_rng(3).permutation(len(quotes))].tolist()
    return (ids[begin : begin + FORGOTTEN] for begin in range(0, len(ids), FORGOTTEN))


def _fsync(folder: Path) -> Work:
    """What a disk takes to make one page last: the least any durable change costs."""

    def once() -> None:
        with open(folder / "page", "wb") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

    return once
