"""The normal distribution against 50-digit arithmetic."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from strikeout.kernels import normal

EPS = 2.0**-52
SMALLEST_NORMAL = 2.2e-308

# The polynomial is evaluated to 2 eps (Horner, coefficients summing to 1.77), the exponentials to 1 each and the
# products and the quotient to 1/2 each: 4 bounds the sum, 2.1 is the worst seen.
FOUR_EPS = 4 * EPS


def relative_error(found: NDArray[np.float64], exact: mp.mpf) -> float:
    return float(abs(mp.mpf(float(found)) / exact - 1))


@given(st.floats(0.0, 1e6))
@settings(max_examples=200)
def test_the_scaled_error_function_is_right_to_four_eps(z: float) -> None:
    with mp.workdps(50):
        # The asymptotic series beyond z = 30: exp(z^2) does not fit there, and its 12th term is below 1e-30.
        def series(z: mp.mpf) -> mp.mpf:
            terms = (mp.mpf(-1) ** k * mp.fac2(2 * k - 1) / (2 * z * z) ** k for k in range(16))
            return mp.fsum(terms) / (z * mp.sqrt(mp.pi))

        exact = mp.exp(mp.mpf(z) ** 2) * mp.erfc(z) if z < 30 else series(mp.mpf(z))
        assert relative_error(normal.erfcx_right(np.float64(z)), exact) <= FOUR_EPS


@given(st.floats(-37.4, 40.0))
@settings(max_examples=200)
def test_the_distribution_and_the_density_keep_their_digits_in_the_tail(x: float) -> None:
    with mp.workdps(50):
        assert relative_error(normal.cdf(x), mp.ncdf(x)) <= FOUR_EPS
        exact = mp.npdf(x)
        if exact > SMALLEST_NORMAL:
            assert relative_error(normal.density(x), exact) <= FOUR_EPS


@given(st.floats(0.0, 40.0))
def test_the_two_tails_add_up_to_one(x: float) -> None:
    assert abs(float(normal.cdf(x)) + float(normal.cdf(-x)) - 1.0) <= EPS


@pytest.mark.parametrize(
    ("function", "at_minus_infinity", "at_infinity"),
    [(normal.cdf, 0.0, 1.0), (normal.density, 0.0, 0.0)],
)
def test_the_ends_of_the_line_are_limits_and_not_a_number_stays_so(
    function: type[np.ufunc], at_minus_infinity: float, at_infinity: float
) -> None:
    found = function(np.array([-np.inf, np.inf, np.nan]))
    np.testing.assert_array_equal(found, [at_minus_infinity, at_infinity, np.nan])


@given(st.lists(st.floats(-40, 40), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_a_value_does_not_depend_on_its_neighbours(values: list[float], random: object) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for function in (normal.cdf, normal.density):
        together = function(np.array(values))
        assert function(np.array(values)[order]).tobytes() == together[order].tobytes()
        assert np.array([function(value) for value in values]).tobytes() == together.tobytes()


def test_the_coefficients_are_those_of_chebyshev_interpolation() -> None:
    """Derived anew: interpolate (1 + 2 z) erfcx(z) at the 24 Chebyshev points of y, then rewrite in powers of y."""
    n = len(normal.COEFFICIENTS)
    with mp.workdps(40):
        angles = [mp.pi * (j + mp.mpf(1) / 2) / n for j in range(n)]
        z = [normal.CENTRE * (1 + mp.cos(a)) / (1 - mp.cos(a)) for a in angles]
        values = [(1 + 2 * v) * mp.exp(v * v) * mp.erfc(v) for v in z]  # z reaches 3,200: exponents without end
        chebyshev = [2 * mp.fsum(f * mp.cos(k * a) for f, a in zip(values, angles, strict=True)) / n for k in range(n)]
        chebyshev[0] /= 2
        lower, upper = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]  # T_0 and T_1 in powers of y
        powers = [mp.mpf(0)] * n
        for weight in chebyshev:
            for i, c in enumerate(lower):
                powers[i] += weight * c
            following = [mp.mpf(0)] + [2 * c for c in upper]
            for i, c in enumerate(lower):
                following[i] -= c
            lower, upper = upper, following
        assert [float(c) for c in powers] == list(normal.COEFFICIENTS)


def test_compiled_functions_have_the_bits_of_their_twins() -> None:
    x = np.concatenate([np.linspace(-40.0, 40.0, 4001), [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 70.0, -70.0]])
    np.testing.assert_array_equal(normal.cdf(x), normal.cdf_twin(x))
    np.testing.assert_array_equal(normal.density(x), normal.density_twin(x))


def test_the_distribution_never_falls_between_arguments_that_a_user_can_tell_apart() -> None:
    x = np.sort((np.arange(-600.0, 601.0)[:, None] / 16.0 + 1e-12 * np.arange(-20.0, 21.0)).ravel())
    assert (np.diff(normal.cdf(x)) >= 0.0).all()


@given(st.floats(-37.0, 7.0))
@settings(max_examples=200)
def test_the_quantile_undoes_the_distribution(x: float) -> None:
    p = float(normal.cdf(x))
    with mp.workdps(50):
        exact = mp.findroot(lambda y: mp.log(mp.ncdf(y) / mp.mpf(p)), x)
        assert abs(float(normal.quantile(p)) - exact) <= 2e-15 * max(1.0, abs(x))


def test_the_quantile_at_the_ends_and_outside() -> None:
    found = normal.quantile([0.0, 1.0, 0.5, -0.1, 1.1, np.nan, 5e-324])
    np.testing.assert_array_equal(found[:3], [-np.inf, np.inf, 0.0])
    assert np.isnan(found[3:6]).all()
    assert -38.5 < found[6] < -38.4
