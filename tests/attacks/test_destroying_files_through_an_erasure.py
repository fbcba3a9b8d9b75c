"""An attacker, or a full disk, wants files destroyed that no erasure should touch: exports of a book that keeps its
quotes, and whatever was put under a name the book remembers."""

from __future__ import annotations

import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import strikeout as so
from strikeout.errors import BookError
from strikeout.store.bookfile import Connection, translate_errors


@pytest.fixture(scope="module")
def quotes():
    return so.paper.quotes("small", seed=2)


@pytest.fixture
def path(tmp_path, quotes):
    """A book with an export beside it, closed."""
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None, starts=1)
        book.export(tmp_path / "out.csv")
    return tmp_path / "a.book"


LIMITS = (20_000, 53_248, 80_000, 110_000, 150_000, 400_000)  # of the size of any file, in bytes


def erased_under(limit: int, folder: Path, name: str) -> tuple[bool, bool]:
    """Whether a quote is erased, and an export there, after the command on a disk as full as that and the next opening
    of the book."""

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = [sys.executable, "-m", "strikeout", "erase", "a.book", "--ids", name, "--yes", "--reason", "licence"]
    done = subprocess.run(words, cwd=folder, preexec_fn=full, capture_output=True, check=False, timeout=120)
    was_there = (folder / "out.csv").exists()
    with so.Book.open(folder / "a.book") as book:
        erased = book.status().erased
        assert book.verify().holds, book.verify().summary()
    assert was_there or erased, done.stderr
    return bool(erased), (folder / "out.csv").exists()


def test_on_a_full_disk_an_export_goes_only_with_the_quotes(quotes, tmp_path):
    found = {}
    for limit in LIMITS:
        folder = tmp_path / str(limit)
        folder.mkdir()
        with so.Book.create(folder / "a.book") as book:
            book.import_quotes(quotes)
            book.calibrate(panel=None, starts=1)
            book.export(folder / "out.csv")
        found[limit] = erased_under(limit, folder, str(quotes.ids[0]))
    assert set(found.values()) == {(False, True), (True, False)}, found


def test_a_file_that_the_book_did_not_write_is_left_alone_and_named(path, quotes):
    out = path.with_name("out.csv")
    out.write_text("what somebody else put here\n")
    with so.Book.open(path) as book:
        for yes in (False, True):
            done = (book.erase if yes else book.plan_erase)(ids=quotes.ids[:1], reason="licence")
            assert any(str(out) in text for text in done.beyond)
            assert not any(str(out) in text for text in done.gone)
    assert out.read_text() == "what somebody else put here\n"
    so.Book.open(path).close()
    assert out.exists()


def test_a_file_that_was_edited_and_still_holds_them_is_a_trace(path, quotes):
    out = path.with_name("out.csv")
    out.write_text(out.read_text() + "\n")
    with so.Book.open(path) as book:
        assert book.erase(ids=quotes.ids[:1], reason="licence").residue > 0
    assert out.exists()


def test_a_link_in_the_place_of_an_export_is_not_followed(path, quotes, tmp_path):
    out, target = path.with_name("out.csv"), tmp_path / "elsewhere.csv"
    out.rename(target)
    out.symlink_to(target)
    with so.Book.open(path) as book:
        done = book.erase(ids=quotes.ids[:1], reason="licence")
    assert any(str(out) in text for text in done.beyond)
    assert target.exists()


def test_nothing_is_deleted_if_the_transaction_fails(path, quotes, monkeypatch):
    def failing(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr("strikeout.book.erase.commit", failing)
    with so.Book.open(path) as book, pytest.raises(OSError, match="full"):
        book.erase(ids=quotes.ids[:1], reason="licence")
    with so.Book.open(path) as book:
        assert book.status().erased == 0
    assert path.with_name("out.csv").exists()


def test_an_erasure_that_is_killed_before_it_deletes_is_finished_at_the_next_opening(path, quotes):
    program = (
        "import os, sys, strikeout as so; from strikeout.book import erase\n"
        "erase.remove = lambda *_: os._exit(9)\n"
        "with so.Book.open('a.book') as book: book.erase(ids=[sys.argv[1]], reason='licence')\n"
    )
    plan = path.with_name("a.book.plan.json")
    with so.Book.open(path) as book:
        plan.write_bytes(book.plan_forget(ids=quotes.ids[:1]).to_bytes())
    done = subprocess.run(
        [sys.executable, "-c", program, str(quotes.ids[0])], cwd=path.parent, check=False, timeout=120
    )
    assert done.returncode == 9
    assert path.with_name("out.csv").exists()
    assert plan.exists()
    with so.Book.open(path) as book:
        assert book.status().erased == 1
        assert not path.with_name("out.csv").exists()
        assert not plan.exists()
        assert book.verify().holds, book.verify().summary()


def test_a_copy_that_is_put_back_from_a_backup_is_removed_and_a_new_export_is_not(path, quotes, tmp_path):
    out, backup = path.with_name("out.csv"), tmp_path / "backup"
    shutil.copy(out, backup)
    with so.Book.open(path) as book:
        book.erase(ids=quotes.ids[:1], reason="licence")
    shutil.copy(backup, out)
    so.Book.open(path).close()
    assert not out.exists()
    with so.Book.open(path) as book:
        book.export(out)
    so.Book.open(path).close()
    assert out.exists()


def test_a_file_that_cannot_be_deleted_is_found_by_verify(path, quotes, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError("read-only")))
        with so.Book.open(path) as book:
            assert book.erase(ids=quotes.ids[:1], reason="licence").residue > 0
            assert any("out.csv" in reason for reason in book.verify().reasons)
    with so.Book.open(path) as book:
        assert book.verify().holds, book.verify().summary()
    assert not path.with_name("out.csv").exists()


def test_the_list_of_files_holds_no_digest_that_a_guess_can_be_compared_with(path, quotes):
    """An export is the retained quotes and the erased ones: whoever holds the former can write it with a guess."""
    from hashlib import blake2b, sha256

    written = path.with_name("out.csv").read_bytes()
    with so.Book.open(path) as book:
        book.erase(ids=quotes.ids[:1], reason="licence")
    data = path.read_bytes()
    for digest in (sha256(written).digest(), blake2b(written, digest_size=32).digest()):
        assert digest not in data
        assert digest.hex().encode() not in data


def test_an_erasure_on_a_disk_without_room_says_that_it_was_done_and_is_finished_later(path, quotes, monkeypatch):
    """To rewrite the file takes room for a second copy of it; what is erased is committed before."""
    gone, export, execute = str(quotes.ids[0]), path.with_name("out.csv"), Connection.execute
    assert export.exists()

    def full(self: Connection, question: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        if question == "VACUUM":
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            with translate_errors(self.path):
                raise error
        return execute(self, question, values)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "execute", full)
        with so.Book.open(path) as book, pytest.raises(BookError) as caught:
            book.erase(ids=[gone], reason="subject-request")
        assert "still there" not in caught.value.sentence
        assert "are erased" in caught.value.sentence
        with so.Book.open(path) as book:  # on the full disk still
            assert book.log()[-1].what == "erase"
            assert gone not in book.quotes().ids
            assert [check.name for check in book.verify().checks if check.holds is False] == ["STORE"]
    with so.Book.open(path) as book:
        assert book.verify().holds, book.verify().summary()
    assert not export.exists()
    assert all(gone.encode() not in file.read_bytes() for file in path.parent.iterdir())
