"""Quotes came or went since a book was calibrated: compare and export say so."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import strikeout as so
from tests.cli.typed import done, run, told


@pytest.fixture
def stale(book, quotes):
    """A calibrated book of all quotes but ten, to which these came afterwards."""
    so.write_quotes(quotes[10:], "some.csv")
    for words in (
        ["init", "stale.book"],
        ["import", "stale.book", "some.csv"],
        ["calibrate", "stale.book"],
        ["import", "stale.book", "quotes.csv"],
    ):
        done(*words)
    assert book
    return "stale.book"


def test_books_that_were_calibrated_alike_and_hold_other_quotes_now_are_not_the_same(stale):
    done("init", "same.book")
    done("import", "same.book", "some.csv")
    done("calibrate", "same.book")
    for pair in ((stale, "same.book"), ("same.book", stale)):
        ended = run("compare", *pair)
        assert ended.exit_code == 1
        assert ended.stdout.count("the same, bit for bit") == 2
        held = [540 if path == stale else 530 for path in pair]
        assert json.loads(run("compare", *pair, "--json").stdout)["held"] == held
        assert f"{held[0]} and {held[1]} quotes" in ended.stdout
        assert "to 530 and 530 quotes" in ended.stdout


def test_a_stale_book_beside_itself_is_named_once(stale):
    ended = run("compare", stale, stale)
    assert (ended.exit_code, ended.stdout.count("stale.book: ")) == (1, 1)


@pytest.mark.parametrize("out", ["r.json", "r.py"])
def test_an_export_of_a_stale_calibration_says_so_in_the_file_and_beside_it(stale, book, out):
    ended = done("export", stale, out)
    assert "since the calibration in r." in ended.stderr
    text = Path(out).read_text(encoding="utf-8")
    if out == "r.json":
        assert json.loads(text)["current"] is False
    else:
        ast.parse(text)
        assert "# Stale when this was written: quotes were added" in text
    fresh = done("export", book, out)
    assert "note" not in fresh.stderr
    text = Path(out).read_text(encoding="utf-8")
    assert "tale" not in text
    if out == "r.json":
        assert json.loads(text)["current"] is True


def test_quotes_exported_from_a_stale_book_are_what_it_holds_and_need_no_note(stale):
    assert "note" not in done("export", stale, "held.csv").stderr
    assert told("status", stale)["current"] is False
