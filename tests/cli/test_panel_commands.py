"""``--panel``: calibrate, forget, influence and verify with one latent parameter a day, from files."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

DAY = "date = '2024-01-08'"


@pytest.fixture(scope="module")
def quotes():
    return so.synthetic.panel_quotes(8, seed=3)


@pytest.fixture(scope="module")
def file(quotes, tmp_path_factory):
    path = tmp_path_factory.mktemp("panel") / "panel.csv"
    so.write_quotes(quotes, path)
    return path


def run(command, *words):
    done = CliRunner().invoke(strikeout, [command, *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done


def told(command, *words):
    done = run(command, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_calibrate_prints_shared_parameters_and_the_path(file, quotes):
    panel = so.calibrate(quotes, so.Heston(), panel="date")
    result = told("calibrate", file, "--panel", "date")
    assert result["parameters"] == panel.parameters
    assert result["latent"]["values"] == panel.latent
    shown = run("calibrate", file, "--panel", "date").stdout
    assert "one for each of 8 dates" in shown
    assert "mean_reversion" in shown
    assert "2024-01-08" in run("calibrate", file, "--panel", "date", "--report").stdout


def test_a_label_that_is_not_there_is_refused_by_name(file):
    done = run("calibrate", file, "--panel", "desk")
    assert done.exit_code == 2
    assert "--panel desk" in done.stderr


def test_a_forgotten_day_goes_with_its_latent_parameter_and_the_certificate_holds(file, quotes, tmp_path):
    kept, certificate = tmp_path / "kept.csv", tmp_path / "certificate.json"
    words = (file, "--panel", "date", "--where", DAY, "--out", kept, "--certificate", certificate)
    result = told("forget", *words)
    fresh = so.calibrate(quotes[quotes.labels["date"] != "2024-01-08"], so.Heston(), panel="date")
    assert result["parameters"] == fresh.parameters
    assert result["latent"] == {"name": "initial_variance", "values": fresh.latent}
    assert result["dropped"] == ["2024-01-08"]
    assert result["state"]["digest"] == fresh.state.digest()
    assert run("verify", certificate, kept).exit_code == 0
    assert run("verify", certificate, file).exit_code == 1


def test_forget_says_which_days_went(file):
    shown = run("forget", file, "--panel", "date", "--where", DAY).stdout
    assert "7 of 8 left; 2024-01-08 " in shown
    quick = run("forget", file, "--panel", "date", "--where", DAY, "--tolerance", 0.1)
    assert "one step misses the optimum by at most" in quick.stdout
    refused = run("forget", file, "--panel", "date", "--where", DAY, "--operator", "resolve")
    assert refused.exit_code == 2
    assert run("forget", file, "--panel", "date", "--where", DAY, "--operator", "refine").exit_code == 0
    assert "looked by  downdate" in run("forget", file, "--panel", "date", "--where", DAY, "--preview").stdout


def test_influence_by_day_is_on_the_shared_parameters(file, quotes, tmp_path):
    result = told("influence", file, "--panel", "date", "--by", "date", "--top", 8)
    found = so.influence(so.calibrate(quotes, so.Heston(), panel="date"), "date")
    assert result["columns"]["date"] == found["date"].tolist()
    assert result["columns"]["change_correlation"] == found["change_correlation"].tolist()
    assert "change_initial_variance" not in result["columns"]
    done = run("influence", file, "--panel", "date", "--by", "date", "--plot", tmp_path / "map.png")
    assert done.exit_code == 0
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_a_panel_is_its_path_and_its_page_has_every_picture(file, tmp_path):
    done = run("calibrate", file, "--panel", "date", "--plot", tmp_path / "path.svg")
    assert done.exit_code == 0
    assert "path.svg" in done.stderr
    assert "initial_variance by date, 8 values" in (tmp_path / "path.svg").read_text()
    assert run("calibrate", file, "--panel", "date", "--plot", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 8  # path, smiles, residuals three times, total variance, influence, diagnostics
    assert "Heston against the market, 2024-01-11" in page


def test_a_picture_without_a_name_is_called_what_it_shows(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told("plot", file, "--panel", "date")["plot"] == "path.png"
    assert told("plot", file, "--panel", "date", "--kind", "smiles")["plot"] == "smiles.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["path.png", "smiles.png"]
