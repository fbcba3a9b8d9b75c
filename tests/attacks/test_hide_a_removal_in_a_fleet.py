"""A clerk wants a removal in many books to do more, or less, than the person who approves or reads about it sees."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

import strikeout as so
from strikeout.book.folder import Outcome, approve_in_folder, evidence_of_folder, remove_in_folder
from strikeout.cli import strikeout
from strikeout.errors import RefusedError, UsageError
from strikeout.store.entry import Reason
from tests.attacks.forger import forging

WHERE = "licence = 'L3'"
WHY = Reason("licence", ticket="T-1")
BLACK = so.BlackScholes()


def quotes(count, *, labels=True, first=0):
    number = np.arange(first, first + count)
    contracts = so.Contracts(forward=100.0, strike=80.0 + number, expiry=0.5, discount=1.0, is_call=True)
    licence = {"licence": np.where(number % 5 == 0, "L3", "L1").astype(object)}
    return so.Quotes(
        ids=[f"q{one}" for one in number],
        contracts=contracts,
        observed=BLACK.price([0.2], contracts),
        labels=licence if labels else {},
    )


@pytest.fixture
def folder(tmp_path):
    """Three small books that need two persons, without a calibration."""
    for name in ("a", "b", "c"):
        with so.Book.create(tmp_path / f"{name}.book", who="maker", approval="two-person") as book:
            book.import_quotes(quotes(30))
    return tmp_path


def removed(folder, what="forget", where=WHERE, why=WHY, who="ada"):
    found = remove_in_folder(folder, what, where=where, reason=why, who=who, is_plan=False)
    return {book.name: book.outcome for book in found.books}


def test_by_writing_the_ticket_of_another_removal_on_ones_own(folder):
    assert set(removed(folder).values()) == {Outcome.REQUESTED}
    with so.Book.open(folder / "b.book", who="eve") as book:
        book.request("erase", where="strike > 90", reason=WHY)
    with pytest.raises(RefusedError) as refused:
        approve_in_folder(folder, "T-1", who="bob")
    assert refused.value.facts["kinds"] == 2
    for name in "abc":
        with so.Book.open(folder / f"{name}.book") as book:
            assert {one.state for one in book.requests()} == {"open"}
            if name == "b":
                book.reject(book.requests()[-1].number)
    approved = approve_in_folder(folder, "T-1", who="bob")
    assert [book.outcome for book in approved.books] == [Outcome.APPROVED] * 3


def test_by_asking_for_quotes_by_id_under_that_ticket(folder):
    removed(folder)
    with so.Book.open(folder / "b.book", who="eve") as book:
        book.request("forget", ids=["q1"], reason=WHY)
    with pytest.raises(RefusedError):
        approve_in_folder(folder, "T-1", who="bob")


def test_by_adding_quotes_to_what_was_approved(folder):
    """An approval covers the quotes of its request; what matches since needs another one."""
    removed(folder, "erase")
    approve_in_folder(folder, "T-1", who="bob")
    with so.Book.open(folder / "b.book", who="eve") as book:
        book.import_quotes(quotes(10, first=100))
    assert removed(folder, "erase") == {"a": Outcome.DONE, "b": Outcome.REQUESTED, "c": Outcome.DONE}
    with so.Book.open(folder / "b.book") as book:
        assert len(book.quotes()) == 40
        assert Counter(one.state for one in book.requests()) == {"lapsed": 1, "open": 1}


def test_by_a_book_that_breaks_the_others_off_half_way(tmp_path):
    """What was done in the first books must not be lost with an error about a later one."""
    for name, has_labels in (("a", True), ("b", False), ("c", True)):
        with so.Book.create(tmp_path / f"{name}.book", who="maker") as book:
            book.import_quotes(quotes(30, labels=has_labels))
    words = ["fleet", "erase", str(tmp_path), "--where", WHERE, "--reason", "licence", "--yes", "--json"]
    done = CliRunner().invoke(strikeout, words)
    assert done.exit_code == 3
    outcomes = {book["book"]: book["outcome"] for book in json.loads(done.stdout)["books"]}
    assert outcomes == {"a": "done", "b": "refused", "c": "done"}
    with pytest.raises(UsageError):  # no book accepts it
        remove_in_folder(tmp_path, "erase", where="licence ==== 1", is_plan=False)


def test_by_a_damaged_book_among_those_to_approve(folder):
    removed(folder)
    (folder / "b.book").write_bytes(b"not a book")
    found = approve_in_folder(folder, "T-1", who="bob")
    assert {book.name: book.outcome for book in found.books} == {
        "a": Outcome.APPROVED,
        "b": Outcome.REFUSED,
        "c": Outcome.APPROVED,
    }


def test_by_taking_a_removal_out_of_a_ledger(tmp_path):
    """A book that was changed without its key is on the page of evidence, whatever its ledger lists now."""
    for name in ("a", "b"):
        with so.Book.create(tmp_path / f"{name}.book", who="maker") as book:
            book.import_quotes(quotes(30))
            book.erase(where=WHERE, reason=WHY)
    with forging(tmp_path / "b.book") as tables:
        (as_before,) = tables.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_stay'").fetchone()
        tables.execute("DROP TRIGGER entries_stay")
        tables.execute("DELETE FROM entries WHERE number > 1")
        tables.execute(as_before)
    found = {facts["name"]: facts for facts in evidence_of_folder(tmp_path, ticket="T-1")}
    assert found["a.book"]["verification"]["verdict"] == "verified"
    assert found["b.book"]["verification"]["verdict"] == "refuted"
