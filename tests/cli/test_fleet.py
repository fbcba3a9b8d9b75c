"""The same removal in every book of a folder, by one person or two, and one page of evidence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout

WHERE = "licence = 'L3'"


def run(*words, code=0):
    done = CliRunner().invoke(strikeout, [str(word) for word in words])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done


@pytest.fixture
def folder(tmp_path):
    """Two calibrated books with quotes of a licence, one of which needs two persons, and one without the licence."""
    quotes = so.paper.quotes("small")
    licence = np.where(np.arange(len(quotes)) % 20 == 0, "L3", "L1")
    labelled = so.Quotes(
        ids=quotes.ids,
        contracts=quotes.contracts,
        observed=quotes.observed,
        labels={**quotes.labels, "licence": licence},
    )
    for name, how in (("one", {}), ("two", {"approval": "two-person"}), ("other", {})):
        held = labelled[licence != "L3"] if name == "other" else labelled
        with so.Book.create(tmp_path / f"{name}.book", who="maker", **how) as book:
            book.import_quotes(held)
            book.calibrate(panel=None)
    return tmp_path


def outcomes(folder, *words, code=0):
    shown = json.loads(run("fleet", *words[:1], folder, *words[1:], "--json", code=code).stdout)
    return {book["book"]: book["outcome"] for book in shown["books"]}, shown


def test_without_yes_every_book_is_planned_and_none_is_changed(folder):
    found, shown = outcomes(folder, "forget", "--where", WHERE)
    assert found == {"one": "planned", "two": "planned", "other": "no_match"}
    assert shown["quotes"] == 2 * 27
    for name in found:
        with so.Book.open(folder / f"{name}.book") as book:
            assert {entry.what for entry in book.log()} == {"create", "import", "calibrate"}
            assert book.status().set_aside == 0


def test_a_licence_goes_from_every_book_with_one_approval_and_one_page(folder, tmp_path):
    ask = ("forget", "--where", WHERE, "--reason", "licence", "--ticket", "T-1", "--yes")
    found, _ = outcomes(folder, *ask, "--who", "ada")
    assert found == {"one": "done", "two": "requested", "other": "no_match"}
    run("fleet", "approve", folder, "--for", "T-1", "--who", "ada", code=3)  # her own request
    found, _ = outcomes(folder, "approve", "--for", "T-1", "--who", "bob")
    assert found == {"two": "approved"}
    found, _ = outcomes(folder, *ask, "--who", "ada")
    assert found["two"] == "done"
    for name in ("one", "two"):
        with so.Book.open(folder / f"{name}.book") as book:
            assert not (book.quotes().labels["licence"] == "L3").any()
            assert book.verify().holds
    page = tmp_path / "evidence.html"
    shown = json.loads(run("fleet", "evidence", folder, "--for", "T-1", "--out", page, "--json").stdout)
    assert [facts["name"] for facts in shown["books"]] == ["one.book", "two.book"]
    text = page.read_text()
    assert "one" in text
    assert "bob" in text


def test_an_erasure_takes_the_quotes_of_every_book(folder):
    found, _ = outcomes(folder, "erase", "--where", WHERE, "--reason", "licence")
    assert found["one"] == "planned"
    found, _ = outcomes(folder, "erase", "--where", WHERE, "--reason", "licence", "--yes", "--who", "ada")
    assert found == {"one": "done", "two": "requested", "other": "no_match"}
    with so.Book.open(folder / "one.book") as book:
        assert book.status().erased == 27


def test_a_condition_that_no_book_matches_and_a_folder_without_books_are_refused(folder, tmp_path):
    run("fleet", "forget", folder, "--where", "licence = 'L9'", code=3)
    (tmp_path / "empty").mkdir()
    run("fleet", "forget", tmp_path / "empty", "--where", WHERE, code=2)
    run("fleet", "approve", folder, "--for", "T-9", code=3)
    run("fleet", "evidence", folder, "--out", "page.txt", code=2)
