"""``strikeout plot``: the picture that was asked for, of a file or of a book, which remembers it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout
from strikeout.cli.report import PICTURES
from strikeout.plots import View, plot_data, writing

EARLY = "date < '2024-01-10'"


def run(*words, code=0):
    done = CliRunner().invoke(strikeout, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def test_the_kinds_offered_are_those_that_can_be_drawn():
    assert PICTURES == writing.PICTURES


def test_without_options_it_is_the_smiles_as_png(folder):
    assert "smiles.png" in run("plot", "quotes.csv").stdout
    assert (folder / "smiles.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", writing.OF_QUOTES)
def test_every_kind_can_be_asked_for_and_is_what_python_gives(folder, kind):
    told = json.loads(
        run("plot", "quotes.csv", "--kind", kind, "--out", "a.json", "--weights", "vega", "--json").stdout
    )
    assert (told["plot"], told["kind"], told["converged"], told["rows"]) == ("a.json", kind, True, 540)
    calibration = so.calibrate(so.read_quotes("quotes.csv"), so.Heston(), weights="vega")
    assert json.loads((folder / "a.json").read_text()) == json.loads(
        json.dumps(plot_data(calibration, kind, view=View(source="quotes.csv")))
    )


def test_a_page_without_a_kind_holds_all_of_them(folder):
    assert "The page is in all.html" in run("plot", "quotes.csv", "--out", "all.html").stdout
    assert (folder / "all.html").read_text().count("<svg") == 7


def test_another_label_goes_across_a_map_of_influence(folder):
    run("plot", "quotes.csv", "--kind", "influence", "--by", "expiry_days", "--out", "a.json")
    assert json.loads((folder / "a.json").read_text())["columns"] == ["30", "60"]
    assert "--kind influence" in run("plot", "quotes.csv", "--by", "expiry_days", code=2).stderr


def test_another_ending_is_refused_before_any_work(folder):
    assert ".png, .svg, .pdf" in run("plot", folder / "not-there.csv", "--out", "a.gif", code=2).stderr


def test_what_is_not_determined_is_drawn_and_ends_with_3(folder):
    so.write_quotes(so.synthetic.random_quotes(60, maturities=1, seed=5), "one.csv")
    done = run("plot", "one.csv", code=3)
    assert "the calibration itself: " in done.stderr
    assert (folder / "smiles.png").exists()


@pytest.fixture
def book(folder):
    assert folder
    for words in (["init", "a.book"], ["import", "a.book", "quotes.csv"], ["calibrate", "a.book"]):
        run(*words)
    return "a.book"


@pytest.mark.parametrize(
    "words",
    [
        ["plot", "a.book", "--kind", "residuals", "--out", "seen.png"],
        ["calibrate", "a.book", "--plot", "seen.png"],
        ["influence", "a.book", "--plot", "seen.png"],
    ],
    ids=["plot", "calibrate", "influence"],
)
def test_a_picture_of_a_book_is_entered_and_erasing_takes_it_away(book, folder, words):
    run(*words)
    assert (folder / "seen.png").exists()
    with so.Book.open(book) as held:
        assert held.log()[-1].what == "plot"
    run("forget", book, "--where", EARLY, "--yes")
    run("erase", book, "--where", EARLY, "--yes")
    assert not (folder / "seen.png").exists()


def test_how_a_book_is_calibrated_is_not_said_twice(book):
    assert "--weights" in run("plot", book, "--weights", "vega", code=2).stderr
    assert "--who" in run("plot", "quotes.csv", "--who", "ann", code=2).stderr
