"""A folder to work in, and a book in it."""

from __future__ import annotations

import pytest

import strikeout as so
from tests.cli.typed import done


@pytest.fixture(scope="module")
def quotes():
    return so.paper.quotes("small")


@pytest.fixture
def folder(tmp_path, monkeypatch, quotes):
    """An empty folder to work in, with the quotes in a file."""
    monkeypatch.chdir(tmp_path)
    so.write_quotes(quotes, "quotes.csv")
    return tmp_path


@pytest.fixture
def book(folder):
    """A calibrated book of all quotes."""
    assert folder
    for words in (["init", "a.book"], ["import", "a.book", "quotes.csv"], ["calibrate", "a.book"]):
        done(*words)
    return "a.book"
