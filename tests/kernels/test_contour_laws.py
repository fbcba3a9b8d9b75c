"""Double Heston and variance gamma on bent contours, against the rules that they replaced: the line, and the clock."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.kernels import affine, contours, double_heston, fourier_trapezoid, variance_gamma
from strikeout.kernels.heston_twin import Parts
from strikeout.models.double_heston import DoubleHeston
from tests.kernels.kernel_choice import each_kernel

PRICE, SLOPE = 1e-12, 1e-10  # of the forward; measured over 300 draws: 3e-13 and 5e-12
STEEP = 0.9, 0.99, 0.999  # sizes of correlations, with which |cf| hardly falls on one side


def one_slice(T: float, k: np.ndarray) -> Parts:
    return Parts(np.array([T]), np.array([0, len(k)]), k)


def on_line(theta: np.ndarray, T: float, k: np.ndarray) -> np.ndarray:
    law = affine.DOUBLE_HESTON
    return fourier_trapezoid.values(fourier_trapezoid.rule(law.log_cf, T, theta, law.known(T, theta)), k, "numpy")


def drawn_double(rng: np.random.Generator, *, is_steep: bool) -> np.ndarray:
    """Two variances inside the bounds by their logarithms, down to a vol of vol at which one of them is Gaussian."""
    space = DoubleHeston().parameters
    low = np.maximum(space.lower, 1e-5)
    above = space.lower > 0.0
    theta = rng.uniform(space.lower, space.upper)
    theta[above] = np.exp(rng.uniform(np.log(low[above]), np.log(space.upper[above])))
    if is_steep:
        theta[[2, 7]], theta[[4, 9]] = np.exp(rng.uniform(-3.0, 3.0, 2)), np.exp(rng.uniform(-6.0, 0.0, 2))
        theta[[3, 8]] = rng.choice(STEEP, 2) * rng.choice([-1.0, 1.0], 2)
    return theta


def strikes(rng: np.random.Generator, kstar: float, sd: float) -> np.ndarray:
    near = min(sd, 1.0)
    k = np.concatenate([rng.normal(0.0, 2.0 * near, 7), kstar + near * rng.normal(0.0, 0.01, 3), [0.0]])
    return np.sort(k[np.abs(k) < 4.0])


@each_kernel
@pytest.mark.parametrize("is_steep", [False, True])
def test_two_variances_are_worth_the_same_on_contours_as_on_the_line(kernel, is_steep):
    rng, compared = np.random.default_rng(11), 0
    for _ in range(40):
        theta, T = drawn_double(rng, is_steep=is_steep), float(np.exp(rng.uniform(np.log(1 / 365), np.log(5.0))))
        shape = double_heston.DoubleHeston(theta).shape(T)
        k = strikes(rng, shape.kstar, shape.sd)
        found, line = affine.rows(kernel, affine.DOUBLE_HESTON, theta, one_slice(T, k)), on_line(theta, T, k)
        priced = np.isfinite(line[0])
        size = np.abs(theta)[:, None]
        np.testing.assert_allclose(found[0, priced], line[0, priced], rtol=0, atol=PRICE)
        np.testing.assert_allclose((size * found[1:])[:, priced], (size * line[1:])[:, priced], rtol=0, atol=SLOPE)
        compared += int(priced.sum())
    assert compared > 250


def test_a_gaussian_variance_leaves_the_kink_of_the_other_where_it_was():
    """Its own k* is 1.5 below the money, and no frequency that matters knows of it."""
    kinked, gaussian = [0.0233, 0.2827, 12.665, 0.99, 0.1979], [33.3928, 0.0042, 0.0859, 0.99, 0.0321]
    own = contours.heston_part(0.7337, tuple(gaussian)).kstar
    assert own < -1.5 < -0.2 < double_heston.DoubleHeston(np.array(kinked + gaussian)).shape(0.7337).kstar < 0.0
    k = np.linspace(-1.16, 1.16, 41)
    theta = np.array(kinked + gaussian)
    found = double_heston.rows(theta, one_slice(0.7337, k))
    np.testing.assert_allclose(found[0], on_line(theta, 0.7337, k)[0], rtol=0, atol=PRICE)


def test_strikes_that_have_no_contour_are_priced_on_the_line(monkeypatch):
    theta, T, k = DoubleHeston().parameters.starts[0], 0.3, np.linspace(-0.4, 0.3, 9)
    whole = affine.rows("numpy", affine.DOUBLE_HESTON, theta, one_slice(T, k))
    with_gaps = double_heston.rows(theta, one_slice(T, k))
    with_gaps[:, ::3] = np.nan
    monkeypatch.setattr(double_heston, "rows", lambda *_: with_gaps)
    found = affine.rows("numpy", affine.DOUBLE_HESTON, theta, one_slice(T, k))
    assert (found[:, 1::3] == whole[:, 1::3]).all()
    np.testing.assert_array_equal(found[:, ::3], on_line(theta, T, k)[:, ::3])


@each_kernel
def test_variance_gamma_is_worth_the_same_on_contours_as_on_the_clock(kernel):
    rng, compared, nearest = np.random.default_rng(12), 0, 1.0
    while compared < 400:
        theta = np.append(np.exp(rng.uniform(np.log([0.01, 1e-3]), np.log([2.0, 10.0]))), rng.uniform(-3.0, 3.0))
        T = float(np.exp(rng.uniform(np.log(1 / 365), np.log(5.0))))
        if 1.0 - theta[1] * (theta[2] + 0.5 * theta[0] ** 2) < 1e-3:
            continue
        shape = variance_gamma.VarianceGamma(*theta.tolist()).shape(T)
        by_the_kink = shape.kstar + min(shape.sd, 1.0) * rng.normal(0.0, 1.0, 4) * [1e-3, 1e-4, 1e-5, 1e-7]
        k = np.sort(np.concatenate([strikes(rng, shape.kstar, shape.sd), by_the_kink, [shape.kstar]]))
        k = k[np.abs(k) < 4.0]
        found = variance_gamma.rows(kernel, theta, one_slice(T, k))
        clock = variance_gamma.values(theta, T, k)
        priced = np.isfinite(clock[0])
        size = np.abs(theta)[:, None]
        np.testing.assert_allclose(found[0, priced], clock[0, priced], rtol=0, atol=PRICE)
        np.testing.assert_allclose((size * found[1:])[:, priced], (size * clock[1:])[:, priced], rtol=0, atol=SLOPE)
        compared += int(priced.sum())
        nearest = min(nearest, float(np.min(np.abs(k - shape.kstar) / shape.sd, initial=1.0)))
    assert nearest == 0.0


@each_kernel
def test_the_length_of_a_contour_depends_on_no_neighbour(kernel):
    """A strike next to the kink makes the contour of its group longer; the others keep their bits."""
    theta, T = np.array([0.16, 1.7, -0.09]), 0.02
    kstar = variance_gamma.VarianceGamma(*theta.tolist()).shape(T).kstar
    far = kstar + np.array([-0.3, -0.05, -0.004, 0.003, 0.04, 0.2])
    near = np.sort(np.concatenate([far, kstar + np.array([-1e-6, -1e-9, 0.0, 1e-9, 1e-6])]))
    alone = variance_gamma.rows(kernel, theta, one_slice(T, far))
    among = variance_gamma.rows(kernel, theta, one_slice(T, near))[:, np.isin(near, far)]
    assert alone.tobytes() == np.ascontiguousarray(among).tobytes()
