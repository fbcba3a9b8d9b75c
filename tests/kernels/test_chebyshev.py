"""Chebyshev sums: exact to the last bit, and as good as the points they stand for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.polynomial import chebyshev as peer

from strikeout.kernels import chebyshev, exact, int192

BOTH = pytest.mark.parametrize("by_cell", [chebyshev.exact_cells, chebyshev.exact_cells_twin], ids=["used", "twin"])


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, count)


def audit(basis: np.ndarray, factors: np.ndarray, starts: list[int]) -> list[int]:
    """The definition: every value rounded once (Python's round is half-even), products summed as integers."""
    t = [[round(Fraction(value) * 2**48) for value in row] for row in basis.tolist()]
    a = [[round(Fraction(value) * 2**72) for value in row] for row in factors.tolist()]
    ends = [*starts[1:], basis.shape[1]]
    return [
        sum(x * y for x, y in zip(column[begin:end], row[begin:end], strict=True))
        for begin, end in zip(starts, ends, strict=True)
        for column in a
        for row in t
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 32, 256])
@pytest.mark.parametrize("many", [0, 1, 27, 1000])
def test_the_compiled_polynomials_have_the_bits_of_their_twin(count, many):
    x = points(2 * many)[::2]  # not contiguous
    found = chebyshev.polynomials(x, count)
    assert found.shape == (count, many)
    assert found.tobytes() == chebyshev.polynomials_twin(x, count).tobytes()


@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), 0), ((5, 7), 1), ((7, 5), 0), ((4, 3, 7), 2), ((4, 7, 3), 1), ((0, 7), 1)]
)
def test_the_compiled_transform_has_the_bits_of_its_twin(shape, axis):
    rng = np.random.default_rng(3)
    matrix, values = rng.normal(size=(7, 9)).T, rng.normal(size=shape)  # the matrix is not contiguous
    found = chebyshev.transform(matrix, values, axis)
    expected = chebyshev.transform_twin(matrix, values, axis)
    assert found.shape == expected.shape == (*shape[:axis], 9, *shape[axis + 1 :])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [1, 1e-20, 1e8, 1e12], ids=str)
@pytest.mark.parametrize("starts", [[0], [0, 1, 2], [0, 3, 4, 200, 490]], ids=str)
def test_exact_sums_are_those_of_python_integers(size, starts):
    rng = np.random.default_rng(1)
    basis = chebyshev.polynomials(points(500), 7)
    factors = size * np.stack([rng.standard_normal(500), rng.lognormal(0.0, 3.0, 500), np.zeros(500)])
    got = chebyshev.exact_sums(basis, factors, np.array(starts))
    assert got.shape == (len(starts), 3, 7, 3)
    assert exact.to_integers(got) == audit(basis, factors, starts)


def test_the_largest_digits_still_sum_exactly():
    rng, count = np.random.default_rng(4), 4 * chebyshev.AT_ONCE
    basis = 1.0 - 2.0**-48 * rng.integers(1, 9, (1, count))  # nearly every bit set
    factors = 2.0**-56 - 2.0**-72 * rng.integers(1, 9, (1, count))  # a single digit, nearly every bit set
    got = exact.to_integers(chebyshev.exact_sums(basis, factors, np.zeros(1, np.intp)))
    assert got == audit(basis, factors, [0])


def test_factors_that_fill_the_words_sum_exactly():
    factors = np.array([[2.0**95, -(2.0**95) / 3.0, 1e20, 1.0]])
    basis = np.full((1, 4), 2.0**-48)  # of one unit: sums of factors alone
    got = exact.to_integers(chebyshev.exact_sums(basis, factors, np.array([0, 2])))
    assert got == audit(basis, factors, [0, 2])


def test_ties_go_to_even():
    basis = np.array([[1.0, 1.0, 0.5**48 * 0.5, 0.5**48 * 1.5, 1.0]])
    factors = 0.5**72 * np.array([[0.5, -1.5, 1.0, 1.0, 2.5]])
    assert exact.to_integers(chebyshev.exact_sums(basis, factors, np.arange(5))) == [0, -2 * 2**48, 0, 2, 2 * 2**48]


def test_sums_of_nothing_are_zero():
    got = chebyshev.exact_sums(np.ones((2, 3)), np.zeros((2, 3)), np.array([0, 2]))
    assert got.shape == (2, 2, 2, 3)
    assert not got.any()


def test_polynomials_are_those_of_numpy():
    # The recurrence loses about one rounding error a degree: 48 * 2^-52 is 1e-14.
    assert np.abs(chebyshev.polynomials(points(300), 48) - peer.chebvander(points(300), 47).T).max() < 5e-14


def test_the_nodes_are_the_roots_in_order():
    nodes = chebyshev.nodes(9)
    assert (np.diff(nodes) > 0).all()
    assert np.abs(chebyshev.polynomials(nodes, 10)[9]).max() < 1e-14
    assert (nodes == -nodes[::-1]).all()


def test_weights_at_the_nodes_stand_for_all_points():
    x, w = points(1000), np.random.default_rng(2).lognormal(0.0, 2.0, 1000)
    moments = int192.read(
        chebyshev.exact_sums(chebyshev.polynomials(x, 24), w[None], np.zeros(1, np.intp)), chebyshev.EXPONENT
    )[0, 0]
    weights = chebyshev.quadrature(24) @ moments
    coefficients = np.random.default_rng(3).standard_normal(24)
    at_points, at_nodes = (peer.chebval(points, coefficients) for points in (x, chebyshev.nodes(24)))
    # A polynomial of degree below 24, of size up to 24 * max|c|: rounding of sums of w.
    assert abs(w @ at_points - weights @ at_nodes) < 1e-13 * w.sum()


def test_a_degree_too_many_is_not_resolved():
    x = points(50)
    moments = chebyshev.polynomials(x, 8).sum(axis=1)
    at_nodes = (chebyshev.quadrature(8) @ moments) @ chebyshev.polynomials(chebyshev.nodes(8), 9)[8]
    assert abs(at_nodes - chebyshev.polynomials(x, 9)[8].sum()) > 0.1


def audited_cells(cells: np.ndarray, x: np.ndarray, factors: np.ndarray) -> list[int]:
    """What points leave behind with T_0 and T_1 alone, cell by cell in order, in Python's integers."""
    out = []
    for cell in sorted({tuple(cell) for cell in cells.tolist()}):
        mine = (cells == cell).all(axis=1)
        basis = np.stack([np.ones(mine.sum()), x[mine]])
        out += audit(basis, factors[:2, mine], [0])
        out += [sum(round(Fraction(value) * 2**72) for value in row[mine].tolist()) for row in factors[2:]]
    return out


@BOTH
@pytest.mark.parametrize("size", [1, 1e-20, 1e8, 1e12], ids=str)
def test_what_points_leave_behind_by_cell_is_that_of_python_integers(by_cell, size):
    rng = np.random.default_rng(1)
    cells, x = rng.choice([0.25, 0.5, 1.0], (500, 2)), points(500)
    factors = size * np.stack([*rng.standard_normal((2, 500)), rng.lognormal(0.0, 3.0, 500), np.zeros(500)])
    assert exact.to_integers(by_cell(cells, x[None], factors, along=2, across=1).sums) == audited_cells(
        cells, x, factors
    )


@BOTH
def test_factors_that_fill_the_words_and_ties_of_both_are_rounded_by_cell_as_well(by_cell):
    # Ties of the basis, of the factors, a factor of nearly all bits, and one that is below the grid.
    x = np.array([0.5**48 * 0.5, 0.5**48 * 1.5, 1.0, 1.0, -1.0, 0.3, 1.0 - 2.0**-48])
    factors = np.array(
        [
            [1.0, 1.0, 0.5**73, -1.5 * 0.5**72, 2.0**60, 2.0**60 / 3.0, 0.5**80],
            [1e15, -1.0, 2.5 * 0.5**72, 0.0, -(2.0**60) / 3.0, 2.0**-56 - 2.0**-72, 1.0],
            [2.0**95, 1e20, 0.5**73, 1.5 * 0.5**72, 0.0, 1.0, 0.1],
            [1.0, 0.0, 2.0**40, 0.3, 2.5 * 0.5**72, 0.5**80, 7.0],
        ]
    )
    cells = np.array([[0.5, float(i % 2)] for i in range(7)])
    got = exact.to_integers(by_cell(cells, x[None], factors, along=2, across=1).sums)
    assert got == audited_cells(cells, x, factors)


@pytest.mark.parametrize("across", [1, 4])
@pytest.mark.parametrize("many", [1, 27, 900, 6_000])
def test_what_points_leave_behind_by_cell_has_the_bits_of_its_twin(many, across):
    rng = np.random.default_rng(many)
    cells = rng.choice([0.25, 0.5, 1.0], (many, 2))
    places = rng.uniform(-1.0, 1.0, (1 if across == 1 else 2, many))
    factors = rng.standard_normal((4, many)) * np.array([[1e4], [1e-3], [1e12], [0.0]])
    used, twin = (
        find(cells, places, factors, along=9, across=across)
        for find in (chebyshev.exact_cells, chebyshev.exact_cells_twin)
    )
    assert used.sums.shape == (len(np.unique(cells, axis=0)), 2 * 9 * across + 2, 3)
    assert used.counts.sum() == many
    for one, other in zip(used, twin, strict=True):
        assert one.tolist() == other.tolist()


def test_thousands_of_cells_keep_their_points_apart():
    # More cells than the first table of numbers has room for, some of few points and some of many; two zeros are one.
    rng = np.random.default_rng(5)
    cells = np.stack([rng.integers(0, 700, 20_000) / 7.0, rng.integers(-3, 4, 20_000) * 1.0], axis=1)
    cells[cells == 0.0] *= rng.choice([-1.0, 1.0], int((cells == 0.0).sum()))
    places, factors = rng.uniform(-1.0, 1.0, (1, 20_000)), rng.lognormal(0.0, 6.0, (4, 20_000))
    used, twin = (
        find(cells, places, factors, along=4, across=1) for find in (chebyshev.exact_cells, chebyshev.exact_cells_twin)
    )
    assert len(used.counts) == len(np.unique(cells + 0.0, axis=0))
    for one, other in zip(used, twin, strict=True):
        assert one.tolist() == other.tolist()
