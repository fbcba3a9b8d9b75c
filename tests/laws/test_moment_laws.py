"""Laws of moments: whatever was added and taken away, in whatever order and pieces, only what is left can show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.statistics.moments import Basis, Moments, moments_of

BOOK = so.synthetic.random_quotes(400, maturities=5, seed=1)
WHOLE = {expiries: moments_of(BOOK, basis=Basis(expiries)) for expiries in ("shared", "scattered")}
rows = st.lists(st.integers(0, len(BOOK) - 1), unique=True, max_size=len(BOOK) - 1)
kinds = st.sampled_from(["shared", "scattered"])


@settings(max_examples=40)
@given(rows, kinds)
def test_forgetting_equals_never_having_seen(gone, expiries):
    basis = Basis(expiries)
    left = np.setdiff1d(np.arange(len(BOOK)), gone)
    assert (WHOLE[expiries] - moments_of(BOOK[gone], basis=basis)).digest() == moments_of(
        BOOK[left], basis=basis
    ).digest()


@settings(max_examples=30)
@given(rows)
def test_forgetting_then_restoring_changes_no_bit(gone):
    taken = moments_of(BOOK[gone])
    assert (WHOLE["shared"] - taken) + taken == WHOLE["shared"]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=len(BOOK), max_size=len(BOOK)), st.randoms(use_true_random=False))
def test_shards_total_the_book_whatever_the_sharding_and_the_order(shard_of, random):
    shards = [moments_of(BOOK[np.flatnonzero(np.array(shard_of) == shard)]) for shard in range(6)]
    random.shuffle(shards)
    assert Moments.total(shards) == WHOLE["shared"]


@settings(max_examples=20)
@given(rows, st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_the_values_of_forgotten_quotes_do_not_matter(gone, shift, weight):
    corrupt = BOOK[gone].with_observed(BOOK[gone].observed + shift)
    corrupt = moments_of(corrupt, weights=np.full(len(gone), weight))
    kept = moments_of(BOOK[np.setdiff1d(np.arange(len(BOOK)), gone)], weights=np.ones(len(BOOK) - len(gone)))
    assert (kept + corrupt) - corrupt == kept


@settings(max_examples=10)
@given(st.lists(rows.filter(bool), min_size=1, max_size=4))
def test_equal_histories_of_quotes_give_equal_bits_of_parameters(histories):
    kept, state = np.ones(len(BOOK), bool), WHOLE["shared"]
    for gone in histories:
        toggled = np.array(gone)[: len(BOOK) // 5]  # of four histories, so that a fifth stays
        out, back = toggled[kept[toggled]], toggled[~kept[toggled]]
        state = state - moments_of(BOOK[out]) + moments_of(BOOK[back])
        kept[out], kept[back] = False, True
    fresh = moments_of(BOOK[kept])
    assert state == fresh
    mine, theirs = (calibrate_moments(moments, so.Heston()) for moments in (state, fresh))
    assert mine.parameters == theirs.parameters
    assert mine.standard_errors == theirs.standard_errors
    assert mine.cost == theirs.cost


@pytest.mark.parametrize("wrong", ["nothing", "the wrong sign", "the wrong quotes"])
def test_a_fake_forgetting_shows(wrong):
    gone, others = BOOK[:20], BOOK[20:40]
    whole = WHOLE["shared"]
    fake = {
        "nothing": whole,
        "the wrong sign": whole + moments_of(gone),
        "the wrong quotes": whole - moments_of(others),
    }[wrong]
    assert fake != moments_of(BOOK[20:])


def test_a_thousand_changes_drift_by_not_one_bit():
    pieces = [moments_of(BOOK[i : i + 4]) for i in range(0, 400, 4)]
    state = WHOLE["shared"]
    for turn in range(500):
        state = (state - pieces[turn % 100]) + pieces[turn % 100]
    assert state == WHOLE["shared"]
    assert Moments.total([*[pieces[0]] * 1000, state]) - Moments.total([pieces[0]] * 1000) == WHOLE["shared"]
