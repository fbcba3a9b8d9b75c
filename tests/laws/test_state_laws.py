"""Laws of exact states: what quotes leave behind depends on the quotes, and on nothing else."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.shards import shard, shard_states
from strikeout.statistics.system import System

QUOTES = so.paper.quotes("small", seed=11)
N = len(QUOTES)
HESTON = so.Heston()
REFERENCE = np.array([2.0, 0.06, 0.3, -0.6, 0.06])
FOOTPRINTS = footprints_of(QUOTES, HESTON, REFERENCE)
WHOLE = FOOTPRINTS.total()

seeds = st.integers(0, 2**32 - 1)


def state(quotes: so.Quotes) -> NormalEquations:
    """Built from raw quotes, with nothing remembered."""
    return footprints_of(quotes, HESTON, REFERENCE).total()


def some(rng: np.random.Generator, most: int = N - 1) -> np.ndarray:
    """A few rows or many, never all."""
    return rng.permutation(N)[: rng.integers(0, most + 1)]


@settings(max_examples=20)
@given(seeds)
def test_the_order_of_the_quotes_does_not_change_the_digest(seed):
    assert state(QUOTES[np.random.default_rng(seed).permutation(N)]).digest() == WHOLE.digest()


@settings(max_examples=30)
@given(seeds, st.integers(1, 12))
def test_batches_do_not_change_the_digest(seed, batches):
    rng = np.random.default_rng(seed)
    parts = np.split(rng.permutation(N), np.sort(rng.integers(0, N + 1, batches - 1)))
    assert NormalEquations.total(state(QUOTES[part]) for part in parts).digest() == WHOLE.digest()


def test_two_halves_equal_the_whole():
    assert state(QUOTES[: N // 2]) + state(QUOTES[N // 2 :]) == WHOLE


@settings(max_examples=50)
@given(seeds, st.integers(1, 40))
def test_shards_do_not_change_the_digest_however_unequal(seed, count):
    rng = np.random.default_rng(seed)
    desk = rng.choice(count, N, p=rng.dirichlet(np.full(count, 0.2)))
    quotes = so.Quotes(ids=QUOTES.ids, contracts=QUOTES.contracts, observed=QUOTES.observed, labels={"desk": desk})
    states = shard_states(FOOTPRINTS, shard(quotes, "desk"))
    assert NormalEquations.total(states.values()).digest() == WHOLE.digest()


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_do_not_change_the_digest(workers):
    parts = [QUOTES[at::workers] for at in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        assert NormalEquations.total(pool.map(state, parts)).digest() == WHOLE.digest()


@settings(max_examples=50)
@given(seeds)
def test_forgetting_equals_never_having_seen(seed):
    ids = QUOTES.ids[some(np.random.default_rng(seed))]
    left, fresh = WHOLE.less(FOOTPRINTS, FOOTPRINTS.places(ids)), state(QUOTES.without(ids))
    assert left.digest() == fresh.digest()
    assert left.system() == fresh.system()
    np.testing.assert_array_equal(left.step(), fresh.step())


@settings(max_examples=100)
@given(seeds, st.integers(1, 8))
def test_any_history_of_forgetting_and_restoring_leaves_what_is_retained(seed, requests):
    rng = np.random.default_rng(seed)
    held, now = np.ones(N, bool), WHOLE
    for _ in range(requests):
        rows = some(rng)
        gone, back = rows[held[rows]], rows[~held[rows]]
        now = now.less(FOOTPRINTS, gone) + FOOTPRINTS.total(back)
        held[gone], held[back] = False, True
    assert now == FOOTPRINTS.total(np.flatnonzero(held))
    assert now.count == held.sum()


@settings(max_examples=100)
@given(seeds)
def test_forgetting_then_restoring_changes_no_bit(seed):
    ids = QUOTES.ids[some(np.random.default_rng(seed))]
    part = FOOTPRINTS.only(ids)
    assert (WHOLE.less(part) + part.total()).digest() == WHOLE.digest()


@settings(max_examples=100)
@given(seeds)
def test_the_order_of_requests_does_not_matter(seed):
    first, second = np.array_split(some(np.random.default_rng(seed)), 2)
    one = WHOLE.less(FOOTPRINTS, first).less(FOOTPRINTS, second)
    assert one == WHOLE.less(FOOTPRINTS, second).less(FOOTPRINTS, first)
    assert one == WHOLE.less(FOOTPRINTS, np.concatenate([first, second]))


def test_forgetting_nothing_is_the_identity():
    assert WHOLE.less(FOOTPRINTS, FOOTPRINTS.places([])) == WHOLE


@settings(max_examples=20)
@given(seeds, st.floats(-1e5, 1e5))
def test_the_value_of_a_forgotten_quote_does_not_matter(seed, price):
    rows = some(np.random.default_rng(seed))
    prices = QUOTES.observed.copy()
    prices[rows] = price
    altered = footprints_of(QUOTES.with_observed(prices), HESTON, REFERENCE)
    left = altered.total().less(altered, rows)
    assert left.digest() == WHOLE.less(FOOTPRINTS, rows).digest()


def test_a_wrong_set_a_wrong_sign_and_a_forget_that_does_nothing_all_show():
    ids = QUOTES.ids[::20]
    part, fresh = FOOTPRINTS.only(ids), state(QUOTES.without(ids))
    other = FOOTPRINTS.only(QUOTES.ids[1::20])
    assert (WHOLE - part.total()).digest() == fresh.digest()
    for fake in (WHOLE - other.total(), WHOLE + part.total(), WHOLE):
        assert fake.digest() != fresh.digest()


SENTINEL, COARSE = 1e12, 20  # a grid of 2^-20, so that a residual of 1e12 is below 2^62 on it


def test_sentinel_prices_leave_nothing_behind_where_subtracting_floats_does():
    rows = np.arange(0, N, 20)
    prices = QUOTES.observed.copy()
    prices[rows] = SENTINEL
    dirty = QUOTES.with_observed(prices)
    found = footprints_of(dirty, HESTON, REFERENCE, grid=COARSE)
    clean = footprints_of(QUOTES.without(QUOTES.ids[rows]), HESTON, REFERENCE, grid=COARSE).total()
    left = found.total().less(found, rows)
    assert left.digest() == clean.digest()
    assert left.step().tolist() == clean.step().tolist()

    # The control: the same rows, summed and subtracted in floating point.
    price, jacobian = HESTON.linearize(REFERENCE, dirty.contracts)
    real = np.column_stack([jacobian, dirty.observed - price])
    subtracted = real.T @ real - real[rows].T @ real[rows]
    kept = np.delete(real, rows, axis=0)
    retained = kept.T @ kept
    off = solved(subtracted) - solved(retained)
    noise = np.sqrt(retained[5, 5] / (len(kept) - 5))
    errors = noise * np.sqrt(np.diag(np.linalg.inv(retained[:5, :5])))
    assert np.abs(off / errors).max() > 0.1  # standard errors; 1.4 on the machine where this was written


def solved(gram: np.ndarray) -> np.ndarray:
    return np.linalg.solve(gram[:5, :5], gram[:5, 5])


@settings(max_examples=5)
@given(seeds)
def test_the_state_of_a_calibration_is_that_of_a_fresh_one_after_forgetting(seed):
    rng = np.random.default_rng(seed)
    ids = QUOTES.ids[some(rng, most=N // 2)]
    one = so.calibrate(QUOTES, HESTON, starts=1)
    fresh = so.calibrate(QUOTES.without(ids), HESTON, starts=1)
    left = one.state - System.of(footprints_of(QUOTES.only(ids), one.model, one.state.schema.reference).total())
    assert left.digest() == fresh.state.digest()
