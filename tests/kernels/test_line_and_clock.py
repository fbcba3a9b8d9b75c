"""Bates, double Heston and variance gamma: the compiled kernel and its twin, bit for bit where bits are promised."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.kernels import affine, compiled, variance_gamma
from strikeout.kernels.heston_twin import Parts
from tests.kernels.kernel_choice import each_kernel, needs_native, under_each

MODELS = {"bates": so.Bates, "double-heston": so.DoubleHeston, "variance-gamma": so.VarianceGamma}
each_model = pytest.mark.parametrize("name", MODELS)


def made(name: str, kernel: str) -> Any:
    return MODELS[name](kernel=kernel)


def drawn(name: str, rng: np.random.Generator) -> np.ndarray:
    """A point inside the bounds; what is above zero is drawn by its logarithm."""
    space = MODELS[name]().parameters
    above = space.lower > 0.0
    theta = rng.uniform(space.lower, space.upper)
    theta[above] = np.exp(rng.uniform(np.log(space.lower[above]), np.log(space.upper[above])))
    return theta


def book(rng: np.random.Generator, count: int = 83) -> so.Contracts:
    """Calls and puts of five expiries from a day to eight years, near and far from the money."""
    T = rng.choice([1 / 365, 0.05, 0.4, 2.0, 8.0], count)
    k = rng.normal(0.0, 0.5, count) * np.sqrt(T)
    return so.Contracts(forward=1.0, strike=np.exp(k), expiry=T, discount=0.97, is_call=rng.random(count) < 0.5)


def same(first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


@needs_native
@each_model
def test_every_instruction_set_gives_the_same_bits(name):
    rng, priced = np.random.default_rng(1), 0
    for _ in range(40):
        theta, contracts = drawn(name, rng), book(rng)
        plain, *others = under_each(partial(made(name, "native").linearize, theta, contracts)).values()
        assert all(same(plain, other) for other in others), theta
        priced += int(np.isfinite(plain[0]).any())
    assert priced > 20


@needs_native
@each_model
def test_threads_change_no_bit(name, monkeypatch):
    rng = np.random.default_rng(2)
    theta, contracts = MODELS[name]().parameters.starts[0], book(rng, 6000)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("STRIKEOUT_THREADS", threads)
        found.append(made(name, "native").linearize(theta, contracts))
    assert same(*found)


@each_kernel
@each_model
def test_a_quote_has_the_same_bits_alone_and_among_others(name, kernel):
    rng = np.random.default_rng(3)
    model, contracts = made(name, kernel), book(rng)
    for theta in (*model.parameters.starts[:2], drawn(name, rng)):
        whole = model.linearize(theta, contracts)
        for rows in (np.array([7]), np.arange(0, 83, 5), rng.permutation(83)):
            assert same(model.linearize(theta, contracts[rows]), tuple(part[rows] for part in whole))


@needs_native
@each_model
def test_the_compiled_kernel_and_its_twin_agree_to_rounding_and_about_what_has_no_price(name):
    """Worst measured over 400 draws: 1.3e-13 of the forward (price), 1.6e-11 (sensitivity, over its size)."""
    rng, priced = np.random.default_rng(4), 0
    for _ in range(12):
        theta, contracts = drawn(name, rng), book(rng, 40)
        (price, jacobian), (other, gradient) = (made(name, k).linearize(theta, contracts) for k in ("native", "numpy"))
        np.testing.assert_array_equal(np.isnan(price), np.isnan(other))
        np.testing.assert_allclose(price, other, rtol=0, atol=1e-12)
        scale = 1.0 + np.nan_to_num(np.nanmax(np.abs(gradient), axis=0)) if np.isfinite(other).any() else 1.0
        np.testing.assert_allclose(jacobian / scale, gradient / scale, rtol=0, atol=1e-10)
        priced += int(np.isfinite(price).sum())
    assert priced > 200


@each_kernel
@each_model
def test_no_numbers_are_too_absurd_for_an_answer(name, kernel):
    rng, sizes = np.random.default_rng(5), [5e-324, 1e-200, 1e-12, 1.0, 1e12, 1e200, 1e308]
    model = made(name, kernel)
    for _ in range(25):
        theta = rng.choice(sizes, len(model.parameters))
        for i, parameter in enumerate(model.parameters.names):
            if parameter.startswith("correlation"):
                theta[i] = rng.choice([-1 + 1e-16, 0.0, 1 - 1e-16])
            if parameter.startswith("vol_of_vol"):
                theta[i] = rng.choice([2e-3, 1.0, 1e150])
        contracts = so.Contracts(
            forward=1.0, strike=rng.choice([1e-300, 0.5, 1.0, 1e300], 3), expiry=rng.choice(sizes, 3),
            discount=1.0, is_call=True,
        )  # fmt: skip
        price, jacobian = model.linearize(theta, contracts)
        assert price.shape == (3,)
        assert jacobian.shape == (3, len(theta))


@each_model
def test_the_name_tells_which_kernel_computed(name):
    names = {made(name, kernel).name for kernel in (["numpy"] if compiled.native() is None else ["native", "numpy"])}
    assert all(kernel in each for kernel, each in zip(["native", "numpy"][-len(names) :], sorted(names), strict=True))


@each_model
def test_a_kernel_that_does_not_exist_is_refused(name):
    with pytest.raises(UsageError, match="kernel='fortran' is unknown"):
        made(name, "fortran")


@needs_native
@pytest.mark.parametrize("k", [[0.1, 0.0], [0.0, np.nan], [np.inf]], ids=["falling", "nan", "inf"])
def test_strikes_that_are_not_finite_and_ascending_are_refused(k):
    part = Parts(np.array([0.5]), np.array([0, len(k)]), np.array(k))
    for name, family in (("bates", affine.BATES), ("double-heston", affine.DOUBLE_HESTON)):
        with pytest.raises(ValueError, match="finite and ascending"):
            affine.rows("native", family, MODELS[name]().parameters.starts[0], part)
    with pytest.raises(ValueError, match="finite and ascending"):
        variance_gamma.rows("native", np.array([0.2, 0.3, -0.1]), part)


@needs_native
def test_a_parameter_too_many_is_refused():
    part = Parts(np.array([0.5]), np.array([0, 1]), np.array([0.0]))
    for family in (affine.BATES, affine.DOUBLE_HESTON):
        with pytest.raises(ValueError, match="theta is"):
            affine.rows("native", family, np.ones(7), part)
    with pytest.raises(ValueError, match="theta is 3 numbers"):
        variance_gamma.rows("native", np.ones(4), part)


@each_kernel
def test_variance_gamma_has_a_price_even_if_a_forward_on_the_clock_overflows(kernel):
    """Expected: mpmath's quadrature along a ray from Lewis' line, 25 digits."""
    theta, T = np.array([0.05260580884977399, 0.38168509796923106, 2.590415616605693]), 2.25889801169099
    k = np.linspace(-1.0, 1.0, 6)
    expected = [
        *(0.36787857007628105, 0.5488106893738851, 0.8187297254507023),
        *(0.9999988859034544, 0.9999987935820104, 0.9999986951080748),
    ]
    assert np.isnan(variance_gamma.values(theta, T, k)).all()
    contracts = so.Contracts(forward=1.0, strike=np.exp(k), expiry=T, discount=1.0, is_call=k > 0.0)
    np.testing.assert_allclose(so.VarianceGamma(kernel).price(theta, contracts), expected, rtol=0, atol=1e-12)
