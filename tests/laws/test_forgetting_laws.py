"""Laws of forgetting: whatever the history, what is left is what a fresh start on the retained quotes gives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so

COUNT = 90  # quotes of a small random book; 30 of them determine Heston's parameters


@cache
def book(seed: int) -> so.Quotes:
    return so.random_quotes(COUNT, maturities=6, seed=seed)


@cache
def calibrated(seed: int, rows: frozenset[int]) -> so.Calibration:
    return so.calibrate(book(seed)[sorted(rows)], so.Heston())


ALL = frozenset(range(COUNT))
seeds = st.integers(min_value=0, max_value=299)
few = st.frozensets(st.integers(min_value=0, max_value=COUNT - 1), min_size=1, max_size=20)


def same(one: so.Calibration, other: so.Calibration) -> bool:
    """Parameters, errors, history and state: every bit of them."""
    return one.to_dict() == other.to_dict() and one.state.digest() == other.state.digest()


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
    quotes, rng = book(seed), np.random.default_rng(choice)
    calibration, held, done = calibrated(seed, ALL), set(ALL), []
    for _ in range(length):
        out = set(rng.permutation(sorted(held))[: rng.integers(0, len(held) - 39)].tolist())
        back = set(rng.permutation(sorted(ALL - held))[: rng.integers(0, COUNT - len(held) + 1)].tolist())
        verb = rng.choice(["forget", "learn", "roll", "restore"])
        if verb == "forget":
            done.append((so.forget(calibration, ids=quotes.ids[sorted(out)]), out))
            calibration, held = done[-1][0].calibration, held - out
        elif verb == "learn":
            calibration, held = so.learn(calibration, quotes[sorted(back)]), held | back
        elif verb == "roll":
            calibration = so.roll(calibration, quotes[sorted(back)], forget=quotes.ids[sorted(out)])
            held = (held - out) | back
        else:
            for forgetting, rows in done:
                if not rows & held:
                    calibration, held = so.restore(forgetting, calibration), held | rows
    assert same(calibration, calibrated(seed, frozenset(held)))


@settings(max_examples=30)
@given(seeds, few, few)
def test_the_order_and_the_batches_of_requests_do_not_matter(seed, first, second):
    second = second - first
    quotes, start = book(seed), calibrated(seed, ALL)
    one, other = quotes.ids[sorted(first)], quotes.ids[sorted(second)]
    forward = so.forget(so.forget(start, ids=one).calibration, ids=other).calibration
    backward = so.forget(so.forget(start, ids=other).calibration, ids=one).calibration
    at_once = so.forget(start, ids=np.concatenate([other, one])).calibration
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
