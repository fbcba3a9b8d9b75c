"""Cells of log-strike: every strike has exactly one, and its polynomials are the contour sum."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from strikeout.kernels import cells

KSTAR, WIDEST, DOUBLINGS = 0.1, 0.4, 5  # so that the money, k = 0, is an edge: 8 cells of 0.0125 from k*


def cell_of(k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(k)
    return cells.cell_of(k, np.full(n, KSTAR), np.full(n, WIDEST), np.full(n, DOUBLINGS, np.int32))


def contour(nodes: int, functions: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    zeta = np.sort(rng.uniform(0.0, 20.0, nodes)) + 0.5j
    F = rng.normal(size=(nodes, functions, 2)) @ np.array([1.0, 1j]) * np.exp(-0.3 * zeta.real)[:, None]
    return zeta, F


@given(st.floats(-50.0, 50.0))
def test_a_strike_lies_in_its_cell(k):
    centre, half = cell_of(np.array([k]))
    # the edge itself is a sum of a few roundings of numbers of the size of k
    assert abs(k - centre[0]) <= half[0] + 1e-15 * (1.0 + abs(k))


@settings(max_examples=50)
@given(st.lists(st.floats(-10.0, 10.0), min_size=2, max_size=40))
def test_cells_do_not_overlap(ks):
    centre, half = cell_of(np.array(ks))
    distinct = np.unique(np.column_stack([centre, half]), axis=0)
    gaps = distinct[1:, 0] - distinct[:-1, 0] - distinct[1:, 1] - distinct[:-1, 1]
    assert np.all(gaps >= -1e-14)


def test_cells_grow_from_the_narrowest_at_k_star_to_the_widest_far_away():
    k = KSTAR + np.r_[-np.geomspace(50.0, 1e-6, 500), np.geomspace(1e-6, 50.0, 500)]
    _, half = cell_of(k)
    narrowest = WIDEST / 2.0**DOUBLINGS
    assert 2.0 * half.min() == narrowest
    assert 2.0 * half.max() == WIDEST
    assert np.all(np.diff(half[500:]) >= 0.0)
    # eight of the narrowest on each side, and never a cell wider than a quarter of its distance from k*
    distance = np.abs(k - KSTAR)
    assert np.all(half[distance < cells.INNER * narrowest] == 0.5 * narrowest)
    assert np.all(2.0 * half <= np.maximum(distance / 4.0, narrowest) * (1.0 + 1e-12))


def test_polynomials_of_a_cell_are_the_contour_sum():
    zeta, F = contour(nodes=30, functions=3)
    k = np.sort(np.random.default_rng(4).uniform(-0.6, 0.8, 200))
    centre, half = cell_of(k)
    begins = np.r_[True, centre[1:] != centre[:-1]]
    start = np.flatnonzero(begins)
    count = len(start)
    made = cells.coefficients(
        np.repeat(zeta[:, None], count, axis=1), np.repeat(F[:, :, None], count, axis=2), centre[start], half[start]
    )
    found = cells.evaluate(made, start, cells.powers((k - centre) / half))
    expected = -np.sum(F[:, :, None] * np.exp(-1j * zeta[:, None] * k)[:, None, :], axis=0).real
    # The widest cell here is 0.1 across: (20 * 0.05)^16 / 16! = 5e-14 of the sum of |F|, about 30, is left out.
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-12)
    assert np.abs(expected).max() > 1.0


def test_a_cell_does_not_depend_on_the_cells_beside_it():
    zeta, F = contour(nodes=61, functions=6)
    rng = np.random.default_rng(8)
    centre, half = rng.uniform(-1.0, 1.0, 97), rng.uniform(0.01, 0.1, 97)

    def made(some: np.ndarray) -> np.ndarray:
        n = len(some)
        zetas, terms = np.repeat(zeta[:, None], n, axis=1), np.repeat(F[:, :, None], n, axis=2)
        return cells.coefficients(zetas, terms, centre[some], half[some])

    whole = made(np.arange(97))
    for some in (np.array([5, 6]), np.array([90, 2, 17]), rng.permutation(97)[:40]):
        assert made(some).tobytes() == np.ascontiguousarray(whole[:, :, some]).tobytes()


def test_a_strike_does_not_depend_on_how_many_are_evaluated_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    start = np.array([0, 1, 4, 40])
    made, basis = rng.normal(size=(cells.DEGREE, 6, 4)), cells.powers(rng.uniform(-1.0, 1.0, 41))
    whole = cells.evaluate(made, start, basis)
    for strikes in (1, 2, 3, 7, 40):
        monkeypatch.setattr(cells, "AT_ONCE", strikes * cells.DEGREE)
        assert (cells.evaluate(made, start, basis) == whole).all()
