"""Forgetting where forwards were derived: as if the file had never held those rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

import strikeout as so
from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.reading import inspect_quotes
from strikeout.statistics.moments import moments_of
from tests.quotes.chains import chain
from tests.raising import raises

EXPIRIES = ("2024-04-05", "2024-06-07", "2024-12-06", "2025-12-05")


@cache
def frame() -> pl.DataFrame:
    return chain(expiries=EXPIRIES)


def read(table: pl.DataFrame) -> so.Quotes:
    return inspect_quotes(table).quotes


@cache
def calibration(select: str = "all") -> so.results.Calibration:
    return so.calibrate(read(frame()), so.Heston(), select=select)


def without(rows: np.ndarray) -> pl.DataFrame:
    return frame().with_row_index().filter(~pl.col("index").is_in(rows.tolist())).drop("index")


@pytest.mark.parametrize("select", ["all", "otm"])
def test_forgetting_equals_reading_the_file_without_those_rows(select: str) -> None:
    before = calibration(select)
    for seed, count in ((1, 1), (2, 7), (3, 40)):
        rows = np.sort(np.random.default_rng(seed).choice(len(before.book), count, replace=False))
        done = so.forget(before, ids=before.book.ids[rows])
        never = so.calibrate(read(without(rows)), so.Heston(), select=select)
        assert done.parameters == never.parameters
        assert done.calibration.state.digest() == never.state.digest()
        assert (done.calibration.quotes.contracts.forward == never.quotes.contracts.forward).all()
        assert so.verify(done.certificate, read(without(rows))).holds
        assert so.verify(done.certificate, done.calibration.book).holds


def test_the_value_of_a_forgotten_quote_is_in_no_forward() -> None:
    book = calibration().book
    row = int(np.flatnonzero((book.contracts.strike == 100.0) & book.contracts.is_call)[0])
    other = (
        frame()
        .with_row_index()
        .with_columns(
            pl.when(pl.col("index") == row).then(pl.col(name) * 1.3).otherwise(pl.col(name)).alias(name)
            for name in ("bid", "ask")
        )
    )
    altered = so.calibrate(read(other.drop("index")), so.Heston())
    assert (altered.book.contracts.forward != book.contracts.forward).any()
    one, two = (so.forget(c, ids=[book.ids[row]]) for c in (calibration(), altered))
    assert one.parameters == two.parameters
    assert one.calibration.state.digest() == two.calibration.state.digest()
    assert one.certificate.state == two.certificate.state


def test_the_path_and_the_refits_say_which_forwards_were_found_anew() -> None:
    book = calibration().book
    gone = book.ids[(book.contracts.strike == 100.0) & (book.labels["expiry_date"] != EXPIRIES[0])]
    done = so.forget(calibration(), ids=gone)
    assert done.path[0] == "forwards refit: 3 slices"
    assert [refit.name.split()[-1] for refit in done.refits] == list(EXPIRIES[1:])
    assert all(refit.forward[0] != refit.forward[1] for refit in done.refits)


def test_a_stale_forward_does_not_pass_for_a_fresh_one() -> None:
    """The quotes that stay, with the forwards they had before: verify derives them again and finds the claims to hold;
    a certificate made of the stale ones does not."""
    before = calibration()
    done = so.forget(before, ids=before.book.ids[[20, 21]])
    stale = before.book[~np.isin(before.book.ids, done.ids)]
    assert (stale.contracts.forward != done.calibration.book.contracts.forward).any()
    assert so.verify(done.certificate, stale).holds
    from strikeout.quotes.forwards import as_given

    assert not so.verify(done.certificate, as_given(stale)).holds


def test_the_microsecond_step_is_passed_over_where_neighbours_change_and_taken_where_they_do_not() -> None:
    before = calibration()
    book = before.book
    at_the_money = book.ids[(book.contracts.strike == 100.0)][:1]
    done = so.forget(before, ids=at_the_money, tolerance=1.0)
    assert done.operator == "recalibrate"
    assert any("downdate passed over: forwards depend on these quotes" in sentence for sentence in done.path)
    wing = book.ids[book.contracts.strike == 130.0][:1]  # outside the band: no forward rests on it
    assert so.forget(before, ids=wing, tolerance=1.0).operator == "downdate"
    whole = book.ids[book.labels["expiry_date"] == EXPIRIES[1]]
    assert not so.forget(before, ids=whole).refits
    with raises(UsageError, mentions={"operator"}):
        so.forget(before, ids=at_the_money, operator="downdate")


def test_a_preview_tells_of_the_real_thing_where_forwards_change() -> None:
    before = calibration()
    gone = before.book.ids[before.book.contracts.strike == 100.0][:2]
    look = so.preview(before, ids=gone)
    assert look.error == 0.0
    assert look.parameters == so.forget(before, ids=gone).parameters


def test_a_slice_that_would_lose_its_forward_is_refused_and_a_preview_says_so() -> None:
    before = calibration()
    book = before.book
    puts = book.ids[(book.labels["expiry_date"] == EXPIRIES[2]) & ~book.contracts.is_call]
    with raises(RefusedError, slices=["2024-03-01 2024-12-06"]):
        so.forget(before, ids=puts)
    assert isinstance(so.preview(before, ids=puts).refusal, RefusedError)


def test_restoring_and_learning_bring_the_forwards_back_bit_for_bit() -> None:
    before = calibration("otm")
    done = so.forget(before, ids=before.book.ids[[20, 21, 70]])
    back = so.learn(done.calibration, done.forgotten)
    assert back.parameters == before.parameters
    assert back.state.digest() == before.state.digest()
    assert back.count == before.count


def test_in_the_money_quotes_stay_in_the_book_and_out_of_the_objective() -> None:
    before = calibration("otm")
    c = before.quotes.contracts
    assert (c.is_call == (c.strike >= c.forward)).all()
    assert before.count == len(before.quotes) == len(before.book) // 2
    assert len(before.residuals) == before.count
    itm = before.book.ids[~np.isin(before.book.ids, before.quotes.ids)]
    far = before.book.only(itm)
    far = far.ids[np.abs(far.contracts.strike - 100.0) > 25.0]
    done = so.forget(before, ids=far)  # no forward rests on them, and none of them counts
    assert done.parameters == before.parameters
    assert done.certificate.counts == {"forgotten": len(far), "retained": 168 - len(far)}
    assert so.verify(done.certificate, before.book.without(far)).holds


def test_weights_by_id_and_in_order_go_with_the_quotes_that_count() -> None:
    book = calibration().book
    numbers = np.linspace(1.0, 2.0, len(book))
    in_order = so.calibrate(book, so.Heston(), weights=numbers, select="otm")
    by_id = so.calibrate(
        book, so.Heston(), weights=dict(zip(book.ids.tolist(), numbers.tolist(), strict=True)), select="otm"
    )
    assert in_order.parameters == by_id.parameters != calibration("otm").parameters
    done = so.forget(in_order, ids=book.ids[[40, 41]])
    kept = dict(in_order.settings.weights)
    assert so.verify(done.certificate, done.calibration.book, weights=kept).holds


def test_moments_refuse_to_forget_quotes_that_others_rest_on() -> None:
    book = calibration().book
    made = so.calibrate(moments_of(book), so.Heston())
    with pytest.raises(RefusedError, match="derived from their slices"):
        so.forget(made, quotes=book[:4])
    with pytest.raises(RefusedError, match="derived from their slices"):
        so.learn(made, book[:4])
    with raises(UsageError, mentions={"select"}):
        so.calibrate(moments_of(book), so.Heston(), select="otm")


def test_select_takes_two_words() -> None:
    with raises(UsageError, mentions={"select"}):
        so.calibrate(calibration().book, so.Heston(), select="atm")


def test_rolling_may_exchange_the_quotes_of_a_slice() -> None:
    """Its puts go and the same puts come under other names: at no moment is the slice looked at without them."""
    before = calibration()
    book = before.book
    puts = book.only(book.ids[(book.labels["expiry_date"] == EXPIRIES[2]) & ~book.contracts.is_call])
    again = so.Quotes(
        ids=[name + "/again" for name in puts.ids.tolist()], contracts=puts.contracts, observed=puts.observed,
        spread=puts.spread, labels=dict(puts.labels),
    )  # fmt: skip
    rolled = so.roll(before, again, forget=puts.ids)
    assert rolled.parameters == before.parameters
    assert rolled.state.digest() == before.state.digest()


def test_other_prices_give_other_forwards() -> None:
    book = calibration().book
    up = np.where(book.contracts.is_call, book.contracts.discount, 0.0)
    shifted = book.with_observed(book.observed + up)  # call - put is higher by one discount: so is the forward, by one
    assert np.allclose(shifted.contracts.forward, book.contracts.forward + 1.0, atol=0.01)
    assert shifted.with_observed(book.observed).contracts.forward.tolist() == book.contracts.forward.tolist()


def test_influence_that_is_confirmed_is_what_forgetting_does() -> None:
    before = calibration("otm")
    found = so.influence(before, confirm=2)
    for row in range(2):
        done = so.forget(before, ids=[found.columns["id"][row]])
        for name, value in done.parameters.items():
            assert found.columns[f"confirmed_{name}"][row] == value - before.parameters[name]
