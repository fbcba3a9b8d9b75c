"""Small symmetric systems: right against exact fractions, honest about what cannot be solved."""

from __future__ import annotations

from fractions import Fraction
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strikeout.kernels.symmetric import (
    condition,
    eigen,
    eigenvalues,
    eigenvalues_twin,
    factor,
    inverse,
    inverse_twin,
    inverses,
    inverses_twin,
    length,
    solve,
)

EPS = float(np.finfo(float).eps)
SIZES = (1, 2, 3, 5, 8)


def gram(size: int, seed: int, spread: float = 1.0) -> list[list[float]]:
    """A positive definite matrix whose diagonal spans ``spread`` orders of magnitude."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((4 * size, size)) * 10.0 ** rng.uniform(-spread, spread, size)
    return (J.T @ J).tolist()  # type: ignore[no-any-return]


def exact_solution(A: list[list[float]], b: list[float]) -> list[float]:
    """Gauss elimination in fractions: no rounding until the last line."""
    rows = [[Fraction(x) for x in row] + [Fraction(y)] for row, y in zip(A, b, strict=True)]
    for i, row in enumerate(rows):
        for other in rows[i + 1 :]:
            ratio = other[i] / row[i]
            for j in range(i, len(row)):
                other[j] -= ratio * row[j]
    x: list[Fraction] = []
    for i in range(len(rows) - 1, -1, -1):
        rest = sum((a * y for a, y in zip(rows[i][i + 1 : -1], x, strict=True)), Fraction(0))
        x.insert(0, (rows[i][-1] - rest) / rows[i][i])
    return [float(value) for value in x]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_a_solution_is_exact_to_the_condition_of_the_scaled_matrix(size: int, spread: float) -> None:
    A, b = gram(size, seed=size, spread=spread), [1.0 + i for i in range(size)]
    x, exact = solve(A, b), exact_solution(A, b)
    # A backward error of about p eps in the scaled matrix is amplified by its condition, whatever the units are.
    scale = [1.0 / sqrt(A[i][i]) for i in range(size)]
    largest = max(abs(value) / s for value, s in zip(exact, scale, strict=True))
    for i in range(size):
        assert abs(x[i] - exact[i]) <= 10 * size * EPS * condition(A) * largest * scale[i]


def test_damping_is_added_in_units_of_the_diagonal() -> None:
    A, b = gram(5, seed=3, spread=4.0), [1.0, -2.0, 3.0, -4.0, 5.0]
    damped = [[x * (1.5 if i == j else 1.0) for j, x in enumerate(row)] for i, row in enumerate(A)]
    assert solve(A, b, damping=0.5) == pytest.approx(solve(damped, b), rel=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.25])
def test_the_compiled_length_is_that_of_the_definition_to_the_last_bit(damping: float) -> None:
    J = np.random.default_rng(1).normal(size=(9, 5))
    A, b = (J.T @ J).tolist(), J[0].tolist()
    assert length(A, b, damping) == length(tuple(map(tuple, A)), tuple(b), damping)  # lists go to the compiled one


def test_the_length_is_the_square_root_of_the_quadratic_form() -> None:
    A, b = gram(5, seed=4), [1.0, -2.0, 3.0, -4.0, 5.0]
    assert length(A, b) ** 2 == pytest.approx(sum(x * y for x, y in zip(b, solve(A, b), strict=True)), rel=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_inverse_times_the_matrix_is_one(size: int) -> None:
    A = gram(size, seed=size + 10)
    assert np.array(inverse(A)) @ np.array(A) == pytest.approx(np.eye(size), abs=100 * size * EPS * condition(A))


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_the_compiled_inverse_has_the_bits_of_its_twin(size: int) -> None:
    A = gram(size, seed=4, spread=3.0)
    assert inverse(A) == inverse_twin(A)


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_the_inverses_of_many_matrices_have_the_bits_of_each_inverse(size: int) -> None:
    many = np.array([gram(size, seed=seed, spread=3.0) for seed in range(20)])
    many[7] = -np.eye(size)
    many[8, 0, 0] = 0.0
    alone = np.array([inverse(A) for A in many.tolist()])
    assert np.isfinite(alone).all(axis=(1, 2)).sum() == 18
    assert inverses(many).tobytes() == alone.tobytes()
    assert inverses_twin(many).tobytes() == alone.tobytes()


def symmetric(size: int, seed: int) -> np.ndarray:
    """Any symmetric matrix: of full rank, of rank one, with a double eigenvalue, nearly diagonal, or zero."""
    rng = np.random.default_rng(seed)
    A, v = rng.standard_normal((size, size)), rng.standard_normal(size)
    kinds = [A + A.T, np.outer(v, v), np.eye(size) + np.outer(v, v), np.diag(v) + 1e-9 * (A + A.T), np.zeros_like(A)]
    return 10.0 ** rng.uniform(-8.0, 8.0) * kinds[seed % len(kinds)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 12, 30])
def test_eigenvalues_of_many_matrices_are_right_to_rounding_of_the_largest(size: int) -> None:
    many = np.array([symmetric(size, seed) for seed in range(25)])
    found, expected = eigenvalues(many), np.linalg.eigvalsh(many)
    assert (np.abs(found - expected) <= 10 * size * EPS * np.abs(expected).max(axis=1)[:, None]).all()
    assert (np.diff(found) >= 0.0).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 12])
def test_the_compiled_eigenvalues_have_the_bits_of_their_twin(size: int) -> None:
    many = np.array([symmetric(size, seed) for seed in range(25)])
    many[3, 0, 0] = np.nan
    many[4, -1, -1] = np.inf
    assert np.array_equal(eigenvalues(many), eigenvalues_twin(many), equal_nan=True)
    assert np.isnan(eigenvalues(many)).all(axis=1).tolist() == [n in (3, 4) for n in range(25)]


def test_eigenvalues_do_not_depend_on_the_other_matrices() -> None:
    many = np.array([symmetric(5, seed) for seed in range(25)])
    assert np.array_equal(eigenvalues_twin(many)[6], eigenvalues_twin(many[6]))
    assert np.array_equal(eigenvalues(many)[6], eigenvalues(many[6]))
    assert eigenvalues(np.zeros((0, 5, 5))).shape == (0, 5)


def test_the_inverse_is_symmetric_to_the_last_bit() -> None:
    B = inverse(gram(5, seed=2, spread=3.0))
    assert all(B[i][j] == B[j][i] for i in range(5) for j in range(5))


@pytest.mark.parametrize("size", SIZES)
def test_eigenvalues_and_vectors_are_those_of_the_scaled_matrix(size: int) -> None:
    A = gram(size, seed=size + 20, spread=3.0)
    d = [1.0 / sqrt(A[i][i]) for i in range(size)]
    S = np.array([[A[i][j] * d[i] * d[j] for j in range(size)] for i in range(size)])
    values, vectors = eigen(A)
    assert values == pytest.approx(np.linalg.eigvalsh(S).tolist(), abs=100 * EPS)  # both good to a few eps of norm <= p
    for value, vector in zip(values, vectors, strict=True):
        assert S @ vector == pytest.approx(value * np.array(vector), abs=100 * EPS)


def test_the_condition_does_not_depend_on_units() -> None:
    A = gram(5, seed=6)
    units = [1e-6, 1.0, 1e3, 1e9, 1e-2]
    rescaled = [[A[i][j] * units[i] * units[j] for j in range(5)] for i in range(5)]
    assert condition(rescaled) == pytest.approx(condition(A), rel=1e-9)


def test_a_matrix_that_is_not_positive_definite_gives_not_a_number() -> None:
    A = [[1.0, 2.0], [2.0, 1.0]]
    assert all(isnan(x) for x in solve(A, [1.0, 1.0]))
    assert isnan(length(A, [1.0, 1.0]))
    assert all(isnan(x) for row in inverse(A) for x in row)


def test_not_a_number_in_gives_not_a_number_out() -> None:
    A = [[1.0, float("nan")], [float("nan"), 1.0]]
    assert isnan(solve(A, [1.0, 1.0])[1])
    assert isnan(condition(A))


def test_a_parameter_nothing_is_known_about_does_not_move() -> None:
    A = [[4.0, 0.0], [0.0, 0.0]]
    assert solve(A, [2.0, 0.0]) == [0.5, 0.0]
    assert all(isnan(x) for row in inverse(A) for x in row)


def test_a_negative_diagonal_is_not_mistaken_for_nothing() -> None:
    assert isnan(factor([[-1.0]])[0][0])


@given(st.integers(min_value=0, max_value=10_000), st.integers(min_value=-40, max_value=40))
def test_scaling_by_a_power_of_two_changes_no_bit_of_the_solution(seed: int, power: int) -> None:
    A, b = gram(4, seed=seed, spread=2.0), [1.0, 2.0, 3.0, 4.0]
    two = 4.0**power  # an even power of two, so that its square root scales exactly too
    scaled = solve([[x * two for x in row] for row in A], [y * two for y in b])
    assert scaled == solve(A, b)
