"""Somebody hands an auditor a copy of a book, changed or made up; or wants the auditor to need, or to show, a secret.

The auditor has the file and the public key of the book, and nothing secret.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.store.keyring import Keyring
from strikeout.store.ledger import Head
from tests.attacks.forger import change_quotes, forging
from tests.cli.typed import run, told
from tests.laws.clerks import A_DAY, MODEL, quotes

SECRETS_NEEDED = {"CONTENTS", "VERSIONS", "ERASED"}


@dataclass(frozen=True)
class Desk:
    """What the owner of a book has: the book with two certificates, one signed before the key was rotated."""

    path: Path
    keys: tuple[str, str]  # public, before and after
    head: Head
    first: bytes
    second: bytes
    retained: tuple[so.Quotes, so.Quotes]


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    path = tmp_path_factory.mktemp("desk") / "px.book"
    with so.Book.create(path) as book:
        book.import_quotes(quotes(0, 4 * A_DAY))
        book.calibrate(MODEL, starts=1, panel=None)
    shutil.copy(path, path.with_name("before"))
    with so.Book.open(path) as book:
        first, held = book.forget(ids=["q000001"], reason="test").certificate, [book.quotes()]
        rotation = book.rotate_key()
        second = book.forget(ids=["q000002"], reason="test").certificate
        held.append(book.quotes())
        assert book.verify().holds
        assert first is not None
        assert second is not None
        keys, head = (rotation.old, rotation.new), Head(book.status().entries, book.status().root)
    return Desk(path, keys, head, first.to_bytes(), second.to_bytes(), (held[0], held[1]))


@pytest.fixture
def copy(desk, tmp_path) -> Path:
    """The file alone, as somebody got it."""
    return Path(shutil.copy(desk.path, tmp_path / "copy.book"))


def failing(path: Path, desk: Desk, **how) -> set[str]:
    found = so.Book.verify_copy(path, key=desk.keys[1], **how)
    assert not found.holds, found.summary()
    return {check.name for check in found.checks if check.holds is False}


def test_a_copy_is_checked_with_nothing_secret_and_what_that_cannot_tell_is_named(desk, copy):
    found = so.Book.verify_copy(copy, key=desk.keys[1], head=desk.head)
    assert found.holds, found.summary()
    assert not found.has_key
    assert {check.name for check in found.checks if check.holds is None} == {*SECRETS_NEEDED, "APPROVALS"}
    assert sorted(file.name for file in copy.parent.iterdir()) == ["copy.book"]


def test_the_command_checks_a_copy_by_its_public_key_and_never_by_chance(desk, copy):
    """Without the option a key file that is missing is an error, and not a lesser check that nobody asked for."""
    assert run("verify", copy).exit_code == 3
    found = told("verify", copy, "--key", desk.keys[1])
    assert (found["holds"], found["has_key"]) == (True, False)
    assert run("verify", copy, "--key", desk.keys[0]).exit_code == 1


def test_prices_changed_in_a_copy_are_found_without_the_key(desk, copy):
    with forging(copy) as tables:
        change_quotes(tables, lambda held: held.with_observed(held.observed * 1.001))
    assert "PARAMETERS" in failing(copy, desk)


def test_a_ledger_written_anew_with_another_key_is_not_the_books(desk, tmp_path):
    with so.Book.create(tmp_path / "copy.book") as book:
        book.import_quotes(quotes(0, 4 * A_DAY))
        book.calibrate(MODEL, starts=1, panel=None)
    assert failing(tmp_path / "copy.book", desk) == {"LEDGER"}


def test_an_older_copy_is_found_by_a_head(desk, tmp_path):
    """All but the key is as it was then: entries were cut off the end, and the rows are those of before."""
    copy = Path(shutil.copy(desk.path.with_name("before"), tmp_path / "copy.book"))
    found = so.Book.verify_copy(copy, key=desk.keys[0])
    assert found.holds, found.summary()
    assert not so.Book.verify_copy(copy, key=desk.keys[0], head=desk.head).holds
    assert failing(copy, desk) == {"LEDGER"}


def test_a_certificate_that_the_entry_did_not_come_with_is_found_by_its_signature(desk, copy):
    with forging(copy) as tables:
        pages = [name for (name,) in tables.execute("SELECT name FROM pages WHERE kind = 'certificate' ORDER BY name")]
        ((other,),) = tables.execute("SELECT data FROM pages WHERE name = ? AND kind = 'certificate'", (pages[0],))
        tables.execute("UPDATE pages SET data = ? WHERE name = ? AND kind = 'certificate'", (other, pages[1]))
    assert failing(copy, desk) == {"CERTIFICATES"}


@pytest.mark.parametrize("key", [(), "0" * 63, "G" * 64, "x"], ids=repr)
def test_a_copy_is_checked_by_no_key_that_is_none(copy, key):
    with pytest.raises(UsageError):
        so.Book.verify_copy(copy, key=key)


# --- keys that were rotated, and keys that are secret ----------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
def test_a_certificate_holds_by_the_key_of_its_time_and_by_no_other(desk, which):
    data, kept = (desk.first, desk.second)[which], desk.retained[which]
    own, other = desk.keys[which], desk.keys[1 - which]
    assert so.verify(data, kept, key=own).is_signed is True
    assert so.verify(data, kept, key=desk.keys).is_signed is True
    found = so.verify(data, kept, key=other)
    assert (found.holds, found.is_signed) == (False, False)


@pytest.mark.parametrize("of", ["certificate", "book"])
def test_a_secret_key_file_is_refused_as_a_public_key_and_not_shown(desk, copy, of, tmp_path):
    secret = desk.path.with_name("px.book.key")
    (tmp_path / "certificate.json").write_bytes(desk.second)
    so.write_quotes(desk.retained[1], tmp_path / "kept.csv")
    what = [copy] if of == "book" else [tmp_path / "certificate.json", tmp_path / "kept.csv"]
    ring = Keyring.read(secret)
    for words in ([*what, "--key", secret], [*what, "--key", secret, "--json"]):
        ended = run("verify", *words)
        assert ended.exit_code == 2
        assert "is secret" in ended.output
        hidden = [ring.secret.hex(), *(signer.seed().hex() for signer in ring.signers)]
        assert not any(text[:8] in ended.output for text in hidden)
