"""The table from rows to quotes: every row is counted once on its way out, and what is left adds up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from strikeout.errors import UsageError
from strikeout.quotes.reading import Reading, inspect_quotes

HEAD = "id,strike,right,bid,ask,expiry_years,forward,discount,volume,open_interest"
ROWS = [
    "a,100,C,5.0,5.2,0.5,100,1,1,1",
    "b,110,C,1.5,1.7,0.5,100,1,0,0",
    "c,abc,C,9.9,1.7,0.5,100,1,0,0",  # no number, and crossed: counted once
    "d,90,P,1.5,1.4,0.5,100,1,0,0",  # crossed
    "e,120,C,0,0.4,0.5,100,1,0,0",  # nobody bids, nobody trades
    "a,100,C,5.0,5.2,0.5,100,1,1,1",  # the first again
]


def reading(folder: Path, **options: dict[str, float | str]) -> Reading:
    path = folder / "file.csv"
    path.write_text("\n".join([HEAD, *ROWS]) + "\n")
    return inspect_quotes(path, **options)  # type: ignore[arg-type]


def test_each_row_leaves_once_under_the_first_rule_that_rejects_it(tmp_path: Path) -> None:
    found = reading(tmp_path).screening
    assert [(step.code, step.removed, step.left, step.flagged) for step in found.steps] == [
        ("Q102", 1, 5, 0),
        ("Q103", 1, 4, 0),
        ("Q201", 1, 3, 0),
        ("Q207", 0, 3, 1),
        ("Q213", 0, 3, 2),
    ]
    assert (found.rows, found.left) == (6, 3)


def test_a_rule_told_to_reject_has_its_own_line(tmp_path: Path) -> None:
    found = reading(tmp_path, checks={"Q207": "reject"})
    assert [(step.code, step.removed, step.flagged) for step in found.screening.steps][3:] == [
        ("Q207", 1, 0),
        ("Q213", 0, 1),  # that nobody trades the row taken out is no longer anybody's concern
    ]
    assert found.screening.left == len(found.quotes) == 2


def test_the_table_can_be_pasted(tmp_path: Path) -> None:
    found = reading(tmp_path).screening
    markdown = found.table("markdown").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown]
    assert rows[0] == ["code", "rule", "removed", "left", "flagged"]
    assert rows[2] == ["", "rows in", "", "6", ""]
    assert rows[4] == ["Q103", "crossed market", "1", "4", ""]
    assert rows[-1] == ["", "quotes left", "", "3", ""]
    latex = found.table("latex")
    assert r"Q103 & crossed market & 1 & 4 &  \\" in latex
    assert latex.startswith(r"\begin{tabular}")
    assert found.table("csv").splitlines()[4] == 'Q201,"exact repeat, kept once",1,3,'
    assert found.table() in reading(tmp_path).summary().replace("\n  ", "\n")
    with pytest.raises(UsageError) as refused:
        found.table("html")
    assert refused.value.format == "html"


def test_rules_that_could_not_be_run_are_named(tmp_path: Path) -> None:
    told = reading(tmp_path, checks={"Q208": "off"}).screening.unchecked
    assert told["Q210"] == "needs quote_date and expiry"
    assert told["Q211"] == "needs deliverable or root"
    assert told["Q208"] == "turned off"
    assert "Q213" not in told


@pytest.mark.parametrize("name", ["day_cboe_spx_2023-12-08", "day_cboe_aapl_2019-08-23", "day_rnd_spx_2013-04-19"])
def test_the_counts_of_a_real_chain_add_up(shared_data: Callable[[str], Path], name: str) -> None:
    found = inspect_quotes(shared_data(f"chains/{name}.parquet"), checks={"Q207": "reject", "Q208": "0.3,reject"})
    screening = found.screening
    assert screening.rows == found.rows
    assert screening.rows - sum(step.removed for step in screening.steps) == screening.left == len(found.quotes)
    assert next(step.removed for step in screening.steps if step.code == "Q207") > 0
