"""The demo's story is true: each sentence of it is a number that is checked here."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.cli.story import FAULTS, story
from strikeout.quotes.issues import QuotesWarning


@pytest.fixture(scope="module")
def told():
    return story()


def run(*words):
    return CliRunner().invoke(strikeout, ["demo", *map(str, words)])


def test_the_clean_book_gives_back_the_truth_within_three_standard_errors(told):
    assert told.clean.converged
    assert max(map(abs, told.errors(told.clean).values())) < 3


def test_three_bad_days_of_one_feed_spoil_the_calibration(told):
    assert len(told.bad_days) == len(FAULTS) == 3
    assert len(told.bad_ids) < 0.01 * told.clean.count
    assert max(map(abs, told.errors(told.arrived).values())) > 100
    assert told.arrived.rmse > 100 * told.clean.rmse


def test_without_them_the_truth_is_back(told):
    assert told.without.converged
    assert told.without.count == told.clean.count - len(told.bad_ids)
    assert max(map(abs, told.errors(told.without).values())) < 3


def test_only_feed_b_on_the_bad_days_differs_from_the_clean_book(told):
    clean, arrived = told.clean.quotes, told.arrived.quotes
    changed = set(clean.ids[clean.observed != arrived.observed].tolist())
    assert changed == set(told.bad_ids)
    assert {str(source) for source in arrived.only(told.bad_ids).labels["source"]} == {"b"}


def test_the_story_is_told_with_its_numbers_and_a_page(told, tmp_path):
    done = run("--out", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert f"{told.arrived.parameters['vol_of_vol']:.6g}" in done.stdout
    assert f"RMSE {told.arrived.rmse:.3g}" in done.stdout
    assert "next: strikeout calibrate" in done.stdout
    assert "next release" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2
    assert all(day.date in page for day in told.bad_days)


def test_the_json_holds_the_three_calibrations(told):
    result = json.loads(run("--no-page", "--json").stdout)
    for name in ("clean", "arrived", "without"):
        assert result[name]["parameters"] == getattr(told, name).parameters
    assert result["page"] is None


def test_the_book_can_be_taken_away_and_read_back(told, tmp_path):
    assert run("--no-page", "--book", tmp_path / "book.csv").exit_code == 0
    with pytest.warns(QuotesWarning, match="Q202"):  # noise puts some deep prices below their intrinsic value
        book = so.read_quotes(tmp_path / "book.csv", max_reject=0)
    assert book.observed.tolist() == told.arrived.quotes.observed.tolist()


def test_a_page_of_another_kind_is_refused(tmp_path):
    done = run("--out", tmp_path / "page.pdf")
    assert done.exit_code == 2
    assert ".html" in done.stderr


def test_the_picture_of_the_readme_is_the_one_the_demo_draws(root, tmp_path):
    """Compared by its size in pixels: fonts may render differently on another machine."""
    assert run("--no-page", "--picture", tmp_path / "demo.png").exit_code == 0
    kept, drawn = (root / "docs/pictures/demo.png").read_bytes(), (tmp_path / "demo.png").read_bytes()
    assert kept[:24] == drawn[:24]  # the signature and the header with width and height
    assert len(kept) < 200_000
