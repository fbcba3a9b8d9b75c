"""``strikeout influence`` shows what ``influence`` finds, the most influential first."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.assurance.influence import Influence, influence
from strikeout.cli import strikeout
from strikeout.synthetic.sample_files import write_sample


@pytest.fixture(scope="module")
def quotes():
    """A small book in which one quote is too dear by about twenty times the noise."""
    book = so.paper.quotes("small")
    prices = book.observed.copy()
    prices[100] += 0.02
    return book.with_observed(prices)


@pytest.fixture(scope="module")
def book(quotes, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "small.csv"
    so.write_quotes(quotes, path)
    return path


def run(*words):
    return CliRunner().invoke(strikeout, ["influence", *map(str, words)])


def test_the_bad_quote_comes_first(book, quotes):
    done = run(book, "--top", 3)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[0] == quotes.ids[100]
    assert "The first 3 of 540 quotes" in done.stdout


def test_the_day_of_the_bad_quote_comes_first(book, quotes):
    done = run(book, "--by", "date", "--top", 2)
    assert done.stdout.splitlines()[1].split()[0] == quotes.labels["date"][100]


def test_the_json_is_the_influence_of_the_same_file(book):
    done = run(book, "--by", "date, expiry", "--top", 5, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    expected = influence(so.calibrate(so.read_quotes(book), so.Heston()), ["date", "expiry"])
    assert result["groups"] == expected.rows == 90 * 2
    for name in ("cooks_d", "dfbetas_correlation", "price_change", "rmse_change", "expiry"):
        assert result["columns"][name] == expected[name][:5].tolist()
    assert result["count"] == 540


def test_a_parameter_is_shown_to_move_the_way_it_moves_without_the_group(book, quotes):
    row = run(book, "--top", 1).stdout.splitlines()[1].split()
    name, moves = row[2], float(row[3])
    before = so.calibrate(quotes, so.Heston()).parameters[name]
    after = so.calibrate(quotes.without([quotes.ids[100]]), so.Heston()).parameters[name]
    assert np.sign(moves) == np.sign(after - before)


def test_the_first_ones_are_confirmed_by_calibrating_anew(book, quotes):
    result = json.loads(run(book, "--top", 2, "--confirm", 1, "--json").stdout)["columns"]
    after = so.calibrate(quotes.without([quotes.ids[100]]), so.Heston())
    before = so.calibrate(quotes, so.Heston())
    # The file holds every bit of the book, so the two calibrations are the very same.
    assert result["confirmed_rmse_change"] == [after.rmse - before.rmse, None]
    assert "confirmed RMSE" in run(book, "--top", 2, "--confirm", 1).stdout
    assert "confirmed" not in run(book, "--top", 2).stdout


def test_options_of_the_calibration_are_taken(book):
    columns = json.loads(run(book, "--fix", "mean_reversion=2", "--top", 1, "--json").stdout)["columns"]
    assert "dfbetas_correlation" in columns
    assert "dfbetas_mean_reversion" not in columns


def test_an_unknown_label_is_answered_with_the_known_ones(book):
    done = run(book, "--by", "exchange")
    assert done.exit_code == 2
    assert "'exchange'" in done.stderr
    assert "date" in done.stderr
    assert done.stdout == ""


def test_a_group_without_which_nothing_is_determined_says_so(book):
    """One of two expiries alone cannot tell mean reversion from long variance."""
    done = run(book, "--by", "expiry")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("none determined") == 2
    assert json.loads(run(book, "--by", "expiry", "--json").stdout)["columns"]["is_identified"] == [False, False]


def test_a_book_that_determines_nothing_is_refused(tmp_path):
    so.write_quotes(so.synthetic.random_quotes(60, maturities=1, seed=5), tmp_path / "one.csv")
    done = run(tmp_path / "one.csv", "--plot", tmp_path / "map.png")
    assert done.exit_code == 3
    assert "--fix NAME=VALUE" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "map.png").exists()


def test_the_map_is_written_where_asked(book, tmp_path):
    done = run(book, "--plot", tmp_path / "map.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "map.png").stat().st_size > 5_000
    assert str(tmp_path / "map.png") in done.stderr


def test_a_map_of_another_kind_is_refused_before_any_work(tmp_path):
    done = run(tmp_path / "not-there.csv", "--plot", "map.gif")
    assert done.exit_code == 2
    assert "map.gif" in done.stderr


def test_a_label_with_an_apostrophe_is_a_text_in_the_condition_that_is_suggested():
    found = Influence({"desk": np.array(["O'Hara's"]), "lots": np.array([3]), "count": np.array([1])})
    assert found.condition() == "desk = 'O''Hara''s' and lots = 3"


def test_groups_by_expiry_are_named_by_their_dates_if_every_quote_has_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample(Path("page.csv"), "page")
    found = json.loads(run("page.csv", "--by", "expiry", "--json").stdout)["columns"]
    dates = set(map(str, so.inspect_quotes("page.csv").quotes.labels["expiry_date"].tolist()))
    assert set(found["expiry_date"]) == dates
