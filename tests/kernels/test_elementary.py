"""Elementary functions: right to about a unit in the last place, and the same bits from every build."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from strikeout.kernels import elementary
from strikeout.kernels.compiled import native
from tests.kernels.kernel_choice import under_each

compiled = pytest.mark.skipif(native() is None, reason="the compiled kernel is not installed")
rng = np.random.default_rng(20261116)
COUNT = 2_000  # of points per range; a sweep of a million against 64-bit arithmetic gave the limits below, rounded up


def spread(low: float, high: float, signs: bool = True) -> np.ndarray:
    """Numbers whose exponents are spread evenly, powers of two."""
    found = 2.0 ** rng.uniform(low, high, COUNT)
    return found * rng.choice([-1.0, 1.0], COUNT) if signs else found


# name -> (ranges of arguments, units in the last place)
REAL: dict[str, tuple[list[np.ndarray], float]] = {
    "exp": ([rng.uniform(-745.0, 709.7, COUNT), rng.standard_normal(COUNT), spread(-60, 0)], 0.6),
    "expm1": ([rng.uniform(-40.0, 709.7, COUNT), rng.uniform(-0.1, 0.1, COUNT), spread(-300, 0)], 0.6),
    "log": ([spread(-1074, 1023, signs=False), rng.uniform(0.5, 2.0, COUNT), 1.0 + spread(-52, -2)], 0.6),
    "log1p": ([spread(-1000, 1000, signs=False), rng.uniform(-0.999, 2.0, COUNT), spread(-100, -0.01)], 0.6),
    "sin": ([rng.uniform(-1e9, 1e9, COUNT), np.rint(rng.uniform(-1e6, 1e6, COUNT)) * np.pi / 2, spread(-300, 3)], 0.9),
    "cos": ([rng.uniform(-1e9, 1e9, COUNT), np.rint(rng.uniform(-1e6, 1e6, COUNT)) * np.pi / 2, spread(-30, 3)], 0.9),
}
PAIRS: dict[str, tuple[list[tuple[np.ndarray, np.ndarray]], float]] = {
    "power": (
        [
            (spread(-200, 200, signs=False), rng.uniform(-3.0, 3.0, COUNT)),
            (rng.uniform(0.01, 3.0, COUNT), rng.uniform(-150.0, 150.0, COUNT)),
            (
                1.0 + rng.uniform(-0.016, 0.031, COUNT),
                rng.uniform(-22e3, 22e3, COUNT),
            ),  # the digits of the logarithm count
        ],
        0.8,
    ),
    "atan2": ([(spread(-20, 20), spread(-20, 20)), (spread(-1074, 1023), spread(-1074, 1023))], 0.7),
}
COMPLEX = {"exp": 3.0, "expm1": 5.0, "log": 4.0, "sqrt": 3.0}  # eps / 2, of the modulus
ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 1.7e308, 2.2e-308, 711.0, -747.0])


def off_by(got: np.ndarray, exact: Callable[..., mpmath.mpf], *given: np.ndarray) -> float:
    """The largest error, in units in the last place of the result."""
    worst = 0.0
    with mpmath.workdps(60):
        for found, *at in zip(got.tolist(), *(column.tolist() for column in given), strict=True):
            want = exact(*map(mpmath.mpf, at))
            unit = mpmath.mpf(float(np.spacing(abs(float(want)))))
            worst = max(worst, float(abs(mpmath.mpf(found) - want) / unit))
    return worst


@compiled
@pytest.mark.parametrize("name", REAL)
def test_a_real_function_is_right_to_about_a_unit_in_the_last_place(name):
    ranges, limit = REAL[name]
    for x in ranges:
        assert off_by(getattr(elementary, name)(x), getattr(mpmath, name), x) <= limit


@compiled
@pytest.mark.parametrize("name", PAIRS)
def test_a_function_of_two_numbers_is_right_to_about_a_unit_in_the_last_place(name):
    ranges, limit = PAIRS[name]
    for x, y in ranges:
        assert off_by(getattr(elementary, name)(x, y), getattr(mpmath, name), x, y) <= limit


@compiled
@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_function_is_right_to_a_few_units_of_its_modulus(name):
    z = (rng.standard_normal(COUNT) + 1j * rng.standard_normal(COUNT)) * 2.0 ** rng.uniform(-3.0, 3.0, COUNT)
    exact = getattr(mpmath, name)
    with mpmath.workdps(40):
        apart = [
            float(abs(mpmath.mpc(found) - (want := exact(mpmath.mpc(at)))) / abs(want))
            for found, at in zip(getattr(elementary, name)(z).tolist(), z.tolist(), strict=True)
        ]
    assert max(apart) <= COMPLEX[name] * 2.0**-53


@pytest.mark.parametrize("name", REAL)
def test_the_ends_of_a_range_are_those_of_ieee_arithmetic(name):
    x = ENDS if name not in ("sin", "cos") else ENDS[np.abs(ENDS) != 1.7e308]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
    got = getattr(elementary, name)(x)
    np.testing.assert_allclose(got, want, rtol=1e-15)
    zero = want == 0.0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


def test_angles_and_powers_at_the_ends_of_their_ranges_are_those_of_ieee_arithmetic():
    y, x = np.meshgrid(ENDS, ENDS)
    want = np.arctan2(y, x)
    np.testing.assert_array_equal(elementary.atan2(y, x), want)
    np.testing.assert_array_equal(np.signbit(elementary.atan2(y, x))[want == 0.0], np.signbit(want)[want == 0.0])
    base, exponent = np.meshgrid(ENDS[~np.signbit(ENDS)], ENDS)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(elementary.power(base, exponent), np.power(base, exponent), rtol=1e-15)


@compiled
def test_a_power_of_a_number_below_zero_and_a_huge_angle_are_not_numbers():
    assert np.isnan(elementary.power(-2.0, 2.0))
    assert np.isnan(elementary.sin([1e300, -2e9, np.inf])).all()
    assert np.isfinite(elementary.cos(elementary.LARGEST_ANGLE))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p"])
def test_a_function_that_grows_never_falls_between_arguments_that_a_user_can_tell_apart(name):
    at = np.sort(np.concatenate([2.0 ** np.arange(-40.0, 9.0), np.arange(1.0, 700.0) * 0.5 * np.log(2.0)]))
    near = (at[:, None] * (1.0 + 1e-13 * np.arange(-50.0, 51.0))).ravel()
    x = np.sort(near if name != "log" else near[near > 0.0])
    assert (np.diff(getattr(elementary, name)(x)) >= 0.0).all()


@compiled
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p"])
def test_a_function_that_grows_never_falls_where_one_cell_of_its_table_meets_the_next(name):
    if name.startswith("exp"):
        at = (np.arange(-11_000.0, 11_000.0) + 0.5) * np.log(2.0) / 16.0
    else:
        at = np.ldexp(0.703125, np.arange(-40, 40))[:, None] * cells()[None, :] / 0.703125
        at = at.ravel() - (1.0 if name == "log1p" else 0.0)
    near = at[:, None] + np.spacing(at)[:, None] * np.arange(-20.0, 21.0)
    found = getattr(elementary, name)(np.sort(near[np.abs(at) > 1e-9], axis=1))
    assert (np.diff(found, axis=1) >= 0.0).all()


def cells() -> np.ndarray:
    """Where the sixteen cells of a fraction begin: equal steps of its bits."""
    return (np.array(0.703125).view(np.int64) + (np.arange(16) << 48)).view(np.float64)


def table(name: str) -> list[float]:
    text = (Path(__file__).parents[2] / "native" / "tables.hpp").read_text()
    (entries,) = re.findall(rf"\b{name}\[16\] = \{{(.*?)\}}", text, re.DOTALL)
    return [float.fromhex(entry) if "x" in entry else float(entry) for entry in entries.split(",")]


def test_every_entry_of_a_table_follows_from_its_definition():
    with mpmath.workdps(60):
        for j, (root, rest) in enumerate(zip(table("ROOT"), table("ROOT_REST"), strict=True)):
            exact = mpmath.mpf(2) ** (mpmath.mpf(j) / 16)
            rounded = (np.array(root).view(np.int64) + (j << 48)).view(np.float64)
            assert float(exact) == rounded
            assert float(exact / mpmath.mpf(float(rounded)) - 1) == rest
        edges = [*cells().tolist(), 1.40625]
        for cell, (c, high, low) in enumerate(
            zip(table("RECIPROCAL"), table("LOG_HIGH"), table("LOG_LOW"), strict=True)
        ):
            exact = -mpmath.log(mpmath.mpf(c))
            assert high == float(mpmath.nint(exact * 2**42) / 2**42)
            assert low == float(exact - mpmath.mpf(high))
            begin, end = edges[cell : cell + 2]
            largest = max(abs(begin * c - 1.0), abs(end * c - 1.0))
            digits = Fraction(c).limit_denominator(64).denominator  # c = whole / digits
            assert largest < 0.0342
            assert largest <= 2.0 * (1.0 if begin >= 1.0 else 0.5) / digits  # so that c m - 1 has at most 53 digits


@compiled
def test_an_unusual_neighbour_does_not_change_the_bits_of_a_usual_number():
    for name, (ranges, _) in REAL.items():
        function, x = getattr(elementary, name), ranges[1]
        among = np.column_stack([x, np.resize(ENDS, len(x))]).ravel()
        np.testing.assert_array_equal(function(among)[::2], function(x))
    for name, (pairs, _) in PAIRS.items():
        function, (x, y) = getattr(elementary, name), pairs[0]
        odd = np.resize(ENDS, len(x))
        first, second = np.column_stack([x, odd]).ravel(), np.column_stack([y, odd[::-1]]).ravel()
        np.testing.assert_array_equal(function(first, second)[::2], function(x, y))


@compiled
def test_builds_for_other_instructions_give_the_same_bits():
    z = rng.standard_normal(COUNT) * 8.0 + 1j * rng.standard_normal(COUNT) * 8.0

    def everything() -> list[bytes]:
        found = [getattr(elementary, name)(x) for name, (ranges, _) in REAL.items() for x in [*ranges, ENDS]]
        found += [getattr(elementary, name)(*given) for name, (ranges, _) in PAIRS.items() for given in ranges]
        found += [elementary.atan2(ENDS, ENDS[::-1]), elementary.power(np.abs(ENDS), ENDS[::-1])]
        return [array.tobytes() for array in [*found, *(getattr(elementary, name)(z) for name in COMPLEX)]]

    plain, *others = under_each(everything).values()
    assert all(other == plain for other in others)


def test_a_value_depends_neither_on_its_place_nor_on_its_neighbours():
    x = rng.standard_normal(37) * 3.0
    for name in REAL:
        function = getattr(elementary, name)
        alone = np.array([function(one) for one in np.abs(x)])
        np.testing.assert_array_equal(alone, function(np.abs(x)))
        np.testing.assert_array_equal(alone[::-2], function(np.abs(x)[::-2]))
    np.testing.assert_array_equal(
        [elementary.power(abs(a), b) for a, b in zip(x, x[::-1], strict=True)], elementary.power(np.abs(x), x[::-1])
    )


def test_shapes_are_kept_and_a_number_gives_a_number():
    x = rng.uniform(0.1, 1.0, (3, 4))
    for name in REAL:
        assert getattr(elementary, name)(x.T).shape == (4, 3)
        assert np.ndim(getattr(elementary, name)(0.5)) == 0
    assert elementary.power(x, 2.0).shape == (3, 4)
    assert elementary.exp(np.empty(0)).shape == (0,)
    assert elementary.exp(np.zeros((2, 3), complex)).shape == (2, 3)
    assert elementary.sqrt(4.0) == 2.0
    assert elementary.sqrt(-1.0 + 0.0j) == 1j
