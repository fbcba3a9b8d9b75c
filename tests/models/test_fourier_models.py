"""Bates, double Heston and variance gamma: what they must be where they are something simpler."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError
from strikeout.kernels import variance_gamma
from tests.models.books import CONTRACTS
from tests.raising import raises

HESTON = (2.0, 0.06, 0.5, -0.6, 0.04)


def test_two_equal_halves_are_one_heston():
    kappa, vbar, sigma, rho, v0 = HESTON
    half = (kappa, 0.5 * vbar, sigma, rho, 0.5 * v0)
    price, jacobian = so.DoubleHeston().linearize([*half, *half], CONTRACTS)
    expected, gradient = so.Heston().linearize(HESTON, CONTRACTS)
    np.testing.assert_allclose(price, expected, rtol=0, atol=1e-9)  # 1e-11 of the forward
    # What both variances share moves the price as one; their levels count by what they add.
    together = jacobian[:, :5] + jacobian[:, 5:]
    np.testing.assert_allclose(together[:, [0, 2, 3]], gradient[:, [0, 2, 3]], rtol=0, atol=1e-7)
    np.testing.assert_allclose(together[:, [1, 4]], 2.0 * gradient[:, [1, 4]], rtol=0, atol=1e-7)


def test_jumps_that_hardly_come_leave_heston():
    price = so.Bates().price([*HESTON, 1e-13, -0.1, 0.1], CONTRACTS)
    np.testing.assert_allclose(price, so.Heston().price(HESTON, CONTRACTS), rtol=0, atol=1e-9)


def test_the_border_tells_the_two_variances_apart():
    narrow = so.DoubleHeston(border=1.5)
    space = narrow.parameters
    assert space.upper[0] == space.lower[5] == 1.5
    assert (space.starts[:, 0] < 1.5).all()
    assert (space.starts[:, 5] > 1.5).all()
    assert narrow.name != so.DoubleHeston().name


def test_a_slow_clock_that_hardly_varies_is_black_scholes():
    """Variance of the clock 1e-6 a year: kurtosis adds 3e-6 of it to a price of a few."""
    price = so.VarianceGamma().price([0.2, 1e-6, 0.0], CONTRACTS)
    np.testing.assert_allclose(price, so.BlackScholes().price([0.2], CONTRACTS), rtol=0, atol=2e-5)


def test_where_the_forward_does_not_exist_there_is_no_price():
    price, jacobian = so.VarianceGamma().linearize([0.5, 5.0, 0.2], CONTRACTS)  # 5 (0.2 + 0.125) > 1
    assert np.isnan(price).all()
    assert np.isnan(jacobian).all()


@pytest.mark.parametrize("a", [1e-3, 0.3, 1.0, 30.0, 1e3])
def test_the_gamma_clock_has_mean_one_and_the_digamma_function(a):
    """Sums over the nodes against the known mean of g / nu (a) and of its logarithm, which enters the derivative."""
    import mpmath as mp

    nodes = variance_gamma.nodes_of(a, 1.0, 0.0)
    assert nodes is not None
    clock, x = (a + 1.0) * nodes.clock, np.log(nodes.clock)
    assert float(np.sum(nodes.w)) + nodes.rest == pytest.approx(1.0, rel=1e-12)
    assert float(np.sum(nodes.by_shape)) + nodes.rest_by_shape == pytest.approx(0.0, abs=1e-12 / a)
    assert float(np.sum(nodes.w * clock)) == pytest.approx(a, rel=1e-12)
    # x is ln(clock) - ln(a + 1), and the mean of clock ln(clock) is a (digamma(a) + 1 / a)
    expected = a * (mp.digamma(a) + 1 / mp.mpf(a) - mp.log(a + 1))
    assert float(np.sum(nodes.w * clock * x)) == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


def gamma_mixture(theta, T, k):
    """The call at ln-strike k, forward one, slowly: an integral over the clock, 25 digits, cut where Black's turns."""
    import mpmath as mp

    with mp.workdps(25):
        sigma, nu, drift, a = (mp.mpf(x) for x in (*theta, T / theta[1]))
        slope = drift + sigma**2 / 2
        omega = mp.log(1 - nu * slope) / nu

        def term(g):
            s, f = sigma * mp.sqrt(g), omega * T + slope * g
            d = max(min((f - k) / s + s / 2, mp.mpf(60)), mp.mpf(-60))
            black = mp.exp(f) * mp.ncdf(d) - mp.exp(k) * mp.ncdf(d - s)
            return black * mp.exp((a - 1) * mp.log(g / nu) - g / nu - mp.loggamma(a)) / nu

        turn = max((k - omega * T) / slope, mp.mpf("1e-3"))
        width = sigma * mp.sqrt(turn) / abs(slope)
        around = [turn + j * width for j in (-10, -6, -3, -1, 0, 1, 3, 6, 10)]
        mass = [T * share for share in (0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0)]
        return float(mp.quad(term, [0, *sorted(g for g in (*around, *mass) if g > 0)]))


@pytest.mark.parametrize("theta", [(0.1, 0.3, -0.5), (0.05, 0.2, -1.0), (0.02, 0.1, -1.0), (0.05, 0.1, 1.0)])
def test_a_drift_large_beside_the_volatility_costs_no_digit(theta):
    """Black's formula then turns within a hundredth of the clock's range; a grid made for the clock alone misses it."""
    sd = np.sqrt(theta[0] ** 2 + theta[1] * theta[2] ** 2)
    k = np.array([0.0, 0.4, 0.8]) * sd
    contracts = so.Contracts(forward=1.0, strike=np.exp(k), expiry=1.0, discount=1.0, is_call=True)
    expected = [gamma_mixture(theta, 1.0, x) for x in k]
    np.testing.assert_allclose(so.VarianceGamma().price(theta, contracts), expected, rtol=0, atol=1e-13)


def test_contours_price_what_the_clock_would_need_too_many_nodes_for():
    """Expected: mpmath's quadrature along a ray from Lewis' line, 25 digits."""
    theta, k = np.array([0.01, 10.0, -3.0]), np.array([-0.3, -0.05, 0.02])
    expected = [0.02055667721459556, 0.029807721022779655, 0.01359178558958009]
    assert np.isnan(variance_gamma.values(theta, 0.1, k)).all()
    c = so.Contracts(forward=1.0, strike=np.exp(k), expiry=0.1, discount=1.0, is_call=k >= 0.0)
    np.testing.assert_allclose(so.VarianceGamma().price(theta, c), expected, rtol=0, atol=1e-13)


def test_memory_is_bounded_and_blocks_change_no_bit(monkeypatch):
    theta, k = np.array([0.15, 0.3, -0.2]), np.linspace(-0.5, 0.5, 101)
    whole = variance_gamma.values(theta, 0.1, k)
    monkeypatch.setattr(variance_gamma, "MEMORY", 1000)
    assert (variance_gamma.values(theta, 0.1, k) == whole).all()


@pytest.mark.parametrize(
    ("model", "theta", "name", "value"),
    [
        (so.Bates(), (2.0, 0.06, 0.5, -1.6, 0.04, 0.5, -0.1, 0.1), "correlation", -1.6),
        (so.Bates(), (2.0, 0.06, 0.5, -0.6, 0.04, -0.5, -0.1, 0.1), "jump_intensity", -0.5),
        (
            so.DoubleHeston(),
            (*HESTON, 5.0, -0.06, 0.5, -0.6, 0.04),
            "long_variance[fast]",
            -0.06,
        ),
        (so.VarianceGamma(), (0.2, 0.0, -0.1), "variance_rate", 0.0),
    ],
)
def test_parameters_outside_the_domain_are_refused_by_name(model, theta, name, value):
    with raises(ParameterError, parameter=name, value=value):
        model.price(theta, CONTRACTS)
