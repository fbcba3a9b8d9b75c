"""Systems with three diagonals, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.kernels import state_space


def system(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(size - 1)
    a = 0.1 + np.abs(np.r_[b, 0.0]) + np.abs(np.r_[0.0, b])  # diagonally dominant
    return a, b, np.diag(a) + np.diag(b, 1) + np.diag(b, -1)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_a_solution_solves(size):
    a, b, A = system(size)
    R = np.random.default_rng(1).standard_normal((size, 3))
    # Condition numbers below 1e4.
    np.testing.assert_allclose(state_space.solve(a, b, R), np.linalg.solve(A, R), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_the_diagonal_of_the_inverse_is_that_of_the_inverse(size):
    a, b, A = system(size)
    np.testing.assert_allclose(state_space.inverse_diagonal(a, b), np.diag(np.linalg.inv(A)), rtol=1e-10)


def test_what_is_not_positive_definite_is_not_a_number():
    a, b = np.array([1.0, 1.0]), np.array([2.0])
    assert np.isnan(state_space.solve(a, b, np.ones((2, 1)))).any()
    assert np.isnan(state_space.inverse_diagonal(a, b)).any()


def test_right_hand_sides_do_not_know_of_each_other():
    a, b, _ = system(20)
    R = np.random.default_rng(2).standard_normal((20, 4))
    alone = np.column_stack([state_space.solve(a, b, R[:, [j]]) for j in range(4)])
    assert (state_space.solve(a, b, R) == alone).all()
