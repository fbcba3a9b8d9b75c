"""Somebody wants changes or copies to go unseen because the book has two names: a hard link, or a symbolic one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import strikeout as so
from strikeout.errors import BookError
from strikeout.store.keyring import key_file
from tests.cli.typed import run
from tests.laws.clerks import A_DAY, MODEL, quotes
from tests.raising import raises

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links are made with POSIX calls")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "real"
    folder.mkdir()
    with so.Book.create(folder / "px.book") as book:
        book.import_quotes(quotes(0, 4 * A_DAY))
        book.calibrate(MODEL, starts=1, panel=None)
    return folder / "px.book"


def test_a_book_with_two_hard_links_is_refused_by_either_name(path, tmp_path):
    other = tmp_path / "other.book"
    os.link(path, other)
    for name in (path, other):
        with raises(BookError, names=2) as caught:
            so.Book.open(name)
        assert caught.value.names == 2
    other.unlink()
    with so.Book.open(path) as book:
        assert book.verify().holds


def test_a_hard_link_made_while_the_book_is_open_stops_the_next_change(path, tmp_path):
    with so.Book.open(path) as book:
        os.link(path, tmp_path / "other.book")
        with raises(BookError, names=2):
            book.import_quotes(quotes(30, 32))
        (tmp_path / "other.book").unlink()
        assert book.import_quotes(quotes(30, 32)).entry == 4


def test_a_book_whose_making_was_killed_between_its_two_names_opens(path):
    os.link(path, path.with_name("px.book.4711.new"))
    with so.Book.open(path) as book:
        assert book.verify().holds
    assert sorted(file.name for file in path.parent.iterdir()) == ["px.book", "px.book.key"]


@pytest.fixture
def link(path: Path, tmp_path: Path) -> Path:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "shown.book").symlink_to(Path("..") / path.parent.name / path.name)
    return tmp_path / "links" / "shown.book"


def test_through_a_symbolic_link_everything_is_beside_the_file(link, path):
    with so.Book.open(link) as book:
        book.import_quotes(quotes(30, 32))
        assert {file.resolve() for file in book.snapshot().session.store.files()} >= {
            path,
            path.with_name("px.book-wal"),
        }
        book.rotate_key()
        assert book.plan_path == path.with_name("px.book.plan.json")
        assert key_file(book.path) == path.with_name("px.book.key")
    assert sorted(file.name for file in link.parent.iterdir()) == ["shown.book"]


def test_a_plan_made_through_a_link_goes_with_an_erasure_by_the_real_name(link, path):
    planned = run("forget", link, "--ids", "q000001,q000002", "--json")
    assert planned.exit_code == 0, planned.output
    assert Path(json.loads(planned.stdout)["plan"]) == path.with_name("px.book.plan.json")
    erased = run("erase", path, "--ids", "q000001", "--yes", "--json")
    assert erased.exit_code == 0, erased.output
    left = [file for file in (*link.parent.iterdir(), *path.parent.iterdir()) if b"q000001" in file.read_bytes()]
    assert left == []


def test_a_book_made_through_a_link_that_leads_nowhere_is_made_where_it_leads(tmp_path):
    (tmp_path / "link.book").symlink_to(tmp_path / "there.book")
    so.Book.create(tmp_path / "link.book").close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.book", "there.book", "there.book.key"]
    with so.Book.open(tmp_path / "link.book") as book:
        assert book.verify().holds


def test_an_erasure_searches_the_files_of_the_book_wherever_the_process_has_gone(path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with so.Book.open("px.book") as book:
        monkeypatch.chdir(tmp_path)
        assert {file.name for file in book.snapshot().session.store.files()} >= {"px.book", "px.book-wal"}
