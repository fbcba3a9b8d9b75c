"""Laws of forgetting: whatever the history, what is left is what a fresh start on the retained quotes gives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from tests.laws.histories import in_every_order, same, wander

COUNT = 90  # quotes of a small random book; 30 of them determine Heston's parameters


@cache
def book(seed: int) -> so.Quotes:
    return so.synthetic.random_quotes(COUNT, maturities=6, seed=seed)


@cache
def calibrated(seed: int, rows: frozenset[int]) -> so.Calibration:
    return so.calibrate(book(seed)[sorted(rows)], so.Heston())


ALL = frozenset(range(COUNT))
seeds = st.integers(min_value=0, max_value=299)
few = st.frozensets(st.integers(min_value=0, max_value=COUNT - 1), min_size=1, max_size=20)


@settings(max_examples=120)
@given(seeds, few)
def test_forgetting_equals_never_having_seen(seed, rows):
    forgetting = so.forget(calibrated(seed, ALL), ids=book(seed).ids[sorted(rows)])
    assert same(forgetting.calibration, calibrated(seed, ALL - rows))
    assert forgetting.parameters == calibrated(seed, ALL - rows).parameters


@settings(max_examples=120)
@given(seeds, st.integers(min_value=0, max_value=2**32 - 1), st.integers(min_value=1, max_value=5))
def test_no_history_can_show(seed, choice, length):
    """Forgets, learns, restores and rolls of random quotes, in random order; at least 40 quotes stay in the book."""
    rng = np.random.default_rng(choice)

    def leaving(held):
        return set(rng.permutation(sorted(held))[: rng.integers(0, len(held) - 39)].tolist())

    calibration, held = wander(book(seed), calibrated(seed, ALL), rng, length=length, leaving=leaving)
    assert same(calibration, calibrated(seed, held))


@settings(max_examples=30)
@given(seeds, few, few)
def test_the_order_and_the_batches_of_requests_do_not_matter(seed, first, second):
    one, other = (book(seed).ids[sorted(rows)] for rows in (first, second - first))
    forward, backward, at_once = in_every_order(calibrated(seed, ALL), one, other)
    assert same(forward, backward)
    assert same(forward, at_once)


@settings(max_examples=30)
@given(seeds, few, st.floats(min_value=-50.0, max_value=50.0))
def test_the_values_of_forgotten_quotes_do_not_matter(seed, rows, shift):
    quotes = book(seed)
    ids = quotes.ids[sorted(rows)]
    observed = quotes.observed.copy()
    observed[sorted(rows)] += shift
    altered = so.calibrate(quotes.with_observed(observed), so.Heston())
    assert same(so.forget(altered, ids=ids).calibration, calibrated(seed, ALL - rows))


@settings(max_examples=20)
@given(seeds, few)
def test_forgetting_then_restoring_changes_no_bit(seed, rows):
    start = calibrated(seed, ALL)
    forgetting = so.forget(start, ids=book(seed).ids[sorted(rows)])
    assert so.restore(forgetting) is start
    assert same(so.restore(forgetting, forgetting.calibration), start)


@settings(max_examples=20)
@given(seeds, few, st.sampled_from([0.5, 0.05, 0.005, 1e-4]))
def test_a_tolerance_is_kept(seed, rows, tolerance):
    """Not bits but a promise: within so many standard errors of the fresh start, whichever operator answered."""
    forgetting = so.forget(calibrated(seed, ALL), ids=book(seed).ids[sorted(rows)], tolerance=tolerance)
    fresh = calibrated(seed, ALL - rows)
    errors = fresh.standard_errors
    apart = max(abs(value - fresh.parameters[name]) / errors[name] for name, value in forgetting.parameters.items())
    assert apart <= tolerance
    assert same(forgetting.calibration, fresh)


@settings(max_examples=30)
@given(seeds, few)
def test_moments_forget_like_quotes(seed, rows):
    quotes = book(seed)
    made = so.calibrate(so.moments_of(quotes), so.Heston())
    forgetting = so.forget(made, quotes=quotes[sorted(rows)])
    fresh = so.calibrate(so.moments_of(quotes[sorted(ALL - rows)]), so.Heston())
    assert forgetting.calibration.to_dict() == fresh.to_dict()
    assert forgetting.calibration.state.digest() == fresh.state.digest()


@pytest.mark.parametrize("seed", range(5))
def test_a_no_op_a_wrong_sign_and_a_wrong_set_are_seen(seed):
    """Negative controls: forgets that do not forget must not pass for one that does."""
    quotes, rows = book(seed), frozenset(range(5, 15))
    fresh, start = calibrated(seed, ALL - rows), calibrated(seed, ALL)
    assert not same(start, fresh)
    doubled = so.calibrate(quotes, so.Heston(), weights=np.where(np.isin(np.arange(COUNT), list(rows)), 2.0, 1.0))
    assert not same(doubled, fresh)
    assert not same(so.forget(start, ids=quotes.ids[6:16]).calibration, fresh)
    assert not same(so.forget(start, ids=quotes.ids[5:14]).calibration, fresh)
    assert same(so.forget(start, ids=quotes.ids[5:15]).calibration, fresh)
