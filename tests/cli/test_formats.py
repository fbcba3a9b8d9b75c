"""Every table of the command line can be had as CSV, LaTeX, Markdown or JSON."""

from __future__ import annotations

import csv
import io
import json

import pytest

from strikeout.book import Book
from strikeout.cli import terminal
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


@pytest.mark.parametrize("more", [["--format", "csv"], ["--format", "latex"], ["--fit-errors"]])
def test_warnings_of_a_calibration_are_notes_if_its_table_is_printed_alone(page, more):
    words = ["calibrate", page, "--starts", 1, "--fix", "vol_of_vol=2"]  # Feller's condition is not met
    whole, alone = run(*words), run(*words, *more)
    assert alone.exit_code == whole.exit_code
    known = json.loads(run(*words, "--json").stdout)["warnings"]
    assert known
    assert all(f"note: {sentence}" in alone.stderr for sentence in known)
    assert not any(f"note: {sentence}" in whole.stderr for sentence in known)


@pytest.mark.parametrize("option", ["--report", "--diagnostics"])
def test_lines_that_are_no_table_are_not_printed_as_csv(page, option):
    ended = run("calibrate", page, option, "--format", "csv")
    assert (ended.exit_code, ended.stdout) == (2, "")


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


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path / "feeds.csv", "feeds")
    done("init", "a.book")
    done("import", "a.book", "feeds.csv")
    return "a.book"


def test_every_change_of_a_book_is_written_in_every_format(desk):
    def first(*words):
        return next(iter(csv.reader(io.StringIO(done(*words, "--format", "csv").stdout))))

    assert first("calibrate", desk)[:3] == ["parameter", "value", "standard error"]
    assert first("forget", desk, "--where", "strike > 5500", "--yes")[0] == "parameter"
    assert first("restore", desk, "--last")[0] == "parameter"
    done("forget", desk, "--where", "strike > 5500")
    assert first("apply", desk)[-1].startswith("moved")
    assert r"\toprule" in done("roll", desk, "--window", 2, "--format", "latex").stdout
    assert done("history", desk, "--format", "markdown").stdout.startswith("| entry")


def test_a_change_of_a_book_shows_fit_errors_in_three_units(desk):
    shown = json.loads(done("calibrate", desk, "--json").stdout)
    errors = shown["fit_errors"]
    assert errors["price"] == pytest.approx(shown["rmse"])
    assert errors["vol_points"] > 0.0
    text = done("forget", desk, "--where", "strike > 5500", "--yes").stdout
    (line,) = (line for line in text.splitlines() if line.startswith("fit error"))
    assert "volatility points" in line


@pytest.mark.parametrize("width", [60, 80, 200])
def test_history_is_readable_at_any_width(desk, width, monkeypatch):
    done("calibrate", desk)
    done("forget", desk, "--where", "strike > 5500", "--yes")
    with Book.open(desk) as book:
        table = book.history().to_table()
    monkeypatch.setattr(terminal, "_columns", lambda: width)
    parts = [part for part in terminal.split(table) if isinstance(part, Table)]
    assert sorted({head for part in parts for head in part.headings}) == sorted(table.headings)  # nothing is left out
    assert all(part.headings[0] == "entry" for part in parts)
    assert (len(parts) == 1) == (width == 200)
    assert all(len(line) <= width for part in parts for line in part.to_text().splitlines())


def test_a_table_of_a_book_that_is_printed_alone_names_why_the_command_ends_with_3(desk):
    poor = "--panel", "none", "--bound", "vol_of_vol=0.01:0.02"
    alone, known = (run("calibrate", desk, *poor, "--format", form) for form in ("csv", "json"))
    assert (alone.exit_code, known.exit_code) == (3, 3)
    assert json.loads(known.stdout)["termination"] in alone.stderr


def test_no_column_of_a_table_is_without_a_name(desk, page):
    done("forget", page, "--where", "strike > 5500", "--certificate", "c.json", "--out", "kept.csv")
    for words in (
        ["verify", desk],
        ["verify", "c.json", "kept.csv"],
        ["doctor"],
        ["rules", page, "--list", "Q213"],
    ):
        head = next(csv.reader(io.StringIO(run(*words, "--format", "csv").stdout)))
        assert all(head), words
