"""One quote is a quote: what commands say where there is a single one of something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import strikeout as so
from strikeout.text import agreeing, many
from tests.cli.typed import run

PLURAL = re.compile(
    r"(?<![\d.,:])1 (?:retained |such |latent )?(?:quotes|dates|days|entries|rows|groups|slices|shards|values|traces|"
    r"calibrations|certificates|footprints|expiries|maturities|ids|lines|models|starts|steps|issues|pairs|cells|hours)\b"
)
ONE, FEW = so.synthetic.panel_quotes(1, seed=3), so.synthetic.panel_quotes(2, seed=3)
HEADER = "id,expiry_years,strike,right,price,forward,discount"


def say(*words):
    """Everything a command says, stdout and stderr."""
    ended = run(*words)
    return f"{ended.stdout}\n{ended.stderr}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    so.write_quotes(ONE[:1], "single.csv")
    so.write_quotes(ONE[1:], "rest.csv")
    so.write_quotes(FEW[-1:], "later.csv")
    so.write_quotes(FEW, "two.csv")
    lines = Path("single.csv").read_text(encoding="utf-8").splitlines()
    Path("twice.csv").write_text("\n".join([*lines, lines[-1], ""]), encoding="utf-8")
    return tmp_path


def test_a_count_takes_the_form_that_goes_with_it():
    assert [many(n, "quote") for n in (0, 1, 2, 1000)] == ["0 quotes", "1 quote", "2 quotes", "1,000 quotes"]
    assert [many(n, "entry", "entries") for n in (1, 3)] == ["1 entry", "3 entries"]
    assert [agreeing(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize("named", [ONE.ids[0], "nobody"])
@pytest.mark.usefixtures("here")
def test_no_command_says_one_quotes(named):
    said = [
        say(*words)
        for words in (
            ["inspect", "single.csv"],
            ["inspect", "twice.csv"],
            ["rules", "single.csv"],
            ["calibrate", "single.csv"],
            ["init", "a.book"],
            ["status", "a.book"],
            ["doctor", "a.book"],
            ["import", "a.book", "twice.csv"],
            ["import", "a.book", "single.csv"],
            ["status", "a.book"],
            ["summary", "a.book"],
            ["calibrate", "a.book"],
            ["export", "a.book", "out.csv"],
            ["report", "a.book"],
            ["verify", "a.book"],
            ["import", "a.book", "rest.csv"],
            ["calibrate", "a.book"],
            ["learn", "a.book", "single.csv"],
            ["roll", "a.book", "--window", "3"],
            ["request", "a.book", "forget", "--ids", named, "--who", "ann"],
            ["requests", "a.book"],
            ["forget", "a.book", "--ids", named, "--preview"],
            ["forget", "a.book", "--ids", named],
            ["apply", "a.book"],
            ["forget", "a.book", "--ids", named],
            ["log", "a.book"],
            ["status", "a.book"],
            ["restore", "a.book", "--last"],
            ["forget", "a.book", "--ids", named, "--tolerance", "0.5", "--yes"],
            ["verify", "a.book"],
            ["erase", "a.book", "--ids", named],
            ["erase", "a.book", "--ids", named, "--yes"],
            ["import", "a.book", "single.csv"],
            ["import", "a.book", "two.csv"],
            ["calibrate", "a.book", "--panel", "date"],
            ["influence", "a.book", "--by", "date"],
            ["roll", "a.book", "--window", "1"],
            ["summary", "a.book"],
            ["verify", "a.book"],
            ["status", "a.book"],
            ["calibrate", "single.csv", "--panel", "date"],
            ["calibrate", "rest.csv", "--panel", "date"],
            ["forget", "rest.csv", "--ids", ONE.ids[1], "--panel", "date"],
            ["compare-models", "rest.csv", "--models", "heston"],
        )
    ]
    page = Path("fit.html").read_text(encoding="utf-8") if Path("fit.html").exists() else ""
    wrong = [line for text in [*said, page] for line in text.splitlines() if PLURAL.search(line)]
    assert not wrong, "\n".join(wrong)
    assert any("1 quote" in text for text in said)
    assert not any("internal" in text or "an error of strikeout's own" in text for text in said)
