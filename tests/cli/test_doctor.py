"""``strikeout doctor``: what is well is said to be, and what is not is found, with 1."""

from __future__ import annotations

import json
import sqlite3

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli import strikeout


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(so.paper.quotes("small"))
    return tmp_path / "a.book"


def bad(*words):
    """The names of what the doctor found wrong, and its exit code."""
    done = CliRunner().invoke(strikeout, ["doctor", *map(str, words), "--json"])
    found = json.loads(done.stdout)
    wrong = [one["name"] for one in found["findings"] if not one["well"]]
    assert found["well"] is (not wrong)
    assert done.exit_code == (1 if wrong else 0), done.output
    return wrong


def test_a_sound_book_on_a_sound_installation_is_well(path):
    assert bad() == []
    assert bad(path) == []


def test_the_doctor_changes_nothing(path):
    before = path.read_bytes()
    bad(path)
    assert path.read_bytes() == before


def test_keys_open_to_others_or_gone_are_found(path):
    key = path.with_name("a.book.key")
    key.chmod(0o644)
    assert bad(path) == ["key file", "ledger"]
    key.unlink()
    assert bad(path) == ["key file", "ledger"]
    assert not key.exists()


def test_keys_of_another_book_are_found(path, tmp_path):
    so.Book.create(tmp_path / "b.book").close()
    (tmp_path / "b.book.key").replace(tmp_path / "a.book.key")
    assert bad(path) == ["ledger"]


def test_a_flipped_byte_of_the_quotes_is_found(path):
    connection = sqlite3.connect(path)
    (data,) = connection.execute("SELECT data FROM chunks").fetchone()
    connection.execute("UPDATE chunks SET data = ?", (data[:-1] + bytes([data[-1] ^ 1]),))
    connection.commit()
    connection.close()
    assert bad(path) == ["bytes"]


def test_what_is_no_book_is_a_finding_and_what_is_not_named_like_one_a_usage_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.book").write_text("not a book")
    assert bad("a.book") == ["file", "key file"]
    assert bad("missing.book") == ["file", "key file"]
    assert CliRunner().invoke(strikeout, ["doctor", "quotes.csv"]).exit_code == 2


def test_a_variable_that_nobody_reads_is_found(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRIKEOUT_WIEGHTS", "vega")
    assert bad() == ["variables"]
