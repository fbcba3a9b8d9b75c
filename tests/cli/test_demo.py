"""The demo's story is true: each sentence of it is a number that is checked here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.assurance.influence import influence
from strikeout.cli import strikeout, terminal
from strikeout.cli.demo import checks, influence_sentence, paper_sentence
from strikeout.cli.demo_data import FAULTS, build_story, condition_of
from strikeout.quotes.issues import QuotesWarning
from strikeout.quotes.selection import select


@pytest.fixture(scope="module")
def told():
    return build_story()


def run(*words):
    return CliRunner().invoke(strikeout, ["demo", *map(str, words)])


def test_the_clean_book_gives_back_the_truth_within_three_standard_errors(told):
    assert told.clean.converged
    assert max(map(abs, told.errors(told.clean.parameters).values())) < 3


def test_three_bad_days_of_one_feed_spoil_the_calibration(told):
    assert len(told.bad_days) == len(FAULTS) == 3
    assert len(told.bad_ids) < 0.01 * told.clean.count
    assert max(map(abs, told.errors(told.arrived.parameters).values())) > 100
    assert told.arrived.rmse > 100 * told.clean.rmse


def test_without_them_the_truth_is_back(told):
    assert told.without.converged
    assert told.without.count == told.clean.count - len(told.bad_ids)
    assert max(map(abs, told.errors(told.without.parameters).values())) < 3


def test_only_feed_b_on_the_bad_days_differs_from_the_clean_book(told):
    clean, arrived = told.clean.quotes, told.arrived.quotes
    changed = set(clean.ids[clean.observed != arrived.observed].tolist())
    assert changed == set(told.bad_ids)
    assert {str(source) for source in arrived.only(told.bad_ids).labels["source"]} == {"b"}


def test_influence_finds_the_bad_days_and_nothing_else_is_struck_out(told):
    first = zip(told.influence["date"][:3], told.influence["source"][:3], strict=True)
    assert set(first) == {(day.date, "b") for day in told.bad_days}
    assert sorted(told.forgetting.ids.tolist()) == sorted(told.bad_ids)
    assert select(told.arrived.quotes, told.condition).tolist() == told.forgetting.ids.tolist()


def test_a_book_without_bad_days_has_none_that_stands_out(told):
    assert condition_of(influence(told.clean, ["date", "source"])) == ""


def test_the_papers_step_is_right_by_its_own_measure_and_wrong_by_thousands_of_standard_errors(told):
    assert told.paper == told.paper_baseline
    assert told.worst(told.paper) > 1000
    assert told.from_refit(told.paper) > 1000


def test_moments_and_a_robust_step_come_to_the_refit(told):
    # Chebyshev polynomials of degree 47 resolve these smiles to rounding; one step has an error of second order.
    assert told.from_refit(told.resolved.parameters) < 1e-6
    assert 0 < told.from_refit(told.robust) < 1e-2


def test_what_was_struck_out_leaves_no_bit_behind_and_comes_back_to_the_bit(told):
    assert told.is_as_never_seen
    assert told.is_restored
    assert not replace(told, never_seen=told.clean).is_as_never_seen
    assert not replace(told, restored=told.without).is_restored


def test_the_certificate_holds_of_the_retained_quotes_and_not_of_the_book_as_it_arrived(told):
    assert told.verification.holds
    assert not told.refuted.holds
    assert {check.name for check in told.refuted.checks if check.holds is False} >= {"STATE", "NEVER_SEEN"}


def test_the_story_is_told_with_its_numbers_and_a_page(told, tmp_path):
    done = run("--out", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text()
    assert f"RMSE {told.arrived.rmse:.3g}" in done.stdout
    assert f"next: {terminal.typed('strikeout forget')}" in done.stdout
    for said in (done.stdout, unescape(page)):
        assert f"{told.arrived.parameters['vol_of_vol']:.6g}" in said
        assert f"{told.paper['correlation']:.6g}" in said
        assert f"{told.worst(told.paper):,.0f} standard errors away" in said
        assert "right to the last bit" in said
        assert "These are the three bad days." in said
        assert said.count("the same bits as") == 2
        assert "the certificate holds" in said
        assert all(day.date in said for day in told.bad_days)
    assert page.count("<svg") == 3


def test_the_page_loads_nothing_and_two_runs_give_the_same_bytes(tmp_path):
    pages = []
    for name in ("one.html", "two.html"):
        assert run("--out", tmp_path / name).exit_code == 0
        pages.append((tmp_path / name).read_text())
    assert pages[0] == pages[1]
    assert re.findall(r"<script|<link|<img|src=[\"']?http|url\(http", pages[0]) == []


def test_a_story_that_went_wrong_would_not_be_told_as_right(told):
    """What the sentences say follows the numbers: none of them is fixed text."""
    wrong = replace(told, never_seen=told.clean, restored=told.clean, verification=told.refuted, paper_baseline={})
    never_seen, undone, verified = [found for _, found in checks(wrong)][:3]
    assert never_seen.startswith("OTHER BITS")
    assert undone.startswith("OTHER BITS")
    assert verified == "THE CERTIFICATE DOES NOT HOLD"
    assert "not right either" in paper_sentence(wrong)
    assert "NOTHING FAILS" in checks(replace(told, refuted=told.verification))[3][1]
    assert "These are not the three" in influence_sentence(replace(told, bad_days=told.bad_days[:2]))


def test_the_json_holds_every_way_and_every_check(told):
    result = json.loads(run("--no-page", "--json").stdout)
    for name in ("clean", "arrived", "without", "resolved"):
        assert result[name]["parameters"] == getattr(told, name).parameters
    assert result["one_step"]["parameters"] == told.paper
    assert result["condition"] == told.condition
    assert result["influence"]["date"][:3] == told.influence["date"][:3].tolist()
    assert (result["is_as_never_seen"], result["is_restored"]) == (True, True)
    assert (result["verification"]["holds"], result["refuted"]["holds"]) == (True, False)
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
