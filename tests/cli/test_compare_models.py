"""``strikeout compare-models`` shows what ``compare_models`` finds."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.models.named import MODELS


@pytest.fixture(scope="module")
def quotes():
    return so.paper.quotes("small")


@pytest.fixture(scope="module")
def file(quotes, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "small.csv"
    so.write_quotes(quotes, path)
    return path


def run(*words):
    return CliRunner().invoke(strikeout, ["compare-models", *map(str, words)])


def test_a_line_a_model_and_what_they_say(file):
    done = run(file, "--models", "heston")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[:2] == ["heston", "5"]
    assert "heston has the lowest AIC and BIC." in done.stdout


def test_the_json_is_the_comparison_of_the_same_file(file):
    done = run(file, "--models", "heston", "--top", 2, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    expected = so.compare_models(so.read_quotes(file), ["heston"], most=2).to_dict()
    assert {name: result[name] for name in expected} == expected
    assert result["rows"] == 540


def test_a_book_is_compared_as_its_quotes_are(quotes, file, tmp_path):
    path = tmp_path / "small.book"
    with so.Book.create(path) as book:
        book.import_quotes(quotes)
    from_book, from_file = (json.loads(run(one, "--models", "heston", "--json").stdout) for one in (path, file))
    assert from_book["models"] == from_file["models"]


@pytest.mark.parametrize("models", ["hestn", "heston,hestn", ","])
def test_a_model_that_does_not_exist_is_answered_with_those_that_do(file, models):
    done = run(file, "--models", models)
    assert done.exit_code == 2
    assert all(name in done.stderr for name in MODELS)


def test_quotes_that_no_model_converges_on_end_with_three(quotes, tmp_path):
    path = tmp_path / "few.csv"
    so.write_quotes(quotes[:3], path)
    done = run(path, "--models", "heston")
    assert done.exit_code == 3, done.output
    assert "No model can be judged" in done.stdout


def test_a_vendor_s_file_is_compared_out_of_the_money_where_it_is_told_so(tmp_path):
    path = so.synthetic.write_sample(tmp_path / "chain.csv")
    asked = ("--models", "heston", "--select", "otm", "--weights", "spread")
    done = run(path, *asked, "--profile", "cboe-dashboard", "--check", "Q209=off", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["count"], result["rows"]) == (516, 1134)  # half of the 1,032 quotes; 102 rows are none
    alone = so.calibrate(so.inspect_quotes(path).quotes, so.Heston(), select="otm", weights="spread")
    assert result["models"][0]["values"] == alone.to_dict()["parameters"]
    assert result["models"][0]["rmse"] == alone.rmse


def test_models_with_one_latent_value_for_many_dates_are_told_what_a_value_a_date_would_gain(tmp_path):
    path = tmp_path / "days.csv"
    so.write_quotes(so.synthetic.panel_quotes(12, seed=3), path)
    done = run(path, "--models", "heston,black-scholes")
    assert done.exit_code == 0, done.output
    assert "heston: initial_variance has one value for 12 dates; a value per date" in done.stderr
    assert "black-scholes: " not in done.stderr  # nothing in it could change from day to day


def test_a_book_is_compared_as_it_was_calibrated_last_where_nothing_else_is_said(tmp_path):
    path = tmp_path / "chain.book"
    with so.Book.create(path) as book:
        book.import_quotes(so.inspect_quotes(so.synthetic.write_sample(tmp_path / "chain.csv")).quotes)
        last = book.calibrate(select="otm", weights="spread").after
    found = json.loads(run(path, "--models", "heston", "--json").stdout)
    assert found["count"] == last.count == 516
    assert found["models"][0]["values"] == dict(last.parameters)
    every = json.loads(run(path, "--models", "heston", "--select", "all", "--json").stdout)
    assert every["count"] == 1032
