"""Losses: what they charge, and that pull and stiffness are its derivatives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from strikeout.errors import UsageError
from strikeout.statistics.losses import (
    NAMES,
    NORMAL_MAD,
    TUNINGS,
    AskedLoss,
    Cauchy,
    Huber,
    Reweighted,
    SoftL1,
    Squared,
    Tukey,
    noise_variance,
    robust_scale,
)

ROBUST = [Huber(2.0), SoftL1(2.0), Cauchy(2.0), Tukey(2.0)]
POINTS = np.array([-7.0, -2.5, -1.9, -0.3, 0.0, 0.4, 1.7, 2.2, 30.0])


@pytest.mark.parametrize("loss", [Squared(), *ROBUST], ids=lambda loss: loss.name)
def test_the_pull_is_half_the_slope_of_the_cost(loss):
    step = 1e-6
    slope = (loss.cost(POINTS + step) - loss.cost(POINTS - step)) / (4 * step)
    assert loss.pull(POINTS) == pytest.approx(slope, abs=1e-6)  # eps * cost / step, with costs up to 1e2


@pytest.mark.parametrize("loss", [Squared(), *ROBUST], ids=lambda loss: loss.name)
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


def rho(name, e, c):
    """The cost in mpmath's numbers, from the definitions in the literature."""
    from mpmath import log, sqrt

    u2 = (e / c) ** 2
    if name == "huber":
        return e**2 if abs(e) <= c else c * (2 * abs(e) - c)
    if name == "soft-l1":
        return 2 * c**2 * (sqrt(1 + u2) - 1)
    if name == "cauchy":
        return c**2 * log(1 + u2)
    return c**2 / 3 * (1 - (1 - u2) ** 3) if abs(e) <= c else c**2 / 3


@pytest.mark.parametrize("loss", ROBUST, ids=lambda loss: loss.name)
def test_cost_pull_and_stiffness_are_those_of_forty_digits(loss):
    from mpmath import diff, mp, mpf

    points = [1e-9, 1e-3, 0.3, 1.1, 1.999, 2.001, 5.0, 1e3]
    with mp.workdps(40):
        for sign in (1, -1):
            for x in points:
                at = mpf(sign * x)
                e = np.array([sign * x])
                exact = rho(loss.name, at, mpf(2))
                slope = diff(lambda t: rho(loss.name, t, mpf(2)), at) / 2
                bend = diff(lambda t: rho(loss.name, t, mpf(2)), at, 2) / 2
                # Tukey's 1 - u^2 loses digits next to its threshold; nothing is smaller than 1e-16 of the threshold.
                assert loss.cost(e)[0] == pytest.approx(float(exact), rel=1e-13, abs=1e-16 * min(x * x, 1.0))
                assert loss.pull(e)[0] == pytest.approx(float(slope), rel=1e-12, abs=1e-16)
                assert loss.stiffness(e)[0] == pytest.approx(float(bend), rel=1e-11, abs=1e-15)
                assert loss.weight(e)[0] * e[0] == pytest.approx(loss.pull(e)[0], rel=1e-14)


@pytest.mark.parametrize("name", TUNINGS)
def test_each_constant_has_95_percent_of_the_efficiency_of_least_squares(name):
    from scipy.integrate import quad
    from scipy.stats import norm

    c = TUNINGS[name]
    loss = AskedLoss(name).at(c)

    def mean(function):
        ends = [-40.0, -c, 0.0, c, 40.0]
        return sum(quad(function, a, b, epsabs=1e-13)[0] for a, b in pairwise(ends))

    bend = mean(lambda x: loss.stiffness(np.array([x]))[0] * norm.pdf(x))
    scatter = mean(lambda x: loss.pull(np.array([x]))[0] ** 2 * norm.pdf(x))
    assert bend * bend / scatter == pytest.approx(0.95, abs=2e-5)  # Huber's 1.345 is usually given to four digits


@pytest.mark.parametrize("kind", [Huber, SoftL1, Cauchy, Tukey])
def test_a_loss_with_a_large_threshold_is_the_squared_one(kind):
    loss, e = kind(1e9), POINTS
    assert loss.cost(e) == pytest.approx(Squared().cost(e), rel=1e-12)
    assert loss.pull(e) == pytest.approx(e, rel=1e-12)
    assert loss.stiffness(e) == pytest.approx(np.ones_like(e), rel=1e-12)


def test_the_curvature_of_a_search_is_never_negative_where_the_second_derivative_is():
    e = np.array([3.0])
    for loss in (Cauchy(2.0), Tukey(4.0)):
        assert loss.stiffness(e)[0] < 0.0
        assert Reweighted(loss).stiffness(e)[0] > 0.0
        assert (Reweighted(loss).cost(e), Reweighted(loss).pull(e)) == (loss.cost(e), loss.pull(e))


@pytest.mark.parametrize(
    "text", ["", "hubert", "squared:1", "huber:", "huber:0", "huber:-1", "tukey:nan", "tukey:inf", 3]
)
def test_a_loss_that_is_not_understood_is_refused(text):
    with pytest.raises(UsageError):
        AskedLoss.of(text)


def test_every_name_is_understood_and_the_scale_is_read():
    assert {AskedLoss.of(name).kind for name in NAMES} == set(NAMES)
    assert AskedLoss.of("cauchy:2.5e-3") == AskedLoss("cauchy", 0.0025)
