"""Four eyes: nothing goes before a second person approved just that, and the ledger shows both."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import strikeout as so
from strikeout.book.approvals import approvals_of
from strikeout.errors import NothingMeantError, RefusedError, UnknownIdError, UsageError
from tests.book.behind import entered
from tests.raising import raises

EARLY = "date < '2024-01-10'"


@pytest.fixture
def path(tmp_path):
    with so.Book.create(tmp_path / "a.book", who="ann", approval="two-person") as book:
        book.import_quotes(so.paper.quotes("small"))
        book.calibrate()
    return tmp_path / "a.book"


def of(path, who):
    return so.Book.open(path, who=who)


def test_nothing_goes_without_a_request_or_with_an_open_or_rejected_one(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        before = ann.quotes().ids.tolist()
        with raises(RefusedError, count=36, verb="forget", waiting=None):
            ann.forget(where=EARLY)
        asked = ann.request("forget", where=EARLY, reason="bad-feed")
        with raises(RefusedError, count=36, verb="forget", waiting=asked.number):
            ann.forget(where=EARLY)
        bob.reject(asked.number)
        with raises(RefusedError, count=36, verb="forget", waiting=None):
            ann.forget(where=EARLY)
        with raises(RefusedError, count=36, verb="erase"):
            ann.erase(where=EARLY)
        with raises(RefusedError, count=534, verb="roll"):
            ann.roll(window=1)
        assert ann.plan_erase(where=EARLY).entry is None  # a rehearsal needs nobody
        assert ann.quotes().ids.tolist() == before
        assert ann.verify().holds


def test_what_was_approved_is_done_once_and_the_ledger_shows_both(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("forget", where=EARLY, reason="bad-feed")
        assert bob.approve(asked.number).state == "approved"
        change = ann.forget(where=EARLY)
        (after,) = ann.requests()
        assert (after.state, after.who, after.by, after.done) == ("done", "ann", "bob", change.entry)
        log = [(entry.who, entry.what) for entry in ann.log()[-3:]]
        assert log == [("ann", "request forget"), ("bob", "approve"), ("ann", "forget")]
        assert ann.verify().holds, ann.verify().summary()
        ann.restore()
        with raises(RefusedError, count=36, verb="forget", waiting=None):
            ann.forget(where=EARLY)


def test_an_approval_is_of_these_quotes_and_this_verb_only(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        ids = ann.quotes().ids[:4].tolist()
        bob.approve(ann.request("forget", ids=ids).number)
        for other in (ids[:3], [*ids, ann.quotes().ids[9]]):
            with raises(RefusedError, verb="forget"):
                ann.forget(ids=other)
        with raises(RefusedError, count=4, verb="erase"):
            ann.erase(ids=ids)
        assert ann.forget(ids=ids[::-1]).touched == 4


def test_an_approved_erasure_takes_the_wording_of_requests_with_it(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("erase", where=EARLY, reason="licence")
        bob.approve(asked.number)
        done = ann.erase(where=EARLY, reason="licence")
        (after,) = ann.requests()
        assert (done.residue, after.state, after.where, after.ids) == (0, "done", "", ())
        assert ann.verify().holds, ann.verify().summary()
    assert EARLY.encode() not in path.read_bytes()


@pytest.mark.parametrize(("name", "again"), [("ann", "ann"), ("ann", "Ann"), ("ANN", "ann"), (" ann", "ann ")])
def test_nobody_decides_what_they_asked_for(path, name, again):
    with of(path, name) as ann, of(path, again) as same:
        asked = ann.request("forget", where=EARLY)
        for decide in (same.approve, same.reject):
            with raises(RefusedError, request=asked.number, who=asked.who):
                decide(asked.number)
        assert ann.requests()[0].state == "open"


def test_a_decision_is_final(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("forget", where=EARLY)
        bob.reject(asked.number)
        with raises(RefusedError, request=asked.number, state="rejected"):
            bob.approve(asked.number)
        again = ann.request("forget", where=EARLY)
        with raises(RefusedError, request=again.number, state="open"):
            bob.request("forget", where=EARLY)


def test_what_is_no_request_cannot_be_decided(path):
    with of(path, "bob") as bob, raises(RefusedError, request=2):
        bob.approve(2)


def test_a_request_that_means_nothing_is_refused(path):
    with of(path, "ann") as ann:
        with raises(UsageError, what="restore"):
            ann.request("restore", where=EARLY)
        with raises(UsageError, verb="forget"):
            ann.request("forget")
        with raises(NothingMeantError, where="date < '1999-01-01'"):
            ann.request("forget", where="date < '1999-01-01'")
        with pytest.raises(UnknownIdError):
            ann.request("forget", ids=["nobody"])
        assert ann.requests() == ()


def test_a_book_that_asks_for_no_approval_needs_none(tmp_path):
    with so.Book.create(tmp_path / "b.book") as book:
        book.import_quotes(so.paper.quotes("small"))
        book.calibrate()
        assert book.approval == "one-person"
        assert book.forget(where=EARLY).touched > 0
        assert next(check for check in book.verify().checks if check.name == "APPROVALS").holds is None


def test_the_policy_is_the_books_own_in_whatever_folder_it_is_opened(path, tmp_path, monkeypatch):
    for name, text in (("a", ""), ("b", 'who = "ann"\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "strikeout.toml").write_text(text)
        monkeypatch.chdir(tmp_path / name)
        with of(path, "ann") as book:
            assert book.approval == "two-person"
            with pytest.raises(RefusedError) as refused:
                book.erase(where=EARLY)
            assert refused.value.facts["verb"] == "erase"


def test_one_person_is_enough_again_only_once_a_second_one_approved_it(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        with pytest.raises(RefusedError):
            ann.set_approval("one-person")
        asked = ann.request("one-person", reason="other")
        with pytest.raises(RefusedError):
            ann.approve(asked.number)
        bob.approve(asked.number)
        number = ann.set_approval("one-person")
        assert (ann.approval, ann.requests()[0].done) == ("one-person", number)
        assert ann.forget(where=EARLY).touched > 0
        ann.set_approval("two-person")  # one person may
        with pytest.raises(RefusedError):
            ann.set_approval("one-person")  # the approval was for once
        assert ann.verify().holds


def test_a_removal_without_its_approval_is_marked_by_verify(path):
    with of(path, "ann") as book:
        ids = book.quotes().ids[:3].tolist()
        number = book.status().entries + 1
        with entered(book, "forget", touched=ids, counts={"forgotten": 3}) as store:
            store.strike(ids, entry=number)
        check = next(check for check in book.verify().checks if check.name == "APPROVALS")
        assert check.holds is False
        assert approvals_of(book.log()) == {number: None}


def test_an_unknown_policy_is_refused(tmp_path):
    with pytest.raises(UsageError):
        so.Book.create(tmp_path / "c.book", approval="three-person")
    assert not (tmp_path / "c.book").exists()


def test_an_approval_for_a_reason_that_keeps_results_does_not_cover_one_that_removes_them(tmp_path):
    """An erasure for a licence removes the results of earlier calibrations too, so it is another request."""
    quotes = so.paper.quotes("small", seed=5)
    ids = quotes.ids[:20].tolist()
    with so.Book.create(tmp_path / "a.book", approval="two-person", who="ann") as book:
        book.import_quotes(quotes)
        book.calibrate(panel=None)
        asked = book.request("erase", ids=ids, reason="test")
    with so.Book.open(tmp_path / "a.book", who="bob") as book:
        book.approve(asked.number)
    with so.Book.open(tmp_path / "a.book", who="ann") as book:
        with pytest.raises(RefusedError):
            book.erase(ids=ids, reason="licence")
        assert book.status().erased == 0
        book.erase(ids=ids, reason="error")
        assert book.verify().holds
        assert None not in book.approvals_of_removals().values()


DEEDS = {
    "calibrate": lambda book: book.calibrate(loss="huber"),
    "forget": lambda book: book.forget(ids=book.quotes().ids[-2:].tolist()),
    "restore": lambda book: book.restore(),
    "import": lambda book: book.import_quotes(so.synthetic.random_quotes(5, maturities=1, seed=3)),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_an_approval_lapses_when_the_book_moves(path, deed):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        early = ann.quotes().ids[:4].tolist()
        others = ann.quotes().ids[-2:].tolist() if deed == "forget" else ann.quotes().ids[-5:].tolist()
        if deed in ("forget", "restore"):
            bob.approve(ann.request("forget", ids=others).number)
        if deed == "restore":
            ann.forget(ids=others)
        asked = ann.request("forget", ids=early)
        assert bob.approve(asked.number).state == "approved"
        DEEDS[deed](ann)
        moved = ann.log()[-1].number
        late = next(one for one in ann.requests() if one.number == asked.number)
        assert (late.state, late.moved) == ("lapsed", moved)
        if deed == "import":
            ann.calibrate()  # else forget is refused because the calibration is out of date
        with pytest.raises(RefusedError) as refused:
            ann.forget(ids=early)
        assert refused.value.facts["late"] == [asked.number]
        again = ann.request("forget", ids=early)
        bob.approve(again.number)
        assert ann.forget(ids=early).touched > 0
        assert ann.verify().holds


def test_an_approval_outlives_entries_that_change_neither_quotes_nor_results(path, tmp_path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        plan = ann.plan_forget(where=EARLY)
        asked = ann.request("forget", where=EARLY)
        bob.approve(asked.number)
        ann.export(tmp_path / "held.csv")
        ann.request("erase", where=EARLY)
        ann.rotate_key()
        done = ann.forget(where=EARLY)
        # What was approved is what is done: the same claims about the same parameters.
        issued = ann.certificate(done.entry)
        assert issued.rows() == plan.certificate.rows()
        assert issued.parameters == plan.certificate.parameters
        assert ann.requests()[0].done == done.entry


def test_a_request_expires(path):
    def at(days):
        return lambda: datetime.now(UTC) + timedelta(days=days)

    with of(path, "ann") as ann:
        first, second = (ann.request("forget", ids=[name]).number for name in ann.quotes().ids[:2].tolist())
        ids = ann.quotes().ids[:1].tolist()
    with so.Book.open(path, who="bob", clock=at(29)) as bob:
        assert bob.approve(first).state == "approved"
    with so.Book.open(path, who="bob", clock=at(31)) as bob:
        assert [one.state for one in bob.requests()] == ["expired", "expired"]
        with pytest.raises(RefusedError) as refused:
            bob.approve(second)
        assert refused.value.facts["state"] == "expired"
        with pytest.raises(RefusedError) as refused:
            bob.forget(ids=ids)
        assert refused.value.facts["late"] == [first]


def test_verify_marks_a_removal_whose_approval_had_lapsed(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        ids = ann.quotes().ids[:3].tolist()
        bob.approve(ann.request("forget", ids=ids).number)
        ann.calibrate(loss="huber")
        number = ann.status().entries + 1
        with entered(ann, "forget", touched=ids, counts={"forgotten": 3}) as store:
            store.strike(ids, entry=number)
        assert approvals_of(ann.log()) == {number: None}


def test_a_request_can_be_withdrawn_by_its_author_alone_also_after_the_approval(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        first = ann.request("forget", where=EARLY).number
        with raises(RefusedError, request=first, who="ann"):
            bob.withdraw(first)
        assert (ann.withdraw(first).state, ann.log()[-1].what) == ("withdrawn", "withdraw")
        with raises(RefusedError, request=first, state="withdrawn"):
            bob.approve(first)
        second = ann.request("forget", where=EARLY).number
        bob.approve(second)
        assert ann.withdraw(second).state == "withdrawn"
        with raises(RefusedError, verb="forget", waiting=None):
            ann.forget(where=EARLY)
        with raises(RefusedError, request=second, state="withdrawn"):
            ann.withdraw(second)


def test_verify_marks_a_removal_whose_request_was_withdrawn(path):
    with of(path, "ann") as ann, of(path, "bob") as bob:
        asked = ann.request("forget", where=EARLY).number
        bob.approve(asked)
        done = ann.forget(where=EARLY).entry
        entries = ann.log()
        withdrawal = replace(entries[asked - 1], what="withdraw", counts={"of": asked})
    assert approvals_of(entries) == {done: asked + 1}
    assert approvals_of([*entries[: done - 1], withdrawal, entries[done - 1]]) == {done: None}
