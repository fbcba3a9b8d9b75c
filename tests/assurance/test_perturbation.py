"""Noise on footprints: the drift it causes stays below the paper's bound, and acts like a ridge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strikeout as so
from strikeout.assurance.perturbation import perturb
from strikeout.errors import UsageError
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of
from tests.raising import raises

NEAR = {"mean_reversion": 1.8, "long_variance": 0.06, "vol_of_vol": 0.3, "correlation": -0.55, "initial_variance": 0.06}


@pytest.fixture(scope="module")
def footprints() -> Footprints:
    """Of the paper's small book, at a point from which there is a step to take."""
    return footprints_of(so.paper.quotes("small"), so.Heston(), NEAR)


@given(seed=st.integers(0, 10**6), exponent=st.floats(-8.0, 1.0))
def test_the_drift_stays_below_the_bound(footprints, seed, exponent):
    found = perturb(footprints, 10.0**exponent, draw=np.random.default_rng(seed))
    assert found.drift.condition_holds  # a sum of squares stays positive definite
    assert found.drift.is_respected, str(found.drift)
    assert found.drift.truth > 0.0


def test_the_drift_is_the_change_of_the_step_in_parameters_without_units(footprints):
    found = perturb(footprints, 1e-3, draw=np.random.default_rng(1))
    scale = np.sqrt(np.diag(footprints.total().system().curvature))
    moved = np.array(list(found.moved.values()))
    # Two solvers: Cholesky of the state and LU in the bound; their digits differ by the condition number, about 1e4.
    assert np.linalg.norm(moved * scale) == pytest.approx(found.drift.truth, rel=1e-8)
    assert tuple(found.moved) == so.Heston().parameters.names


def test_no_noise_changes_nothing(footprints):
    found = perturb(footprints, 0.0, draw=np.random.default_rng(1))
    assert found.footprints.digest() == footprints.digest()
    assert (found.drift.truth, found.drift.value) == (0.0, 0.0)


def test_every_number_of_a_row_is_changed_by_about_the_share_asked_for(footprints):
    found = perturb(footprints, 1e-2, draw=np.random.default_rng(1))
    change = (found.footprints.rows - footprints.rows).astype(float)
    assert (change != 0.0).all()
    size = np.sqrt(np.mean(footprints.rows.astype(float) ** 2, axis=0))
    # 540 draws a column: the sample deviation is within 4 of its own standard errors, 4 / sqrt(2 * 540) = 0.12.
    assert np.std(change, axis=0) / size == pytest.approx(1e-2, rel=0.12)


def test_noise_adds_its_square_times_the_diagonal_to_the_curvature(footprints):
    share, draw = 0.3, np.random.default_rng(5)
    true = footprints.total().system().curvature
    mean = np.mean(
        [perturb(footprints, share, draw=draw).footprints.total().system().curvature for _ in range(200)], axis=0
    )
    scale = np.sqrt(np.diag(true))
    excess = (mean - true) / np.outer(scale, scale)
    # Entries of one draw scatter by about share * 2 / sqrt(540) = 0.026; the mean of 200 by 0.002; five of those.
    assert excess == pytest.approx(share**2 * np.eye(len(scale)), abs=0.01)


def test_what_is_forgotten_from_noisy_footprints_is_forgotten_exactly(footprints):
    noisy = perturb(footprints, 1e-3, draw=np.random.default_rng(1)).footprints
    ids = noisy.ids[10:37]
    assert noisy.total().less(noisy, noisy.places(ids)) == noisy.without(ids).total()


def test_a_row_that_counts_for_nothing_stays_zero(footprints):
    rows = footprints.rows.copy()
    rows[3] = 0
    found = perturb(Footprints(footprints.schema, footprints.ids, rows), 0.1, draw=np.random.default_rng(1))
    assert not found.footprints.rows[3].any()
    assert found.footprints.total().count == len(rows) - 1


@pytest.mark.parametrize("share", [-1e-3, float("nan"), float("inf"), 1e12])
def test_noise_of_no_size_or_too_large_for_the_grid_is_refused(footprints, share):
    with raises(UsageError, mentions={"share"}):
        perturb(footprints, share, draw=np.random.default_rng(1))
