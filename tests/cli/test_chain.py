"""A chain without forwards on the command line: inspected, calibrated out of the money, struck out, verified, kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from strikeout.cli.group import strikeout
from strikeout.synthetic.sample_files import write_sample
from tests.quotes.chains import chain

EXPIRIES = ("2024-04-05", "2024-06-07", "2024-12-06", "2025-12-05")
WHERE = "strike = 100 and expiry_date = '2024-06-07'"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "chain.csv"
    chain(expiries=EXPIRIES).write_csv(path)
    return str(path)


def run(*words: str, code: int = 0):
    done = CliRunner().invoke(strikeout, [*words, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_inspect_tells_the_forward_of_every_slice(file: str) -> None:
    told = CliRunner().invoke(strikeout, ["inspect", file]).stdout
    assert "forwards of 4 slices: 4 by put-call parity" in told
    assert "2024-03-01 2024-06-07" in told


def test_a_vendor_s_file_is_verified_by_the_rules_it_was_calibrated_with(tmp_path: Path) -> None:
    page, certificate = write_sample(tmp_path / "chain.csv"), str(tmp_path / "c.json")
    how = ("--select", "otm", "--weights", "spread", "--check", "Q209=reject")
    where = "expiry_date = '2024-06-21' AND strike > 5500"
    told = run("forget", str(page), *how, "--where", where, "--certificate", certificate)
    assert told["rejected"] == 102 + 8

    def stays(line: str) -> bool:
        cells = line.split(",")
        return cells[0] != "Fri Jun 21 2024" or float(cells[11]) <= 5500

    page.write_text("".join(line for line in page.read_text().splitlines(keepends=True) if stays(line)))
    assert run("verify", certificate, str(page), "--check", "Q209=reject")["holds"]
    assert not run("verify", certificate, str(page), code=1)["holds"]  # the eight far from the money are in again


def test_a_strike_out_says_what_is_refitted_and_its_certificate_holds_of_what_is_left(
    file: str, tmp_path: Path
) -> None:
    kept, certificate = str(tmp_path / "kept.csv"), str(tmp_path / "c.json")
    told = run("forget", file, "--select", "otm", "--where", WHERE, "--out", kept, "--certificate", certificate)
    assert told["path"][0] == "forwards refit: 1 slice"
    assert told["retained"] == 166
    assert told["before"]["select"] == "otm"
    assert run("verify", certificate, kept)["holds"]
    lines = Path(kept).read_text().splitlines(keepends=True)
    Path(kept).write_text("".join(lines[:-1]))
    assert not run("verify", certificate, kept, code=1)["holds"]


def test_a_book_shows_how_many_quotes_count_and_which_slices_will_be_refitted(file: str, tmp_path: Path) -> None:
    book = str(tmp_path / "chain.book")
    run("init", book)
    run("import", book, file)
    calibrated = CliRunner().invoke(strikeout, ["calibrate", book, "--select", "otm"])
    assert "84 out of the money" in calibrated.stdout
    plan = run("forget", book, "--where", WHERE, "--reason", "bad-feed")
    assert len(plan["refit"]) == 1
    assert plan["refit"][0].startswith("2024-03-01 2024-06-07: forward ")
    run("apply", book)
    run("erase", book, "--where", WHERE, "--reason", "licence", "--yes")
    assert run("verify", book)["holds"]
