"""Every table of the command line can be had as CSV, LaTeX, Markdown or JSON."""

from __future__ import annotations

import csv
import io
import json

import pytest

from strikeout.synthetic.sample_files import write_sample
from strikeout.tables import Table, number
from tests.cli.typed import done, run


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("formats") / "page.csv", "page")


@pytest.mark.parametrize("words", [["calibrate"], ["influence", "--top", "3"], ["rules"], ["inspect"]])
def test_a_table_is_written_in_every_format(page, words):
    verb, *more = words
    text = {form: run(verb, page, *more, "--format", form).stdout for form in ("csv", "latex", "markdown", "json")}
    rows = list(csv.reader(io.StringIO(text["csv"])))
    assert len(rows[0]) > 1
    assert r"\toprule" in text["latex"]
    assert text["markdown"].startswith("| ")
    assert text["json"] == run(verb, page, *more, "--json").stdout


def test_a_csv_has_every_digit_that_json_has(page):
    rows = list(csv.DictReader(io.StringIO(done("calibrate", page, "--format", "csv").stdout)))
    parameters = json.loads(done("calibrate", page, "--json").stdout)["parameters"]
    assert {row["parameter"]: float(row["value"]) for row in rows} == parameters


def test_json_and_another_format_exclude_each_other(page):
    assert run("calibrate", page, "--json", "--format", "csv").exit_code == 2


def test_an_error_is_json_too_if_the_format_is(page):
    ended = run("calibrate", page, "--where", "nonsense", "--format", "json")
    assert json.loads(ended.stderr)["error"]["code"] == "usage"


def test_a_text_that_a_spreadsheet_would_run_is_quoted_and_marks_of_latex_and_markdown_are_escaped():
    table = Table(("label", "n_1"), [("=cmd()", number(-1.5)), ("50 % | {x}", number(None))], numbers=(1,))
    assert table.to_text("csv").splitlines()[1] == "'=cmd(),-1.5"
    assert r"50 \% | \{x\}" in table.to_text("latex")
    assert r"50 % \| {x}" in table.to_text("markdown")
    assert table.records()[1] == {"label": "50 % | {x}", "n_1": None}
