"""--where uses some of the quotes; aliases, objectives and starts mean what they name."""

from __future__ import annotations

import json

import pytest

import strikeout as so
from strikeout.assurance.influence import Confirmation
from strikeout.cli.influence import OUTCOMES
from strikeout.synthetic.sample_files import write_sample
from tests.cli.typed import run, told

NEAR = "abs(log_moneyness) < 0.05"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("filters") / "page.csv", "page")


@pytest.fixture(scope="module")
def quotes(page):
    return so.inspect_quotes(page).quotes


def test_calibrate_uses_only_the_quotes_that_match(page, quotes):
    matching = int((abs(quotes.contracts.log_moneyness) < 0.05).sum())
    assert 0 < matching < len(quotes)
    assert told("calibrate", page, "--where", NEAR)["count"] == matching
    assert told("calibrate", page, "--only", NEAR)["count"] == matching


@pytest.mark.parametrize("words", [["influence"], ["compare-models", "--models", "heston"]])
def test_other_commands_use_them_too(page, words):
    verb, *more = words
    count = told("calibrate", page, "--where", NEAR)["count"]
    assert told(verb, page, *more, "--where", NEAR)["count"] == count


def test_a_picture_shows_only_them(page, tmp_path):
    out = tmp_path / "smiles.json"
    run("plot", page, "--where", NEAR, "--out", out)
    assert json.loads(out.read_text())["quotes"] == told("calibrate", page, "--where", NEAR)["count"]


def test_inspect_and_rules_count_them(page):
    count = told("calibrate", page, "--where", "strike > 0")["count"]
    assert json.loads(run("inspect", page, "--where", "strike > 0", "--json").stdout)["matching"] == count
    assert told("rules", page, "--where", "strike > 0")["matching"] == count
    assert run("rules", "--where", "strike > 0").exit_code == 2


def test_forget_filters_with_only(page):
    whole = told("calibrate", page, "--where", NEAR)["count"]
    done = told("forget", page, "--only", NEAR, "--where", "strike > 0 and log_moneyness > 0.04")
    assert len(done["forgotten"]) + done["retained"] == whole


def test_no_match_is_refused_with_its_code(page):
    ended = run("calibrate", page, "--where", "strike < 0", "--json")
    assert ended.exit_code == 3
    assert json.loads(ended.stderr)["error"]["code"] == "nothing-meant"


def test_symbols_of_textbooks_name_parameters(page):
    short = told("calibrate", page, "--fix", "rho=-0.7", "--bound", "kappa=0.1:10")
    full = told("calibrate", page, "--fix", "correlation=-0.7", "--bound", "mean_reversion=0.1:10")
    assert short["parameters"] == full["parameters"]
    assert short["fixed"] == {"correlation": -0.7}


def test_a_model_is_named_in_any_case(page):
    assert told("calibrate", page, "--model", "Heston") == told("calibrate", page)


def test_an_objective_is_a_residual_and_weights(page):
    one = told("calibrate", page, "--select", "otm", "--objective", "vol-spread")
    two = told("calibrate", page, "--select", "otm", "--residual", "implied_vol", "--weights", "vol-spread")
    assert one == two
    assert (one["residual"], one["weights"]) == ("implied_vol", "vol-spread")
    assert run("calibrate", page, "--objective", "vol-spread", "--weights", "none").exit_code == 2


def test_more_starts_than_there_are_end_with_2(page):
    ended = run("calibrate", page, "--starts", "10", "--json")
    assert ended.exit_code == 2
    assert json.loads(ended.stderr)["error"]["most"] == 4


def test_an_expiry_is_confirmed_though_its_forward_comes_from_parity(page, quotes):
    """Out of the money alone, the rest of the slice gives no forward: it is struck out too."""
    assert (quotes.labels["forward_from"] == "parity").any()
    found = told("influence", page, "--select", "otm", "--by", "expiry_date", "--top", "3", "--confirm", "3")["columns"]
    assert set(found["confirmed_status"]) <= {"refitted", "refitted-without-slices", "not-converged"}
    assert "refitted-without-slices" in found["confirmed_status"]
    confirmed = [change is not None for change in found["confirmed_rmse_change"]]
    assert confirmed == [status != "not-converged" for status in found["confirmed_status"]]


def test_every_outcome_of_a_confirmation_has_words():
    assert {"refitted", *OUTCOMES} == set(Confirmation)


def test_a_condition_on_a_book_shows_a_part_of_it_and_stores_nothing(page, quotes, tmp_path):
    """What a book stores is the calibration of every quote it holds: forgetting and erasing depend on that."""
    book = tmp_path / "a.book"
    for words in (["init", book], ["import", book, page], ["calibrate", book]):
        assert run(*words).exit_code in (0, 3)
    before = told("history", book)
    found = told("calibrate", book, "--where", NEAR)
    matching = int((abs(quotes.contracts.log_moneyness) < 0.05).sum())
    assert (found["count"], found["stored"]) == (matching, False)
    assert found["parameters"] == told("calibrate", page, "--where", NEAR)["parameters"]
    assert told("influence", book, "--where", NEAR)["count"] == matching
    picture = told("plot", book, "--where", NEAR, "--out", tmp_path / "smiles.json")
    assert picture["count"] == matching
    assert told("history", book) == before
    assert run("calibrate", book, "--where", NEAR, "--model", "bates").exit_code == 2
    assert run("calibrate", book, "--where", "strike < 0").exit_code == 3


def test_errors_by_expiry_are_a_table(page):
    lines = run("calibrate", page, "--fit-errors", "--format", "csv").stdout.splitlines()
    assert lines[0] == "expiry,quotes,vol points,spreads,price"
    assert lines[-1].startswith("all,")
    errors = told("calibrate", page)["fit_errors"]
    assert [line.split(",")[0] for line in lines[1:-1]] == [each["expiry"] for each in errors["by_expiry"]]


def test_svi_is_raw_and_its_parameters_carry_dates(page):
    found = told("calibrate", page, "--model", "svi", "--select", "otm", "--where", "expiry_years < 0.3")
    assert found["model"].startswith("svi/raw")
    dates = {each["expiry"] for each in found["fit_errors"]["by_expiry"]}
    rows = run(
        "calibrate", page, "--model", "svi", "--select", "otm", "--where", "expiry_years < 0.3", "--format", "csv"
    )
    lines = rows.stdout.splitlines()
    assert lines[0].startswith("expiry,a,b,rho,m,sigma,quotes,vol points")
    assert {line.split(",")[0] for line in lines[1:]} == dates
    assert {smile["expiry"] for smile in found["smiles"]} == dates
