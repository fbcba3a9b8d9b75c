"""Hagan's volatilities: derivatives, the limit at the money, and the two expansions of one model."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.kernels import bachelier, black, sabr


def points(count: int = 500) -> tuple[np.ndarray, ...]:
    """Forwards, strikes (at, near and far from the money), expiries and the four parameters."""
    rng = np.random.default_rng(0)
    F = 100.0 * np.exp(0.1 * rng.standard_normal(count))
    K = F * np.exp(0.4 * rng.standard_normal(count) * rng.choice([1.0, 1e-2, 1e-4, 1e-8, 0.0], count))
    T, beta = rng.uniform(0.01, 5.0, count), rng.uniform(0.0, 1.0, count)
    theta = (0.3 * F ** (1.0 - beta), beta, rng.uniform(-0.95, 0.95, count), rng.uniform(0.05, 2.0, count))
    return F, K, T, theta


@pytest.mark.parametrize("formula", [sabr.lognormal, sabr.normal])
def test_derivatives_are_those_of_the_volatility(formula):
    F, K, T, theta = points()
    volatility, by = formula(F, K, T, theta)
    for i in range(4):
        size = np.maximum(np.abs(theta[i]), 1e-2)
        step = 1e-3 * size

        def moved(m, i=i, step=step):
            return formula(F, K, T, tuple(x + m * step if j == i else x for j, x in enumerate(theta)))[0]

        differences = (8.0 * (moved(1.0) - moved(-1.0)) - (moved(2.0) - moved(-2.0))) / (12.0 * step)
        # Fourth order: (1e-3)^4 of a fifth derivative, beside 1e-13 of rounding over the step.
        scale = np.abs(differences) + 1e-3 * np.abs(volatility) / size
        assert (np.abs(by[i] - differences) <= 1e-7 * scale).all()


def test_nothing_jumps_at_the_money():
    one = np.ones(5)
    K = 100.0 * np.exp(np.array([-1e-7, -1e-12, 0.0, 1e-12, 1e-7]))
    theta = (2.0 * one, 0.5 * one, -0.4 * one, 0.7 * one)
    volatility, by = sabr.lognormal(100.0 * one, K, one, theta)
    for values in (volatility, *by):
        assert np.ptp(values) <= 2e-6 * max(np.abs(values).max(), 0.1)  # slopes of up to ten, over 2e-7
    assert np.ptp(volatility[1:4]) <= 1e-12


def test_without_vol_of_vol_a_lognormal_forward_has_one_volatility():
    one = np.ones(3)
    K = np.array([60.0, 100.0, 170.0])
    volatility, _ = sabr.lognormal(100.0 * one, K, one, (0.2 * one, one, -0.3 * one, 1e-12 * one))
    np.testing.assert_allclose(volatility, 0.2, rtol=1e-11)


def test_the_two_expansions_price_alike_where_both_hold():
    """To the order of the expansion: a week, so T^2 is 4e-4, and near the money."""
    F, T, one = np.full(5, 100.0), np.full(5, 1.0 / 52.0), np.ones(5)
    K = np.array([96.0, 98.0, 100.0, 102.0, 104.0])
    theta = (2.0 * one, 0.5 * one, -0.3 * one, 0.6 * one)
    through_black = black.price(F, K, T, sabr.lognormal(F, K, T, theta)[0], one, K >= F)
    through_bachelier = bachelier.price(F, K, T, sabr.normal(F, K, T, theta)[0], one, K >= F)
    np.testing.assert_allclose(through_black, through_bachelier, rtol=0, atol=2e-6)


def test_chi_keeps_its_digits_on_both_sides_of_zero_and_far_out():
    """chi(z) = z / x(z) against mpmath, at 40 digits."""
    import mpmath as mp

    z = np.array([-1e6, -30.0, -1.0, -1e-6, -1e-12, 1e-12, 1e-6, 1.0, 30.0, 1e6])
    for rho in (-0.9, 0.0, 0.7):
        chi, _, by_rho = sabr.chi_of(z, np.full(len(z), rho))
        with mp.workdps(40):
            r = mp.mpf(rho)

            def exact(x, r):
                return x / mp.log((mp.sqrt(1 - 2 * r * x + x * x) + x - r) / (1 - r))

            expected = [exact(mp.mpf(float(x)), r) for x in z]
            slopes = [mp.diff(lambda r, x=x: exact(mp.mpf(float(x)), r), r) for x in z]
        np.testing.assert_allclose(chi, np.array(expected, float), rtol=1e-14)
        np.testing.assert_allclose(by_rho, np.array(slopes, float), rtol=1e-12)


def test_bacheliers_price_keeps_its_digits_out_of_the_money():
    import mpmath as mp

    K = np.array([50.0, 90.0, 99.999, 100.0, 120.0, 200.0])
    F, T, sigma, D = np.full(6, 100.0), np.full(6, 0.5), np.full(6, 20.0), np.full(6, 0.97)
    found = bachelier.price(F, K, T, sigma, D, K >= F)
    with mp.workdps(40):
        s = 20 * mp.sqrt(mp.mpf(0.5))
        d = [abs(100 - mp.mpf(float(x))) / s for x in K]
        expected = [float(mp.mpf(0.97) * s * (mp.npdf(x) - x * mp.ncdf(-x))) for x in d]
    np.testing.assert_allclose(found, expected, rtol=5e-14)  # d^2 eps: 50 of them at the farthest strike
    other = bachelier.price(F, K, T, sigma, D, K < F)
    np.testing.assert_allclose(np.where(K >= F, found - other, other - found), D * (F - K), rtol=0, atol=1e-13)


def test_bachelier_at_no_volatility_is_the_intrinsic_value():
    F, K, one = np.full(3, 100.0), np.array([90.0, 100.0, 110.0]), np.ones(3)
    assert bachelier.price(F, K, one, 0.0 * one, one, one > 0).tolist() == [10.0, 0.0, 0.0]
    assert np.isnan(bachelier.price(F, K, one, -one, one, one > 0)).all()
