"""Losses: what they charge, and that pull and stiffness are its derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.statistics.losses import NORMAL_MAD, Huber, Squared, noise_variance, robust_scale

POINTS = np.array([-7.0, -2.5, -1.9, -0.3, 0.0, 0.4, 1.7, 2.2, 30.0])


@pytest.mark.parametrize("loss", [Squared(), Huber(2.0)])
def test_the_pull_is_half_the_slope_of_the_cost(loss):
    step = 1e-6
    slope = (loss.cost(POINTS + step) - loss.cost(POINTS - step)) / (4 * step)
    assert loss.pull(POINTS) == pytest.approx(slope, abs=1e-6)  # eps * cost / step, with costs up to 1e2


@pytest.mark.parametrize("loss", [Squared(), Huber(2.0)])
def test_the_stiffness_is_the_slope_of_the_pull(loss):
    step = 1e-6
    slope = (loss.pull(POINTS + step) - loss.pull(POINTS - step)) / (2 * step)
    assert loss.stiffness(POINTS) == pytest.approx(slope, abs=1e-6)


def test_inside_its_threshold_huber_is_squared():
    inside = POINTS[np.abs(POINTS) < 2.0]
    assert (Huber(2.0).cost(inside) == Squared().cost(inside)).all()
    assert (Huber(2.0).stiffness(inside) == 1.0).all()


def test_an_outlier_does_not_stiffen():
    assert Huber(2.0).stiffness(np.array([30.0])).tolist() == [0.0]


def test_the_robust_scale_of_normal_noise_is_its_standard_deviation():
    e = 3.0 * np.random.default_rng(0).standard_normal(100_000)
    assert robust_scale(e) == pytest.approx(3.0, rel=0.02)  # the MAD's own standard error is 0.4 %


def test_the_robust_scale_ignores_anything_less_than_half_the_quotes_do():
    e = np.random.default_rng(0).standard_normal(1001)
    spoiled = np.where(np.arange(1001) < 400, 1e12, e)
    assert robust_scale(spoiled) < 5.0 * robust_scale(e)


def test_the_constant_is_that_of_the_normal_distribution():
    from scipy.stats import norm

    assert pytest.approx(1.0 / norm.ppf(0.75), rel=1e-15) == NORMAL_MAD


def test_the_squared_noise_variance_is_the_textbook_one():
    e = np.array([1.0, -2.0, 3.0, -4.0])
    assert noise_variance(Squared(), e, free=2) == 30.0 / 2


def test_huber_noise_variance_is_near_the_squared_one_for_normal_noise():
    e = np.random.default_rng(2).standard_normal(100_000)
    # Huber's constant costs 5 % efficiency on normal noise; with H from psi' the variance s^2 carries one factor of
    # mean(psi') = 0.82, so s^2 = 0.95^-1 * 0.82 of the squared one.
    assert noise_variance(Huber(1.345), e, free=5) == pytest.approx(0.8213 / 0.95, rel=0.01)


def test_as_many_parameters_as_quotes_leave_no_noise_to_measure():
    assert np.isnan(noise_variance(Squared(), np.ones(5), free=5))
