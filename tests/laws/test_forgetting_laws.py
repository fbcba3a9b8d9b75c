"""Laws of forgetting, plain and in panels: what is left is what a fresh start on the retained quotes gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strikeout as so
from tests.laws.histories import in_every_order, same, wander

COUNT = 90  # quotes of a small random book; 30 of them determine Heston's parameters
DAYS = 6  # of a panel, 15 quotes each; half of them determine the shared parameters
ALL = frozenset(range(COUNT))

few = st.frozensets(st.integers(min_value=0, max_value=COUNT - 1), min_size=1, max_size=20)
day = st.integers(min_value=0, max_value=DAYS - 1).map(lambda d: frozenset(range(15 * d, 15 * d + 15)))


@dataclass(frozen=True)
class Kind:
    """A kind of calibration: its books by seed, and which rows of them are forgotten."""

    panel: str | None
    quotes: Callable[[int], so.Quotes]
    rows: st.SearchStrategy[frozenset[int]]
    at_least: int  # quotes that a history leaves
    most_wrong: float  # by how much values of forgotten quotes are altered

    def fit(self, quotes: so.Quotes, **options: object) -> so.results.Calibration:
        return so.calibrate(quotes, so.Heston(), panel=self.panel, **options)


PLAIN = Kind(None, lambda seed: so.synthetic.random_quotes(COUNT, maturities=6, seed=seed), few, 40, 50.0)
PANEL = Kind(
    "date",
    lambda seed: so.synthetic.panel_quotes(DAYS, seed=seed),
    st.one_of(day, few, st.tuples(day, few).map(lambda both: both[0] | both[1])),
    45,
    5.0,
)
kinds = pytest.mark.parametrize("kind", [PLAIN, PANEL], ids=["plain", "panel"])
seeds = st.integers(min_value=0, max_value=99)


@cache
def book(kind: Kind, seed: int) -> so.Quotes:
    return kind.quotes(seed)


@cache
def calibrated(kind: Kind, seed: int, rows: frozenset[int] = ALL) -> so.results.Calibration:
    return kind.fit(book(kind, seed)[sorted(rows)])


@kinds
@settings(max_examples=80)
@given(data=st.data(), seed=seeds)
def test_forgetting_equals_never_having_seen(kind, data, seed):
    rows = data.draw(kind.rows)
    done = so.forget(calibrated(kind, seed), ids=book(kind, seed).ids[sorted(rows)])
    fresh = calibrated(kind, seed, ALL - rows)
    assert same(done.calibration, fresh)
    assert done.parameters == fresh.parameters
    assert done.latent == fresh.latent


@kinds
@settings(max_examples=75)
@given(seeds, st.integers(min_value=0, max_value=2**32 - 1), st.integers(min_value=1, max_value=5))
def test_no_history_can_show(kind, seed, choice, length):
    """Forgets, learns, restores and rolls of random quotes and whole days, in random order."""
    rng = np.random.default_rng(choice)

    def leaving(held):
        if kind.panel is not None and rng.random() < 0.5 and len(held) > 60:
            first = 15 * int(rng.integers(0, DAYS))
            return held & set(range(first, first + 15))
        return set(rng.permutation(sorted(held))[: rng.integers(0, len(held) - kind.at_least + 1)].tolist())

    calibration, held = wander(book(kind, seed), calibrated(kind, seed), rng, length=length, leaving=leaving)
    assert same(calibration, calibrated(kind, seed, held))


@kinds
@settings(max_examples=22)
@given(data=st.data(), seed=seeds)
def test_the_order_and_the_batches_of_requests_do_not_matter(kind, data, seed):
    first, second = data.draw(kind.rows), data.draw(kind.rows)
    one, other = (book(kind, seed).ids[sorted(rows)] for rows in (first, second - first))
    forward, backward, at_once = in_every_order(calibrated(kind, seed), one, other)
    assert same(forward, backward)
    assert same(forward, at_once)


@kinds
@settings(max_examples=22)
@given(data=st.data(), seed=seeds, share=st.floats(min_value=-1.0, max_value=1.0))
def test_the_values_of_forgotten_quotes_do_not_matter(kind, data, seed, share):
    quotes, rows = book(kind, seed), data.draw(kind.rows)
    observed = quotes.observed.copy()
    observed[sorted(rows)] += share * kind.most_wrong
    altered = kind.fit(quotes.with_observed(observed))
    assert same(so.forget(altered, ids=quotes.ids[sorted(rows)]).calibration, calibrated(kind, seed, ALL - rows))


@kinds
@settings(max_examples=17)
@given(data=st.data(), seed=seeds)
def test_forgetting_then_restoring_changes_no_bit(kind, data, seed):
    start, rows = calibrated(kind, seed), data.draw(kind.rows)
    done = so.forget(start, ids=book(kind, seed).ids[sorted(rows)])
    assert so.restore(done) is start
    assert same(so.restore(done, done.calibration), start)


@kinds
@settings(max_examples=22)
@given(st.data(), seeds, st.sampled_from([0.5, 0.05, 0.005, 1e-4]))
def test_a_tolerance_is_kept_by_shared_and_latent_parameters(kind, data, seed, tolerance):
    """Not bits but a distance from the fresh start, in standard errors, whichever operator answered."""
    rows = data.draw(kind.rows)
    done = so.forget(calibrated(kind, seed), ids=book(kind, seed).ids[sorted(rows)], tolerance=tolerance)
    fresh = calibrated(kind, seed, ALL - rows)
    shared = [abs(done.parameters[n] - v) / fresh.standard_errors[n] for n, v in fresh.parameters.items()]
    latent = [abs(done.latent[g] - v) / fresh.latent_standard_errors[g] for g, v in fresh.latent.items()]
    assert max(shared + latent) <= tolerance
    assert same(done.calibration, fresh)


@kinds
@settings(max_examples=20)
@given(data=st.data(), seed=seeds)
def test_a_downdate_has_the_bits_of_a_rebuild(kind, data, seed):
    start, gone = calibrated(kind, seed), book(kind, seed).ids[sorted(data.draw(kind.rows))]
    downdated = so.forget(start, ids=gone, operator="downdate")
    rebuilt = so.forget(start, ids=gone, operator="restep")
    assert downdated.step.system == rebuilt.step.system
    assert downdated.parameters == rebuilt.parameters
    assert downdated.latent == rebuilt.latent


@kinds
@settings(max_examples=10)
@given(data=st.data(), seed=seeds)
def test_what_is_certified_is_confirmed_by_the_retained_quotes_and_by_no_others(kind, data, seed):
    quotes, rows = book(kind, seed), data.draw(kind.rows)
    for how in ({}, {"operator": "downdate"}):
        certificate = so.forget(calibrated(kind, seed), ids=quotes.ids[sorted(rows)], **how).certificate
        assert so.verify(certificate.to_bytes(), quotes[sorted(ALL - rows)]).holds
        assert not so.verify(certificate, quotes).holds


@settings(max_examples=30)
@given(seeds, few)
def test_moments_forget_like_quotes(seed, rows):
    quotes = book(PLAIN, seed)
    made = so.calibrate(so.states.moments_of(quotes), so.Heston())
    forgetting = so.forget(made, quotes=quotes[sorted(rows)])
    fresh = so.calibrate(so.states.moments_of(quotes[sorted(ALL - rows)]), so.Heston())
    assert forgetting.calibration.to_dict() == fresh.to_dict()
    assert forgetting.calibration.state.digest() == fresh.state.digest()


@kinds
@pytest.mark.parametrize("seed", range(3))
def test_a_no_op_a_wrong_sign_and_a_wrong_set_are_seen(kind, seed):
    """Negative controls: forgets that do not forget must not pass for one that does."""
    quotes, rows = book(kind, seed), frozenset(range(5, 15))
    fresh, start = calibrated(kind, seed, ALL - rows), calibrated(kind, seed)
    assert not same(start, fresh)
    doubled = kind.fit(quotes, weights=np.where(np.isin(np.arange(COUNT), list(rows)), 2.0, 1.0))
    assert not same(doubled, fresh)
    assert not same(so.forget(start, ids=quotes.ids[6:16]).calibration, fresh)
    assert not same(so.forget(start, ids=quotes.ids[5:14]).calibration, fresh)
    assert same(so.forget(start, ids=quotes.ids[5:15]).calibration, fresh)
