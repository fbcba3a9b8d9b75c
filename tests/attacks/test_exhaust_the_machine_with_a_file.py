"""An attacker sends a small file that takes minutes or gigabytes to read."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

import strikeout as so
from strikeout.errors import ColumnError, RejectedError, UnreadableFileError
from strikeout.quotes import limits, rules, text_files
from tests.cli.typed import run
from tests.quotes.in_chunks import assert_same, in_chunks, read_both_ways

HEADER = "strike,right,price,expiry_years,forward,discount"
ROW = "100,C,5.0,0.5,100,1"


def both_ways(path, kind):
    """The refusal of a file read as a whole, and in pieces; the same kind from both."""
    with pytest.raises(kind) as whole:
        so.inspect_quotes(path)
    with pytest.raises(kind) as pieces:
        in_chunks(path)
    assert type(whole.value) is type(pieces.value)
    return whole.value


@pytest.mark.parametrize("count", [1_001, 20_000, 300_000])
def test_many_columns_are_refused_by_their_number(tmp_path, count):
    (tmp_path / "a.csv").write_text(HEADER + "".join(f",c{k % 7}" for k in range(count - 6)) + "\n" + ROW + "\n")
    error = both_ways(tmp_path / "a.csv", ColumnError)
    assert (error.columns, error.most) == (count, 1_000)


def test_many_columns_of_a_frame_are_refused_too():
    with pytest.raises(ColumnError) as error:
        so.read_quotes(pl.DataFrame({f"c{k}": [1.0] for k in range(2_000)}))
    assert error.value.columns == 2_000


def test_a_thousand_columns_are_read(tmp_path):
    more = 1_000 - 6
    (tmp_path / "a.csv").write_text(HEADER + "".join(f",c{k}" for k in range(more)) + "\n" + ROW + ",x" * more + "\n")
    assert len(so.read_quotes(tmp_path / "a.csv").labels) == more


def test_names_that_repeat_are_numbered_as_before():
    assert text_files._distinct(("a", "b", "a", "a", "b")) == ("a", "b", "a (2)", "a (3)", "b (2)")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (f'{HEADER}\n{ROW}\n"{"x" * 100}\n' + f"{ROW}\n" * 120_000, 3),
        (HEADER + "\n" + "x" * 2_000_000, 2),
        ("x" * 2_000_000, 1),
        ('"' + "x\n" * 1_000_000, 1),
        ("\0" * 3_000_000, 1),
    ],
    ids=["an open mark", "an endless line", "an endless header", "an open mark in the header", "zeros"],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_row_without_end_is_refused_with_its_line(tmp_path, content, line, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(content.encode(), 1) if ending == ".csv.gz" else content.encode())
    error = both_ways(path, UnreadableFileError)
    assert (error.line, error.most) == (line, 1_000_000)


def test_a_compressed_file_that_grows_without_end_is_refused(tmp_path, monkeypatch):
    """As a .gz of 4 MB that unpacks to gigabytes of equal rows; here with less to begin with, so that it is quick."""
    monkeypatch.setattr(limits, "FREE_GROWTH", 1_000_000)
    monkeypatch.setattr(text_files, "BLOCK", 1 << 20)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(HEADER + "\n" + f"{ROW}\n" * 400_000)
    with (tmp_path / "a.csv.gz").open("r+b") as file:  # and does not say how large it is
        file.seek(-4, 2)
        file.write(bytes(4))
    assert both_ways(tmp_path / "a.csv.gz", UnreadableFileError).most == limits.MOST_GROWTH


def test_a_bomb_that_says_what_it_unpacks_to_is_refused_before_a_row_is_read(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wb", compresslevel=9) as file:
        for _ in range(70):
            file.write(b"no header and no rows\n" * 50_000)
    assert both_ways(tmp_path / "a.csv.gz", UnreadableFileError).most == limits.MOST_GROWTH


def test_a_parquet_of_more_cells_than_its_bytes_can_hold_is_refused(tmp_path):
    frame = pl.DataFrame({name: [1.0] for name in HEADER.split(",")})
    frame.select(pl.all().repeat_by(5_000_000).list.explode()).write_parquet(tmp_path / "a.parquet")
    assert both_ways(tmp_path / "a.parquet", UnreadableFileError).most == limits.MOST_GROWTH


def test_a_parquet_with_one_gigantic_text_is_refused_by_its_row(tmp_path):
    """30 MB in a file of some kilobytes."""
    frame = pl.read_csv(f"{HEADER}\n{ROW}\n{ROW}\n".encode())
    note = pl.Series("note", ["x", "x" * 30_000_000])
    frame.with_columns(note).write_parquet(tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    error = both_ways(tmp_path / "a.parquet", UnreadableFileError)
    assert (error.row, error.most) == (1, limits.LONGEST_ROW)


def test_a_damaged_parquet_that_polars_panics_at_is_answered_with_a_sentence(tmp_path, monkeypatch):
    def panic(*_):
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    pl.read_csv(f"{HEADER}\n{ROW}\n".encode()).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(pl.LazyFrame, "slice", panic)
    assert "not a readable Parquet file" in both_ways(tmp_path / "a.parquet", UnreadableFileError).sentence


@pytest.mark.parametrize("line", ["1", "", ","], ids=["one field", "blank lines", "two fields"])
def test_lines_with_hardly_a_field_are_refused_before_they_fill_the_memory(tmp_path, line):
    names = HEADER + "".join(f",c{k}" for k in range(94))
    (tmp_path / "a.csv").write_text(names + "\n" + f"{line}\n" * 300_000)
    assert both_ways(tmp_path / "a.csv", UnreadableFileError).columns == 100


def test_more_bad_rows_than_are_listed_are_refused(tmp_path, monkeypatch):
    for place in (limits, rules):
        monkeypatch.setattr(place, "MOST_BAD", 2_000)
    (tmp_path / "a.csv").write_text(HEADER + "\n" + "x,C,5.0,0.5,100,1\n" * 2_001)
    assert both_ways(tmp_path / "a.csv", RejectedError).most == 2_000


def test_short_rows_are_looked_at_some_at_a_time_and_read_as_in_the_whole(tmp_path, monkeypatch):
    lines = [f"{80 + k % 41},{'CP'[k % 2]},{5 + k},0.{5 + k % 3},100,1,{chr(34)}a\nb{chr(34)}" for k in range(60)]
    (tmp_path / "a.csv").write_text(f"{HEADER},note\n" + "\n".join(lines))
    whole = so.inspect_quotes(tmp_path / "a.csv")
    monkeypatch.setattr(text_files, "ROWS", 7)
    monkeypatch.setattr(text_files, "FEW_CELLS", 10)
    again = so.inspect_quotes(tmp_path / "a.csv")
    assert again.quotes.ids.tolist() == whole.quotes.ids.tolist()
    assert list(again.issues) == list(whole.issues)
    reading, survey = read_both_ways(tmp_path / "a.csv", size=400, at_once=9)
    with survey:
        assert_same(reading, survey, tmp_path)


def test_the_commands_say_so(tmp_path):
    (tmp_path / "a.csv").write_text(f'{HEADER}\n"' + f"{ROW}\n" * 120_000)
    for command in ("inspect", "rules", "calibrate"):
        ended = run(command, tmp_path / "a.csv")
        assert (ended.exit_code, "1,000,000 bytes" in ended.stderr) == (2, True)
