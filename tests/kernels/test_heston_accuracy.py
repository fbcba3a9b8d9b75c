"""The Heston kernels against a slow integral they share nothing with, on parameters nobody chose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from strikeout.models.characteristic import CharacteristicModel
from strikeout.models.heston import SMALLEST_VOL_OF_VOL, SPACE, Heston
from tests.kernels.kernel_choice import KERNELS, needs_native, total_variance, values
from tests.models.characteristic_functions import heston as log_cf
from tests.reference.lewis_integral import cf, otm


def between(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over orders of magnitude."""
    return st.floats(0.0, 1.0).map(lambda x: float(low ** (1.0 - x) * high**x))


LOWER, UPPER = SPACE.lower.tolist(), SPACE.upper.tolist()
IN_THE_BOX = st.tuples(
    between(LOWER[0], UPPER[0]),
    between(LOWER[1], UPPER[1]),
    between(0.05, UPPER[2]),
    st.floats(-0.99, 0.99),
    between(LOWER[4], UPPER[4]),
)
EXPIRIES = between(1.0 / 365.0, 10.0)
FIFTY_TO_TWO_HUNDRED = float(np.log(2.0))


def strikes(theta: tuple[float, ...], T: float) -> np.ndarray:
    """Log-strikes across the slice, between 50 and 200 % of the forward."""
    k = np.sqrt(total_variance(theta, T)) * np.array([-4.0, -2.0, -0.6, -0.1, 0.0, 0.3, 1.1, 3.0])
    return np.unique(k.clip(-FIFTY_TO_TWO_HUNDRED, FIFTY_TO_TWO_HUNDRED))


# 1e-11 is the promise; these examples keep it a hundred times over.
@settings(max_examples=12)
@given(theta=IN_THE_BOX, T=EXPIRIES)
def test_prices_inside_the_calibration_bounds_equal_the_slow_integral(theta, T):
    assume(total_variance(theta, T) < 1.0)
    k = strikes(theta, T)
    expected = otm(theta, T, k.tolist(), most=2000)
    assume(expected is not None)
    for kernel in KERNELS:
        np.testing.assert_allclose(values(kernel, theta, T, k)[0], expected, rtol=0, atol=1e-11, err_msg=kernel)


def test_the_slow_integral_would_show_a_price_off_by_one_part_in_1e_10():
    theta, T, k = [2.0, 0.06, 0.3, -0.6, 0.06], 0.5, [-0.1, 0.0, 0.1]
    moved = [2.0, 0.06 * (1.0 + 1e-8), 0.3, -0.6, 0.06]
    off = np.abs(values("numpy", moved, T, k)[0] - otm(theta, T, k))
    assert 1e-11 < off.max() < 1e-8


GENERAL = CharacteristicModel("heston", SPACE, log_cf=log_cf)
ORDINARY = st.tuples(
    between(0.05, 60.0), between(1e-3, 3.0), between(0.1, 3.0), st.floats(-0.95, 0.95), between(1e-4, 3.0)
)


@settings(max_examples=60)
@given(theta=ORDINARY, T=EXPIRIES)
@example(theta=(4.42144, 0.30681, 0.97099, 0.79137, 0.00011), T=2.358)  # once off by 3e-11: a cell lay across the money
@example(theta=(4.1935, 0.0232, 0.4672, -0.7588, 0.1492), T=4.7896)  # once 6e-9 in a sensitivity: cells too wide
def test_contours_and_the_general_rule_agree_on_a_dense_grid_of_strikes(theta, T):
    """Two methods with nothing in common but the model; 1e-11 of the forward in prices, 1e-9 in sensitivities."""
    assume(total_variance(theta, T) < 1.0)
    assume(theta[0] * theta[1] < 1e3 * theta[2] ** 2)  # beyond, the formula given to the general rule loses digits
    k = np.linspace(-FIFTY_TO_TWO_HUNDRED, FIFTY_TO_TWO_HUNDRED, 161)
    expected = values(GENERAL, theta, T, k)
    assume(np.isfinite(expected).all())  # the general rule gives no price where it would take too many nodes
    for kernel in KERNELS:
        found = values(kernel, theta, T, k)
        np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-11, err_msg=kernel)
        np.testing.assert_allclose(found[1:], expected[1:], rtol=0, atol=1e-9, err_msg=kernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("T", [1 / 365, 7 / 365, 0.25, 2.0])
@pytest.mark.parametrize(
    "theta",
    [
        (60.0, 0.0402, 6.36, -0.666, 1e-8),  # S&P 500, 2022-01-07, by implied volatility
        (409.2, 0.01329, 25.42, -0.392, 1e-8),  # S&P 500, 2023-12-08, by implied volatility
        (760.2, 0.01218, 33.43, -0.388, 1e-8),  # the same day, vega-weighted
        (324.0, 0.01822, 3.33, -0.371, 0.0774),  # Nifty, settlement prices
    ],
)
def test_variance_that_acts_like_jumps_is_priced_and_differentiated_as_well(theta, T, kernel):
    """Real optima beyond mean_reversion 60. The general rule has another line, rule and form of the function."""
    k = strikes(theta, T)
    found, expected = values(kernel, theta, T, k), values(GENERAL, theta, T, k)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found[1:], expected[1:], rtol=0, atol=1e-9)


@needs_native
@settings(max_examples=150)
@given(theta=IN_THE_BOX, T=EXPIRIES)
@example(theta=(0.001, 0.0001, 0.05, -2.3e-308, 1e-08), T=1.0 / 365.0)  # a cell cut to nothing at the money
def test_the_compiled_kernel_and_its_twin_agree(theta, T):
    """To rounding: 1e-12 of the forward in prices and 1e-10 in sensitivities."""
    assume(total_variance(theta, T) < 1.0 and theta[2] <= 3.0)
    k = np.linspace(-FIFTY_TO_TWO_HUNDRED, FIFTY_TO_TWO_HUNDRED, 41)
    native, twin = values("native", theta, T, k), values("numpy", theta, T, k)
    np.testing.assert_allclose(native[0], twin[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(native[1:], twin[1:], rtol=0, atol=1e-10)


WHOLE_BOX = st.tuples(
    between(LOWER[0], UPPER[0]),
    between(LOWER[1], UPPER[1]),
    between(SMALLEST_VOL_OF_VOL, UPPER[2]),
    st.floats(LOWER[3], UPPER[3]),
    between(LOWER[4], UPPER[4]),
)
FAR_FROM_K_STAR = (852.0, 3.0, 0.065, -0.966, 0.04)  # 20,000 of the widest cells


@needs_native
@pytest.mark.parametrize("expiries", ["shared", "scattered"])
@settings(max_examples=150)
@given(theta=WHOLE_BOX, T=EXPIRIES)
@example(theta=FAR_FROM_K_STAR, T=0.57)
@example(theta=(2000.0, 3.0, 0.001, -0.999, 3.0), T=10.0)
@example(theta=(14.22176, 0.78932, 0.00244, -0.7313, 0.44926), T=7.133)
def test_both_kernels_agree_or_have_no_price_anywhere_in_the_calibration_bounds(expiries, theta, T):
    """To 1e-12 of the forward, however small vol_of_vol is and however large the total variance."""
    k = np.linspace(-FIFTY_TO_TWO_HUNDRED, FIFTY_TO_TWO_HUNDRED, 41)
    native, twin = (values(Heston(kernel, expiries), theta, T, k) for kernel in ("native", "numpy"))
    np.testing.assert_array_equal(np.isnan(native), np.isnan(twin))
    np.testing.assert_allclose(native[0], twin[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_strike_far_from_k_star_has_the_same_bits_alone(kernel):
    k = np.linspace(-FIFTY_TO_TWO_HUNDRED, FIFTY_TO_TWO_HUNDRED, 9)
    together = values(kernel, FAR_FROM_K_STAR, 0.57, k)
    alone = np.hstack([values(kernel, FAR_FROM_K_STAR, 0.57, [x]) for x in k])
    assert alone.tobytes() == together.tobytes()


def nearly_gaussian(theta: Sequence[float], T: float, k: list[float], pieces: int = 6) -> np.ndarray:
    """Lewis' integral with 30 digits again, for small vol_of_vol."""
    return np.array([float(value) for value in of_a_bell(theta, T, k, pieces)])


def of_a_bell(theta: Sequence[float], T: float, k: list[float], pieces: int = 6) -> list[mp.mpf]:
    """The characteristic function is then a bell that turns little, in whatever panels.

    Those of ``otm`` must be as short as its phase could be quick, and would be thousands.
    """
    x, w = (part.tolist() for part in np.polynomial.legendre.leggauss(40))
    longest = 9.7 / float(np.sqrt(total_variance([float(value) for value in theta], T))) / pieces
    edges = [0.0, min(1.0, longest)]
    with mp.workdps(30):
        while abs(cf(mp.mpc(edges[-1], -0.5), mp.mpf(T), theta)) > mp.mpf("1e-20"):
            edges.append(edges[-1] + min(edges[-1], longest))
        total = [mp.mpf(0) for _ in k]
        for a, b in pairwise(map(mp.mpf, edges)):
            for xi, wi in zip(x, w, strict=True):
                u = a + (b - a) * (1 + mp.mpf(xi)) / 2
                f = wi * (b - a) / 2 * cf(mp.mpc(u, -0.5), mp.mpf(T), theta) / (u**2 + 0.25)
                total = [sum_ + (f * mp.expj(-u * ki)).real for sum_, ki in zip(total, k, strict=True)]
        return [
            min(mp.mpf(1), mp.exp(ki)) - mp.exp(mp.mpf(ki) / 2) / mp.pi * sum_
            for ki, sum_ in zip(k, total, strict=True)
        ]


@pytest.mark.parametrize(
    ("theta", "T", "allowed"),
    [
        pytest.param(FAR_FROM_K_STAR, 0.25, 1e-12, id="600,000"),
        pytest.param((2000.0, 3.0, 0.01, -0.5, 0.01), 5.0, 1e-12, id="60 million"),
        pytest.param((5.0, 0.06, 0.01, -0.6, 0.06), 0.5, 1e-12, id="3,000"),
    ],
)
def test_the_sensitivity_to_mean_reversion_is_as_good_as_said_where_vol_of_vol_is_small(theta, T, allowed):
    """Times mean_reversion; the number is mean_reversion long_variance / vol_of_vol^2."""
    sd = float(np.sqrt(total_variance(theta, T)))
    k = [min(sd, FIFTY_TO_TWO_HUNDRED) * x for x in (-1.0, 0.0, 0.5)]
    with mp.workdps(30):
        step = mp.mpf("1e-8")
        up, down = (of_a_bell([theta[0] * (1 + sign * step), *theta[1:]], T, k) for sign in (1, -1))
        expected = np.array([float((a - b) / (2 * step)) for a, b in zip(up, down, strict=True)])
    for kernel in KERNELS:
        found = theta[0] * values(kernel, theta, T, k)[1]
        np.testing.assert_allclose(found, expected, rtol=0, atol=allowed, err_msg=kernel)


def test_the_slow_integral_of_a_bell_does_not_depend_on_its_panels():
    theta, T, k = (757.1, 0.0111, 0.026, -0.125, 0.0103), 0.071, [-0.02, 0.0, 0.03]
    np.testing.assert_allclose(nearly_gaussian(theta, T, k), nearly_gaussian(theta, T, k, pieces=9), rtol=0, atol=1e-14)
    mild = (5.0, 0.06, 0.05, -0.6, 0.06)
    np.testing.assert_allclose(nearly_gaussian(mild, 0.5, k), otm(mild, 0.5, k), rtol=0, atol=1e-14)


@settings(max_examples=6)
@given(
    theta=st.tuples(
        between(5.0, UPPER[0]),
        between(0.01, UPPER[1]),
        between(SMALLEST_VOL_OF_VOL, 0.1),
        st.floats(LOWER[3], UPPER[3]),
        between(0.01, UPPER[4]),
    ),
    T=between(0.02, 10.0),
)
def test_small_vol_of_vol_amplifies_no_rounding(theta, T):
    check_nearly_gaussian(theta, T)


@pytest.mark.parametrize(
    ("theta", "T"),
    [
        pytest.param(FAR_FROM_K_STAR, 0.25, id="mean_reversion long_variance / vol_of_vol^2 is 600,000"),
        pytest.param(FAR_FROM_K_STAR, 0.57, id="600,000, where the twin once had no price"),
        pytest.param((12.33254, 0.33346, 0.00153, 0.0404, 0.01902), 0.417, id="1.8 million"),
        pytest.param((2000.0, 3.0, 0.01, -0.5, 0.01), 5.0, id="60 million, the most that calibration can reach"),
        pytest.param((5.0, 0.06, 0.01, -0.6, 0.06), 0.5, id="3,000"),
        pytest.param((5.0, 3.0, 0.066, -0.677, 0.0151), 7.96, id="3,400 and a total variance of 23"),
        pytest.param((6.2, 2.96, 0.145, 0.013, 2.67), 9.9, id="900 and a total variance of 30"),
        pytest.param((0.5, 3.0, 1.0, -0.5, 3.0), 10.0, id="2 and a total variance of 30"),
    ],
)
def test_neither_small_vol_of_vol_nor_a_large_total_variance_costs_a_digit(theta, T):
    check_nearly_gaussian(theta, T)


def check_nearly_gaussian(theta: tuple[float, ...], T: float, allowed: float = 1e-12) -> None:
    sd = float(np.sqrt(total_variance(theta, T)))
    k = [min(sd, FIFTY_TO_TWO_HUNDRED) * x for x in (-1.0, 0.0, 0.5)]
    expected = nearly_gaussian(theta, T, k)
    for kernel in KERNELS:
        np.testing.assert_allclose(values(kernel, theta, T, k)[0], expected, rtol=0, atol=allowed, err_msg=kernel)


# The ends of the calibration bounds one by one, and total variances no market has.
@pytest.mark.parametrize(
    ("theta", "T", "allowed"),
    [
        pytest.param([2.0, 0.06, 0.001, -0.6, 0.06], 0.5, 1e-11, id="hardly any vol of vol"),
        pytest.param([2.0, 0.06, 8.0, -0.6, 0.06], 0.5, 1e-11, id="vol of vol 8"),
        pytest.param([2.0, 0.06, 20.0, -0.6, 0.06], 0.5, 1e-11, id="vol of vol 20"),
        pytest.param([23.7, 0.73, 16.2, -0.11, 0.17], 0.02, 1e-11, id="a week of bitcoin in 2020"),
        pytest.param([2.0, 0.06, 0.5, -0.999, 0.06], 0.5, 1e-11, id="correlation -0.999"),
        pytest.param([2.0, 0.06, 0.5, 0.999, 0.06], 0.5, 1e-11, id="correlation 0.999"),
        pytest.param([2.0, 0.06, 0.5, -0.6, 1e-5], 0.5, 1e-11, id="next to no initial variance"),
        pytest.param([60.0, 0.06, 2.0, -0.6, 0.04], 0.5, 1e-11, id="mean reversion 60"),
        pytest.param([760.0, 0.0122, 33.4, -0.39, 1e-8], 7 / 365, 1e-11, id="a week of an index in 2023"),
        pytest.param([760.0, 0.0122, 33.4, -0.39, 1e-8], 2.0, 1e-11, id="two years of it"),
        pytest.param([2000.0, 0.02, 50.0, 0.3, 0.5], 0.5, 1e-11, id="mean reversion 2000"),
        pytest.param([2000.0, 0.06, 200.0, -0.4, 1e-8], 0.1, 1e-11, id="all but a Levy process"),
        pytest.param([0.0021, 0.49, 7.6, 0.59, 1.36], 5.75, 1e-11, id="moments just above the first explode"),
        pytest.param([1.0, 0.5, 0.5, -0.6, 0.5], 10.0, 1e-11, id="total variance 5"),
        pytest.param([4.0, 3.0, 2.0, 0.5, 0.1], 6.0, 1e-11, id="total variance 17"),
    ],
)
def test_extreme_parameters_are_priced_as_well_as_said(theta, T, allowed):
    k = strikes(theta, T)
    expected = otm(theta, T, k.tolist(), most=20000)
    assert expected is not None
    for kernel in KERNELS:
        np.testing.assert_allclose(values(kernel, theta, T, k)[0], expected, rtol=0, atol=allowed, err_msg=kernel)
