"""An attacker puts something odd into one cell and wants the whole file to fail with an error of the program's own.

One was found by the seeds of `python3 go.py fuzz`, the others by reading the code and by other tests.
"""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.errors import UnreadableFileError
from tests.quotes.in_chunks import in_chunks

BACK = """
name = "back"
[columns]
strike = "K"
right = "R"
price = "P"
expiry = { column = "E", format = "%Y-%m-%d" }
quote_date = { column = "DTE", before = "expiry" }
forward = "F"
discount = "D"
"""
COINS = """
name = "coins"
[columns]
strike = "K"
right = "R"
price = "P"
expiry_years = "T"
forward = "F"
discount = "D"
root = { column = "S", optional = true }
[coin]
classes = ["BTC"]
"""


def read(folder, profile, text):
    (folder / "vendor.toml").write_text(profile)
    (folder / "v.csv").write_text(text)
    return so.inspect_quotes(folder / "v.csv", profile=folder / "vendor.toml")


@pytest.mark.parametrize("days", ["-5", "99999999999999", "x", "", "1e5", "-9223372036854775808"])
def test_days_counted_back_may_be_anything(tmp_path, days):
    good = "100,C,5,2024-06-21,30,100,1\n"
    reading = read(tmp_path, BACK, f"K,R,P,E,DTE,F,D\n{good}90,C,12,2024-06-21,{days},100,1\n")
    assert (reading.rows, reading.count) == (2, 1)
    assert reading.quotes.labels["date"].tolist() == ["2024-05-22"]


def test_a_forward_of_coins_that_is_no_number_is_a_bad_row(tmp_path):
    reading = read(tmp_path, COINS, "K,R,P,T,F,D,S\n100,C,0.05,0.5,100,1,BTC\n90,C,0.12,0.5,dear,1,BTC\n")
    assert reading.quotes.observed.tolist() == [5.0]
    assert reading.issues.counts["Q102"] == 1


def test_coins_without_a_class_are_no_coins(tmp_path):
    reading = read(tmp_path, COINS, "K,R,P,T,F,D\n100,C,5,0.5,100,1\n")
    assert reading.quotes.observed.tolist() == [5.0]


def test_a_line_break_in_a_name_takes_no_row_away(tmp_path):
    header = 'strike,right,price,expiry_years,forward,discount,"no\rte"'
    (tmp_path / "a.csv").write_bytes(f"{header}\n100,C,5,0.5,100,1,x\n90,C,12,0.5,100,1,y\n".encode())
    assert so.read_quotes(tmp_path / "a.csv").labels["no\rte"].tolist() == ["x", "y"]


@pytest.mark.parametrize("header", ["strike,right", "a,b,c", "strike,right,price,expiry_years,forward,discount"])
def test_a_file_of_blank_lines_is_refused_alike_in_pieces_and_as_a_whole(tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}\n,\n\n,,\n")
    with pytest.raises(UnreadableFileError):
        so.inspect_quotes(tmp_path / "a.csv")
    with pytest.raises(UnreadableFileError):
        in_chunks(tmp_path / "a.csv")
