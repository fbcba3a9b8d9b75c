"""A curve of rates: each quote has the rate of its time to expiry, and nothing is guessed about the curve."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from strikeout.errors import UnreadableFileError, UsageError
from strikeout.quotes.rates import RateCurve
from strikeout.quotes.reading import inspect_quotes
from tests.cli.typed import run
from tests.quotes.workbooks import write_workbook

ROWS = "strike,right,price,expiry_years,forward\n90,C,12,0.25,100\n100,C,6,0.5,100\n110,P,14,3.0,100\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "curve.csv").write_text("days,rate\n91.25,0.05\n365,0.02\n")
    (tmp_path / "quotes.csv").write_text(ROWS)
    return tmp_path / "quotes.csv", tmp_path / "curve.csv"


def test_each_quote_has_the_rate_of_its_expiry(files) -> None:
    path, curve = files
    reading = inspect_quotes(path, constants={"rate": curve})
    rates = np.array([0.05, 0.05 - 0.03 / 3, 0.02])
    assert reading.quotes.labels["rate"] == pytest.approx(rates, rel=1e-14)
    years = reading.quotes.contracts.expiry
    assert -np.log(reading.quotes.contracts.discount) / years == pytest.approx(rates, rel=1e-12)
    assert str(curve) in reading.routes["discount"]
    same = inspect_quotes(path, constants={"rate": {0.25: 0.05, 1.0: 0.02}})
    assert same.quotes.contracts.discount.tolist() == reading.quotes.contracts.discount.tolist()


def test_rates_are_a_keyword_and_not_given_twice(files) -> None:
    path, curve = files
    expected = inspect_quotes(path, constants={"rate": curve}).quotes.contracts.discount.tolist()
    for rates in (curve, {0.25: 0.05, 1.0: 0.02}, [(0.25, 0.05), (1.0, 0.02)]):
        assert inspect_quotes(path, rates=rates).quotes.contracts.discount.tolist() == expected
    assert set(inspect_quotes(path, rates=0.03).quotes.labels["rate"]) == {0.03}
    for wrong in ({"rates": curve, "constants": {"rate": 0.0}}, {"rates": object()}, {"rates": {"x": {1.0: 0.0}}}):
        with pytest.raises(UsageError):
            inspect_quotes(path, **wrong)


def test_a_curve_per_quote_date_is_that_of_the_date_or_the_last_before_it(tmp_path: Path) -> None:
    rows = [
        f"{day},{strike},C,{price},0.5,100"
        for day in ("2024-01-03", "2024-01-05")
        for strike, price in ((95, 9), (105, 3))
    ]
    (tmp_path / "quotes.csv").write_text("\n".join(["quote_date,strike,right,price,expiry_years,forward", *rows]))
    (tmp_path / "curves.csv").write_text(
        "date,years,rate\n2024-01-02,1,0.05\n2024-01-05,0.25,0.01\n2024-01-05,1,0.04\n"
    )
    expected = [0.05, 0.05, 0.02, 0.02]
    found = inspect_quotes(tmp_path / "quotes.csv", rates=tmp_path / "curves.csv").quotes
    assert found.labels["rate"] == pytest.approx(expected, rel=1e-14)
    given = {"2024-01-02": 0.05, "2024-01-05": {0.25: 0.01, 1.0: 0.04}}
    same = inspect_quotes(tmp_path / "quotes.csv", rates=given).quotes
    assert same.labels["rate"].tolist() == found.labels["rate"].tolist()
    late = inspect_quotes(tmp_path / "quotes.csv", rates={"2024-01-04": 0.05})
    assert late.rejected == 2  # no curve on 3 January or before
    (tmp_path / "undated.csv").write_text(ROWS)
    with pytest.raises(UsageError):
        inspect_quotes(tmp_path / "undated.csv", rates=given)


def test_a_number_is_a_rate_for_all_as_before(files) -> None:
    assert set(inspect_quotes(files[0], constants={"rate": 0.03}).quotes.labels["rate"]) == {0.03}


@pytest.mark.parametrize(
    "text",
    ["days,rate\n", "days,rate\n30,5.2\n", "days,rate\n30,x\n", "days,rate\n30,0.01\n30,0.02\n",
     "tenors,rate\n1,0.02\n", "days,rate\n-1,0.02\n"],
)  # fmt: skip
def test_a_curve_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "curve.csv").write_text(text)
    with pytest.raises(UsageError):
        RateCurve.of(tmp_path / "curve.csv")
    with pytest.raises(UsageError):
        RateCurve.of(tmp_path / "absent.csv")


def test_the_command_line_takes_a_curve(files) -> None:
    path, curve = files
    assert "90" in run("inspect", path, "--rates", curve).stdout
    assert run("inspect", path, "--rates", curve, "--constant", "rate=0").exit_code == 2
    assert run("inspect", path).exit_code == 2  # no discount


def test_short_headers_are_read_and_full_names_go_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("K,CallPut,price,T,F,r\n90,C,12,0.25,100,0\n")
    assert inspect_quotes(tmp_path / "a.csv").quotes.contracts.strike.tolist() == [90.0]
    (tmp_path / "b.csv").write_text("strike,right,Type,price,T,F,r\n90,C,index,12,0.25,100,0\n")
    assert inspect_quotes(tmp_path / "b.csv").quotes.labels["Type"].tolist() == ["index"]


def test_a_forward_that_is_not_used_is_noted_with_the_reason(tmp_path: Path) -> None:
    rows = [f"{k},{right},{max(0.0, sign * (100 - k)) + 5},0.5,{'100' if k < 100 else ''}" for k in range(90, 111, 5)
            for right, sign in (("C", 1), ("P", -1))]  # fmt: skip
    (tmp_path / "a.csv").write_text("strike,right,price,expiry_years,forward\n" + "\n".join(rows) + "\n")
    notes = inspect_quotes(tmp_path / "a.csv").table.notes
    assert any("forward is not used" in note and "discount" in note for note in notes)
    assert not inspect_quotes(tmp_path / "a.csv", constants={"rate": 0.0}).table.notes


def workbook(path: Path, rows: list[list[str]]) -> Path:
    """A workbook of one sheet with these texts and numbers."""

    def cell(text: str) -> str:
        is_number = text.replace(".", "").isdigit()
        return f"<c><v>{text}</v></c>" if is_number else f'<c t="inlineStr"><is><t>{text}</t></is></c>'

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    return write_workbook(path, lines)


def test_a_workbook_reads_like_its_csv(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    (tmp_path / "a.csv").write_text(ROWS)
    workbook(tmp_path / "a.xlsx", [line.split(",") for line in ROWS.splitlines()])
    one, other = (inspect_quotes(tmp_path / name, constants={"rate": 0.0}).quotes for name in ("a.csv", "a.xlsx"))
    assert one.observed.tolist() == other.observed.tolist()
    assert one.ids.tolist() == other.ids.tolist()


def test_a_workbook_is_refused_with_the_remedy_if_it_cannot_be_read(tmp_path: Path, monkeypatch) -> None:
    path = workbook(tmp_path / "a.xlsx", [line.split(",") for line in ROWS.splitlines()])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(UnreadableFileError) as error:
        inspect_quotes(path)
    assert error.value.facts["needs"] == "fastexcel"
    path.write_bytes(b"not a workbook")
    with pytest.raises(UnreadableFileError):
        inspect_quotes(path)
