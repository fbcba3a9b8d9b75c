"""Dual numbers carry derivatives through NumPy's functions to rounding, and refuse what has none."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from strikeout.kernels import derivatives

EPS = np.finfo(float).eps
POINTS = np.array([0.3 + 0.2j, 0.7 - 0.4j, 0.45 + 0.0j])


@pytest.mark.parametrize("function", list(derivatives.SLOPES), ids=lambda function: function.__name__)
def test_every_slope_is_the_derivative_that_mpmath_finds(function):
    """Of x z by x, at x = 1: z f'(z)."""
    names = {
        "negative": lambda z: -z,
        "positive": lambda z: z,
        "square": lambda z: z * z,
        "reciprocal": lambda z: 1 / z,
    }
    names |= {"arcsin": mpmath.asin, "arctan": mpmath.atan, "arcsinh": mpmath.asinh, "arctanh": mpmath.atanh}
    theirs = names.get(function.__name__) or getattr(mpmath, function.__name__)
    with mpmath.workdps(40):
        expected = [complex(z * mpmath.diff(theirs, mpmath.mpc(z))) for z in POINTS]
    value, slopes = derivatives.parts(function(derivatives.variables(np.array([1.0]))[0] * POINTS), 1)
    np.testing.assert_array_equal(value, function(POINTS))
    np.testing.assert_allclose(slopes[0], expected, rtol=32 * EPS)  # a handful of roundings


@pytest.mark.parametrize(
    ("formula", "by_a", "by_b"),
    [
        (lambda a, b: a + b, 1.0, 1.0),
        (lambda a, b: a - b, 1.0, -1.0),
        (lambda a, b: a * b, -1.7, 0.6),
        (lambda a, b: a / b, -1 / 1.7, -0.6 / 1.7**2),
        (lambda a, b: a**b, -1.7 * 0.6**-2.7, 0.6**-1.7 * math.log(0.6)),
        (lambda a, b: b**3 - 2**a, -(2**0.6) * math.log(2), 3 * 1.7**2),
        (lambda a, b: b**2 / a, -(1.7**2) / 0.6**2, -2 * 1.7 / 0.6),
        (lambda a, b: (b - b) * a + (a - 0.6) ** 0, 0.0, 0.0),
    ],
)
def test_two_operands_give_the_slopes_of_the_textbook(formula, by_a, by_b):
    a, b = derivatives.variables(np.array([0.6, -1.7]))
    value, slopes = derivatives.parts(formula(a, b), 2)
    assert value == formula(np.float64(0.6), np.float64(-1.7))
    np.testing.assert_allclose(slopes, [by_a, by_b], rtol=8 * EPS)


def test_numbers_spread_over_arrays_like_numpy_s_own():
    theta = derivatives.variables(np.array([2.0, 3.0]))
    z = np.arange(6.0).reshape(2, 3)
    value, slopes = derivatives.parts(theta[0] * z + theta[1], 2)
    np.testing.assert_array_equal(value, 2.0 * z + 3.0)
    np.testing.assert_array_equal(slopes, [z, np.ones((2, 3))])
    squares = theta**2
    np.testing.assert_array_equal(squares.slopes, [[4.0, 0.0], [0.0, 6.0]])
    assert [float(one.value) for one in theta] == [2.0, 3.0]


def test_a_choice_takes_the_slopes_of_what_it_takes():
    (a,) = derivatives.variables(np.array([2.0]))
    z = np.array([1.0, 2.0, 3.0])
    value, slopes = derivatives.parts(np.where(z > 1.5, a * z, 7.0), 1)
    np.testing.assert_array_equal(value, [7.0, 4.0, 6.0])
    np.testing.assert_array_equal(slopes, [[0.0, 2.0, 3.0]])


def test_comparisons_and_branches_look_at_the_value():
    a, b = derivatives.variables(np.array([0.5, 2.0]))
    assert a < b
    assert (a * np.array([1.0, 9.0]) > b).tolist() == [False, True]
    assert np.isfinite(a)


def test_an_addition_in_place_changes_the_name_and_no_number():
    a, b = derivatives.variables(np.array([0.5, 2.0]))
    kept = a
    a += b
    assert (float(a.value), float(kept.value)) == (2.5, 0.5)


def test_what_used_no_parameter_is_flat():
    value, slopes = derivatives.parts(np.array([1.0 + 2.0j]), 3)
    assert value.tolist() == [1.0 + 2.0j]
    assert slopes.tolist() == [[0.0], [0.0], [0.0]]


@pytest.mark.parametrize(
    "crooked",
    [np.abs, np.conj, math.exp, lambda a: np.exp(a, out=np.zeros(())), lambda a: np.add.reduce(a * np.ones(3))],
    ids=["abs", "conj", "math.exp", "into an array", "a sum over rows"],
)
def test_what_has_no_rule_is_refused_and_not_guessed(crooked):
    (a,) = derivatives.variables(np.array([0.5]))
    with pytest.raises(TypeError):
        crooked(a)


def test_a_row_s_derivatives_are_those_it_has_alone():
    theta = np.array([0.3, 1.2])
    z = np.linspace(0.1, 50.0, 257) - 0.5j

    def f(z):
        a, b = derivatives.variables(theta)
        return derivatives.parts(np.exp(-a * z) / (b + np.sqrt(1.0 + b * z)), 2)[1]

    np.testing.assert_array_equal(f(z)[:, 17:18], f(z[17:18]))


def test_every_operator_gives_what_numpy_s_function_gives():
    a, b = derivatives.variables(np.array([0.6, -1.7]))
    z = np.linspace(0.5, 3.0, 7) - 0.5j
    pairs = [
        (a + z, np.add(a, z)), (z + a, np.add(z, a)), (2.0 + b, np.add(2.0, b)),
        (a - z, np.subtract(a, z)), (2.0 - b, np.subtract(2.0, b)), (z - a, np.subtract(z, a)),
        (a * b, np.multiply(a, b)), (3 * (a * z), np.multiply(3, np.multiply(a, z))),
        (a / b, np.divide(a, b)), (1.0 / (a * z), np.divide(1.0, np.multiply(a, z))),
    ]  # fmt: skip
    for mine, numpys in pairs:
        for found, expected in zip(derivatives.parts(mine, 2), derivatives.parts(numpys, 2), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert found.shape == expected.shape
