"""Somebody, or an accident, wants a book that can never be signed again, or one that its owner cannot make."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

import strikeout as so
from strikeout.errors import BookError, RefusedError
from strikeout.store.keyring import Keyring, key_file
from tests.cli.typed import run
from tests.laws.clerks import quotes


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_key_file_serves_one_book_so_that_rotating_cannot_lock_another(tmp_path, monkeypatch):
    monkeypatch.setenv("STRIKEOUT_KEY_FILE", str(tmp_path / "shared.key"))
    assert run("init", tmp_path / "a.book").exit_code == 0
    refused = run("init", tmp_path / "b.book")
    assert refused.exit_code == 3, refused.output
    assert files(tmp_path) == ["a.book", "shared.key"]
    assert run("rotate-key", tmp_path / "a.book").exit_code == 0
    assert run("verify", tmp_path / "a.book").exit_code == 0


def test_a_folder_of_keys_serves_any_number_of_books(tmp_path, monkeypatch):
    (tmp_path / "keys").mkdir()
    monkeypatch.setenv("STRIKEOUT_KEY_FILE", str(tmp_path / "keys"))
    made = [run("init", tmp_path / name, "--json") for name in ("a.book", "b.book")]
    assert [json.loads(one.stdout)["key_file"] for one in made] == [
        str(tmp_path / "keys" / name) for name in ("a.book.key", "b.book.key")
    ]
    assert run("rotate-key", tmp_path / "a.book").exit_code == 0
    with so.Book.open(tmp_path / "b.book") as book:
        assert book.import_quotes(quotes(0, 6)).entry == 2


def test_a_rotation_with_the_key_file_of_another_book_leaves_that_as_it_was(tmp_path, monkeypatch):
    for name in ("a.book", "b.book"):
        so.Book.create(tmp_path / name).close()
    before = (tmp_path / "a.book.key").read_bytes()
    monkeypatch.setenv("STRIKEOUT_KEY_FILE", str(tmp_path / "a.book.key"))
    with pytest.raises(RefusedError, match="not this book's own"):
        so.Book.open(tmp_path / "b.book")
    assert run("rotate-key", tmp_path / "b.book").exit_code == 3
    assert (tmp_path / "a.book.key").read_bytes() == before


def test_two_rotations_at_once_leave_the_key_that_signs(tmp_path):
    path, wrong = tmp_path / "a.book", []
    so.Book.create(path).close()

    def rotate() -> None:
        for _ in range(5):
            with so.Book.open(path) as book:
                try:
                    book.rotate_key()
                except RefusedError:
                    continue
                except BaseException as error:
                    wrong.append(error)

    threads = [threading.Thread(target=rotate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    with so.Book.open(path) as book:
        assert book.import_quotes(quotes(0, 6)).entry == len(book.log())
        assert [signer.public for signer in Keyring.read(key_file(path)).signers] == [book.status().key]
        assert book.verify().holds


def test_a_process_that_has_the_book_open_goes_on_with_a_key_that_another_rotated(tmp_path):
    path = tmp_path / "a.book"
    with so.Book.create(path) as book:
        with so.Book.open(path) as other:
            new = other.rotate_key().new
        assert book.verify().holds, book.verify().summary()
        book.import_quotes(quotes(0, 6))
        assert book.log()[-1].public == new


@pytest.mark.parametrize("kept", ["open to others", "not a key file"])
def test_a_book_that_is_refused_for_its_key_file_is_not_left_behind(tmp_path, kept):
    keys = tmp_path / "a.book.key"
    keys.write_text("x")
    keys.chmod(0o644 if kept == "open to others" else 0o600)
    with pytest.raises(RefusedError):
        so.Book.create(tmp_path / "a.book")
    assert (files(tmp_path), keys.read_text()) == (["a.book.key"], "x")


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_book_that_cannot_be_made_leaves_no_keys_behind(tmp_path, monkeypatch, is_encrypted):
    monkeypatch.setattr(os, "link", _link_keys_only(os.link))
    with pytest.raises(BookError, match="cannot be written"):
        so.Book.create(tmp_path / "a.book", is_encrypted=is_encrypted)
    assert files(tmp_path) == []


def _link_keys_only(link):
    def some(source, target):
        if str(target).endswith(".book"):
            raise OSError(28, "No space left on device")
        link(source, target)

    return some


def test_a_book_appears_with_its_first_entry_and_its_keys(tmp_path):
    with so.Book.create(tmp_path / "a.book") as book:
        assert [entry.what for entry in book.log()] == ["create"]
        assert book.verify().holds
    assert stat.S_IMODE((tmp_path / "a.book.key").stat().st_mode) == 0o600
