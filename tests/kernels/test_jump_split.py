"""Bates as paths without a jump and paths with one: the same prices as from all paths on one line."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.kernels import jump_split
from tests.kernels.kernel_choice import each_kernel
from tests.kernels.test_line_and_clock import book, drawn

DAY = (2.9987, 0.03234, 0.6629, -0.73897, 0.01168, 0.01972, -1.0, 0.6492)  # fitted to the S&P 500 index on 2023-06-09


@each_kernel
def test_the_two_parts_sum_to_the_line_of_all_paths(kernel, monkeypatch):
    """Worst measured over 70 draws: 9e-14 of the forward (price), 1.2e-11 (sensitivity, over its size)."""
    rng, priced = np.random.default_rng(11), 0
    for theta in (np.array(DAY), *(drawn("bates", rng) for _ in range(8))):
        contracts = book(rng, 40)
        price, jacobian = so.Bates(kernel).linearize(theta, contracts)
        with monkeypatch.context() as patch:
            patch.setattr(jump_split, "MOST_JUMPS", -1.0)
            expected, gradient = so.Bates("numpy").linearize(theta, contracts)
        both = np.isfinite(price) & np.isfinite(expected)
        np.testing.assert_allclose(price[both], expected[both], rtol=0, atol=1e-12)
        scale = 1.0 + np.max(np.abs(gradient[both]), axis=0, initial=0.0)
        np.testing.assert_allclose(jacobian[both] / scale, gradient[both] / scale, rtol=0, atol=1e-10)
        priced += int(both.sum())
    assert priced > 150


@each_kernel
def test_a_slice_is_as_good_beside_the_number_of_jumps_at_which_it_is_no_longer_split(kernel):
    """n = 16 expected jumps: on either side of it the price moves by 2e-9 times its sensitivity to the intensity."""
    contracts = so.Contracts(
        forward=1.0, strike=np.exp(np.linspace(-0.6, 0.6, 9)), expiry=1.0, discount=1.0, is_call=True
    )
    theta = np.array([*DAY[:5], 0.0, -0.02, 0.05])
    below, above = (theta + np.eye(8)[5] * n for n in (16.0 - 1e-9, 16.0 + 1e-9))
    assert jump_split.is_split(1.0, below)
    assert not jump_split.is_split(1.0, above)
    (first, jacobian), (second, other) = (so.Bates(kernel).linearize(at, contracts) for at in (below, above))
    np.testing.assert_allclose(second - first, 2e-9 * jacobian[:, 5], rtol=0, atol=1e-13)
    np.testing.assert_allclose(jacobian, other, rtol=0, atol=1e-8)


@each_kernel
def test_jumps_that_never_come_leave_heston(kernel):
    contracts = book(np.random.default_rng(12), 30)
    price, jacobian = so.Bates(kernel).linearize([*DAY[:5], 1e-300, -0.1, 0.1], contracts)
    expected, gradient = so.Heston(kernel=kernel).linearize(DAY[:5], contracts)
    np.testing.assert_allclose(price, expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(jacobian[:, :5], gradient, rtol=0, atol=1e-15)
    assert np.isfinite(jacobian[:, 5]).all()


@pytest.mark.parametrize("parameter", range(8))
def test_sensitivities_are_the_slopes_of_prices(parameter):
    """Central differences, of which a step of 1e-5 leaves about 1e-10 of the third derivative and 1e-11 of rounding."""
    contracts = book(np.random.default_rng(13), 25)
    theta = np.array([2.0, 0.05, 0.6, -0.6, 0.04, 0.8, -0.12, 0.15])
    step = 1e-5 * np.eye(8)[parameter]
    up, down = (so.Bates().price(theta + sign * step, contracts) for sign in (1.0, -1.0))
    slope = so.Bates().linearize(theta, contracts)[1][:, parameter]
    np.testing.assert_allclose((up - down) / 2e-5, slope, rtol=1e-5, atol=1e-8)
