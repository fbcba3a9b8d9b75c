"""The rule for any characteristic function: right where the answer is known, and silent where it has none."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from strikeout.kernels import affine, black, fourier_trapezoid, heston_cf, jump_cf
from tests.kernels.kernel_choice import each_kernel, needs_native, under_each
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
@each_kernel
def test_the_gaussian_line_gives_blacks_prices_and_vegas(sigma, T, kernel):
    found = fourier_trapezoid.values(fourier_trapezoid.rule(black_scholes, T, np.array([sigma])), K, kernel)
    np.testing.assert_allclose(found, black_values(sigma, T, K), rtol=0, atol=1e-12)


@pytest.mark.parametrize("T", [0.01, 0.5, 5.0])
def test_halving_the_step_and_doubling_the_nodes_changes_nothing_that_matters(T):
    theta = np.array([1.5, 0.05, 0.9, -0.7, 0.03])
    coarse = fourier_trapezoid.rule(heston, T, theta)
    fine = fourier_trapezoid.rule(
        heston, T, theta, level=2.0 * fourier_trapezoid.LEVEL
    )  # twice the period, and every cut at 1e-27
    assert len(fine.F) > 2 * len(coarse.F)
    np.testing.assert_allclose(
        fourier_trapezoid.values(coarse, K, "numpy"), fourier_trapezoid.values(fine, K, "numpy"), rtol=0, atol=1e-12
    )


def test_a_moment_that_has_exploded_is_not_taken_for_one_that_exists():
    """Variance gamma has moments p with p mean + p^2 variance / 2 < 1 / nu, and no others."""
    sigma, nu, mean = 0.12, 0.2, -0.14
    rising, falling, _ = fourier_trapezoid.moments(variance_gamma, 1.0, np.array([sigma, nu, mean]))
    for p, found in ((1.0 + fourier_trapezoid.PROBES, rising[1:]), (-fourier_trapezoid.PROBES, falling[1:])):
        exists = nu * (mean * p + 0.5 * sigma**2 * p * p) < 1.0
        assert exists.any()
        assert not exists.all()
        np.testing.assert_array_equal(np.isfinite(found), exists)


@each_kernel
def test_a_characteristic_function_that_hardly_decays_gets_no_price_rather_than_a_wrong_one(kernel):
    """At a tenth of a year variance gamma's falls like u^-1 here: 2^14 nodes leave 1e-7."""
    found = fourier_trapezoid.values(
        fourier_trapezoid.rule(variance_gamma, 0.1, np.array([0.12, 0.2, -0.14])), K[30:50], kernel
    )
    assert np.isnan(found).all()


@each_kernel
def test_options_beyond_chernoffs_bound_are_worth_nothing(kernel):
    there = fourier_trapezoid.rule(black_scholes, 0.01, np.array([0.2]))
    assert fourier_trapezoid.values(there, np.array([there.low - 1e-9, there.high]), kernel).tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
    ]
    # and just inside it they are worth next to nothing, so that nothing jumps
    assert np.abs(fourier_trapezoid.values(there, np.array([there.low, there.high - 1e-9]), kernel)[0]).max() < 1e-13


@each_kernel
def test_strikes_farther_out_than_the_rule_reaches_get_no_price_when_they_have_one(kernel):
    there = fourier_trapezoid.rule(black_scholes, 10.0, np.array([3.0]))  # total variance 90
    assert there.low < -fourier_trapezoid.FARTHEST - 1.0
    found = fourier_trapezoid.values(
        there, np.array([-fourier_trapezoid.FARTHEST - 1.0, 0.0, fourier_trapezoid.FARTHEST + 1.0]), kernel
    )[0]
    assert np.isnan(found).tolist() == [True, False, True]


@pytest.mark.parametrize("T", [0.02, 0.5, 5.0])
@each_kernel
def test_a_strike_has_the_same_bits_alone_among_others_and_in_small_parts(T, kernel, monkeypatch):
    there = fourier_trapezoid.rule(heston, T, np.array([1.5, 0.05, 0.9, -0.7, 0.03]))
    k = np.sort(np.random.default_rng(0).uniform(-0.6, 0.6, 100))
    whole = fourier_trapezoid.values(there, k, kernel)
    for some in (slice(0, 1), slice(41, 42), slice(41, 43), slice(3, 20), slice(0, 99), slice(None, None, 7)):
        np.testing.assert_array_equal(fourier_trapezoid.values(there, k[some], kernel), whole[:, some])
    monkeypatch.setattr(fourier_trapezoid, "AT_ONCE", 9)  # the last part has one strike
    np.testing.assert_array_equal(fourier_trapezoid.values(there, k, kernel), whole)


@each_kernel
def test_a_sum_by_blocks_is_the_sum_of_its_terms(kernel):
    there = fourier_trapezoid.rule(bates, 0.02, np.array([1.5, 0.05, 0.9, -0.7, 0.03, 0.5, -0.1, 0.15]))
    assert len(there.F) > 10 * fourier_trapezoid.BLOCK
    assert len(there.F) % fourier_trapezoid.BLOCK != 0
    j = np.arange(len(there.F))
    plain = [np.sum(there.F.T * np.exp(-1j * (j * there.h + 0.5j) * k), axis=1).real for k in K]
    growth = np.exp(K)
    expected = -np.array(plain).T
    expected[0] += np.minimum(growth, 1.0) + (1.0 + growth) * there.image
    inside = (there.low <= K) & (there.high > K)
    # Phases up to some hundreds, each with a rounding of its own.
    np.testing.assert_allclose(
        fourier_trapezoid.values(there, K, kernel)[:, inside], expected[:, inside], rtol=0, atol=1e-12
    )


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
    assert fewest <= len(fourier_trapezoid.rule(log_cf, T, np.array(theta)).F) <= most


def test_heston_far_from_feller_s_condition_over_a_year_is_not_priced():
    there = fourier_trapezoid.rule(heston, 1.0, np.array([0.5, 0.04, 1.5, -0.7, 0.001]))
    assert np.isnan(fourier_trapezoid.values(there, K, "numpy")).all()


@each_kernel
def test_no_strikes_give_no_values(kernel):
    assert fourier_trapezoid.values(
        fourier_trapezoid.rule(black_scholes, 1.0, np.array([0.2])), np.array([]), kernel
    ).shape == (2, 0)


def test_the_defect_is_how_far_the_forward_is_missed():
    def drifting(z, T, theta):
        value, gradient = black_scholes(z, T, theta)
        return value + 1j * z * 0.01 * T, gradient

    assert fourier_trapezoid.rule(drifting, 2.0, np.array([0.2])).defect == pytest.approx(0.02)
    assert fourier_trapezoid.rule(black_scholes, 2.0, np.array([0.2])).defect == 0.0


@needs_native
def test_terms_are_summed_to_the_same_bits_on_every_instruction_set():
    there = fourier_trapezoid.rule(bates, 0.02, np.array([1.5, 0.05, 0.9, -0.7, 0.03, 0.5, -0.1, 0.15]))
    found = under_each(lambda: fourier_trapezoid.values(there, K, "native").tobytes())
    assert len(set(found.values())) == 1


@needs_native
@pytest.mark.parametrize("k", [[0.1, 0.0], [0.0, np.nan], [np.inf]], ids=["falling", "nan", "inf"])
def test_strikes_that_are_not_finite_and_ascending_are_refused(k):
    with pytest.raises(ValueError, match="finite and ascending"):
        fourier_trapezoid.values(fourier_trapezoid.rule(black_scholes, 1.0, np.array([0.2])), np.array(k), "native")


# --- the bound that says how many nodes are enough -----------------------------------------------------------------


def drawn(rng: np.random.Generator, jumps: bool) -> tuple[np.ndarray, float]:
    """Heston's parameters, or the jumps', all over the bounds of Bates' model, and an expiry of a day to ten years."""
    T = float(np.exp(rng.uniform(np.log(1 / 365), np.log(10.0))))
    if jumps:
        lam, delta = np.exp(rng.uniform(np.log([1e-3, 1e-3]), np.log([20.0, 1.0])))
        return np.array([lam, rng.uniform(-1.0, 1.0), delta]), T
    kappa, vbar, sigma, v0 = np.exp(rng.uniform(np.log([1e-3, 1e-4, 1e-2, 1e-5]), np.log([60.0, 3.0, 20.0, 3.0])))
    return np.array([kappa, vbar, sigma, rng.uniform(-0.999, 0.999), v0]), T


@pytest.mark.parametrize("jumps", [False, True], ids=["variance", "jumps"])
def test_the_bound_holds_everywhere_and_never_rises(jumps):
    rng, nearest = np.random.default_rng(7), -np.inf
    u = np.geomspace(1e-2, 1e5, 400)
    z = u - 0.5j
    for _ in range(200):
        theta, T = drawn(rng, jumps)
        with np.errstate(all="ignore"):
            value, gradient = jump_cf.log_cf(z, T, theta) if jumps else heston_cf.log_cf(z, z * z + 1j * z, T, theta)
            size, slope = (jump_cf if jumps else heston_cf).bound(u, T, theta)
        rounding = 1e-9 * (1.0 + np.abs(size))  # of the formulas, not of the bound
        assert (value.real <= size + rounding).all(), theta
        assert (np.diff(size) <= rounding[1:]).all(), theta
        assert (np.abs(np.array(gradient)) <= 1.0001 * np.maximum(slope, 1.0)).all(), theta
        nearest = max(nearest, float(np.max((value.real - size) / (1.0 + np.abs(size)))))
    assert nearest > -1e-3  # somewhere it is all but reached


def test_jumps_of_nearly_one_size_come_back_and_the_bound_knows():
    """lam T = 40 jumps of -0.4: at u = 2 pi / 0.4 the characteristic function is back from exp(-60)."""
    theta, T = np.array([8.0, -0.4, 0.002]), 5.0
    u = 2.0 * np.pi / 0.4 * np.array([0.5, 1.0])
    value, bound = jump_cf.log_cf(u - 0.5j, T, theta)[0].real, jump_cf.bound(u, T, theta)[0]
    assert value[0] < value[1] - 50.0
    assert (value <= bound).all()
    assert value[1] == pytest.approx(bound[1], abs=0.1)


@pytest.mark.parametrize("family", [affine.BATES, affine.DOUBLE_HESTON], ids=["bates", "double-heston"])
def test_the_twins_gradient_is_that_of_25_digits(family):
    """Differences of the logarithm, written as the literature has it, in 25 digits."""

    def log_cf(z, T, theta):
        total = mp.mpf(0)
        for i in range(family.variances):
            kappa, vbar, sigma, rho, v0 = theta[5 * i : 5 * i + 5]
            beta = kappa - rho * sigma * 1j * z
            d = mp.sqrt(beta**2 + sigma**2 * (1j * z + z**2))
            g, e = (beta - d) / (beta + d), mp.exp(-d * T)
            total += kappa * vbar / sigma**2 * ((beta - d) * T - 2 * mp.log((1 - g * e) / (1 - g)))
            total += v0 / sigma**2 * (beta - d) * (1 - e) / (1 - g * e)
        if family.jumps:
            lam, mean, sd = theta[-3:]
            jump = mp.exp(1j * z * mean - sd**2 * z**2 / 2)
            total += lam * T * (jump - 1 - 1j * z * (mp.exp(mean + sd**2 / 2) - 1))
        return total

    theta = [1.5, 0.05, 0.9, -0.7, 0.03, *((0.8, -0.15, 0.12) if family.jumps else (6.0, 0.04, 0.5, 0.3, 0.06))]
    z = np.array([0.3, 4.0, 25.0]) - 0.5j
    value, gradient = family.log_cf(z, 0.7, np.array(theta))
    with mp.workdps(25):
        exact, step = [mp.mpf(x) for x in theta], mp.mpf(10) ** -8
        for j, at in enumerate(z.tolist()):
            assert abs(log_cf(mp.mpmathify(at), mp.mpf(0.7), exact) - value[j]) < 1e-13 * (1 + abs(value[j]))
            for i in range(len(theta)):
                moved = [[x + sign * step * (n == i) for n, x in enumerate(exact)] for sign in (1, -1)]
                up, down = (log_cf(mp.mpmathify(at), mp.mpf(0.7), each) for each in moved)
                # 1e-16 of the third derivative, and 1e-25 / 1e-8 of rounding
                assert abs((up - down) / (2 * step) - gradient[i][j]) < 1e-12 * (1 + abs(gradient[i][j]))


@pytest.mark.parametrize("T", [0.02, 0.5, 5.0])
@pytest.mark.parametrize(
    ("law", "theta"),
    [(heston, [1.5, 0.05, 0.9, -0.7, 0.03]), (bates, [1.5, 0.05, 0.9, -0.7, 0.03, 0.5, -0.1, 0.15])],
)
def test_a_logarithm_without_derivatives_changes_no_term(law, theta, T):
    """Beyond the nodes the function is looked at alone, and with its derivatives only if it is not far below them."""
    theta = np.array(theta)
    calls = []

    def logarithm(z, T, theta):
        calls.append(len(z))
        return law(z, T, theta)[0], ()

    alone, both = fourier_trapezoid.rule(law, T, theta, logarithm=logarithm), fourier_trapezoid.rule(law, T, theta)
    assert len(calls) >= 2
    np.testing.assert_array_equal(alone.F, both.F)
    assert (alone.h, alone.low, alone.high) == (both.h, both.low, both.high)
