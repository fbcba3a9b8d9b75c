"""An attacker sends the same row twice and wants the program to fall over."""

from __future__ import annotations

import pytest

import strikeout as so
from tests.cli.typed import run
from tests.quotes.in_chunks import assert_same, read_both_ways

BARE = "strike,right,price,expiry_years,forward,discount\n100,C,5.0,0.5,100,1\n"
REST = "110,C,2.0,0.5,100,1\n90,C,12.0,0.5,100,1\n95,C,8.0,0.5,100,1\n105,C,3.2,0.5,100,1\n"


@pytest.fixture
def repeated(tmp_path):
    """A file without ids and without any column that would be a label, in which the first row is there twice."""
    path = tmp_path / "dup.csv"
    path.write_text(BARE + BARE.splitlines()[1] + "\n" + REST)
    return path


def test_a_repeated_row_of_a_file_without_labels_is_kept_once(repeated):
    reading = so.inspect_quotes(repeated)
    assert (reading.count, reading.repeated, reading.issues.counts) == (5, 1, {"Q201": 1})
    assert not reading.quotes.labels


def test_a_row_with_the_same_contract_and_another_price_is_rejected(tmp_path):
    path = tmp_path / "clash.csv"
    path.write_text(BARE + "100,C,6.0,0.5,100,1\n" + REST)
    reading = so.inspect_quotes(path)
    assert (reading.count, reading.issues.counts) == (4, {"Q108": 2})


def test_every_command_that_reads_it_ends_well(repeated, tmp_path):
    assert run("inspect", repeated).exit_code == 0
    assert run("rules", repeated).exit_code == 0
    book = tmp_path / "a.book"
    assert run("init", book).exit_code == 0
    ended = run("import", book, repeated)
    assert ended.exit_code == 0, ended.output
    assert len(so.Book.open(book).quotes()) == 5


def test_a_file_without_labels_is_read_in_pieces_as_in_the_whole(repeated, tmp_path):
    reading, survey = read_both_ways(repeated, size=40, at_once=2)
    with survey:
        assert_same(reading, survey, tmp_path)
