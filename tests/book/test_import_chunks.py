"""A file that is imported chunk by chunk gives the same book as one imported at once: every table, every byte."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.errors import BusyError, StrikeoutError, UsageError
from strikeout.quotes import spill
from strikeout.quotes.reading import inspect_quotes
from strikeout.store import sqlite_writing
from tests.quotes.in_chunks import in_chunks
from tests.quotes.random_files import drawn_file, quotes_frame

# Of the seal all but the keyed sums, which are stored under a mask that is never the same; entries commit to them.
TABLES = {
    **dict.fromkeys(("chunks", "names", "marks", "pages", "entries"), "*"),
    "seal": "total, rows, held, marked, scrub",
}


def clock() -> datetime:
    return datetime(2024, 3, 1, tzinfo=UTC)


def opened(path: Path) -> so.Book:
    return so.Book.open(path, who="Ada", clock=clock)


@pytest.fixture
def books(tmp_path):
    """Two books with the same beginning and the same keys."""
    first, second = tmp_path / "first.book", tmp_path / "second.book"
    so.Book.create(first, who="Ada", clock=clock).close()

    def copied() -> tuple[Path, Path]:
        for end in ("", ".key"):
            shutil.copy(f"{first}{end}", f"{second}{end}")
        return first, second

    return copied


def tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(path) as connection:
        asked = {name: f"SELECT {columns} FROM {name} ORDER BY 1, 2" for name, columns in TABLES.items()}
        found = {name: connection.execute(question).fetchall() for name, question in asked.items()}
    connection.close()
    return found


def at_once(book: Path, file: Path, **options) -> object:
    with opened(book) as held:
        return held.import_quotes(inspect_quotes(file, beside=held.quotes).quotes, **options)


def in_several(book: Path, file: Path, *, size: int = 0, **options) -> object:
    with opened(book) as held:
        size = size or max(1, file.stat().st_size // 7)
        with in_chunks(file, beside=held.quotes, size=size, at_once=40) as survey:
            return held.import_chunks(survey.chunks(), **options)


def outcome(work, *arguments, **options):
    try:
        return work(*arguments, **options)
    except StrikeoutError as error:
        return f"{type(error).__name__}: {error.sentence}"


def csv(folder: Path, frame: pl.DataFrame, name: str = "quotes.csv") -> Path:
    frame.write_csv(folder / name)
    return folder / name


@pytest.mark.parametrize("seed", range(8))
def test_the_book_is_the_same_to_the_byte(tmp_path, books, seed):
    first, second = books()
    file = drawn_file(tmp_path, seed)
    size = 31 if file.suffix == ".parquet" else 0
    assert outcome(at_once, first, file) == outcome(in_several, second, file, size=size)
    assert tables(first) == tables(second)
    before = tables(second)
    again = outcome(in_several, second, file, size=size)
    assert tables(second) == before, "the same rows once more change nothing"
    assert isinstance(again, str) or (again.entry, again.imported) == (None, 0)


def test_the_rest_of_a_book_that_has_some_already_is_let_in(tmp_path, books):
    frame = quotes_frame(3)
    with opened(books()[0]) as book:
        book.import_quotes(inspect_quotes(csv(tmp_path, frame[: frame.height // 2])).quotes)
    first, second = books()
    file = csv(tmp_path, frame)
    done = in_several(second, file)
    assert done == at_once(first, file)
    assert min(done.repeated, done.imported) > 0
    assert tables(first) == tables(second)
    with opened(second) as book:
        assert book.verify().holds


def test_stored_chunks_do_not_depend_on_the_chunks_of_the_import(books):
    """Imported in chunks of 37 rows, stored in chunks of 256."""
    quotes = so.synthetic.random_quotes(1000, maturities=5)
    first, second = books()
    with opened(first) as book:
        book.import_quotes(quotes)
    with opened(second) as book:
        book.import_chunks(quotes[begin : begin + 37] for begin in range(0, 1000, 37))
    assert tables(first) == tables(second)
    assert [row[1] for row in tables(second)["chunks"]] == [256, 256, 256, 232]


@pytest.mark.parametrize("at_most", [1, 300, 5000])
def test_names_sorted_on_disk_give_the_same_book_as_names_sorted_in_memory(books, monkeypatch, at_most):
    quotes = so.synthetic.random_quotes(1500, maturities=5)
    first, second = books()
    with opened(first) as book:
        book.import_quotes(quotes[:1000])
    monkeypatch.setattr(sqlite_writing, "IN_MEMORY", at_most)
    monkeypatch.setattr(spill, "PAGE", 100)
    with opened(second) as book:
        book.import_quotes(quotes[:1000])
        with pytest.raises(UsageError) as refused:
            book.import_chunks([quotes[1000:], quotes[1000:]])
        assert sorted(refused.value.ids) == sorted(quotes.ids[1000:].tolist())
    assert tables(first) == tables(second)


def test_an_erased_quote_that_returns_is_refused_by_name(tmp_path, books):
    file = csv(tmp_path, quotes_frame(4))
    with opened(books()[0]) as book:
        book.import_quotes(inspect_quotes(file).quotes)
        gone = book.quotes().ids[5].item()
        book.erase(ids=[gone])
    first, second = books()
    done = in_several(second, file)
    assert done.erased == (gone,)
    assert done == at_once(first, file)
    assert tables(first) == tables(second)


def test_a_forgotten_quote_that_returns_stays_forgotten(books):
    quotes = so.synthetic.random_quotes(300, maturities=5)
    with opened(books()[0]) as book:
        book.import_quotes(quotes[:200])
        book.calibrate()
        book.forget(ids=quotes.ids[:3], reason="test")
    first, second = books()
    with opened(first) as one, opened(second) as other:
        whole = one.import_quotes(quotes)
        chunked = other.import_chunks(quotes[begin : begin + 50] for begin in range(0, 300, 50))
    assert whole == chunked
    assert (chunked.set_aside, chunked.repeated, chunked.imported) == (3, 197, 100)
    assert tables(first) == tables(second)


def test_ids_with_other_values_refuse_the_whole_file(tmp_path, books):
    frame = quotes_frame(5)
    with opened(books()[0]) as book:
        book.import_quotes(inspect_quotes(csv(tmp_path, frame)).quotes)
    first, second = books()
    dearer = frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("99")).otherwise("ask").alias("ask")
    )
    more = dearer.with_columns(pl.lit("2024-01-11").alias("quote_date"))
    file = csv(tmp_path, pl.concat([more, dearer]))  # the first chunks are new, the last ones clash
    before = tables(second)
    found = outcome(in_several, second, file)
    assert "in the book with other values" in found
    assert found == outcome(at_once, first, file)
    assert tables(second) == before


def test_an_id_in_two_pieces_is_refused_and_nothing_is_kept(books):
    _, second = books()
    quotes, before = so.synthetic.random_quotes(100, maturities=5), tables(second)
    with opened(second) as book, pytest.raises(UsageError, match="ids that are in the book already"):
        book.import_chunks([quotes[:60], quotes[50:]])
    assert tables(second) == before


def test_a_slice_that_would_have_no_forward_refuses_all(tmp_path, books):
    """Most of a slice was erased and stays out; what is new of it has two pairs, and a line takes three."""
    frame = quotes_frame(6).drop("rate", "dividend_yield")
    with opened(books()[0]) as book:
        book.import_quotes(inspect_quotes(csv(tmp_path, frame)).quotes)
        book.erase(where="date = '2024-01-08' and expiry_date = '2024-03-15'")
    first, second = books()
    slice_ = frame.filter((pl.col("quote_date") == "2024-01-08") & (pl.col("expiry") == "2024-03-15"))
    others = [slice_.head(2).with_columns(strike=pl.lit(k), right=pl.Series(["C", "P"])) for k in ("98", "102")]
    file = csv(tmp_path, pl.concat([frame, *others]))
    before = tables(second)
    whole, chunked = outcome(at_once, first, file), outcome(in_several, second, file)
    assert "2 pairs of a call and a put around the money, and 3 are needed" in chunked
    assert chunked == whole
    assert tables(second) == before


def test_where_nothing_is_new_a_quarantine_is_still_remembered(tmp_path, books):
    file = csv(tmp_path, quotes_frame(7))
    first, second = books()
    at_once(first, file)
    in_several(second, file)
    bad = tmp_path / "bad.csv"
    bad.write_text("strike\n")
    assert at_once(first, file, quarantine=bad) == in_several(second, file, quarantine=bad)
    assert tables(first) == tables(second)


def test_names_and_slices_are_spilled_to_the_disk_of_the_book(tmp_path, books, monkeypatch):
    """Forwards by parity: new quotes are spilled until all have arrived."""
    _, second = books()
    folders: list[object] = []

    def watched(**options):
        folders.append(options.get("dir"))
        return TemporaryFile(**options)

    with in_chunks(csv(tmp_path, quotes_frame(3).drop("rate", "dividend_yield"))) as survey, opened(second) as book:
        monkeypatch.setattr(spill, "TemporaryFile", watched)
        monkeypatch.setattr(sqlite_writing, "IN_MEMORY", 10)
        assert book.import_chunks(survey.chunks()).imported > 0
    assert folders == [second.parent] * 2, "names in the store, and slices in the filter"


KILLED = """
import sys
from pathlib import Path
import strikeout as so

quotes = so.synthetic.random_quotes(5000, maturities=5)

def slow():
    for begin in range(0, 5000, 500):
        if begin == 4000:
            print("half way", flush=True)
            import time
            time.sleep(60)
        yield quotes[begin : begin + 500]

with so.Book.open(sys.argv[1]) as book:
    book.import_chunks(slow())
"""


def test_a_kill_leaves_the_book_as_it_was_and_nothing_beside_it(books):
    _, second = books()
    before, beside = tables(second), sorted(path.name for path in second.parent.iterdir())
    child = subprocess.Popen([sys.executable, "-c", KILLED, second], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "half way"
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=30)
    child.stdout.close()
    with opened(second) as book:
        assert book.verify().holds
    assert tables(second) == before
    assert [name for name in sorted(path.name for path in second.parent.iterdir()) if name not in beside] == []


def test_others_are_told_that_the_book_is_being_written(books):
    _, second = books()
    quotes = so.synthetic.random_quotes(600, maturities=5)

    def chunked():
        yield quotes[:300]
        with opened(second) as other, pytest.raises(BusyError, match="written by another"):
            other.import_quotes(quotes[300:])
        yield quotes[300:]

    with opened(second) as book:
        assert book.import_chunks(chunked()).imported == 600
        assert np.array_equal(book.quotes().ids, quotes.ids)
