"""Steps solved in integers, held to fractions and to a matrix that doubles cannot solve."""

from __future__ import annotations

from fractions import Fraction
from math import isnan

import numpy as np
import pytest

from strikeout.kernels import exact, symmetric


def state(rows: np.ndarray) -> list[int]:
    return [int(sum(int(a) * int(b) for a, b in zip(rows[:, i], rows[:, j], strict=True))) for i, j in _pairs(rows)]


def _pairs(rows: np.ndarray) -> list[tuple[int, int]]:
    return [(i, j) for i in range(rows.shape[1]) for j in range(i, rows.shape[1])]


def cramer(sums: list[int], exponents: list[int]) -> list[Fraction]:
    """The step by Gauss-Jordan in fractions: slow, and another way round."""
    p = len(exponents) - 1
    values = iter(sums)
    M = [[Fraction(0)] * (p + 1) for _ in range(p + 1)]
    for i in range(p + 1):
        for j in range(i, p + 1):
            M[i][j] = M[j][i] = Fraction(next(values)) / Fraction(2) ** (exponents[i] + exponents[j])
    A = [row[:] for row in M[:p]]
    for k in range(p):
        A[k] = [a / A[k][k] for a in A[k]]
        for i in range(p):
            if i != k:
                A[i] = [a - A[i][k] * b for a, b in zip(A[i], A[k], strict=True)]
    return [row[p] for row in A]


@pytest.mark.parametrize("parameters", [1, 2, 5, 9])
def test_every_number_is_the_double_nearest_to_the_true_one(parameters):
    rng = np.random.default_rng(parameters)
    rows = rng.integers(-(2**50), 2**50, (parameters + 6, parameters + 1))
    exponents = rng.integers(20, 60, parameters + 1).tolist()
    sums = state(rows)
    assert symmetric.step(sums, exponents) == [float(x) for x in cramer(sums, exponents)]


def test_doubles_agree_where_the_curvature_is_well_conditioned():
    rows = np.random.default_rng(0).integers(-(2**40), 2**40, (60, 4))
    exponents = np.array([40, 41, 42, 40], np.int32)
    words = exact.change(exact.zero(4), rows)
    doubles = exact.solve(exact.read(words, exponents))
    # Condition below 3, four unknowns: a dozen roundings.
    assert symmetric.step(exact.to_integers(words), exponents.tolist()) == pytest.approx(doubles, rel=1e-14)


def test_a_direction_that_doubles_cannot_see_is_solved():
    near = np.array([[2**40, 2**40, 2**40], [0, 1, 1], [0, 0, 5]])  # the second column differs by 2^-40 of itself
    sums = state(near)
    assert symmetric.step(sums, [0, 0, 0]) == [0.0, 1.0]
    matrix = np.array([[sums[0], sums[1]], [sums[1], sums[3]]], float)
    assert np.linalg.det(matrix) != pytest.approx(2.0**80, rel=0.5)  # what doubles make of it


@pytest.mark.parametrize("rows", [[[1, 1, 2], [2, 2, 3]], [[0, 0, 0]]], ids=["dependent", "empty"])
def test_a_state_that_determines_nothing_gives_no_number(rows):
    assert all(isnan(x) for x in symmetric.step(state(np.array(rows)), [0, 0, 0]))


def test_an_indefinite_state_gives_no_number():
    assert all(isnan(x) for x in symmetric.step([-1, 0, 1, 1, 1, 1], [0, 0, 0]))


def test_a_step_beyond_doubles_is_infinite():
    assert symmetric.step([1, 1 << 40, 0], [1000, 0]) == [float("inf")]
