"""Four eyes: nothing goes before a second person approved just that, and the ledger shows both."""

from __future__ import annotations

import pytest

import strikeout as so
from strikeout.errors import RefusedError, UnknownIdError, UsageError

EARLY = "date < '2024-01-10'"


@pytest.fixture
def path(tmp_path):
    with so.Book.create(tmp_path / "a.book", who="ann") as book:
        book.import_quotes(so.paper.quotes("small"))
        book.calibrate()
    return tmp_path / "a.book"


def of(path, who, *, is_two_person=True):
    return so.Book.open(path, who=who, is_two_person=is_two_person)


def test_nothing_goes_without_a_request_or_with_an_open_or_rejected_one(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        before = ann.quotes().ids.tolist()
        with pytest.raises(RefusedError, match="Ask first"):
            ann.apply(ann.forget(where=EARLY))
        asked = ann.request("forget", where=EARLY, reason="bad-feed")
        with pytest.raises(RefusedError, match=f"approve BOOK {asked.number}"):
            ann.apply(ann.forget(where=EARLY))
        bob.reject(asked.number)
        with pytest.raises(RefusedError, match="Ask first"):
            ann.apply(ann.forget(where=EARLY))
        with pytest.raises(RefusedError, match="Ask first"):
            ann.erase(where=EARLY, yes=True)
        with pytest.raises(RefusedError, match="Ask first"):
            ann.roll(window=1)
        assert ann.erase(where=EARLY).entry is None  # a rehearsal needs nobody
        assert ann.quotes().ids.tolist() == before
        assert ann.verify().holds


def test_what_was_approved_is_done_once_and_the_ledger_shows_both(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("forget", where=EARLY, reason="bad-feed")
        assert bob.approve(asked.number).state == "approved"
        change = ann.apply(ann.forget(where=EARLY))
        (after,) = ann.requests()
        assert (after.state, after.who, after.by, after.done) == ("done", "ann", "bob", change.entry)
        log = [(entry.who, entry.what) for entry in ann.log()[-3:]]
        assert log == [("ann", "request forget"), ("bob", "approve"), ("ann", "forget")]
        assert ann.verify().holds, ann.verify().summary()
        ann.restore()
        with pytest.raises(RefusedError, match="Ask first"):
            ann.apply(ann.forget(where=EARLY))


def test_an_approval_is_of_these_quotes_and_this_verb_only(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        ids = ann.quotes().ids[:4].tolist()
        bob.approve(ann.request("forget", ids=ids).number)
        for other in (ids[:3], [*ids, ann.quotes().ids[9]]):
            with pytest.raises(RefusedError, match="Ask first"):
                ann.apply(ann.forget(ids=other))
        with pytest.raises(RefusedError, match="Ask first"):
            ann.erase(ids=ids, yes=True)
        assert ann.apply(ann.forget(ids=ids[::-1])).touched == 4


def test_an_approved_erasure_takes_the_wording_of_requests_with_it(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("erase", where=EARLY, reason="licence")
        bob.approve(asked.number)
        done = ann.erase(where=EARLY, yes=True)
        (after,) = ann.requests()
        assert (done.residue, after.state, after.where, after.ids) == (0, "done", "", ())
        assert ann.verify().holds, ann.verify().summary()
    assert EARLY.encode() not in path.read_bytes()


@pytest.mark.parametrize(("name", "again"), [("ann", "ann"), ("ann", "Ann"), ("ANN", "ann"), (" ann", "ann ")])
def test_nobody_decides_what_they_asked_for(path, name, again):
    with of(path, name) as ann, of(path, again) as same:
        asked = ann.request("forget", where=EARLY)
        for decide in (same.approve, same.reject):
            with pytest.raises(RefusedError, match="takes another person"):
                decide(asked.number)
        assert ann.requests()[0].state == "open"


def test_a_decision_is_final(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("forget", where=EARLY)
        bob.reject(asked.number)
        with pytest.raises(RefusedError, match="rejected already by bob"):
            bob.approve(asked.number)
        again = ann.request("forget", where=EARLY)
        with pytest.raises(RefusedError, match=f"Request {again.number} of ann asks for the same"):
            bob.request("forget", where=EARLY)


def test_what_is_no_request_cannot_be_decided(path):
    with of(path, "bob") as bob, pytest.raises(RefusedError, match="Entry 2 of the ledger is no request"):
        bob.approve(2)


def test_a_request_that_means_nothing_is_refused(path):
    with of(path, "ann") as ann:
        with pytest.raises(UsageError, match="forget"):
            ann.request("restore", where=EARLY)
        with pytest.raises(UsageError, match="one way"):
            ann.request("forget")
        with pytest.raises(RefusedError, match="nothing to forget"):
            ann.request("forget", where="date < '1999-01-01'")
        with pytest.raises(UnknownIdError):
            ann.request("forget", ids=["nobody"])
        assert ann.requests() == ()


def test_a_book_that_asks_for_no_approval_needs_none(path):
    with of(path, "ann", is_two_person=False) as ann:
        assert ann.apply(ann.forget(where=EARLY)).touched > 0
