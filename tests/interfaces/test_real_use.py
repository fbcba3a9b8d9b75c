"""Four people at the command line: a desk, a validator, a compliance officer and an academic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import strikeout as so
from strikeout.synthetic.sample_files import write_sample
from tests.cli.typed import done, run, told

DAY = "expiry_years > 0.02 and abs(log_moneyness) < 0.2 and spread > 0"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path / "page.csv", "page")
    write_sample(tmp_path / "feeds.csv", "feeds")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_desk_fits_a_raw_vendor_day_and_strikes_an_expiry_out(shared_data):
    day = shared_data("raw/cboe_spx_2022-01-07.csv.gz")
    read = json.loads(run("inspect", day, "--json").stdout)
    assert read["profile"] != "strikeout"  # the vendor's layout is recognised
    how = ["--select", "otm", "--objective", "vol-spread", "--only", DAY]
    found = told("calibrate", day, *how)
    assert found["converged"]
    assert found["count"] < read["count"]
    errors = found["fit_errors"]
    assert errors["vol_points"] < 3.0
    assert len(errors["by_expiry"]) > 3
    last = errors["by_expiry"][-1]
    struck = [*how, "--where", f"expiry_date = '{last['expiry']}'"]
    gone = told("forget", day, *struck, "--certificate", "c.json", "--out", "kept.parquet")
    assert len(gone["forgotten"]) >= last["count"] > 0
    assert told("verify", "c.json", "kept.parquet")["holds"]
    done("plot", day, *how[:-2], "--where", DAY, "--kind", "residuals", "--unit", "vol_points", "--out", "r.png")
    assert Path("r.png").stat().st_size > 10_000


@pytest.mark.usefixtures("folder")
def test_a_validator_checks_a_certificate_and_finds_every_tampering():
    done("forget", "page.csv", "--where", "strike > 5500", "--certificate", "c.json", "--out", "kept.csv")
    assert told("verify", "c.json", "kept.csv")["holds"]
    assert run("verify", "c.json", "page.csv").exit_code == 1  # the quotes that were struck out are still there
    certificate = json.loads(Path("c.json").read_text())
    for name in ("parameters", "counts", "state"):
        changed = dict(certificate)
        changed[name] = {**changed[name], "x": 1} if isinstance(changed[name], dict) else "0" * 64
        Path("t.json").write_text(json.dumps(changed))
        assert run("verify", "t.json", "kept.csv").exit_code != 0, name
    lines = Path("kept.csv").read_text().splitlines(keepends=True)
    Path("short.csv").write_text("".join(lines[:-1]))
    assert run("verify", "c.json", "short.csv").exit_code == 1


@pytest.mark.usefixtures("folder")
def test_compliance_erases_and_the_quotes_do_not_come_back_under_any_label():
    done("init", "a.book")
    done("import", "a.book", "feeds.csv")
    done("calibrate", "a.book")
    entries = told("log", "a.book")["entries"]
    day = sorted({str(date) for date in so.inspect_quotes("feeds.csv").quotes.labels["date"].tolist()})[1]
    where = ["--where", f"date = '{day}'"]
    asked = told("request", "a.book", "erase", *where, "--who", "ann", "--reason", "licence")
    told("approve", "a.book", asked["request"], "--who", "ben")
    rehearsed = told("erase", "a.book", *where, "--reason", "licence", "--who", "ann")
    assert (rehearsed["entry"], rehearsed["residue"]) == (None, None)
    gone = told("erase", "a.book", *where, "--reason", "licence", "--who", "ann", "--yes")
    assert gone["count"] == rehearsed["count"] > 0
    assert gone["residue"] == 0
    assert run("residue", "a.book").exit_code == 0
    text = Path("feeds.csv").read_text()
    Path("renamed.csv").write_text(text.replace("south", "another").replace("north", "third"))
    for file in ("feeds.csv", "renamed.csv"):
        again = run("import", "a.book", file, "--json")
        assert again.exit_code == 1
        assert len(json.loads(again.stdout)["erased"]) >= gone["count"]
    assert told("verify", "a.book")["holds"]
    assert len(told("log", "a.book")["entries"]) > len(entries)


@pytest.mark.usefixtures("folder")
def test_an_academic_fits_a_panel_and_prints_tables_for_a_paper():
    found = told("calibrate", "feeds.csv", "--panel", "date", "--where", "source = 'north'")
    assert len(found["latent"]["values"] if "values" in found["latent"] else found["latent"]) > 1
    rules = done("rules", "feeds.csv", "--format", "latex").stdout
    assert rules.startswith(r"\begin{tabular}")
    assert "rows in" in rules
    table = done(
        "compare-models", "page.csv", "--models", "heston,black-scholes", "--rank", "vol_points", "--format", "markdown"
    )
    assert [line.split("|")[1].strip() for line in table.stdout.splitlines()[2:]] == ["heston", "black-scholes"]
    errors = done("calibrate", "page.csv", "--errors", "--format", "csv").stdout.splitlines()
    assert errors[0] == "expiry,quotes,vol points,spreads,price"
