"""Forwards by parity: the compiled function and its twin have the same bits, and outliers do not move the line."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.kernels import parity
from strikeout.kernels.compiled import native

needs_compiler = pytest.mark.skipif(native() is None, reason="the compiled kernel is not installed")
STRIKES = {
    "few": np.array([1e-3, 50.0, 90.0, 95.0, 99.0, 100.0, 101.0, 110.0, 1e5]),
    "many": np.linspace(60.0, 140.0, 161),
}


def market(seed: int, strikes: np.ndarray, *, quotes: int, noise: float, unknown: float) -> tuple:
    draws = np.random.default_rng(seed)
    count = 4
    s = draws.integers(0, count, quotes).astype(np.intp)
    strike, is_call = draws.choice(strikes, quotes), draws.random(quotes) < 0.5
    F, D, years = draws.uniform(80.0, 120.0, count), draws.uniform(0.8, 1.02, count), draws.uniform(1e-4, 3.0, count)
    parity_value = np.where(is_call, 1.0, -1.0) * D[s] * (F[s] - strike)
    observed = np.maximum(parity_value, 0.0) + 5.0 + noise * draws.normal(size=quotes)
    spread = np.where(draws.random(quotes) < unknown, np.nan, np.round(draws.uniform(0.0, 0.5, quotes), 2))
    discount, american = np.where(draws.random(count) < 0.3, D, np.nan), draws.random(count) < 0.3
    band, leaning = np.where(american, 0.05, 0.15), np.where(american, 0.5, 0.1)
    slices = parity.Slices(discount, band, leaning, 1.0 - 0.02 * years, np.square(0.05 * years))
    return parity.Quotes(s, strike, is_call, observed, spread), slices


@needs_compiler
@pytest.mark.parametrize("unknown", [0.0, 0.02])
@pytest.mark.parametrize("noise", [0.0, 0.1, 1e3])
@pytest.mark.parametrize("quotes", [0, 3, 40, 600])
@pytest.mark.parametrize("strikes", STRIKES)
def test_the_compiled_lines_have_the_bits_of_the_twin(strikes, quotes, noise, unknown):
    for seed in range(20):
        columns, slices = market(seed, STRIKES[strikes], quotes=quotes, noise=noise, unknown=unknown)
        found, twin = parity.parity_lines(columns, slices), parity.parity_lines_twin(columns, slices)
        for name in parity.Lines._fields:
            np.testing.assert_array_equal(getattr(found, name), getattr(twin, name), err_msg=f"{seed} {name}")


@pytest.mark.parametrize("fit", [parity.parity_lines, parity.parity_lines_twin])
def test_the_order_of_quotes_changes_no_bit(fit):
    columns, slices = market(5, STRIKES["many"], quotes=600, noise=0.1, unknown=0.0)
    order = np.random.default_rng(1).permutation(600)
    again = fit(parity.Quotes(*(column[order] for column in columns)), slices)
    for one, other in zip(fit(columns, slices), again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("fit", [parity.parity_lines, parity.parity_lines_twin])
def test_a_wild_pair_does_not_move_the_line(fit):
    strike = np.repeat(np.linspace(90.0, 110.0, 21), 2)
    is_call = np.tile([True, False], 21)
    observed = np.where(is_call, 0.5 * 0.99 * (100.0 - strike), -0.5 * 0.99 * (100.0 - strike)) + 20.0
    observed[0] += 50.0
    spread, s = np.full(42, 0.1), np.zeros(42, np.intp)
    one = np.ones(1)
    slices = parity.Slices(0.99 * one, 0.15 * one, 0.1 * one, 0.98 * one, 0.0025 * one)
    found = fit(parity.Quotes(s, strike, is_call, observed, spread), slices)
    # Exact prices but for one: Huber's weights fall with its size, twenty passes leave 1e-9 of the strike's tick.
    assert found.forward[0] == pytest.approx(100.0, abs=1e-6)
    assert found.pairs[0] == 21
