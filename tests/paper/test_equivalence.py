"""Figures 1 and 2: the paper's fast operator equals its retrain to rounding, ours to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.paper import cache as paper_method
from strikeout.paper.experiments import equivalence

FRACTIONS = (0.01, 0.05, 0.25)


@pytest.fixture(scope="module")
def small():
    return equivalence.measured("small", seed=42, fractions=FRACTIONS, runs=12)


def test_figure_1_the_papers_differences_are_near_1e_13_and_widest_in_mean_reversion(small):
    widest = np.abs(small.fast).max(axis=0)
    # The paper: "on the order of 1e-13". Rounding of sums over 540 quotes, amplified by a long step.
    assert 1e-14 < widest[0] < 1e-12
    assert widest.argmax() == 0


def test_figure_1_the_sharded_operator_agrees_as_well(small):
    assert np.linalg.norm(small.sharded, axis=1).max() < 1e-8  # the paper's own bound


def test_figure_2_the_differences_have_no_bias_beyond_the_rounding_of_one_solve(small):
    """The runs subtract from the same rounded sums, so what rounding left in those shows in all of them alike: a mean
    of zero within its own scatter cannot be asked for. cond(H) = 219 (Jacobi-scaled) roundings of the parameter can."""
    mean_reversion = small.fast[:, 0]
    assert abs(mean_reversion.mean()) < 219 * np.finfo(float).eps * np.abs(small.retrain[:, 0]).max()


def test_ours_are_zero_in_every_run_and_every_state_has_one_digest(small):
    assert not small.ours_fast.any()
    assert not small.ours_sharded.any()
    assert small.equal_digests == len(small.forgotten) == 12


def test_the_operators_really_move_the_parameters(small):
    """Zeros would also come from operators that forget nothing."""
    assert len(np.unique(small.ours_retrain[:, 0])) == 12
    assert np.ptp(small.retrain[:, 0]) > 1e-4


def test_figure_2_the_runs_on_one_set_share_an_offset():
    """The paper: "no systematic bias". Its answers carry the rounding of one H and one G; ours carry none."""
    runs = equivalence.measured("small", seed=1, fractions=FRACTIONS, runs=30)
    assert np.abs(equivalence.offsets(runs.fast)).max() > 4.0
    assert np.array_equal(equivalence.offsets(runs.ours_fast), np.zeros(5))
    control = np.random.default_rng(0).normal(size=(30, 5))  # numbers without an offset
    assert np.abs(equivalence.offsets(control)).max() < 3.0


def test_the_reference_is_the_optimum_of_the_papers_own_pricer():
    quotes = paper_method.paper_book("small", seed=42)
    cache = paper_method.cache_of(quotes, paper_method.paper_reference("small", seed=42), size="small")
    # The step that is left, over the standard errors. With the optimum of our pricer as reference it is 1.5.
    left = np.abs(paper_method.retrained(cache, np.arange(540)) - cache.theta_ref)
    noise = np.sqrt(np.diag(np.linalg.inv(cache.H))) * 1e-3
    assert (left / noise).max() < 0.01


def test_the_table_the_loop_and_the_cache_are_one_method():
    quotes = paper_method.paper_book("small", seed=42)[np.arange(0, 540, 27)]
    reference = paper_method.paper_reference("small", seed=42)
    cache = paper_method.cache_of(quotes, reference, size="small")
    kept = np.arange(5, len(quotes))
    loop = paper_method.retrain_loop(quotes[kept], reference, size="small")
    # Central differences divide rounding of prices (1e-14) by a step of 1e-4 times the parameter.
    np.testing.assert_allclose(loop, paper_method.retrained(cache, kept), rtol=1e-6)


@pytest.mark.parametrize("seed", [1, 7])
def test_figure_2_the_offset_is_that_of_sums_in_one_order(seed):
    """With a new order for every run both sides round otherwise each time, and no offset is left.

    Five means of 30 runs: 3.5 standard errors are exceeded once in 300 such tests.
    """
    runs = equivalence.measured("small", seed=seed, fractions=FRACTIONS, runs=30)
    assert np.abs(equivalence.offsets(runs.shuffled)).max() < 3.5 < np.abs(equivalence.offsets(runs.fast)).max()
