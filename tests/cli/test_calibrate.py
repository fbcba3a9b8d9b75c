"""``strikeout calibrate`` gives what ``strikeout.calibrate`` gives, and says all that must not be overlooked."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.cli.calibrate import remedy
from strikeout.models.named import MODELS, model_named

RESULT = {
    "parameters",
    "standard_errors",
    "rmse",
    "converged",
    "termination",
    "count",
    "rows",
    "rejected",
    "quarantine",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "small.csv"
    so.write_quotes(so.paper.quotes("small"), path)
    return path


@pytest.fixture(scope="module")
def dirty(book):
    """The same book with one strike made negative."""
    path = book.with_name("dirty.csv")
    lines = book.read_text().splitlines(keepends=True)
    strike = lines[0].rstrip().split(",").index("strike")
    cells = lines[5].split(",")
    cells[strike] = "-90"
    lines[5] = ",".join(cells)
    path.write_text("".join(lines))
    return path


def run(*words):
    return CliRunner().invoke(strikeout, ["calibrate", *map(str, words)])


def test_the_json_is_the_calibration_of_the_same_file(book):
    done = run(book, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    cal = so.calibrate(so.read_quotes(book), so.Heston())
    assert set(result) >= RESULT
    assert result["parameters"] == cal.parameters
    assert result["standard_errors"] == cal.standard_errors
    assert (result["rmse"], result["count"], result["converged"]) == (cal.rmse, 540, True)
    assert result["termination"] == str(cal.termination)
    assert (result["rows"], result["rejected"], result["quarantine"]) == (540, 0, None)


def test_the_table_shows_every_parameter_the_error_and_the_status(book):
    done = run(book)
    cal = so.calibrate(so.read_quotes(book), so.Heston())
    for name, value in cal.parameters.items():
        row = next(line for line in done.stdout.splitlines() if line.startswith(name))
        assert f"{value:.6g}" in row
        assert f"{cal.standard_errors[name]:.2g}" in row
    assert str(cal.termination) in done.stdout
    assert f"{cal.rmse:.4g} in price" in done.stdout


def test_every_option_reaches_the_calibration(book):
    words = ["--weights", "none", "--loss", "huber", "--fix", "mean_reversion=2", "--bound", "vol_of_vol=0.1:0.9"]
    done = run(book, *words, "--feller", "enforce", "--starts", "2", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    expected = so.calibrate(
        so.read_quotes(book),
        so.Heston(),
        weights="none",
        loss="huber",
        fixed={"mean_reversion": 2.0},
        bounds={"vol_of_vol": (0.1, 0.9)},
        feller="enforce",
        starts=2,
    )
    assert result["parameters"] == expected.parameters
    assert result["standard_errors"]["mean_reversion"] is None
    assert len(result["starts"]) == 2


def test_volatility_residuals_can_be_asked_for(book):
    result = json.loads(run(book, "--residual", "implied_vol", "--json").stdout)
    assert result["residual"] == "implied_vol"
    assert result["converged"]


def test_one_maturity_does_not_determine_the_parameters_and_the_command_fails_with_the_result(tmp_path):
    so.write_quotes(so.synthetic.random_quotes(60, maturities=1, seed=5), tmp_path / "one.csv")
    done = run(tmp_path / "one.csv", "--json")
    assert done.exit_code == 3
    result = json.loads(done.stdout)
    assert not result["converged"]
    assert result["unidentified"] or result["on_bound"]
    spoken = run(tmp_path / "one.csv")
    assert spoken.exit_code == 3
    assert "warning" in spoken.stdout


def test_bad_rows_go_to_the_quarantine_and_are_mentioned_with_its_name(dirty, tmp_path):
    bad = tmp_path / "bad.csv"
    done = run(dirty, "--quarantine", bad)
    assert done.exit_code == 0, done.output
    assert f"1 of 540 rows quarantined in {bad}" in done.stderr
    assert "Q104 line 6, column strike: -90 is not above zero" in done.stderr
    assert bad.read_text().count("Q104") == 1
    result = json.loads(run(dirty, "--quarantine", bad, "--json").stdout)
    assert (result["rejected"], result["count"], result["quarantine"]) == (1, 539, str(bad))
    assert result["issues"]["Q104"] == 1


def test_without_a_quarantine_bad_rows_are_still_mentioned(dirty):
    assert "1 of 540 rows left out" in run(dirty).stderr


def test_a_file_with_more_bad_rows_than_allowed_is_refused_and_they_are_kept(dirty, tmp_path):
    bad = tmp_path / "bad.csv"
    done = run(dirty, "--max-reject", "0", "--quarantine", bad)
    assert done.exit_code == 2
    assert "raise --max-reject" in done.stderr
    assert str(bad) in done.stderr
    assert bad.exists()
    told = json.loads(run(dirty, "--max-reject", "0", "--json").stderr)["error"]
    assert (told["code"], told["rejected"], told["rows"]) == ("rejected", 1, 540)
    assert told["issues"][0]["code"] == "Q104"


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_the_smiles_are_written_where_asked(book, tmp_path, ending):
    plot = tmp_path / f"smiles.{ending}"
    done = run(book, "--plot", plot)
    assert done.exit_code == 0, done.output
    assert plot.stat().st_size > 5_000
    assert str(plot) in done.stderr


def test_a_picture_of_unknown_kind_is_refused_before_any_work(tmp_path):
    done = run(tmp_path / "not-there.csv", "--plot", "smiles.gif")
    assert done.exit_code == 2
    assert ".png, .svg, .pdf, .html, .json" in done.stderr


def test_a_book_of_several_dates_is_told_what_a_variance_a_date_would_gain(book, tmp_path):
    moving = tmp_path / "moving.csv"
    so.write_quotes(so.synthetic.panel_quotes(20, seed=1), moving)
    said = " ".join(run(moving).stdout.split())
    assert "one value for 20 dates" in said
    assert "calibrate with --panel date" in said
    constant = " ".join(run(book).stdout.split())
    assert "a value per date would gain no more than noise does" in constant


def test_the_report_shows_starts_and_steps(book):
    done = run(book, "--report")
    assert "steps of the best start" in done.stdout
    assert len(json.loads(run(book, "--report", "--json").stdout)["history"]) > 2


def test_a_constant_stands_in_for_a_missing_column(book, tmp_path):
    header, *lines = book.read_text().splitlines()
    place = header.split(",").index("discount")
    cut = [",".join(cell for n, cell in enumerate(line.split(",")) if n != place) for line in [header, *lines]]
    path = tmp_path / "undiscounted.csv"
    path.write_text("\n".join(cut) + "\n")
    assert run(path).exit_code == 2
    assert run(path, "--constant", "rate=0.01").exit_code == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--fix", "speed=2"], "mean_reversion"),
        (["--starts", "0"], "x>=1"),
        (["--weights", "gamma"], "vega"),
        (["--model", "garch"], "heston"),
        (["--bound", "correlation=2:3"], "correlation"),
        (["--max-reject", "7"], "1.0"),
    ],
)
def test_a_wrong_option_is_answered_with_what_is_possible(book, words, named):
    done = run(book, *words)
    assert done.exit_code == 2
    assert named in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("model", [name for name in MODELS if name not in ("bates", "double-heston")])
def test_every_model_can_be_asked_for_by_its_name(book, model):
    done = run(book, "--model", model, "--json")
    found = json.loads(done.stdout)
    expected = so.calibrate(so.read_quotes(book), model_named(model))
    assert found["parameters"] == expected.parameters
    assert done.exit_code == (0 if expected.converged else 3)


def test_a_hint_names_a_parameter_of_the_model_that_was_asked_for(tmp_path):
    quotes = so.paper.quotes("small")
    path = tmp_path / "short.csv"
    so.write_quotes(quotes[quotes.contracts.log_moneyness > 0.05], path)
    done = run(path, "--model", "svi")
    assert "mean_reversion" not in done.output


def test_an_enforced_condition_of_feller_that_binds_is_called_so(tmp_path):
    theta = {
        "mean_reversion": 1.0,
        "long_variance": 0.04,
        "vol_of_vol": 0.6,
        "correlation": -0.5,
        "initial_variance": 0.04,
    }
    file = tmp_path / "book.csv"
    so.write_quotes(so.synthetic.random_quotes(200, maturities=4, seed=1, theta=theta), file)
    shown = CliRunner().invoke(strikeout, ["calibrate", str(file), "--feller", "enforce"]).stdout
    assert "(enforced, and binding)" in shown


def test_a_panel_whose_day_has_no_variance_is_told_of_a_bound_and_not_to_fix_what_was_found():
    quotes = so.synthetic.panel_quotes(24, seed=5)
    day = quotes.labels["date"] == quotes.labels["date"][0]
    worthless = quotes.with_observed(np.where(day, quotes.contracts.intrinsic, quotes.observed))
    panel = so.calibrate(worthless, so.Heston(), panel="date", starts=1)
    assert panel.latent_on_bound
    assert not panel.converged
    assert '--bound "initial_variance=1e-08:3.0"' in remedy(panel)
    assert "--fix" not in remedy(panel)
    bounds = {name: tuple(map(float, ends.split(":"))) for name, ends in re.findall(r'"(\w+)=(.+?)"', remedy(panel))}
    assert so.calibrate(worthless, so.Heston(), panel="date", starts=1, bounds=bounds).converged


def test_a_parameter_on_the_models_bound_is_the_one_the_hint_names():
    theta = {
        "mean_reversion": 2.0,
        "long_variance": 0.06,
        "vol_of_vol": 0.5,
        "correlation": -0.9999,
        "initial_variance": 0.06,
    }
    quotes = so.synthetic.random_quotes(200, maturities=4, seed=1, theta=theta, noise=0.0)
    found = so.calibrate(quotes, so.Heston())
    assert found.termination is so.results.Termination.AT_BOUND
    assert remedy(found) == '--bound "correlation=-0.999:0.999"'
