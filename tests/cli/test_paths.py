"""``strikeout filter`` and ``strikeout regimes`` show what the calls of the same names find."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

QUOTES = so.synthetic.panel_quotes(12, seed=3)


@pytest.fixture(scope="module", params=["file", "book"])
def path(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("paths")
    if request.param == "file":
        so.write_quotes(QUOTES, folder / "days.csv")
        return folder / "days.csv"
    with so.Book.create(folder / "days.book") as book:
        book.import_quotes(QUOTES)
        book.calibrate()
    return folder / "days.book"


def run(*words):
    return CliRunner().invoke(strikeout, [*map(str, words)])


def test_the_filter_of_a_file_and_of_a_book_is_that_of_the_call(path):
    done = run("filter", path, "--strength", 2, "--at", "2024-01-30", "--json")
    assert done.exit_code == 0, done.stderr
    wanted = so.calibrate(QUOTES, so.Heston(), panel="date").filter(strength=2.0, dates=["2024-01-30"]).to_dict()
    shown = json.loads(done.stdout)
    assert {name: shown[name] for name in wanted} == wanted
    assert shown["converged"] is True


def test_the_table_has_one_line_per_date_and_the_picture_is_written(path, tmp_path):
    done = run("filter", path, "--format", "csv", "--plot", tmp_path / "path.png")
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) == 13
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")
    assert run("filter", path).exit_code == 0


def test_the_regimes_of_a_file_and_of_a_book_are_those_of_the_call(path, tmp_path):
    done = run(
        "regimes", path, "--count", 1, "--switching", "correlation", "--json", "--plot", tmp_path / "regimes.svg"
    )
    assert done.exit_code == 0, done.stderr
    wanted = so.calibrate(QUOTES, so.Heston(), panel="date").regimes(count=1, switching=["correlation"]).to_dict()
    shown = json.loads(done.stdout)
    assert {name: shown[name] for name in wanted} == wanted
    assert (tmp_path / "regimes.svg").read_text().startswith("<?xml")
    assert len(run("regimes", path, "--count", 1, "--format", "csv").stdout.strip().splitlines()) == 13
    assert "standard error" in run("regimes", path, "--count", 1).stdout
    assert run("regimes", path, "--switching", "colour").exit_code == 2


def test_the_picture_of_a_book_is_entered_in_its_ledger(tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(QUOTES)
        book.calibrate()
        before = len(book.log())
    assert run("filter", tmp_path / "a.book", "--plot", tmp_path / "path.json").exit_code == 0
    assert json.loads((tmp_path / "path.json").read_text())["by"] == "date"
    with so.Book.open(tmp_path / "a.book") as book:
        assert len(book.log()) == before + 1


def test_an_ending_that_is_no_picture_and_a_date_that_is_none_are_refused(path):
    assert run("filter", path, "--plot", "path.gif").exit_code == 2
    assert run("filter", path, "--at", "tomorrow").exit_code == 2
