"""Where the paper stops, one test a claim: numbers, not pictures."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.paper.experiments.computing_back import GOOD, rebuild, rebuilt
from strikeout.paper.experiments.corruption import dependence, feeds, purged, relinearized
from strikeout.paper.experiments.erasure import removals, single_maturities

CLEAN = "5 % at random, nothing bad"


@pytest.fixture(scope="module")
def books():
    return {size: so.paper.quotes(size) for size in ("small", "large")}


@pytest.fixture(scope="module")
def whole(books):
    return {size: so.calibrate(book, so.Heston()) for size, book in books.items()}


@pytest.fixture(scope="module")
def cleaned(books):
    return [purged(feed) for book in books.values() for feed in feeds(book, seed=42)]


@pytest.fixture(scope="module")
def left(whole):
    return list(removals(whole["large"], fractions=(0.0, 0.1, 0.7, 0.99), runs=10, seed=42))


def test_one_step_after_a_corrupt_feed_is_nowhere_near_the_refit(cleaned):
    assert min(one.one_step for one in cleaned if one.name != CLEAN) > 10.0


def test_one_step_after_most_corrupt_feeds_is_no_heston_model_at_all(cleaned):
    lost = [one for one in cleaned if one.outside]
    assert len(lost) >= len(cleaned) / 2
    assert all(np.isinf(one.rmse_one_step) for one in lost)


def test_the_papers_own_measure_cannot_tell_a_good_step_from_a_ruined_one(cleaned):
    # Rounding of both sides: a condition number of 1.2e8 times 1.1e-16, and sums of thousands of terms.
    assert max(one.agreement for one in cleaned) < 1e-7
    assert max(one.one_step for one in cleaned) > 1e4


def test_the_papers_bound_of_1e_8_on_its_own_measure_fails_on_corrupt_feeds(cleaned):
    """In its floating point, as a distance. In exact integers the difference is zero."""
    assert max(one.norm for one in cleaned) > 1e-8
    assert max(one.norm for one in cleaned if one.name == CLEAN) < 1e-8


def test_on_clean_quotes_one_step_is_good(cleaned):
    """1e-5 to 0.1 standard errors were measured over many books and fractions."""
    assert max(one.one_step for one in cleaned if one.name == CLEAN) < 1e-2


def test_moments_resolve_every_corrupt_feed_to_the_refit(cleaned):
    """Interpolation in moments is good to 1e-5 standard errors; both searches end at 1e-8."""
    assert max(one.resolved for one in cleaned) < 1e-5


def test_the_refit_is_within_noise_of_the_truth(cleaned):
    """The largest of five normal errors exceeds four standard errors once in 3,000 books."""
    assert max(one.truth for one in cleaned) < 4.0
    assert all(one.rmse_refit < 1.1e-3 for one in cleaned)


@pytest.mark.parametrize("size", ["small", "large"])
def test_forgotten_values_move_the_one_step_and_not_what_forget_gives(books, size):
    found = dependence(books[size], alterations=(-0.01, 0.01), days=5)
    assert min(one.moved for one in found) > 1.0
    assert all(one.is_same for one in found)


@pytest.mark.parametrize("size", ["small", "large"])
def test_relinearizing_touched_shards_alone_makes_it_worse_and_all_retained_quotes_better(books, size):
    for one in relinearized(books[size], alterations=(-0.01, 0.001, 0.01), days=5):
        assert one.touched > 4.0 * one.one_step
        assert one.all_retained < 0.01 * one.one_step
        assert one.refined < 1e-6


def test_quotes_come_back_from_their_cached_statistics(whole):
    for calibration in whole.values():
        found = rebuilt(calibration, np.linspace(0, calibration.count - 1, 25).astype(int).tolist())
        assert sum(one.worst < GOOD for one in found) >= 24


def test_a_rebuilt_price_is_what_was_observed_and_not_what_the_model_says(whole):
    calibration = whole["small"]
    theta = np.array(list(calibration.parameters.values()))
    price, J = calibration.model.linearize(theta, calibration.quotes.contracts)
    row, residual = 100, 0.75
    found = rebuild(calibration.model, theta, psi=np.outer(J[row], J[row]), u=J[row] * residual)
    assert found[3] == pytest.approx(price[row] + residual, rel=1e-9)


def test_the_curvature_stays_definite_where_the_papers_condition_fails(left):
    gone = [one for one in left if one.removed > 0.0]
    assert all(one.definite == 1.0 for one in gone)
    assert all(one.bound_holds == 0.0 for one in gone)


def test_the_leverage_says_what_is_lost(left):
    assert [one.leverage for one in left] == sorted(one.leverage for one in left)
    assert left[0].leverage == 0.0
    assert left[-1].leverage > 0.99


def test_the_curvature_is_ill_conditioned_in_plain_parameters_only(left):
    assert all(one.condition > 1e7 and one.scaled_condition < 1e3 for one in left)


def test_the_unscaled_ridge_weighs_more_the_fewer_quotes_are_left(left):
    biases = [one.ridge_bias for one in left]
    assert biases == sorted(biases)
    assert biases[0] == pytest.approx(3e-5, rel=0.2)
    assert biases[-1] > 1e-3


def test_one_maturity_does_not_determine_the_parameters_and_forget_says_so(whole):
    found = [one for calibration in whole.values() for one in single_maturities(calibration)]
    assert len(found) == 5
    assert all(one.agreement == 0.0 for one in found)
    assert max(one.within for one in found) > 10.0
    assert all("retained quotes" in one.refusal for one in found)
