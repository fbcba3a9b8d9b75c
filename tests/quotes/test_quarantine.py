"""The quarantine: bad rows as they were found, and back again once they are corrected."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from strikeout.book import Book
from strikeout.cli import strikeout
from strikeout.errors import RejectedError
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.reading import accept, inspect_quotes
from tests.raising import raises

HEAD = "id,strike,right,bid,ask,expiry_years,forward,discount,desk"
ROWS = [
    "a,80,C,20.1,20.3,0.5,100,1,west",
    "b,90,C,11.6,11.8,0.5,100,1,west",
    "c,1o0,C,5.6,5.5,0.5,100,1,east",  # a letter for a digit, and crossed
    "d,110,C,2.1,2.3,0.5,100,1,east",
    'e,abc,C,2.1,2.3,0.5,100,1,"far, east"',
]


def run(*words):
    return CliRunner().invoke(strikeout, [str(word) for word in words])


def written(folder: Path, rows: list[str] = ROWS) -> Path:
    path = folder / "chain.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def mend(path: Path, **cells: dict[str, str]) -> None:
    """Corrects cells of a quarantine file: ``mend(path, c={"strike": "100"})``, by the id of the row."""
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = [{**row, **cells.get(row["id"], {})} for row in reader]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_a_bad_row_is_kept_as_found_with_all_its_faults(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    accept(inspect_quotes(written(tmp_path)), max_reject=0.5, quarantine=bad)
    with bad.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["strike"] for row in rows] == ["1o0", "abc"]
    assert rows[1]["desk"] == "far, east"
    assert [row["quarantine_row"] for row in rows] == ["4", "6"]
    assert rows[0]["quarantine_code"].split() == ["Q102", "Q103"]
    assert "line 4, column strike: '1o0' is not a number" in rows[0]["quarantine_sentence"]
    assert "the bid 5.6 is above the ask" in rows[0]["quarantine_sentence"]


def test_a_corrected_row_becomes_the_quote_it_would_have_been(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    accept(inspect_quotes(written(tmp_path)), max_reject=0.5, quarantine=bad)
    mend(bad, c={"strike": "100", "ask": "5.8"}, e={"strike": "120"})
    again = inspect_quotes(bad)
    assert (again.rejected, again.quotes.ids.tolist()) == (0, ["c", "e"])
    right = inspect_quotes(written(tmp_path, [row.replace("1o0", "100").replace("5.6,5.5", "5.6,5.8") for row in ROWS]))
    known = right.quotes.only(["c"])
    assert same(again.quotes.only(["c"]), known)
    assert "quarantine_code" not in again.quotes.labels
    assert [c.meaning for c in again.columns if c.name == "quarantine_code"] == [
        "the problem, in a quarantine file: left out"
    ]


def same(first: Quotes, second: Quotes) -> bool:
    return first.to_frame().equals(second.to_frame())


def test_what_is_still_wrong_goes_into_a_quarantine_again(tmp_path: Path) -> None:
    bad, worse = tmp_path / "bad.csv", tmp_path / "worse.csv"
    accept(inspect_quotes(written(tmp_path)), max_reject=0.5, quarantine=bad)
    mend(bad, c={"strike": "100"})  # and the market is still crossed
    again = inspect_quotes(bad)
    with raises(RejectedError, rows=2, rejected=2, unreadable=2):
        accept(again, max_reject=1.0, quarantine=worse)
    frame = pl.read_csv(worse)
    assert frame["quarantine_code"].to_list() == ["Q103", "Q102"]
    assert frame.columns == pl.read_csv(bad).columns


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "desk.book"
    assert run("init", path).exit_code == 0
    return path


def test_import_keeps_a_quarantine_and_takes_it_back_corrected(tmp_path: Path, book: Path) -> None:
    bad = tmp_path / "bad.csv"
    done = json.loads(
        run("import", book, written(tmp_path), "--quarantine", bad, "--max-reject", "0.5", "--json").stdout
    )
    assert (done["imported"], done["rejected"], done["quarantine"]) == (3, 2, str(bad))
    mend(bad, c={"strike": "100", "ask": "5.8"}, e={"strike": "120"})
    again = json.loads(run("import", book, bad, "--json").stdout)
    assert (again["imported"], again["rejected"], again["held"]) == (2, 0, 5)


def test_erasing_takes_the_quarantine_away(tmp_path: Path, book: Path) -> None:
    bad = tmp_path / "bad.csv"
    run("import", book, written(tmp_path), "--quarantine", bad, "--max-reject", "0.5")
    rehearsed = run("erase", book, "--ids", "a")
    assert f"the file {bad}" in rehearsed.stdout.replace("\n", "")
    assert bad.exists()
    assert run("erase", book, "--ids", "a", "--yes", "--reason", "test").exit_code == 0
    assert not bad.exists()


def test_erasing_leaves_a_quarantine_that_was_edited_and_names_it(tmp_path: Path, book: Path) -> None:
    bad = tmp_path / "bad.csv"
    run("import", book, written(tmp_path), "--quarantine", bad, "--max-reject", "0.5")
    mend(bad, c={"strike": "100", "ask": "5.8"}, e={"strike": "120"})
    run("import", book, bad)
    done = run("erase", book, "--ids", "c", "--yes", "--reason", "test")
    assert done.exit_code == 0
    assert str(bad) in done.stdout.replace("\n", "")
    assert bad.exists()


def test_a_quarantine_of_an_import_that_brought_nothing_new_is_known_too(tmp_path: Path, book: Path) -> None:
    bad = tmp_path / "bad.csv"
    run("import", book, written(tmp_path), "--max-reject", "0.5")
    done = json.loads(
        run("import", book, tmp_path / "chain.csv", "--quarantine", bad, "--max-reject", "0.5", "--json").stdout
    )
    assert (done["imported"], done["repeated"]) == (0, 3)
    assert f"the file {bad}" in run("erase", book, "--ids", "a").stdout.replace("\n", "")


def test_without_bad_rows_no_quarantine_is_written_nor_remembered(tmp_path: Path, book: Path) -> None:
    bad = tmp_path / "bad.csv"
    run("import", book, written(tmp_path, ROWS[:2]), "--quarantine", bad)
    assert not bad.exists()
    assert str(bad) not in run("erase", book, "--ids", "a").stdout.replace("\n", "")


def test_a_corrected_row_without_a_forward_of_its_own_finds_it_in_the_book(
    tmp_path: Path, book: Path, shared_data: Callable[[str], Path]
) -> None:
    """A real chain, its forwards by parity: of the few corrected rows alone no forward could be found."""
    chain = pl.read_parquet(shared_data("chains/day_rnd_spx_2013-04-19.parquet"))
    path, bad = tmp_path / "spx.csv", tmp_path / "bad.csv"
    spoilt = chain.with_row_index().with_columns(bid=pl.when(pl.col("index") == 150).then(-5.0).otherwise("bid"))
    spoilt.drop("index", "mid").write_csv(path)
    run("import", book, path, "--quarantine", bad, "--max-reject", "1")
    rows = pl.read_csv(bad, infer_schema=False)
    at = rows["quarantine_code"].to_list().index("Q106")
    right = chain.row(150, named=True)
    assert (float(rows["strike"][at]), rows["cp_flag"][at]) == (right["strike"], right["cp_flag"])
    rows[at : at + 1].with_columns(bid=pl.lit(str(right["bid"]))).write_csv(bad)
    alone = CliRunner().invoke(strikeout, ["inspect", str(bad)])
    assert "No column for" in alone.stderr
    done = json.loads(run("import", book, bad, "--json").stdout)
    assert (done["imported"], done["rejected"]) == (1, 0)
    chain.drop("mid").write_csv(tmp_path / "right.csv")
    expected = inspect_quotes(tmp_path / "right.csv").quotes
    with Book.open(book) as held:
        found = held.quotes()
    assert forwards_by_id(found) == forwards_by_id(expected)


def forwards_by_id(quotes: Quotes) -> dict[str, float]:
    return dict(zip(quotes.ids.tolist(), quotes.contracts.forward.tolist(), strict=True))


def test_a_wide_row_of_a_vendors_page_comes_back_with_the_lines_above_its_header(
    tmp_path: Path, book: Path, shared_data: Callable[[str], Path]
) -> None:
    text = gzip.decompress(shared_data("raw/cboe_spx_2022-01-07.csv.gz").read_bytes()).decode()
    lines = text.splitlines()
    at, cells = next(
        (n, line.split(",")) for n, line in enumerate(lines) if "SPXW220114P04675000" in line
    )  # a call and a put of 4675, of 14 January 2022
    ask = cells.pop(16)
    path, bad = tmp_path / "spx.csv", tmp_path / "bad.csv"
    path.write_text("\n".join([*lines[:at], ",".join([*cells[:16], "abc", *cells[16:]]), *lines[at + 1 :]]) + "\n")
    first = json.loads(run("import", book, path, "--quarantine", bad, "--max-reject", "1", "--json").stdout)
    assert first["issues"]["Q102"] == 1
    assert bad.read_text().splitlines()[:2] == lines[:2]
    kept = [line for line in bad.read_text().splitlines() if "Q102" not in line and "SPXW220114P04675000" not in line]
    mended = [line for line in bad.read_text().splitlines() if "abc" in line]
    assert len(mended) == 1
    head = next(n for n, line in enumerate(kept) if line.startswith("Expiration Date"))
    bad.write_text("\n".join([*kept[: head + 1], mended[0].replace("abc", ask, 1)]) + "\n")
    again = json.loads(run("import", book, bad, "--json").stdout)
    assert (again["imported"], again["repeated"], again["rejected"]) == (1, 1, 0)  # the put, and the call once more
    whole = inspect_quotes(shared_data("raw/cboe_spx_2022-01-07.csv.gz")).quotes
    with Book.open(book) as held:
        assert forwards_by_id(held.quotes()) == forwards_by_id(whole)
