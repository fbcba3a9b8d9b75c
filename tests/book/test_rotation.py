"""A new key for a book: the old one hands over, and everything signed stays checkable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.cli.group import strikeout
from strikeout.errors import RefusedError
from strikeout.store.keyring import Keyring, key_file
from tests.raising import raises


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "small.book"
    with so.Book.create(where) as book:
        book.import_quotes(so.paper.quotes("small")[:300])
        book.calibrate()
    return where


def test_after_a_rotation_the_new_key_signs_and_the_book_verifies(path: Path) -> None:
    with so.Book.open(path) as book:
        old = book.status().key
        done = book.rotate_key(reason="other")
        assert (done.old, done.new) == (old, book.status().key)
        assert done.new != old
        book.forget(ids=book.quotes().ids[:5], reason="test")
        assert [entry.public for entry in book.log()] == [old] * 4 + [done.new] * 2
        assert [entry.what for entry in book.log()[3:5]] == ["rotate key", "rotate key"]
        assert book.verify().holds
    assert [signer.public for signer in Keyring.read(key_file(path)).signers] == [done.new]
    with so.Book.open(path) as book:
        assert book.verify().holds
        assert book.import_quotes(so.paper.quotes("small")[:300]).imported == 0  # commitments are what they were


def test_whoever_holds_the_old_key_alone_can_sign_nothing_any_more(path: Path) -> None:
    stolen = key_file(path).read_bytes()
    with so.Book.open(path) as book:
        book.rotate_key()
    key_file(path).write_bytes(stolen)
    with so.Book.open(path) as book:
        with pytest.raises(RefusedError, match="must be signed with the key"):
            book.calibrate()
        assert not book.verify().holds


@pytest.mark.parametrize("moment", ["before the ledger", "after the ledger"])
def test_a_rotation_cut_short_leaves_a_book_that_works_and_is_finished_by_the_next(path: Path, moment: str) -> None:
    keys = key_file(path)
    both = Keyring.read(keys).with_new_signer()
    if moment == "after the ledger":
        with so.Book.open(path) as book:
            both.replace_in(keys)
            with book.snapshot().session.writing(book.snapshot().position) as transaction:
                transaction.rotate(None, both)
    both.replace_in(keys)  # and here the process ended
    with so.Book.open(path) as book:
        book.calibrate()
        assert book.verify().holds
        done = book.rotate_key()
        assert book.verify().holds
        assert book.status().key == done.new
        if moment == "before the ledger":
            assert done.new == both.signers[-1].public
    assert len(Keyring.read(keys).signers) == 1


def test_a_rotation_is_refused_where_the_book_moves_meanwhile_and_nothing_is_lost(path: Path, monkeypatch) -> None:
    with so.Book.open(path) as book, so.Book.open(path) as other:
        snapshot = so.Book.snapshot

        def late(asked):
            seen = snapshot(asked)
            if asked is book and other.status().entries == 3:
                other.calibrate()
            return seen

        monkeypatch.setattr(so.Book, "snapshot", late)
        with raises(RefusedError, found=4):
            book.rotate_key()
        assert book.rotate_key().entry == 6
        assert book.verify().holds


def test_the_command_says_which_key_signs_now(path: Path) -> None:
    ran = CliRunner().invoke(strikeout, ["rotate-key", str(path), "--reason", "other", "--json"], standalone_mode=False)
    said = json.loads(ran.output)
    assert said["entry"] == 5
    with so.Book.open(path) as book:
        assert book.status().key == said["new"] != said["old"]
