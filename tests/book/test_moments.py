"""A book that is calibrated through moments: forgetting subtracts, and reads no quote but those that go."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.state_codec import encode_moments
from strikeout.errors import RefusedError, UnknownIdError, UsageError
from tests.raising import raises


@pytest.fixture(scope="module")
def quotes():
    return so.synthetic.random_quotes(200, maturities=6, seed=7)


@pytest.fixture
def book(tmp_path, quotes):
    with so.Book.create(tmp_path / "m.book") as made:
        made.import_quotes(quotes)
        made.calibrate(through="moments")
        yield made


def fresh(quotes):
    return so.calibrate(so.states.moments_of(quotes), so.Heston())


def is_fresh(book, quotes):
    version, never = book.status().version, fresh(quotes)
    return dict(version.parameters) == never.parameters and version.state == never.state.digest()


def test_forgetting_restoring_learning_and_erasing_are_those_of_a_fresh_start(book, quotes):
    assert is_fresh(book, quotes)
    plan = book.plan_forget(ids=quotes.ids[:20])
    assert so.verify(plan.certificate, quotes[20:]).holds
    change = book.apply(plan)
    assert is_fresh(book, quotes[20:])
    assert book.verify().holds, book.verify().summary()
    book.restore(change.entry)
    assert is_fresh(book, quotes)
    assert book.erase(ids=quotes.ids[:10]).residue == 0
    assert is_fresh(book, quotes[10:])
    more = so.synthetic.random_quotes(10, maturities=6, seed=8)
    other = so.Quotes(ids=[f"more-{n}" for n in range(10)], contracts=more.contracts, observed=more.observed)
    book.learn(other)
    assert book.verify().holds, book.verify().summary()


def test_a_forget_by_ids_reads_no_other_quote(book, quotes, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the whole book was read")

    monkeypatch.setattr(type(book.snapshot().store), "quotes", refuse)
    book.forget(ids=quotes.ids[50:60])
    monkeypatch.undo()
    assert is_fresh(book, quotes.without(quotes.ids[50:60]))


def test_the_road_is_kept_until_another_is_asked_for(book, quotes):
    book.calibrate()
    assert is_fresh(book, quotes)
    book.calibrate(through="quotes")
    assert dict(book.status().version.parameters) == so.calibrate(quotes, so.Heston()).parameters
    assert book.verify().holds, book.verify().summary()


def test_quotes_that_are_set_aside_cannot_be_forgotten_again(book, quotes):
    book.forget(ids=quotes.ids[:5])
    with raises(UnknownIdError, ids=["q0000004"]):
        book.plan_forget(ids=quotes.ids[4:6])
    with raises(RefusedError, verb="forget"):
        book.plan_forget(where=f"id = '{quotes.ids[0]}'")


def test_what_moments_do_not_know_is_refused(book):
    with raises(UsageError, mentions={"loss", "residual"}):
        book.calibrate(through="moments", loss="huber")
    with raises(UsageError, mentions={"through"}):
        book.calibrate(through="letters")
    assert book.status().entries == 3


def test_the_calibration_can_be_looked_at_beside_the_quotes(book, quotes):
    found = book.calibration()
    assert found.parameters == dict(book.status().version.parameters)
    assert found.residuals.std() < 1e-3  # the noise of the random book is 5e-4
    assert so.influence(found).rows == len(quotes)
    look = so.preview(found, ids=quotes.ids[:5])
    exact = book.plan_forget(ids=quotes.ids[:5])
    apart = [abs(look.parameters[n] - x) / found.standard_errors[n] for n, x in exact.after.items()]
    assert max(apart) < 0.01  # one step and a refit agree so far for five good quotes of two hundred


def test_a_state_changed_with_the_right_tools_is_found(book, quotes):
    with book.snapshot().session.store.writing() as store:
        store.put("state", "moments", encode_moments(so.states.moments_of(quotes[1:])))
    assert any(reason.startswith("VERSIONS") for reason in book.verify().reasons)
    with pytest.raises(RefusedError, match="other parameters"):
        book.plan_forget(ids=quotes.ids[:2])
    with book.snapshot().session.store.writing() as store:
        store.remove("state", "moments")
    assert any(reason.startswith("VERSIONS") for reason in book.verify().reasons)


def test_nothing_of_an_erased_quote_is_in_the_state_that_is_left(book, quotes):
    book.erase(ids=quotes.ids[:1])
    left = book.snapshot().moments
    assert np.array_equal(left.words, so.states.moments_of(quotes[1:]).words)
