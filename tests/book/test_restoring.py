"""Quotes that went and came back: what the book keeps of every quote is under that quote, whatever the order was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.assurance.state_codec import ShardRows, encode_footprints
from strikeout.book import state_store

TOLERANCE = 0.05
THETA = {
    "mean_reversion": 2.0,
    "long_variance": 0.05,
    "vol_of_vol": 0.6,
    "correlation": -0.6,
    "initial_variance": 0.04,
}


@pytest.fixture(scope="module")
def quotes() -> so.Quotes:
    """Two shards, four expiries."""
    return so.synthetic.random_quotes(300, maturities=4, seed=9)


@pytest.fixture(scope="module")
def second(quotes: so.Quotes) -> np.ndarray:
    """Which quotes are of the second expiry."""
    return quotes.contracts.expiry == np.unique(quotes.contracts.expiry)[1]


@pytest.fixture
def by_expiry(tmp_path: Path, quotes: so.Quotes):
    """A book whose model has parameters of its own for every expiry."""
    with so.Book.create(tmp_path / "svi.book") as book:
        book.import_quotes(quotes)
        book.calibrate(so.SVI("natural"), starts=1)
        yield book


@pytest.fixture
def by_parity(tmp_path: Path):
    """A book whose forwards rest on its quotes."""
    strikes, draw = np.arange(80.0, 121.0, 4.0), np.random.default_rng(0)
    rows = []
    for expiry in (0.25, 0.5, 1.0, 1.5, 2.0):
        for is_call in (True, False):
            ones = np.ones(len(strikes))
            contracts = so.Contracts(
                forward=100.0 * ones,
                strike=strikes,
                expiry=expiry * ones,
                discount=0.98**expiry * ones,
                is_call=np.full(len(strikes), is_call),
            )
            prices = so.Heston().price(THETA, contracts) + 1e-4 * draw.normal(size=len(strikes))
            rows += [(expiry, k, "C" if is_call else "P", p) for k, p in zip(strikes, prices.tolist(), strict=True)]
    path = tmp_path / "parity.csv"
    pl.DataFrame(rows, schema=["expiry_years", "strike", "right", "price"], orient="row").write_csv(path)
    with so.Book.create(tmp_path / "parity.book") as book:
        book.import_quotes(so.read_quotes(path))
        book.calibrate()
        yield book


def is_each_under_its_quote(book: so.Book) -> bool:
    """Whether every quote held has the footprint that is found from it anew."""
    records, held = book.snapshot(), book.quotes()
    linearization, store = records.linearization, records.store
    found = linearization.footprints(held, records.settings).whole
    anew = dict(zip(found.ids.tolist(), found.rows.tolist(), strict=True))
    kept: dict[str, list[int]] = {}
    for shard in store.shards():
        rows = state_store.stored_rows(store, linearization, shard)
        names = [name for name, has in zip(store.members(shard), rows.has, strict=True) if has]
        kept |= zip(names, rows.rows.tolist(), strict=True)
    return {name: kept.get(name) for name in anew} == anew


def test_after_a_restore_footprints_taken_anew_for_their_forwards_are_under_their_quotes(by_parity):
    by_parity.forget(ids=by_parity.quotes().ids[20:24])
    by_parity.restore()
    assert is_each_under_its_quote(by_parity)
    assert by_parity.verify().holds, by_parity.verify().summary()


def test_a_book_without_one_of_its_expiries_holds_and_so_does_one_that_has_it_back(by_expiry, quotes, second):
    by_expiry.forget(ids=quotes.ids[second])
    assert by_expiry.verify().holds, by_expiry.verify().summary()
    by_expiry.restore()
    assert is_each_under_its_quote(by_expiry)
    assert by_expiry.verify().holds, by_expiry.verify().summary()


def test_a_step_after_a_restored_expiry_is_as_near_the_truth_as_it_is_certified(by_expiry, quotes, second):
    by_expiry.forget(ids=quotes.ids[second])
    by_expiry.restore()
    errors = by_expiry.status().version.standard_errors
    for one in (60, 90, 120):
        plan = by_expiry.plan_forget(ids=quotes.ids[[one]], tolerance=TOLERANCE)
        assert plan.path[0].startswith("downdate: ")
        truth = so.calibrate(quotes.without(quotes.ids[[one]]), so.SVI("natural"), starts=1).parameters
        assert max(abs(plan.after[name] - truth[name]) / errors[name] for name in truth) <= TOLERANCE
    by_expiry.apply(plan)
    assert by_expiry.verify().holds, by_expiry.verify().summary()


def test_quotes_of_an_expiry_the_model_does_not_know_yet_break_nothing(tmp_path, quotes, second):
    with so.Book.create(tmp_path / "a.book") as book:
        book.import_quotes(quotes[~second])
        book.calibrate(so.SVI("natural"), starts=1)
        book.import_quotes(quotes[second])
        assert book.verify().holds, book.verify().summary()


def test_a_footprint_of_a_quote_set_aside_that_is_not_its_own_is_found(by_expiry, quotes):
    by_expiry.forget(ids=quotes.ids[[3, 4]])
    store, linearization = by_expiry.snapshot().store, by_expiry.snapshot().linearization
    rows = state_store.stored_rows(store, linearization, 0)
    assert rows.has.all()
    swapped = rows.rows.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    with by_expiry.snapshot().session.store.writing() as tx:
        tx.put_shard_data(0, "footprints", encode_footprints(linearization.schema, ShardRows(rows.has, swapped)))
    assert any("STATES" in reason and ": 0 (1)." in reason for reason in by_expiry.verify().reasons)
