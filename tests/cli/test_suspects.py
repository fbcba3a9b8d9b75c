"""``strikeout outliers`` and ``strikeout robustness`` show what the calls of the same names find."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout


@pytest.fixture(scope="module")
def quotes():
    """Smiles of six expiries with one price a quarter too high."""
    day = so.synthetic.random_quotes(400, maturities=4, seed=3)
    observed = day.observed.copy()
    observed[100] *= 1.25
    return day.with_observed(observed)


@pytest.fixture(scope="module", params=["file", "book"])
def path(request, quotes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("suspects")
    if request.param == "file":
        so.write_quotes(quotes, folder / "day.csv")
        return folder / "day.csv"
    with so.Book.create(folder / "day.book") as book:
        book.import_quotes(quotes)
        book.calibrate()
    return folder / "day.book"


def found(*words):
    done = CliRunner().invoke(strikeout, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_outliers_of_a_file_and_of_a_book_are_those_of_the_call(path, quotes):
    shown = found("outliers", path, "--top", 2)
    assert shown["outliers"] == so.outliers(quotes).to_dict(2)["outliers"]
    assert shown["outliers"][0]["id"] == quotes.ids[100]
    assert (shown["suspects"], shown["quotes"]) == (1, 400)


def test_robustness_of_a_file_and_of_a_book_is_that_of_the_call(path, quotes):
    shown = found("robustness", path, "--target", "correlation", "--count", 2)
    wanted = so.robustness(so.calibrate(quotes, so.Heston()), "correlation", count=2).to_dict()
    assert {name: shown[name] for name in wanted} == wanted


@pytest.mark.parametrize("command", ["outliers", "robustness"])
def test_the_table_has_one_line_per_row(command, path):
    done = CliRunner().invoke(strikeout, [command, str(path), "--format", "csv"])
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) == {"outliers": 11, "robustness": 3}[command]


def test_an_unknown_target_is_a_usage_error(path):
    done = CliRunner().invoke(strikeout, ["robustness", str(path), "--target", "colour"])
    assert done.exit_code == 2
    assert "mean_reversion" in done.stderr
