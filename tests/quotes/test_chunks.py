"""A file read in pieces: what makes it begin again, what it leaves on the disk, how far it says it is."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from strikeout.errors import ColumnError, UnreadableFileError, UsageError
from strikeout.quotes import chunked_reader
from strikeout.quotes.columns import QUARANTINE, paired_rows, quotient
from strikeout.quotes.forwards import underived
from strikeout.quotes.reading import inspect_quotes
from strikeout.quotes.spill import Spill
from tests.quotes.in_chunks import assert_same, assert_same_quotes, in_chunks, read_both_ways
from tests.quotes.random_files import drawn_file, quotes_frame
from tests.quotes.test_profiles import FILES
from tests.raising import raises


def both(path: Path, folder: Path, *, size: int, at_once: int = 20, **options: object) -> None:
    reading, survey = read_both_ways(path, size=size, at_once=at_once, **options)
    with survey:
        assert_same(reading, survey, folder)


def csv(folder: Path, frame: pl.DataFrame) -> Path:
    frame.write_csv(folder / "quotes.csv")
    return folder / "quotes.csv"


@pytest.mark.parametrize("name", FILES)
def test_a_vendors_file_reads_the_same_row_by_row(tmp_path: Path, name: str) -> None:
    text, constants = FILES[name]
    (tmp_path / "quotes.csv").write_text(text)
    both(tmp_path / "quotes.csv", tmp_path, size=1, at_once=1, constants=constants)


@pytest.mark.parametrize("name", ["orats-files", "optionsdx"])
def test_a_vendors_column_that_fills_up_late_is_read_from_the_first_row_on(tmp_path: Path, name: str) -> None:
    """The bids of the first rows are empty: as a whole the file has that column, and its first block has not."""
    text, constants = FILES[name]
    header, row = text.splitlines()[:2]
    cells = row.split(",")
    empty = [cell if place < 11 else "" for place, cell in enumerate(cells)]
    rows = [",".join(empty).replace("4500", str(4000 + k)) for k in range(8)]
    rows += [row.replace("4500", str(4200 + k)) for k in range(20)]
    (tmp_path / "quotes.csv").write_text("\n".join([header, *rows]) + "\n")
    both(tmp_path / "quotes.csv", tmp_path, size=150, constants=constants)


def test_a_column_of_ones_own_that_fills_up_late_becomes_a_label_of_all_rows(tmp_path: Path) -> None:
    frame = quotes_frame(1)
    late = [None if n < frame.height - 2 else "x" for n in range(frame.height)]
    both(csv(tmp_path, frame.with_columns(remark=pl.Series(late))), tmp_path, size=700)


def test_forwards_that_end_before_the_file_does_are_found_by_another_road(tmp_path: Path) -> None:
    frame = quotes_frame(2)
    known = [None if n == frame.height - 3 else "101.5" for n in range(frame.height)]
    both(csv(tmp_path, frame.with_columns(forward=pl.Series(known))), tmp_path, size=700)


def test_calls_and_puts_may_be_far_apart(tmp_path: Path) -> None:
    """All calls first: no block has a pair, and the file as a whole gives its forwards by parity."""
    frame = quotes_frame(3).drop("rate", "dividend_yield").sort("right", maintain_order=True)
    both(csv(tmp_path, frame), tmp_path, size=900)


def test_what_is_looked_at_to_pair_calls_and_puts_far_apart_is_a_part_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = quotes_frame(3).drop("rate", "dividend_yield").sort("right", maintain_order=True)
    seen: list[int] = []

    def watched(rows: pl.DataFrame, places: dict[str, str]) -> pl.DataFrame:
        seen.append(rows.height)
        return paired_rows(rows, places).clear()  # no part has pairs: all are looked at

    monkeypatch.setattr(chunked_reader, "AT_ONCE", frame.height // 8)
    monkeypatch.setattr(chunked_reader, "paired_rows", watched)
    with raises(ColumnError, mentions={"constants"}, missing="the discount"):
        in_chunks(csv(tmp_path, frame), size=900)
    assert sum(seen) == 2 * frame.height  # each chunk alone, then each partition of whole slices
    assert max(seen) < frame.height / 2


def test_a_strike_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    frame = quotes_frame(3).drop("rate", "dividend_yield").sort("right", maintain_order=True)
    put = pl.when(pl.col("right") == "P").then(pl.col("strike") + ".00").otherwise("strike")
    both(csv(tmp_path, frame.with_columns(put.alias("strike"))), tmp_path, size=900)
    spoiled = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 2).then(pl.lit("n/a")).otherwise(put).alias("strike")
    )
    both(csv(tmp_path, spoiled), tmp_path, size=900)


@pytest.mark.parametrize("is_apart", [False, True])
def test_parity_may_be_asked_for(tmp_path: Path, is_apart: bool) -> None:
    frame = quotes_frame(3)
    frame = frame.sort("right", maintain_order=True) if is_apart else frame
    both(csv(tmp_path, frame), tmp_path, size=900, forwards="parity")


def test_a_quarantine_with_calls_and_puts_far_apart_is_read_once_it_is_corrected(tmp_path: Path) -> None:
    frame = quotes_frame(3).drop("rate", "dividend_yield").sort("right", maintain_order=True)
    told = frame.with_columns(pl.lit("was wrong").alias(name) for name in QUARANTINE)
    both(csv(tmp_path, told), tmp_path, size=900)


def test_parity_of_volatilities_is_refused_in_the_same_words(tmp_path: Path) -> None:
    frame = quotes_frame(3).drop("bid", "ask").with_columns(iv=pl.lit("0.2"))
    path = csv(tmp_path, frame)
    with pytest.raises(ColumnError) as at_once:
        inspect_quotes(path, forwards="parity")
    with pytest.raises(ColumnError) as in_pieces:
        in_chunks(path, forwards="parity", size=900)
    assert in_pieces.value.sentence == at_once.value.sentence


def test_a_file_without_any_road_to_a_forward_is_refused_in_the_same_words(tmp_path: Path) -> None:
    frame = quotes_frame(3).drop("rate", "dividend_yield").filter(pl.col("right") == "C")
    path = csv(tmp_path, frame)
    with pytest.raises(ColumnError) as at_once:
        inspect_quotes(path)
    with pytest.raises(ColumnError) as in_pieces:
        in_chunks(path, size=900)
    assert in_pieces.value.sentence == at_once.value.sentence


def test_text_that_turns_out_not_to_be_utf8_is_read_again_as_western(tmp_path: Path) -> None:
    """What a file is dressed in is told by its first megabyte; here the first letter beyond ASCII comes after it."""
    frame = quotes_frame(4)
    long = "B" * ((1 << 20) // (frame.height - 10) + 100)
    desk = [long if n < frame.height - 5 else "Zürich" for n in range(frame.height)]
    path = tmp_path / "quotes.csv"
    path.write_bytes(frame.with_columns(desk=pl.Series(desk)).write_csv().encode("cp1252"))
    assert path.read_bytes()[: 1 << 20].isascii()
    both(path, tmp_path, size=200_000)


def test_a_compressed_file_is_read_in_pieces_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(quotes_frame(5).write_csv().encode())
    path = tmp_path / "quotes.csv.gz"
    path.write_bytes(whole)
    both(path, tmp_path, size=1000)
    path.write_bytes(whole[: len(whole) // 2])
    with raises(UnreadableFileError, source="quotes.csv.gz"):
        in_chunks(path, size=1000)


def test_forwards_may_rest_on_quotes_that_are_elsewhere(tmp_path: Path) -> None:
    """Of every slice one quote comes, and the others are held: parity takes both."""
    frame = quotes_frame(6).drop("rate", "dividend_yield")
    held = inspect_quotes(csv(tmp_path, frame)).quotes
    few = frame.unique(["underlying", "quote_date", "expiry"], keep="first", maintain_order=True)
    path = csv(tmp_path, few)
    reading = inspect_quotes(path, beside=lambda: held)
    with in_chunks(path, beside=lambda: held, size=200, at_once=2) as survey:
        assert survey.count == reading.count == few.height
        assert reading.issues.counts == survey.issues.counts
        pieces = list(survey.chunks())
        assert_same_quotes(underived(reading.quotes)[: len(pieces[0])], pieces[0])
    with in_chunks(path, beside=lambda: held[:0], size=200, at_once=2) as alone:
        assert (alone.count, alone.issues.counts) == (0, {"Q116": few.height})  # the others decide


def test_nothing_is_left_on_the_disk_whether_it_ends_well_or_not(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    path = drawn_file(tmp_path, 11)
    with in_chunks(path, folder=folder, size=500, at_once=30):
        assert list(folder.iterdir()) == []  # not even while it is open: the file has no name
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ColumnError):
        in_chunks(path.rename(tmp_path / "other.csv"), folder=folder)
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_only_the_owner_can_read_what_is_put_away(tmp_path: Path) -> None:
    with Spill(tmp_path) as scratch:
        scratch.put(pl.DataFrame({"strike": [1.0]}))
        assert os.fstat(scratch._file.fileno()).st_mode & 0o077 == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_who_named_the_folder_is_not_sent_to_another_variable(tmp_path: Path) -> None:
    said = []
    for folder in (None, tmp_path):
        with Spill(folder) as scratch:
            scratch._file.close()
            scratch._file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115 - closed with the scratch
            with pytest.raises(UsageError) as error:
                scratch.put(pl.DataFrame({"strike": [1.0]}))
            said.append(error.value.sentence)
    assert "TMPDIR" in said[0]
    assert "TMPDIR" not in said[1]
    assert f"the disk of {tmp_path} has no space" in said[1]


def test_it_says_what_it_does_and_how_far_it_is(tmp_path: Path) -> None:
    said: list[tuple[str, float]] = []
    frame = quotes_frame(8)
    path = csv(tmp_path, frame)
    with in_chunks(path, size=800, at_once=30, progress=lambda what, share: said.append((what, share))):
        pass
    shares = [share for what, share in said if what == "reading"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 5
    assert {what for what, _ in said} == {"reading", "checking"}


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_a_quotient_is_rounded_once_however_many_rows_there_are(rows: int) -> None:
    numbers = [None, *range(1, rows)] if rows > 1 else [1001]
    assert quotient(pl.Series(numbers, dtype=pl.Int64), 1000.0).to_list() == [
        None if number is None else number / 1000.0 for number in numbers
    ]


MEASURE = """
import resource, sys
from strikeout.book import Book
from strikeout.quotes.reading import Chunking, inspect_quotes

with Book.create(sys.argv[2]) as book, inspect_quotes(sys.argv[1], chunking=Chunking()) as reading:
    done = book.import_chunks(reading.chunks())
print(done.imported, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_four_times_the_rows_are_imported_in_the_same_memory(tmp_path: Path) -> None:
    from benchmarks.reading import written

    peaks = []
    for count in (1_000_000, 4_000_000):
        path, book = written(tmp_path / "quotes.csv", count), tmp_path / f"{count}.book"
        run = subprocess.run([sys.executable, "-c", MEASURE, path, book], capture_output=True, text=True, check=True)
        imported, peak = map(int, run.stdout.split())
        assert imported == count
        peaks.append(peak)
        book.unlink()
    # Measured: 770 MB for one million, 1000 for ten; held as a book, three million more would take 2 GB.
    assert peaks[1] < peaks[0] + 300
