"""Cells of log-strike: every strike has exactly one, and its polynomials are the contour sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strikeout.kernels import taylor_cells

# Powers of two, so that edges are exact; and the money, k = 0, is one of them: 8 cells of 1/64 from k*.
KSTAR, WIDEST, DOUBLINGS = 0.125, 0.5, 5


def occupied(k: np.ndarray) -> taylor_cells.Cells:
    """The cells of one slice with these strikes, ascending."""
    return taylor_cells.occupied(
        k, np.array([0, len(k)]), np.array([KSTAR]), np.array([WIDEST]), np.array([float(DOUBLINGS)])
    )


def cell_of(k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half-width of each strike's cell."""
    found = occupied(k)
    assert found.size.sum() == len(k)
    return found.centre.repeat(found.size), found.half.repeat(found.size)


def contour(nodes: int, functions: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    zeta = np.sort(rng.uniform(0.0, 16.0, nodes)) + 0.5j
    F = rng.normal(size=(functions, nodes, 2)) @ np.array([1.0, 1j]) * np.exp(-0.3 * zeta.real)
    return zeta, F


@given(st.floats(-50.0, 50.0))
def test_a_strike_lies_in_its_cell(k):
    centre, half = cell_of(np.array([k]))
    # the edge itself is a sum of a few roundings of numbers of the size of k
    assert abs(k - centre[0]) <= half[0] + 1e-15 * (1.0 + abs(k))


@settings(max_examples=50)
@given(st.lists(st.floats(-10.0, 10.0), min_size=2, max_size=40))
def test_cells_do_not_overlap(ks):
    centre, half = cell_of(np.sort(ks))
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
    assert np.all(half[distance < 8.0 * narrowest] == 0.5 * narrowest)
    assert np.all(2.0 * half <= np.maximum(distance / 4.0, narrowest) * (1.0 + 1e-12))


@settings(max_examples=200)
@given(
    kstar=st.floats(-1e9, 1e9),
    widest=st.floats(1e-4, 1.0),
    doublings=st.integers(0, 60),
    ks=st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=12),
)
@example(kstar=1e9, widest=1e-4, doublings=0, ks=[-3.0, 0.0, 3.0])  # k* is ten million million cells away
@example(kstar=-1e-13, widest=1e-4, doublings=60, ks=[-3.0, -1e-13, 0.0, 3.0])  # more cells between strikes than edges
@example(kstar=5e-324, widest=0.1, doublings=0, ks=[-0.01, 0.0, 0.01])  # between the money and k* there is no number
def test_a_strike_finds_its_cell_at_any_distance_from_k_star_and_from_other_strikes(kstar, widest, doublings, ks):
    k = np.sort(ks)
    while doublings and widest / 2.0**doublings < 1e-9 * abs(kstar):  # as in a Heston slice of whatever parameters
        doublings -= 1
    grid = np.array([[kstar], [widest], [float(doublings)]])
    found = taylor_cells.occupied(k, np.array([0, len(k)]), *grid)
    assert found.size.sum() == len(k)
    centre, half = found.centre.repeat(found.size), found.half.repeat(found.size)
    rounding = 4.0 * np.spacing(abs(kstar) + 3.0)
    assert np.all(half > 0.0)
    assert np.all(half <= 0.5 * widest + rounding)
    assert np.all(np.abs(k - centre) <= half * (1.0 + 1e-15) + np.spacing(np.abs(k)))
    hardly = np.spacing(half) + taylor_cells.LEAST_HALF
    assert np.all((centre - half >= -hardly) | (centre + half <= hardly))  # never across the money
    for i in range(len(k)):
        alone = taylor_cells.occupied(k[i : i + 1], np.array([0, 1]), *grid)
        assert (alone.centre[0], alone.half[0]) == (centre[i], half[i])


def test_parts_without_strikes_have_no_cells():
    k, offsets = np.array([-0.1, 0.2]), np.array([0, 0, 1, 1, 2, 2])
    found = taylor_cells.occupied(k, offsets, *np.repeat([[KSTAR], [WIDEST], [float(DOUBLINGS)]], 5, axis=1))
    assert found.part.tolist() == [1, 3]
    assert found.size.tolist() == [1, 1]


@pytest.mark.parametrize("kstar", [1e30, np.inf, np.nan])
def test_where_edges_cannot_be_told_apart_a_cell_has_no_end_and_so_no_price(kstar):
    found = taylor_cells.occupied(
        np.array([-0.1, 0.2]), np.array([0, 2]), np.array([kstar]), np.array([0.1]), np.array([2.0])
    )
    assert found.size.sum() == 2
    assert not np.isfinite(found.centre).any()


def test_polynomials_of_a_cell_are_the_contour_sum():
    zeta, F = contour(nodes=30, functions=3)
    k = np.sort(np.random.default_rng(4).uniform(-0.6, 0.8, 200))
    found = occupied(k)
    made = made_of(zeta, F, found.centre, found.half)
    x = (k - found.centre.repeat(found.size)) / found.half.repeat(found.size)
    values = taylor_cells.evaluate(made, found.size, taylor_cells.powers(x))
    expected = -np.sum(F[:, :, None] * np.exp(-1j * zeta * k[:, None]).T[None], axis=1).real
    # The widest cell here is 1/8 across: (16 / 16)^16 / 16! = 5e-14 of the sum of |F|, about 30, is left out.
    np.testing.assert_allclose(values, expected, rtol=0, atol=2e-12)
    assert np.abs(expected).max() > 1.0


def made_of(zeta: np.ndarray, F: np.ndarray, centre: np.ndarray, half: np.ndarray) -> np.ndarray:
    n = len(centre)
    return taylor_cells.coefficients(
        np.repeat(zeta[None], n, axis=0), np.repeat(np.conj(F)[:, None], n, axis=1), centre, half
    )


def test_a_cell_does_not_depend_on_the_cells_beside_it():
    zeta, F = contour(nodes=61, functions=6)
    rng = np.random.default_rng(8)
    centre, half = rng.uniform(-1.0, 1.0, 97), rng.uniform(0.01, 0.1, 97)
    whole = made_of(zeta, F, centre, half)
    for some in (np.array([5]), np.array([5, 6]), np.array([90, 2, 17]), rng.permutation(97)[:40]):
        made = made_of(zeta, F, centre[some], half[some])
        assert made.tobytes() == np.ascontiguousarray(whole[:, :, some]).tobytes()


def test_a_strike_does_not_depend_on_how_many_are_evaluated_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    size = np.array([1, 3, 36, 1])
    made, basis = rng.normal(size=(taylor_cells.DEGREE, 6, 4)), taylor_cells.powers(rng.uniform(-1.0, 1.0, 41))
    whole = taylor_cells.evaluate(made, size, basis)
    for strikes in (1, 2, 3, 7, 40):
        monkeypatch.setattr(taylor_cells, "AT_ONCE", strikes * taylor_cells.DEGREE)
        assert (taylor_cells.evaluate(made, size, basis) == whole).all()
