"""Text files as people really save them: one book comes out of every dress, and what is ambiguous is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from strikeout.errors import UnreadableFileError
from strikeout.quotes import text_files
from strikeout.quotes.reading import Chunking, inspect_quotes
from tests.raising import raises

HEAD = "strike,right,price,expiry_years,forward,discount,desk"
ROWS = ("90,C,12.5,0.5,100,0.99,Zürich", "100,P,5.25,0.5,100,0.99,Genève", "110,C,2.125,1.5,101,0.995,–")
TEXT = "\n".join((HEAD, *ROWS)) + "\n"


def saved(folder: Path, content: bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", "read as UTF-16-LE"),
        ("utf-32", "read as UTF-32-LE"),
        ("cp1252", "not UTF-8: read as Windows-1252"),
    ],
)
def test_the_same_book_comes_from_every_encoding_and_the_reading_says_which(
    tmp_path: Path, encoding: str, note: str
) -> None:
    reading = inspect_quotes(saved(tmp_path, TEXT.encode(encoding)))
    assert reading.quotes.observed.tolist() == [12.5, 5.25, 2.125]
    assert reading.quotes.labels["desk"].tolist() == ["Zürich", "Genève", "–"]
    assert [said for said in reading.table.notes if "read as" in said] == (
        [] if not note else list(reading.table.notes)
    )
    assert note in " ".join(reading.table.notes)


def test_a_letter_that_is_not_utf8_deep_in_a_file_is_read_like_one_at_its_beginning(tmp_path: Path) -> None:
    lines = [HEAD, *(f"{50 + k / 100},C,12,0.5,100,1,desk" for k in range(40_000)), "9000,P,8950,0.5,100,1,Zürich"]
    path = saved(tmp_path, "\n".join(lines).encode("cp1252"))
    assert path.stat().st_size > 1 << 20  # beyond what is looked at first
    reading = inspect_quotes(path)
    assert reading.quotes.labels["desk"][-1] == "Zürich"
    assert "not UTF-8" in reading.table.notes[0]


def test_bytes_that_are_no_letters_are_refused(tmp_path: Path) -> None:
    with raises(UnreadableFileError, source="file.csv"):
        inspect_quotes(saved(tmp_path, HEAD.encode() + b"\n90,C,12,0.5,100,1,\x81\x8d\n"))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_and_line_ends_do_not_matter(tmp_path: Path, separator: str, end: str) -> None:
    text = end.join((HEAD, *ROWS)).replace(",", separator)
    assert inspect_quotes(saved(tmp_path, text.encode())).quotes.observed.tolist() == [12.5, 5.25, 2.125]


def test_decimal_commas_are_read_and_said(tmp_path: Path) -> None:
    text = TEXT.replace(",", ";").replace(".", ",").replace("110;", "1.110,5;")
    reading = inspect_quotes(saved(tmp_path, text.encode()))
    assert reading.quotes.observed.tolist() == [12.5, 5.25, 2.125]
    assert reading.quotes.contracts.strike.tolist() == [90.0, 100.0, 1110.5]
    assert reading.table.notes == ("numbers have a decimal comma: 166,6 is read as 166.6",)


def test_a_comma_that_may_be_of_thousands_is_not_taken_for_a_decimal_comma(tmp_path: Path) -> None:
    rows = "strike;right;price;expiry_years;forward;discount\n1,100;C;12;1;1000;1\n900;C;120;1;1000;1\n"
    reading = inspect_quotes(saved(tmp_path, rows.encode()))
    assert [(issue.code, issue.row, issue.column) for issue in reading.issues if issue.is_rejected] == [
        ("Q102", 2, "strike")
    ]


@pytest.mark.parametrize("block", [32 << 20, 1 << 20])
def test_decimal_commas_and_points_in_one_column_are_refused_with_the_line(
    tmp_path: Path, monkeypatch, block: int
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", block)
    rows = ["strike;right;price;expiry_years;forward;discount", *(["90;C;12,5;1;100;1"] * 60_000), "91;C;12.5;1;100;1"]
    with raises(UnreadableFileError, source="file.csv"):
        inspect_quotes(saved(tmp_path, "\n".join(rows).encode()))


def test_a_gzip_cut_short_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT.encode() * 200)
    with raises(UnreadableFileError, source="cut.csv.gz"):
        inspect_quotes(saved(tmp_path, whole[:-20], "cut.csv.gz"))


def test_lines_above_the_header_are_looked_at_only_for_a_known_header(tmp_path: Path) -> None:
    assert inspect_quotes(saved(tmp_path, b"\n\n" + TEXT.encode())).rows == 3
    with raises(UnreadableFileError, source="file.csv"):
        inspect_quotes(saved(tmp_path, b"\n\nnothing of the kind\n"))


@pytest.mark.parametrize("block", [1, 37, 100, 500, 10_000])
def test_the_size_of_the_blocks_changes_nothing(tmp_path: Path, monkeypatch, block: int) -> None:
    rows = [f'{80 + k},{"CP"[k % 2]},{12 + k / 7},0.5,100,0.99,"desk ""{k}"",\nof {k % 3}"' for k in range(40)]
    for bad in (20, 21, 22, 31):
        rows[bad] = f'abc,C,1,1,1,1,"x{bad}"'
    path = saved(tmp_path, "\n".join((HEAD, *rows)).encode())
    whole = inspect_quotes(path)
    monkeypatch.setattr(text_files, "BLOCK", block)
    parts = inspect_quotes(path)
    assert parts.quotes.ids.tolist() == whole.quotes.ids.tolist()
    assert parts.quotes.observed.tolist() == whole.quotes.observed.tolist()
    assert parts.quotes.labels["desk"].tolist() == whole.quotes.labels["desk"].tolist()
    assert [str(issue) for issue in parts.issues] == [str(issue) for issue in whole.issues]
    parts.write_quarantine(tmp_path / "parts.csv")
    monkeypatch.undo()
    whole.write_quarantine(tmp_path / "whole.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def shares_read(path: Path) -> list[float]:
    seen: list[tuple[str, float]] = []
    with inspect_quotes(path, chunking=Chunking(progress=lambda what, share: seen.append((what, share)))):
        return [share for what, share in seen if what == "reading"]


def test_progress_runs_from_nothing_to_one_and_never_back(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 100)
    for name, content in (("plain.csv", TEXT.encode() * 50), ("zipped.csv.gz", gzip.compress(TEXT.encode() * 50))):
        path = saved(tmp_path, content, name)
        shares = shares_read(path)
        assert shares == sorted(shares)
        assert (shares[0] > 0.0, shares[-1]) == (True, 1.0)
