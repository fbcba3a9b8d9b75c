"""An attacker calibrates ticks to a correlation on its bound and wants sensitivities that are wrong in silence.

Where hardly two quotes share an expiry, prices are polynomials in ln T. With a correlation near one the surface has a
kink that moves with T: prices were off by 5e-8 of the forward, sensitivities by 2e-4.
"""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from tests.kernels.kernel_choice import each_kernel

PRICE, SENSITIVITY = 1e-11, 1e-9  # what Heston promises, of the forward


def apart(kernel: str, theta: list[float], contracts: so.Contracts) -> tuple[float, float]:
    """How far the two forms are from each other: price, and sensitivities."""
    (price, jacobian), (other, gradient) = (
        so.Heston(kernel, form).linearize(theta, contracts) for form in ("shared", "scattered")
    )
    np.testing.assert_array_equal(np.isnan(price), np.isnan(other))
    return float(np.nanmax(np.abs(price - other))), float(np.nanmax(np.abs(jacobian - gradient)))


@each_kernel
@pytest.mark.parametrize(
    ("theta", "T", "k"),
    [
        ([2.1114, 0.035357, 3.1455, -0.999, 0.00046392], 4.80309, 0.1119),
        ([2.894, 0.036944, 4.8711, -0.999, 0.003854], 7.60401, 0.1699),
    ],
)
def test_a_quote_beside_the_kink_is_as_right_as_at_a_shared_expiry(kernel, theta, T, k):
    price, sensitivity = apart(
        kernel, theta, so.Contracts(forward=1.0, strike=float(np.exp(k)), expiry=T, discount=1.0, is_call=True)
    )
    assert price < PRICE
    assert sensitivity < SENSITIVITY


def drawn(rng: np.random.Generator, count: int) -> tuple[list[float], so.Contracts]:
    """A correlation at or near its bound, expiries of one panel or two, every second strike beside the kink."""
    kappa, vbar, sigma, v0 = np.exp(rng.uniform([-2.0, -5.0, -1.5, -8.0], [2.5, -1.5, 1.7, -1.5])).tolist()
    rho = float(rng.choice([-0.999, -0.99, -0.97, -0.95]))
    T = np.exp(rng.uniform(np.log(0.02), np.log(8.0))) * np.exp(rng.uniform(-0.1, 0.1, count))
    kink = -rho * (v0 + kappa * vbar * T) / sigma
    sd = np.sqrt((v0 + vbar) * T)
    k = np.where(rng.random(count) < 0.5, 1.5 * sd * rng.normal(size=count), kink + 0.1 * sd * rng.normal(size=count))
    book = so.Contracts(forward=1.0, strike=np.exp(k), expiry=T, discount=1.0, is_call=True)
    return [kappa, vbar, sigma, rho, v0], book


@each_kernel
def test_books_at_the_bound_of_the_correlation_are_right_everywhere(kernel):
    """Worst measured over 1,000 books: 3.4e-13 and 1.2e-10. Without the mend every third book breaks the promise."""
    rng = np.random.default_rng(1)
    for _ in range(60 if kernel == "native" else 15):
        theta, book = drawn(rng, 60)
        price, sensitivity = apart(kernel, theta, book)
        assert price < PRICE, theta
        assert sensitivity < SENSITIVITY, theta


@each_kernel
def test_a_quote_of_a_cell_that_is_not_resolved_has_the_same_bits_alone_and_among_others(kernel):
    rng = np.random.default_rng(2)
    model = so.Heston(kernel, "scattered")
    for _ in range(4):
        theta, book = drawn(rng, 40)
        price, jacobian = model.linearize(theta, book)
        assert model.price(theta, book).tobytes() == price.tobytes()
        for rows in (np.array([3]), np.arange(0, 40, 3), rng.permutation(40)):
            alone, slopes = model.linearize(theta, book[rows])
            assert alone.tobytes() == price[rows].tobytes()
            assert slopes.tobytes() == jacobian[rows].tobytes()
