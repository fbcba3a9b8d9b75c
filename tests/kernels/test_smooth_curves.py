"""Orthogonal polynomials through residuals: against least squares, and compiled against their twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from strikeout.kernels import smooth_curves


def slices(sizes: list[int], seed: int = 5) -> tuple[np.ndarray, ...]:
    """Return places, offsets, residuals and weights; every third place is there twice."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.sort(rng.uniform(-1.0, 1.0, size).repeat(2)[:size]) for size in sizes])
    offsets = np.array([0, *np.cumsum(sizes)], np.intp)
    return x, offsets, rng.normal(size=len(x)), rng.uniform(0.5, 2.0, len(x))


@pytest.mark.parametrize("function", [smooth_curves.unexplained, smooth_curves.unexplained_twin])
def test_the_rest_is_that_of_weighted_least_squares_with_powers(function):
    x, offsets, r, w = slices([40, 7, 2, 3, 25])
    left, used = function(x, offsets, r, w, 5)
    wanted, terms = 0.0, 0
    for begin, end in pairwise(offsets.tolist()):
        own = slice(begin, end)
        size = min(len(np.unique(x[own])) // 2, 5)
        powers, root = np.vander(x[own], size), np.sqrt(w[own])
        fitted = powers @ np.linalg.lstsq(powers * root[:, None], r[own] * root, rcond=None)[0] if size else 0.0
        wanted, terms = wanted + float(np.sum(w[own] * (r[own] - fitted) ** 2)), terms + size
    assert used == terms
    assert left == pytest.approx(wanted, rel=1e-11)  # rounding of least squares by a matrix of powers


def test_compiled_curves_agree_with_their_twin_to_rounding():
    x, offsets, r, w = slices([1, 50, 3, 120, 2, 2, 9], seed=6)
    w[60:64] = 0.0
    left, used = smooth_curves.unexplained(x, offsets, r, w, 9)
    other, terms = smooth_curves.unexplained_twin(x, offsets, r, w, 9)
    assert used == terms
    assert left == pytest.approx(other, rel=1e-12)


def test_a_slice_without_weight_leaves_nothing():
    x, offsets, r, w = slices([10, 10])
    w[:10] = 0.0
    left, _ = smooth_curves.unexplained(x, offsets, r, w, 3)
    alone, _ = smooth_curves.unexplained(x[10:], offsets[:2], r[10:], w[10:], 3)
    assert left == alone
