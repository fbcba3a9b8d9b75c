"""The rule for any characteristic function: right where the answer is known, and silent where it has none."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.kernels import black, line
from tests.models.characteristic_functions import bates, black_scholes, heston, merton, variance_gamma

K = np.linspace(-2.0, 2.0, 81)


def black_values(sigma: float, T: float, k: np.ndarray) -> np.ndarray:
    one = np.ones(len(k))
    price = black.price(one, np.exp(k), T * one, sigma * one, one, k >= 0.0)
    return np.array([price, black.vega(one, np.exp(k), T * one, sigma * one, one)])


# A vol of 1 % over a day is the hardest of these: 1.4e-13, from phases of 1e4 times the rounding of k.
@pytest.mark.parametrize(
    ("sigma", "T"), [(0.2, 1 / 365), (0.01, 1 / 365), (0.2, 1.0), (1.0, 1.0), (1.0, 10.0), (3.0, 10.0), (0.2, 10.0)]
)
def test_the_gaussian_line_gives_blacks_prices_and_vegas(sigma, T):
    found = line.values(line.rule(black_scholes, T, np.array([sigma])), K)
    np.testing.assert_allclose(found, black_values(sigma, T, K), rtol=0, atol=1e-12)


@pytest.mark.parametrize("T", [0.01, 0.5, 5.0])
def test_halving_the_step_and_doubling_the_nodes_changes_nothing_that_matters(T, monkeypatch):
    theta = np.array([1.5, 0.05, 0.9, -0.7, 0.03])
    coarse = line.values(line.rule(heston, T, theta), K)
    monkeypatch.setattr(line, "LEVEL", 2.0 * line.LEVEL)  # twice the period, and every cut at 1e-27
    fine = line.values(line.rule(heston, T, theta), K)
    np.testing.assert_allclose(coarse, fine, rtol=0, atol=1e-12)


def test_a_moment_that_has_exploded_is_not_taken_for_one_that_exists():
    """Variance gamma has moments p with p mean + p^2 variance / 2 < 1 / nu, and no others."""
    sigma, nu, mean = 0.12, 0.2, -0.14
    rising, falling, _ = line.moments(variance_gamma, 1.0, np.array([sigma, nu, mean]))
    for p, found in ((1.0 + line.PROBES, rising[1:]), (-line.PROBES, falling[1:])):
        exists = nu * (mean * p + 0.5 * sigma**2 * p * p) < 1.0
        assert exists.any()
        assert not exists.all()
        np.testing.assert_array_equal(np.isfinite(found), exists)


def test_a_characteristic_function_that_hardly_decays_gets_no_price_rather_than_a_wrong_one():
    """At a tenth of a year variance gamma's falls like u^-1 here: 2^14 nodes leave 1e-7."""
    found = line.values(line.rule(variance_gamma, 0.1, np.array([0.12, 0.2, -0.14])), K[30:50])
    assert np.isnan(found).all()


def test_options_beyond_chernoffs_bound_are_worth_nothing():
    there = line.rule(black_scholes, 0.01, np.array([0.2]))
    assert line.values(there, np.array([there.low - 1e-9, there.high])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    # and just inside it they are worth next to nothing, so that nothing jumps
    assert np.abs(line.values(there, np.array([there.low, there.high - 1e-9]))[0]).max() < 1e-13


def test_strikes_farther_out_than_the_rule_reaches_get_no_price_when_they_have_one():
    there = line.rule(black_scholes, 10.0, np.array([3.0]))  # total variance 90
    assert there.low < -line.FARTHEST - 1.0
    found = line.values(there, np.array([-line.FARTHEST - 1.0, 0.0, line.FARTHEST + 1.0]))[0]
    assert np.isnan(found).tolist() == [True, False, True]


@pytest.mark.parametrize("T", [0.02, 0.5, 5.0])
def test_a_strike_has_the_same_bits_alone_among_others_and_in_small_parts(T, monkeypatch):
    there = line.rule(heston, T, np.array([1.5, 0.05, 0.9, -0.7, 0.03]))
    k = np.sort(np.random.default_rng(0).uniform(-0.6, 0.6, 100))
    whole = line.values(there, k)
    for some in (slice(0, 1), slice(41, 42), slice(41, 43), slice(3, 20), slice(0, 99), slice(None, None, 7)):
        np.testing.assert_array_equal(line.values(there, k[some]), whole[:, some])
    monkeypatch.setattr(line, "AT_ONCE", 9)  # the last part has one strike
    np.testing.assert_array_equal(line.values(there, k), whole)


def test_a_sum_by_blocks_is_the_sum_of_its_terms():
    there = line.rule(bates, 0.02, np.array([1.5, 0.05, 0.9, -0.7, 0.03, 0.5, -0.1, 0.15]))
    assert len(there.F) > 10 * line.BLOCK
    assert len(there.F) % line.BLOCK != 0
    j = np.arange(len(there.F))
    plain = [np.sum(there.F.T * np.exp(-1j * (j * there.h + 0.5j) * k), axis=1).real for k in K]
    growth = np.exp(K)
    expected = -np.array(plain).T
    expected[0] += np.minimum(growth, 1.0) + (1.0 + growth) * there.image
    inside = (there.low <= K) & (there.high > K)
    # Phases up to some hundreds, each with a rounding of its own.
    np.testing.assert_allclose(line.values(there, K)[:, inside], expected[:, inside], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("log_cf", "theta", "T", "fewest", "most"),
    [
        (black_scholes, [0.2], 1.0, 15, 30),
        (merton, [0.2, 0.7, -0.15, 0.2], 0.1, 60, 110),
        (merton, [0.2, 0.7, -0.15, 0.2], 1 / 365, 250, 450),
        (bates, [2.0, 0.06, 0.3, -0.6, 0.06, 0.5, -0.1, 0.15], 0.1, 60, 110),
        (heston, [1.5, 0.05, 1.5, -0.7, 0.03], 0.5, 2000, 2400),
    ],
)
def test_the_rule_takes_as_many_nodes_as_the_documentation_says(log_cf, theta, T, fewest, most):
    """docs/how-to/add-a-model.md. Those that are not priced have tests of their own."""
    assert fewest <= len(line.rule(log_cf, T, np.array(theta)).F) <= most


def test_heston_far_from_feller_s_condition_over_a_year_is_not_priced():
    there = line.rule(heston, 1.0, np.array([0.5, 0.04, 1.5, -0.7, 0.001]))
    assert np.isnan(line.values(there, K)).all()


def test_no_strikes_give_no_values():
    assert line.values(line.rule(black_scholes, 1.0, np.array([0.2])), np.array([])).shape == (2, 0)


def test_the_defect_is_how_far_the_forward_is_missed():
    def drifting(z, T, theta):
        value, gradient = black_scholes(z, T, theta)
        return value + 1j * z * 0.01 * T, gradient

    assert line.rule(drifting, 2.0, np.array([0.2])).defect == pytest.approx(0.02)
    assert line.rule(black_scholes, 2.0, np.array([0.2])).defect == 0.0
