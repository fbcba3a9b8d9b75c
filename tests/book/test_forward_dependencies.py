"""A book of quotes whose forwards were derived: nothing of a struck quote stays in a forward, in memory or on disk."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.book.forget import Plan
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.evidence import Unsupported
from strikeout.quotes.reading import inspect_quotes
from strikeout.quotes.selection import select
from strikeout.store.residue import needles_of_numbers, scan
from tests.book.behind import entered
from tests.quotes.chains import chain
from tests.raising import raises

EXPIRIES = ("2024-04-05", "2024-06-07", "2024-12-06", "2025-12-05")


@cache
def quotes() -> so.Quotes:
    return inspect_quotes(chain(dates=("2024-03-01", "2024-03-04"), expiries=EXPIRIES)).quotes


def at(book: so.Quotes, strike: float, expiry: str, date: str = "2024-03-01") -> np.ndarray:
    labels = book.labels
    return book.ids[(book.contracts.strike == strike) & (labels["expiry_date"] == expiry) & (labels["date"] == date)]


@pytest.fixture
def book(tmp_path: Path):
    with so.Book.create(tmp_path / "chain.book") as opened:
        opened.import_quotes(quotes())
        opened.calibrate(select="otm")
        yield opened


def test_a_book_gives_back_the_forwards_it_never_stored(book: so.Book) -> None:
    back = book.quotes()
    assert (back.contracts.forward == quotes().contracts.forward).all()
    assert (back.contracts.discount == quotes().contracts.discount).all()
    c = quotes().contracts
    needles = needles_of_numbers("derived", np.r_[np.unique(c.forward), np.unique(c.discount)])
    assert len(needles) >= 3 * 2 * len(EXPIRIES)
    assert scan(book.snapshot().session.store.files(), needles) == []
    assert book.import_quotes(quotes()).imported == 0  # the same rows again change nothing


def test_a_plan_lists_the_slices_that_are_refitted(book: so.Book) -> None:
    gone = at(quotes(), 100.0, EXPIRIES[1])
    plan = book.plan_forget(ids=gone, reason="bad-feed")
    assert plan.path[0] == "forwards refit: 1 slice"
    (told,) = plan.refit
    left = quotes().without(gone)
    after = left.contracts.forward[(left.labels["expiry_date"] == EXPIRIES[1]) & (left.labels["date"] == "2024-03-01")]
    assert told.startswith("2024-03-01 2024-06-07: forward ")
    assert f"-> {after[0]:.8g}, discount" in told
    assert told in plan.summary()
    assert Plan.from_bytes(plan.to_bytes()) == plan


def test_forgetting_in_a_book_equals_a_book_that_never_held_the_rows(book: so.Book, tmp_path: Path) -> None:
    gone = np.r_[at(quotes(), 100.0, EXPIRIES[1]), at(quotes(), 97.0, EXPIRIES[3], "2024-03-04")[:1]]
    change = book.forget(ids=gone, reason="bad-feed")
    with so.Book.create(tmp_path / "never.book") as never:
        frame = chain(dates=("2024-03-01", "2024-03-04"), expiries=EXPIRIES)
        rows = np.flatnonzero(np.isin(quotes().ids, gone)).tolist()
        never.import_quotes(
            inspect_quotes(frame.with_row_index().filter(~pl.col("index").is_in(rows)).drop("index")).quotes
        )
        never.calibrate(select="otm")
        found = book.compare(never)
        assert found.is_same_state
        assert found.is_same_parameters
    assert change.certificate is not None
    assert so.verify(change.certificate, book.quotes()).holds
    assert book.verify().holds
    book.restore()
    assert (book.quotes().contracts.forward == quotes().contracts.forward).all()
    assert book.verify().holds


def test_after_an_erasure_the_old_forward_is_found_nowhere(book: so.Book, tmp_path: Path) -> None:
    gone = at(quotes(), 100.0, EXPIRIES[1])
    before = quotes().only(gone).contracts
    book.plan_path.write_bytes(book.plan_forget(ids=gone).to_bytes())
    book.export(tmp_path / "out.csv")
    assert "their part in the forwards of 1 (date, expiry), which are refitted" in book.plan_erase(ids=gone).gone
    done = book.erase(ids=gone, reason="licence")
    assert done.residue == 0
    assert done.change is not None
    assert done.change.path[0] == "forwards refit: 1 slice"
    needles = needles_of_numbers("derived", [before.forward[0], before.discount[0]])
    assert len(needles) == 6
    assert scan([path for path in tmp_path.rglob("*") if path.is_file()], needles) == []
    assert book.verify().holds
    assert set(book.import_quotes(quotes()).erased) == set(gone.tolist())  # known again, whatever their forward is now


def test_an_old_forward_that_is_still_there_is_found(book: so.Book, tmp_path: Path, monkeypatch) -> None:
    gone = at(quotes(), 100.0, EXPIRIES[1])
    leak = tmp_path / "leak.bin"
    leak.write_bytes(b"..." + np.float64(quotes().only(gone).contracts.forward[0]).tobytes())
    monkeypatch.setattr(type(book.snapshot().session.store), "files", lambda _: (leak,))
    assert book.erase(ids=gone).residue == 1


def test_what_would_leave_a_slice_without_a_forward_is_refused_by_every_verb(book: so.Book) -> None:
    everything = quotes()
    puts = everything.ids[
        (everything.labels["expiry_date"] == EXPIRIES[0])
        & (everything.labels["date"] == "2024-03-01")
        & ~everything.contracts.is_call
    ]
    entries = book.status().entries
    for verb in (lambda: book.plan_forget(ids=puts), lambda: book.erase(ids=puts)):
        with raises(RefusedError, slices=["2024-03-01 2024-04-05"]):
            verb()
    assert book.status().entries == entries
    book.forget(where=f"expiry_date = '{EXPIRIES[0]}' and date = '2024-03-01'")
    assert book.erase(ids=puts).residue == 0  # the whole slice was set aside first
    with raises(RefusedError, slices=["2024-03-01 2024-04-05"]):
        book.restore()


def test_a_condition_sees_the_forwards_of_the_book(book: so.Book) -> None:
    plan = book.plan_forget(where="strike > 1.2 * forward")
    c = quotes().contracts
    assert set(plan.ids) == set(quotes().ids[c.strike > 1.2 * c.forward].tolist())
    assert book.plan_erase(where="strike > 1.2 * forward").count == plan.count


def test_rolling_moves_whole_slices(book: so.Book) -> None:
    book.roll(window=1)
    left = book.quotes()
    assert set(left.labels["date"].tolist()) == {"2024-03-04"}
    assert (left.contracts.forward == quotes().only(left.ids).contracts.forward).all()
    assert book.verify().holds


def test_through_moments_whole_slices_go_and_come_and_parts_are_refused(tmp_path: Path) -> None:
    with so.Book.create(tmp_path / "moments.book") as book:
        book.import_quotes(quotes())
        book.calibrate(through="moments")
        whole = f"expiry_date = '{EXPIRIES[1]}' and date = '2024-03-01'"
        with raises(RefusedError, count=40):
            book.plan_forget(ids=at(quotes(), 100.0, EXPIRIES[1]))
        change = book.forget(where=whole)
        kept = quotes().without(select(quotes(), whole))
        assert dict(change.after.parameters) == so.calibrate(so.states.moments_of(kept), so.Heston()).parameters
        assert book.verify().holds
        book.restore()
        assert book.verify().holds
        with raises(RefusedError, count=42):
            book.learn(_renamed(quotes().only(at(quotes(), 100.0, EXPIRIES[2]))))
        with raises(UsageError, mentions={"select", "through"}):
            book.calibrate(through="moments", select="otm")


def _renamed(book: so.Quotes) -> so.Quotes:
    """The same quotes under other names, as a second feed would have them."""
    return so.Quotes(
        ids=[name + "/b" for name in book.ids.tolist()], contracts=book.contracts, observed=book.observed,
        spread=book.spread, labels=dict(book.labels),
    )  # fmt: skip


def test_footprints_follow_the_forwards_that_were_refitted(book: so.Book) -> None:
    book.calibrate(select="otm", panel=None)
    gone = at(quotes(), 100.0, EXPIRIES[1])
    before = book.snapshot().linearization
    plan = book.plan_forget(ids=gone, tolerance=1.0)
    assert plan.path[0] == (f"downdate passed over: {Unsupported.FORWARDS}")
    change = book.apply(plan)
    after = book.snapshot().linearization
    assert (after.references, after.entry) == (before.references, before.entry)
    left = so.calibrate(book.quotes(), so.Heston(), select="otm")
    found = so.states.footprints_of(left.quotes, after.model, after.references[""])
    assert after.system.reduced() == found.total()
    assert book.verify().holds, book.verify().summary()
    book.restore(change.entry)
    assert book.snapshot().linearization.system.reduced() == before.system.reduced()
    with entered(book) as tx:
        tx.remove_shard_data("footprints", tx.now.shards_with("footprints"))
    book.forget(ids=gone)  # every footprint is taken anew: none was needed
    assert book.verify().holds, book.verify().summary()
