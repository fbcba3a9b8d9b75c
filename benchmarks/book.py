"""A book in a file: import and calibrate a million quotes; forget 27 durably from a small and from a large book."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import strikeout as so
from benchmarks import books
from benchmarks.rows import Result, Row
from benchmarks.timing import Candidate, Work, interleave, same
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.schema import Schema
from strikeout.store.entry import Act, Reason
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import Ledger
from strikeout.store.sqlite import SqliteStore

FORGOTTEN = 27
FARTHEST = 1.5  # times: the large book over the small one
PAGE = "reference"


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """The verbs people wait for, on disk and with every fsync; in the folder for temporary files (``TMPDIR``)."""
    small, large = (1_000, 10_000) if is_quick else (10_000, 1_000_000)
    with TemporaryDirectory(prefix="strikeout-") as name, ExitStack() as opened:
        folder, rows = Path(name), []
        quotes = {count: so.random_quotes(count, maturities=25) for count in (large, small)}
        for count in (large, small):
            rows += _first_day(folder / f"{count}.book", books.fresh(quotes[count]))
        stores = {n: opened.enter_context(_kept(folder / f"{n}.state.book", q)) for n, q in quotes.items()}
        rows += _apart("step", {n: _steps(store, quotes[n]) for n, store in stores.items()}, 5 if is_quick else 41)
        opened_books = {n: opened.enter_context(so.Book.open(folder / f"{n}.book")) for n in quotes}
        verbs = {n: _verbs(book, quotes[n]) for n, book in opened_books.items()}
        rows += _apart("forget and apply", verbs, 2 if is_quick else 3)
        facts = {
            "one fsync of a page here": interleave({"fsync": same(_fsync(folder))}, rounds=21)["fsync"].seconds,
            **{f"bytes a quote in the file, {n:,}": (folder / f"{n}.book").stat().st_size / n for n in quotes},
        }
    return Result("book", is_quick, tuple(rows), facts)


def _first_day(path: Path, quotes: so.Quotes) -> list[Row]:
    """Timed once: a book is made once."""
    task, rows = f"a new book of {len(quotes):,} quotes", []
    with so.Book.create(path) as book:
        for name, work in (("import", lambda: book.import_quotes(quotes)), ("calibrate", book.calibrate)):
            begin = time.perf_counter()
            work()
            taken = time.perf_counter() - begin
            rows.append(Row(task, f"strikeout, {name}", taken, note=f"{taken / len(quotes) * 1e6:.2f} us a quote"))
    return rows


def _apart(what: str, work: dict[int, Candidate], rounds: int) -> list[Row]:
    """The large book first: its row is what ratios divide by, so a promise of "at most" becomes one of "at least"."""
    timed = interleave({f"{count:,}": candidate for count, candidate in work.items()}, rounds=rounds)
    notes = {
        "step": "27 rows read, their footprints taken from the kept state, the step, marks, signed entry, commit",
        "forget and apply": "the exact road of a book: what is left is calibrated anew, in the plan and in the deed",
    }
    (large, first), (small, second) = timed.items()
    task = f"{FORGOTTEN} quotes forgotten durably: {what}"
    share = f"the large book takes {1 / second.ratio:.3g} times as long, at most {FARTHEST} is asked"
    return [
        Row(task, f"strikeout, of {large}", first.seconds, first.ratio, note=notes[what]),
        Row(task, f"strikeout, of {small}", second.seconds, second.ratio, 1 / FARTHEST, note=share),
    ]


@contextmanager
def _kept(path: Path, quotes: so.Quotes) -> Iterator[SqliteStore]:
    """A store that holds the quotes and, on a page, what they leave behind at the reference."""
    state = footprints_of(quotes, so.Heston(), books.TRUTH).total()
    with SqliteStore.create(path) as store:
        with store.writing() as book:
            book.add(quotes)
            book.put("state", PAGE, _as_bytes(state))
        yield store


def _steps(store: SqliteStore, quotes: so.Quotes) -> Candidate:
    """Each turn strikes out other quotes, in one transaction and with a signed entry of the ledger."""
    drawn, keyring, schema = (
        _drawn(quotes),
        Keyring.generate(),
        footprints_of(quotes[:1], so.Heston(), books.TRUTH).schema,
    )

    def one() -> Work:
        ids = next(drawn)
        return lambda: _step(store, ids, keyring, schema)

    return one


def _step(store: SqliteStore, ids: list[str], keyring: Keyring, schema: Schema) -> None:
    with store.writing() as book:
        gone = footprints_of(book.named(ids), so.Heston(), books.TRUTH)
        left = _from_bytes(book.page("state", PAGE) or b"", schema).less(gone)
        assert np.isfinite(left.step()).all()
        ledger = Ledger.from_bytes(book.entries())
        act = Act(
            who="benchmark",
            what="forget",
            at=datetime.now(UTC),
            why=Reason("test"),
            counts={"forgotten": len(ids)},
            digests={"state": left.digest()},
            touched=tuple(name.encode() for name in ids),
        )
        book.strike(ids, entry=len(ledger) + 1)
        book.put("state", PAGE, _as_bytes(left))
        book.append(ledger.append(act, keyring).entries[-1].to_bytes())


def _verbs(book: so.Book, quotes: so.Quotes) -> Candidate:
    drawn = _drawn(quotes)

    def one() -> Work:
        ids = next(drawn)
        return lambda: book.apply(book.forget(ids=ids, reason="test"))

    return one


def _drawn(quotes: so.Quotes) -> Iterator[list[str]]:
    """Other ids every time, from all over the book; until none are left."""
    ids = quotes.ids[np.random.default_rng(3).permutation(len(quotes))].tolist()
    return (ids[begin : begin + FORGOTTEN] for begin in range(0, len(ids), FORGOTTEN))


def _fsync(folder: Path) -> Work:
    path = folder / "page"

    def once() -> None:
        with open(path, "wb") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

    return once


def _as_bytes(state: NormalEquations) -> bytes:
    return state.count.to_bytes(8, "little") + state.words.astype("<u8").tobytes()


def _from_bytes(data: bytes, schema: Schema) -> NormalEquations:
    words = np.frombuffer(data, "<u8", offset=8).astype(np.uint64).reshape(-1, 3)
    return NormalEquations(schema, words, int.from_bytes(data[:8], "little"))
