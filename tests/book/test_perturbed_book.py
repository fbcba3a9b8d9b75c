"""Footprints a book keeps may carry noise: states are sums of the noisy ones, the calibration knows nothing of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import strikeout as so
from strikeout.book import state_store
from strikeout.book.spec import as_the_last_time
from strikeout.errors import UsageError
from strikeout.forgetting.evidence import Unsupported
from tests.raising import raises

SHARE = 1e-3


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    return so.synthetic.random_quotes(600, maturities=6, seed=7)


@pytest.fixture
def book(tmp_path: Path, quotes: so.Quotes):
    with so.Book.create(tmp_path / "a.book") as made:
        made.import_quotes(quotes)
        made.calibrate(perturb=SHARE)
        yield made


def rows(book: so.Book) -> np.ndarray:
    store, linearization = book.snapshot().store, book.snapshot().linearization
    return np.concatenate([state_store.stored_rows(store, linearization, shard).rows for shard in store.shards()])


def test_no_true_footprint_is_kept_and_the_calibration_is_the_same(book, quotes):
    linearization = book.snapshot().linearization
    true = so.states.footprints_of(quotes, linearization.model, linearization.references[""]).rows
    kept = rows(book)
    assert not (kept == true).all(axis=1).any()
    rms = np.sqrt(np.mean(true.astype(float) ** 2, axis=0))
    assert np.allclose((kept - true).std(axis=0) / rms, SHARE, rtol=0.2)
    assert dict(book.status().version.parameters) == so.calibrate(quotes, so.Heston()).parameters
    assert (linearization.noise, linearization.drift > 0.0) == (SHARE, True)
    assert "perturbed by 0.001" in book.status().shard_sentence


def test_what_is_forgotten_and_restored_is_exact_with_respect_to_the_noise(book, quotes):
    before = book.snapshot().linearization.system.reduced()
    change = book.forget(ids=quotes.ids[::50])
    assert book.snapshot().linearization.system.reduced() != before
    assert book.verify().holds, book.verify().summary()
    book.restore(change.entry)
    assert book.snapshot().linearization.system.reduced() == before
    assert book.verify().holds, book.verify().summary()


def test_noise_comes_with_quotes_that_are_learnt_and_stays_after_erasing_and_calibrating_again(book, quotes):
    more = so.synthetic.random_quotes(20, maturities=6, seed=8)
    book.learn(so.Quotes(ids=[f"n{n}" for n in range(20)], contracts=more.contracts, observed=more.observed))
    linearization = book.snapshot().linearization
    true = so.states.footprints_of(more, linearization.model, linearization.references[""]).rows
    assert not (state_store.stored_rows(book.snapshot().store, linearization, 3).rows == true).all(axis=1).any()
    assert book.verify().holds, book.verify().summary()
    assert book.erase(ids=quotes.ids[:2]).residue == 0
    assert book.snapshot().linearization.noise == SHARE
    book.calibrate()
    assert book.snapshot().linearization.noise == SHARE
    book.calibrate(starts=4)
    assert book.snapshot().linearization.noise == SHARE
    book.calibrate(starts=4, fresh=True)
    assert book.snapshot().linearization.noise == 0.0


def test_a_state_that_is_not_the_sum_of_its_noisy_footprints_is_found(book):
    store = book.snapshot().store
    data = bytearray(store.shard_data(1, "footprints"))
    data[-48] ^= 1
    with book.snapshot().session.store.writing() as tx:
        tx.put_shard_data(1, "footprints", bytes(data))
    assert any("STATES" in reason and ": 1 (1)." in reason for reason in book.verify().reasons)


def test_nothing_is_certified_from_noisy_footprints(book, quotes):
    plan = book.plan_forget(ids=quotes.ids[:5], tolerance=0.05)
    assert plan.path[0] == (f"downdate passed over: {Unsupported.NOISE}")


def test_noise_stays_on_shards_that_are_built_again(book, quotes):
    book.forget(ids=quotes.ids[:3])
    book.calibrate()
    assert book.erase(ids=quotes.ids[:3]).residue == 0
    linearization = book.snapshot().linearization
    true = so.states.footprints_of(quotes[3:256], linearization.model, linearization.references[""]).rows
    assert not (state_store.stored_rows(book.snapshot().store, linearization, 0).rows == true).all(axis=1).any()
    assert book.verify().holds, book.verify().summary()


def test_noise_is_asked_for_until_something_else_is_though_an_erasure_takes_every_footprint(book, quotes):
    book.forget(ids=quotes.ids[:3])
    book.erase(ids=quotes.ids[:3])
    assert book.snapshot().linearization is None
    book.calibrate()
    assert book.snapshot().linearization.noise == book.status().noise == SHARE
    assert book.verify().holds, book.verify().summary()
    assert as_the_last_time(book.status().version.options, given={"starts": 4}, model=None)["perturb"] == SHARE


def test_noise_is_on_what_is_kept_again_once_a_second_date_has_come_and_gone(tmp_path):
    found = so.synthetic.random_quotes(200, maturities=6, seed=5)
    dates = np.repeat(["2024-01-02", "2024-01-03"], 100).astype(object)
    both = so.Quotes(ids=found.ids, contracts=found.contracts, observed=found.observed, labels={"date": dates})
    with so.Book.create(tmp_path / "two.book") as book:
        book.import_quotes(both[:100])
        book.calibrate(perturb=SHARE)
        assert book.learn(both[100:]).after.panel == "date"
        book.forget(ids=both.ids[100:])
        book.calibrate()
        assert book.status().noise == SHARE


def test_where_no_footprints_are_kept_noise_on_them_is_refused(book):
    with pytest.raises(UsageError) as refused:
        book.calibrate(through="moments", perturb=SHARE)
    assert refused.value.arguments == {"perturb", "through", "panel"}


def test_a_share_that_is_none_is_refused_and_nothing_is_kept(book):
    entries = book.status().entries
    with raises(UsageError, mentions={"share"}):
        book.calibrate(perturb=-1.0)
    assert book.status().entries == entries
