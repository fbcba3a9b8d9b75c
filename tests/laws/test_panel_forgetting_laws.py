"""Laws of forgetting from panels: whatever the history, what is left is what a fresh panel of the rest gives."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from tests.laws.histories import in_every_order, same, wander

DAYS = 6  # of 15 quotes each; half of them determine the shared parameters
COUNT = 15 * DAYS


@cache
def book(seed: int) -> so.Quotes:
    return so.synthetic.panel_quotes(DAYS, seed=seed)


@cache
def calibrated(seed: int, rows: frozenset[int]) -> so.Calibration:
    return so.calibrate(book(seed)[sorted(rows)], so.Heston(), panel="date")


ALL = frozenset(range(COUNT))
seeds = st.integers(min_value=0, max_value=99)
day = st.integers(min_value=0, max_value=DAYS - 1).map(lambda d: frozenset(range(15 * d, 15 * d + 15)))
few = st.frozensets(st.integers(min_value=0, max_value=COUNT - 1), min_size=1, max_size=15)
some = st.one_of(day, few, st.tuples(day, few).map(lambda both: both[0] | both[1]))


@settings(max_examples=40)
@given(seeds, some)
def test_forgetting_equals_never_having_seen(seed, rows):
    done = so.forget(calibrated(seed, ALL), ids=book(seed).ids[sorted(rows)])
    fresh = calibrated(seed, ALL - rows)
    assert same(done.calibration, fresh)
    assert done.parameters == fresh.parameters
    assert done.latent == fresh.latent


@settings(max_examples=30)
@given(seeds, st.integers(min_value=0, max_value=2**32 - 1), st.integers(min_value=1, max_value=4))
def test_no_history_can_show(seed, choice, length):
    """Forgets, learns, restores and rolls of random quotes and whole days, in random order; 45 quotes stay at least."""
    rng = np.random.default_rng(choice)

    def leaving(held):
        if rng.random() < 0.5 and len(held) > 60:
            first = 15 * int(rng.integers(0, DAYS))
            return held & set(range(first, first + 15))
        return set(rng.permutation(sorted(held))[: rng.integers(0, len(held) - 44)].tolist())

    calibration, held = wander(book(seed), calibrated(seed, ALL), rng, length=length, leaving=leaving)
    assert same(calibration, calibrated(seed, held))


@settings(max_examples=15)
@given(seeds, some, some)
def test_the_order_and_the_batches_of_requests_do_not_matter(seed, first, second):
    one, other = (book(seed).ids[sorted(rows)] for rows in (first, second - first))
    forward, backward, at_once = in_every_order(calibrated(seed, ALL), one, other)
    assert same(forward, backward)
    assert same(forward, at_once)


@settings(max_examples=15)
@given(seeds, some, st.floats(min_value=-5.0, max_value=5.0))
def test_the_values_of_forgotten_quotes_do_not_matter(seed, rows, shift):
    quotes = book(seed)
    observed = quotes.observed.copy()
    observed[sorted(rows)] += shift
    altered = so.calibrate(quotes.with_observed(observed), so.Heston(), panel="date")
    assert same(so.forget(altered, ids=quotes.ids[sorted(rows)]).calibration, calibrated(seed, ALL - rows))


@settings(max_examples=15)
@given(seeds, some)
def test_forgetting_then_restoring_changes_no_bit(seed, rows):
    start = calibrated(seed, ALL)
    done = so.forget(start, ids=book(seed).ids[sorted(rows)])
    assert so.restore(done) is start
    assert same(so.restore(done, done.calibration), start)


@settings(max_examples=25)
@given(seeds, some, st.sampled_from([0.5, 0.05, 0.005, 1e-4]))
def test_a_tolerance_is_kept_by_shared_and_latent_parameters(seed, rows, tolerance):
    """Not bits but a promise: within so many standard errors of the fresh start, whichever operator answered."""
    done = so.forget(calibrated(seed, ALL), ids=book(seed).ids[sorted(rows)], tolerance=tolerance)
    fresh = calibrated(seed, ALL - rows)
    shared = [abs(done.parameters[n] - v) / fresh.standard_errors[n] for n, v in fresh.parameters.items()]
    latent = [abs(done.latent[g] - v) / fresh.latent_standard_errors[g] for g, v in fresh.latent.items()]
    assert max(shared + latent) <= tolerance
    assert same(done.calibration, fresh)


@settings(max_examples=25)
@given(seeds, some)
def test_a_downdate_has_the_bits_of_a_rebuild(seed, rows):
    start, gone = calibrated(seed, ALL), book(seed).ids[sorted(rows)]
    downdated = so.forget(start, ids=gone, operator="downdate")
    rebuilt = so.forget(start, ids=gone, operator="restep")
    assert downdated.step.system == rebuilt.step.system
    assert downdated.parameters == rebuilt.parameters
    assert downdated.latent == rebuilt.latent


@settings(max_examples=10)
@given(seeds, some)
def test_what_is_certified_is_confirmed_by_the_retained_quotes_and_by_no_others(seed, rows):
    quotes = book(seed)
    for how in ({}, {"operator": "downdate"}):
        certificate = so.forget(calibrated(seed, ALL), ids=quotes.ids[sorted(rows)], **how).certificate
        assert so.verify(certificate.to_bytes(), quotes[sorted(ALL - rows)]).holds
        assert not so.verify(certificate, quotes).holds
