"""Functions written with jax.numpy: the same answers as NumPy's, rows kept apart, and no trace left in JAX."""

# ruff: noqa: ARG005

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import UsageError
from strikeout.models.jax_function import BLOCK
from strikeout.quotes.contracts import Features
from tests.raising import raises

K = np.linspace(-0.5, 0.5, 2 * BLOCK + 41)
X = Features({"k": K})
START = {"a": 0.02, "b": 0.2, "rho": -0.3, "m": 0.05, "s": 0.2}
TRUTH = {"a": 0.01, "b": 0.3, "rho": -0.6, "m": 0.0, "s": 0.1}
BOUNDS = {"b": (0.0, 10.0), "rho": (-0.999, 0.999), "s": (1e-3, 5.0)}

jax = pytest.importorskip("jax", reason='JAX is not installed: pip install "strikeout[jax]"')
jnp = jax.numpy


def svi(a, b, rho, m, s, k, xp=np):
    return a + b * (rho * (k - m) + xp.sqrt((k - m) ** 2 + s**2))


def traced(a, b, rho, m, s, k):
    return svi(a, b, rho, m, s, k, xp=jnp)


def model(price=traced, name="svi", **options):
    return so.custom_model(name, parameters=START, price=price, bounds=BOUNDS, jacobian="jax", **options)


def book() -> so.Quotes:
    noise = 1e-4 * np.random.default_rng(0).standard_normal(len(K))
    return so.Quotes.from_columns([f"q{i}" for i in range(len(K))], svi(**TRUTH, k=K) + noise, k=K)


def test_values_and_derivatives_are_those_of_the_same_formula_in_numpy():
    plain = so.custom_model("svi", parameters=START, price=lambda a, b, rho, m, s, k: svi(a, b, rho, m, s, k))
    value, jacobian = model().linearize(TRUTH, X)
    expected, by_steps = plain.linearize(TRUTH, X)
    np.testing.assert_allclose(value, expected, rtol=1e-15, atol=1e-17)  # four roundings of numbers below 0.5
    np.testing.assert_allclose(jacobian, by_steps, rtol=1e-13, atol=1e-15)
    assert value.dtype == jacobian.dtype == np.float64


def wild(a, b, rho, m, s, k):
    return traced(a, b, rho, m, s, k) * jnp.exp(-k * a) * jnp.sin(b + k) ** 2 / jnp.cosh(k * rho)


WILD = model(wild)


@pytest.mark.parametrize("begin", [0, 1, 17, BLOCK - 1, BLOCK, BLOCK + 1, len(K) - 1])
def test_a_row_has_the_same_bits_wherever_it_stands(begin):
    value, jacobian = WILD.linearize(TRUTH, X)
    alone, slopes = WILD.linearize(TRUTH, X[slice(begin, None)])
    np.testing.assert_array_equal(alone, value[begin:])
    np.testing.assert_array_equal(slopes, jacobian[begin:])


def test_no_rows_have_no_values():
    value, jacobian = model().linearize(TRUTH, X[slice(0, 0)])
    assert (value.shape, jacobian.shape) == ((0,), (0, 5))


def test_a_calibration_forgets_bit_for_bit_and_its_certificate_holds():
    quotes, gone = book(), ["q3", "q77", "q140"]
    calibration = so.calibrate(quotes, model())
    assert calibration.converged
    forgotten = so.forget(calibration, ids=gone)
    fresh = so.calibrate(quotes.without(gone), model())
    assert forgotten.parameters == fresh.parameters
    assert forgotten.calibration.state.digest() == fresh.state.digest()
    assert so.verify(forgotten.certificate, quotes.without(gone), model=model()).holds


def test_whoever_uses_jax_beside_us_keeps_single_precision():
    model().price(TRUTH, X)
    assert jnp.ones(1).dtype == np.float32


def test_a_function_that_mixes_rows_is_refused():
    def centred(a, b, rho, m, s, k):
        return traced(a, b, rho, m, s, k - jnp.mean(k))

    with raises(UsageError, row=0):
        so.calibrate(book(), model(centred))


def test_derivatives_that_mix_rows_are_refused_though_values_do_not():
    """A value that is zero whatever the mean, and a slope that is not."""

    def hidden(a, b, rho, m, s, k):
        return traced(a, b, rho, m, s, k) + (a - START["a"]) * jnp.mean(k)

    with raises(UsageError, row=0):
        so.calibrate(book(), model(hidden))


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (lambda a, b, rho, m, s, k: np.exp(a) + k, "JAX cannot follow"),
        (lambda a, b, rho, m, s, k: k if a > 0 else -k, "JAX cannot follow"),
        (lambda a, b, rho, m, s, k: jnp.stack([k, k]), "shape"),
        (lambda a, b, rho, m, s, k: jnp.asarray(k, jnp.float32), "float32"),
    ],
    ids=["numpy on a tracer", "a branch", "two numbers a row", "single precision"],
)
def test_what_jax_cannot_do_is_said_in_a_sentence(price, says):
    with pytest.raises(UsageError, match=says):
        model(price).price(TRUTH, X)


def test_jax_numbers_from_a_function_that_was_not_announced_are_refused():
    silent = so.custom_model("svi", parameters=START, price=traced)
    with pytest.raises(UsageError, match='jacobian="jax"'):
        silent.price(TRUTH, X)


def test_the_name_tells_the_compiler():
    assert model().name == f"svi/jax-1-{__import__('jaxlib').__version__}"
