"""Every row code, met through a real file: the row, the column and the value are named, and good rows go on."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from strikeout.quotes.issues import CODES, RowIssue
from strikeout.quotes.reading import Reading, inspect_quotes

GOOD = {
    "id": "a",
    "quote_date": "2024-01-02",
    "expiry": "2024-07-02",
    "strike": "100",
    "right": "C",
    "bid": "5.1",
    "ask": "5.3",
    "forward": "101",
    "rate": "0.03",
    "weight": "1",
    "exercise": "E",
}


def written(folder: Path, bad: dict[str, str], *, drop: tuple[str, ...] = ()) -> Path:
    """A file of three rows whose second (line 3) differs from a good one by ``bad``."""
    rows = [{**GOOD, **{name: "" for name in bad if name not in GOOD}, "id": name} for name in "abc"]
    fill = {
        "price": "5.2",
        "iv": "0.2",
        "spot": "100",
        "dividend_yield": "0",
        "discount": "0.98",
        "expiry_years": "0.5",
    }
    for row in rows:
        row.update({name: fill[name] for name in bad if name in fill})
    rows[1].update(bad)
    path = folder / "file.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name not in drop], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def the_issue(reading: Reading, code: str) -> RowIssue:
    return next(issue for issue in reading.issues if issue.code == code)


REJECTED = [
    ("Q101", "strike", {"strike": ""}, "empty"),
    ("Q101", "strike", {"strike": "NaN"}, "'NaN' means that there is no value"),
    ("Q101", "id", {"id": ""}, "empty"),
    ("Q101", "right", {"right": " "}, "empty"),
    ("Q101", "expiry", {"expiry": ""}, "empty"),
    ("Q101", "bid", {"bid": ""}, "empty"),
    ("Q102", "strike", {"strike": "abc"}, "'abc' is not a number"),
    ("Q102", "bid", {"bid": "5,1"}, "'5,1' is not a number"),
    ("Q103", "bid", {"bid": "5.4"}, "5.4 is above the ask"),
    ("Q104", "strike", {"strike": "-100"}, "-100 is not above zero"),
    ("Q104", "strike", {"strike": "0"}, "0 is not above zero"),
    ("Q104", "forward", {"forward": "-1"}, "-1 is not above zero"),
    ("Q104", "discount", {"discount": "0"}, "0 is not above zero"),
    ("Q105", "expiry", {"expiry": "2024-01-02"}, "2024-01-02 is not after the quote date"),
    ("Q105", "expiry", {"expiry": "2023-12-01"}, "expired"),
    ("Q105", "expiry_years", {"expiry_years": "-0.1"}, "-0.1 years: expired"),
    ("Q106", "price", {"price": "-0.02"}, "-0.02 is below zero"),
    ("Q106", "bid", {"bid": "-99"}, "-99 is below zero"),
    ("Q107", "right", {"right": "X"}, "'X' is neither a call nor a put"),
    ("Q109", "weight", {"weight": "0"}, "0 is not above zero"),
    ("Q110", "expiry", {"expiry": "07/02/2024"}, "'07/02/2024' is not understood as a date"),
    ("Q110", "quote_date", {"quote_date": "2024-02-30"}, "'2024-02-30' is not understood"),
    ("Q111", "strike", {"strike": "inf"}, "inf is not finite"),
    ("Q113", "rate", {"rate": "3"}, "3 is beyond 1; decimals"),
    ("Q113", "expiry_years", {"expiry_years": "180"}, "180 is beyond 100"),
    ("Q115", "bid", {"bid": "-99.99"}, "-99.99 is a mark for no value"),
    ("Q115", "strike", {"strike": "9223372036854775807"}, "is a mark for no value"),
    ("Q114", "ask", {"bid": "0", "ask": "0"}, "there is no quote"),
]


@pytest.mark.parametrize(("code", "column", "bad", "words"), REJECTED)
def test_a_bad_row_is_rejected_with_code_line_column_and_value(
    tmp_path: Path, code: str, column: str, bad: dict[str, str], words: str
) -> None:
    reading = inspect_quotes(written(tmp_path, bad))
    issue = the_issue(reading, code)
    assert (issue.row, issue.column) == (3, column)
    assert issue.sentence.startswith(f"line 3, column {column}: ")
    assert words in issue.sentence
    assert reading.quotes.ids.tolist() == ["a", "c"]
    assert (reading.rows, reading.rejected, reading.repeated) == (3, 1, 0)


def test_spot_and_volatility_are_judged_when_the_price_rests_on_them(tmp_path: Path) -> None:
    bad = {"spot": "0", "dividend_yield": "2.5", "iv": "20"}
    reading = inspect_quotes(written(tmp_path, bad, drop=("bid", "ask", "forward")))
    assert [(issue.code, issue.column) for issue in reading.issues] == [
        ("Q104", "spot"),
        ("Q113", "dividend_yield"),
        ("Q113", "iv"),
    ]
    assert reading.quotes.ids.tolist() == ["a", "c"]


def test_a_row_that_overflows_is_rejected_although_each_of_its_numbers_is_finite(tmp_path: Path) -> None:
    bad = {"spot": "1e308", "dividend_yield": "-1", "expiry_years": "90"}
    reading = inspect_quotes(written(tmp_path, bad, drop=("forward",)))
    assert the_issue(reading, "Q111").row == 3
    assert len(reading.quotes) == 2


def test_rows_that_share_an_id_with_other_values_are_all_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a", "bid": "5.0"})
    reading = inspect_quotes(path)
    assert [(issue.code, issue.row) for issue in reading.issues] == [("Q108", 2), ("Q108", 3)]
    assert reading.quotes.ids.tolist() == ["c"]
    assert reading.rejected == 2


def test_an_exact_repeat_is_kept_once_and_flagged(tmp_path: Path) -> None:
    reading = inspect_quotes(written(tmp_path, {"id": "a", "strike": "100.00"}))
    assert [(issue.code, issue.row) for issue in reading.issues] == [("Q201", 3)]
    assert reading.quotes.ids.tolist() == ["a", "c"]
    assert (reading.rejected, reading.repeated) == (0, 1)


def test_a_line_with_too_many_fields_is_rejected_and_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(
        "strike,right,price,expiry_years,forward,discount\n"
        "90,C,12,0.5,100,1\n1,234,C,12,0.5,100,1\n110,C,2.5,0.5,100,1\n120,C,1,0.5,100,1,\n"
    )
    reading = inspect_quotes(path)
    assert the_issue(reading, "Q112").row == 3
    assert reading.quotes.contracts.strike.tolist() == [90.0, 110.0, 120.0]


@pytest.mark.parametrize(("price", "code"), [("0.5", "Q202"), ("102", "Q205")])
def test_a_price_outside_its_bounds_is_flagged_and_kept(tmp_path: Path, price: str, code: str) -> None:
    # A call on forward 101, strike 100, discount 0.98 is worth between 0.98 and 98.98.
    reading = inspect_quotes(written(tmp_path, {"price": price, "discount": "0.98"}))
    assert [(issue.code, issue.row, issue.column) for issue in reading.issues] == [(code, 3, "price")]
    assert len(reading.quotes) == 3


def test_a_price_below_zero_by_no_more_than_noise_is_flagged_and_kept(tmp_path: Path) -> None:
    # The paper's large set has twelve such quotes. Cutting them off would bias the calibration.
    reading = inspect_quotes(written(tmp_path, {"price": "-0.005", "strike": "200"}))
    assert [issue.code for issue in reading.issues] == ["Q202"]
    assert reading.quotes.observed[1] == -0.005


def test_american_exercise_is_flagged_and_kept(tmp_path: Path) -> None:
    reading = inspect_quotes(written(tmp_path, {"exercise": "American"}))
    assert [(issue.code, issue.row) for issue in reading.issues] == [("Q203", 3)]
    assert len(reading.quotes) == 3


@pytest.mark.parametrize(("price", "code"), [("5", "Q117"), ("5.5", None)])
def test_an_american_price_that_exercising_now_pays_is_rejected(tmp_path: Path, price: str, code: str | None) -> None:
    # A call of strike 100 on a spot of 105 pays 5 now. The exercise of the other rows is empty: they are European.
    reading = inspect_quotes(written(tmp_path, {"exercise": "A", "spot": "105", "price": price}), exercise="auto")
    assert [issue.code for issue in reading.issues if issue.is_rejected] == ([] if code is None else [code])
    assert len(reading.quotes) == (3 if code is None else 2)


def test_text_in_a_number_that_is_not_needed_is_flagged_and_becomes_unknown(tmp_path: Path) -> None:
    reading = inspect_quotes(written(tmp_path, {"iv": "n/a"}))
    assert [(issue.code, issue.row) for issue in reading.issues] == [("Q204", 3)]
    assert str(reading.quotes.labels["iv"].tolist()) == "[0.2, nan, 0.2]"


def test_every_fault_of_a_row_is_told_at_once(tmp_path: Path) -> None:
    reading = inspect_quotes(written(tmp_path, {"strike": "abc", "right": "X", "expiry": "soon"}))
    assert sorted(issue.code for issue in reading.issues) == ["Q102", "Q107", "Q110"]
    assert reading.rejected == 1


def test_every_code_is_met_by_a_test() -> None:
    text = "".join(path.read_text() for path in (Path(__file__), Path(__file__).with_name("test_market_rules.py")))
    assert [code for code in CODES if f'"{code}"' not in text] == []
