"""The verbs of a desk, in memory and in a file: what each does to a book, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import strikeout as so
from strikeout.book.forget import Plan
from strikeout.book.records import Position, Session
from strikeout.errors import BusyError, NothingMeantError, RefusedError, UnknownIdError, UsageError
from strikeout.store.entry import Entry, Reason
from strikeout.store.keyring import Keyring
from strikeout.store.sqlite import SqliteStore
from tests.raising import raises
from tests.store.memory_store import MemoryStore

EARLY = "date < '2024-01-10'"
KEYS = Keyring.generate()


@pytest.fixture(scope="module")
def quotes():
    return so.paper.quotes("small")


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else SqliteStore.create(tmp_path / "a.book")
    yield made
    made.close()


def desk_on(store):
    moments = (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(1000))
    session = Session(store, KEYS, lambda: next(moments), "ann")
    if not store.now.entries():
        with session.writing(Position(0, "")) as book:
            book.enter("create", None)
    return so.Book(session)


@pytest.fixture
def desk(store, quotes):
    """A desk on a calibrated book of the paper's small set: as it comes in a file, and plain in memory."""
    made = desk_on(store)
    made.import_quotes(quotes)
    made.calibrate(**({"panel": None} if isinstance(store, MemoryStore) else {}))
    return made


def fresh(desk, quotes):
    """These quotes alone, asked for as the book was."""
    return so.calibrate(quotes, so.Heston(), panel=desk.status().version.options.get("panel"))


def is_fresh(desk, quotes):
    """Whether the book keeps what a calibration of these quotes alone gives, bit for bit."""
    version, never = desk.status().version, fresh(desk, quotes)
    path = {group: value for group, (value, _) in version.latent.items()}
    same = dict(version.parameters) == never.parameters and path == getattr(never, "latent", {})
    return same and version.state == never.state.digest()


def test_a_calibrated_book_keeps_what_calibrating_its_quotes_gives(desk, quotes):
    assert is_fresh(desk, quotes)
    assert desk.status().is_current
    assert desk.verify().holds, desk.verify().summary()
    version, names = desk.status().version, so.Heston().parameters.names
    assert len(version.latent) == (90 if version.options.get("panel") == "auto" else 0)
    assert list(version.parameters) == [name for name in names if not version.latent or name != "initial_variance"]


def test_the_same_quotes_again_change_nothing(desk, quotes):
    before = desk.log()
    again = desk.import_quotes(quotes[::-1])
    assert (again.entry, again.imported, again.repeated) == (None, 0, 540)
    assert desk.log() == before


def test_an_id_with_other_values_is_refused_and_nothing_is_imported(desk, quotes):
    other = quotes[:3].with_observed(quotes.observed[:3] + np.array([0.0, 1e-9, 0.0]))
    with raises(RefusedError, count=1, ids=["small-000-30-100"]) as refused:
        desk.import_quotes(other)
    assert refused.value.ids == [str(quotes.ids[1])]
    assert desk.status().entries == 3


def test_a_plan_changes_nothing_and_says_everything(desk, quotes):
    before = desk.status()
    plan = desk.plan_forget(where=EARLY, reason=Reason("bad-feed", "the vendor's own word", "OPS-7"))
    assert desk.status() == before
    retained = quotes.without(plan.ids)
    assert plan.after == fresh(desk, retained).parameters
    assert so.verify(plan.certificate, retained).holds
    assert sum(plan.touched.values()) == plan.count == 36
    assert Plan.from_bytes(plan.to_bytes()) == plan
    assert "36 of 540 quotes" in plan.summary()


def test_applying_a_plan_does_what_it_said_and_leaves_what_never_saw_the_quotes(desk, quotes):
    plan = desk.plan_forget(where=EARLY, reason="bad-feed")
    change = desk.apply(plan)
    assert dict(change.after.parameters) == plan.after
    assert is_fresh(desk, quotes.without(plan.ids))
    assert desk.certificate(change.entry) == change.certificate
    assert change.certificate.digest() == plan.certificate.digest()
    assert desk.quotes().ids.tolist() == quotes.without(plan.ids).ids.tolist()
    assert desk.status().set_aside == 36
    assert desk.log()[-1].why == Reason("bad-feed")
    assert desk.verify().holds, desk.verify().summary()


def test_a_plan_is_refused_once_the_book_moved(desk):
    plan = desk.plan_forget(where=EARLY)
    desk.apply(plan)
    with raises(RefusedError, planned=3, found=4):
        desk.apply(plan)


def test_a_plan_of_another_book_or_with_another_answer_is_refused(desk, quotes):
    from dataclasses import replace

    plan, other = desk.plan_forget(where=EARLY), desk.plan_forget(ids=quotes.ids[:5])
    with pytest.raises(RefusedError, match="another book"):
        desk.apply(replace(plan, book="0" * 16))
    with pytest.raises(RefusedError) as error:
        desk.apply(replace(plan, certificate=other.certificate))
    assert error.value.differ == ["certificate"]
    assert desk.status().entries == 3


def test_altered_bytes_are_no_plan(desk):
    data = desk.plan_forget(where=EARLY).to_bytes()
    for changed in (data[:-1], b"", b"[]", data.replace(b'"position":3', b'"position": 3'), b"\xff"):
        with pytest.raises(UsageError, match="Plan"):
            Plan.from_bytes(changed)


def test_restoring_changes_no_bit_whatever_happened_between(desk, quotes):
    before = desk.status().version
    first = desk.forget(where=EARLY)
    second = desk.forget(where="date > '2024-05-01'")
    desk.restore(first.entry)
    assert is_fresh(desk, quotes[quotes.labels["date"] <= "2024-05-01"])
    change = desk.restore()
    assert change.touched == second.touched
    assert dict(change.after.parameters) == dict(before.parameters)
    assert change.after.state == before.state
    with raises(RefusedError, known=[], entry=None):
        desk.restore()
    with raises(RefusedError, entry=4):
        desk.restore(first.entry)


def test_a_forgotten_quote_that_is_imported_again_stays_forgotten(desk, quotes):
    desk.forget(where=EARLY)
    again = desk.import_quotes(quotes)
    assert (again.imported, again.set_aside, again.repeated) == (0, 36, 504)
    assert desk.status().is_current


def test_a_forgotten_quote_that_comes_back_with_other_values_is_refused(desk, quotes):
    desk.forget(where=EARLY)
    with raises(RefusedError, count=1, ids=["small-000-30-90"]):
        desk.import_quotes(quotes[:1].with_observed([1.0]))
    assert desk.status().entries == 4


def test_imported_quotes_wait_for_a_calibration_and_learnt_ones_do_not(store, quotes):
    desk = desk_on(store)
    desk.import_quotes(quotes[:300])
    with pytest.raises(RefusedError, match="not calibrated yet"):
        desk.plan_forget(where=EARLY)
    desk.calibrate(loss="huber")
    desk.learn(quotes[300:400])
    assert desk.status().is_current
    desk.import_quotes(quotes[400:])
    assert not desk.status().is_current
    with pytest.raises(RefusedError, match="since the last calibration"):
        desk.plan_forget(where=EARLY)
    desk.calibrate()
    assert (
        dict(desk.status().version.parameters)
        == so.calibrate(quotes, so.Heston(), loss="huber", panel="auto").parameters
    )
    with raises(RefusedError, count=540):
        desk.learn(quotes)


def test_a_window_rolls_on_in_one_step(store, quotes):
    desk, dates = desk_on(store), quotes.labels["date"]
    desk.import_quotes(quotes[dates < "2024-04-01"])
    desk.calibrate()
    change = desk.roll(quotes[dates >= "2024-04-01"], window=60)
    kept = sorted(set(dates.tolist()))[-60:]
    retained = quotes[np.isin(dates.astype(str), kept)]
    assert is_fresh(desk, retained)
    assert desk.verify().holds, desk.verify().summary()
    assert change.certificate.signed is not None
    assert so.verify(change.certificate, retained).holds
    assert not so.verify(change.certificate, quotes).holds
    with raises(RefusedError, window=60):
        desk.roll(window=60)
    with raises(UsageError, window=0):
        desk.roll(window=0)
    desk.restore(change.entry)
    assert is_fresh(desk, quotes)


def test_settings_come_back_to_the_bit(store, quotes):
    how = {
        "weights": "none", "residual": "price", "loss": "huber", "bounds": {"mean_reversion": (0.1, 30.0)},
        "fixed": {"correlation": -0.6}, "feller": "ignore",
        "starts": [so.Heston().parameters.named(start) for start in so.Heston().parameters.starts],
    }  # fmt: skip
    desk = desk_on(store)
    desk.import_quotes(quotes)
    desk.calibrate(so.Heston(kernel="numpy"), **how)
    again = desk_on(store)
    plan = again.plan_forget(where=EARLY)
    assert plan.after == so.calibrate(quotes.without(plan.ids), so.Heston(kernel="numpy"), **how).parameters


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weights": np.ones(540)}, "weight"),
        ({"model": so.paper.Heston()}, "is not built in"),
        ({"model": "sabr"}, r"takes a model, such as Heston\(\); got 'sabr'"),
        ({"model": so.SABR}, "takes a model, such as Heston"),
        ({"loss": "cubic"}, "cubic"),
    ],
)
def test_what_a_book_cannot_keep_is_refused(desk, settings, said):
    with pytest.raises(UsageError, match=said):
        desk.calibrate(**settings)
    assert desk.status().entries == 3


def test_what_nobody_can_mean_is_refused_and_nothing_is_entered(desk):
    with pytest.raises(UnknownIdError):
        desk.plan_forget(ids=["nobody"])
    with raises(NothingMeantError, where="strike < 0"):
        desk.plan_forget(where="strike < 0")
    with raises(RefusedError, count=270):
        desk.plan_forget(where="expiry_years < 0.2")
    with raises(UsageError, code_given="bad-mood"):
        desk.plan_forget(where=EARLY, reason="bad-mood")
    assert desk.status().entries == 3


def test_a_change_made_meanwhile_is_seen_and_nothing_is_written(desk):
    seen = desk.snapshot().position
    desk.forget(where=EARLY)
    with raises(RefusedError, found=4), desk.snapshot().session.writing(seen) as book:
        book.enter("import", None)
    assert desk.status().entries == 4


def test_two_writers_are_told_apart(desk, store):
    with store.writing(), pytest.raises(BusyError):
        desk.calibrate()
    assert desk.status().entries == 3


def test_two_books_with_the_same_quotes_know_the_same_however_they_got_there(quotes):
    one, other = desk_on(MemoryStore()), desk_on(MemoryStore())
    one.import_quotes(quotes)
    one.calibrate()
    gone = one.forget(where=EARLY)
    other.import_quotes(quotes[36:][::-1])
    other.calibrate()
    found = one.compare(other)
    assert found.is_same_state
    assert found.is_same_parameters
    one.restore(gone.entry)
    assert not one.compare(other).is_same_state
    assert max(map(abs, one.compare(other).apart.values())) > 1e-3


def test_a_verb_parses_every_entry_of_the_ledger_once(desk, quotes, store, monkeypatch):
    for name in quotes.ids[:20].tolist():
        desk.request("forget", ids=[name])
    parsed, true = [], Entry.from_bytes
    monkeypatch.setattr(Entry, "from_bytes", staticmethod(lambda row: parsed.append(row) or true(row)))
    again = desk_on(store)
    again.forget(ids=quotes.ids[100:103])
    assert again.status().entries == 24
    assert len(parsed) == len(set(parsed)) == 24
