"""Products in one fixed order: right, and the same bits whatever else is multiplied beside them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from strikeout.kernels.products import gram, inner, norm, product

EPS = float(np.finfo(float).eps)
rng = np.random.default_rng(3)


def exactly(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B in fractions, rounded once."""
    rows, columns = [list(map(Fraction, row)) for row in A], [list(map(Fraction, column)) for column in B.T]
    return np.array([[float(sum(x * y for x, y in zip(a, b, strict=True))) for b in columns] for a in rows])


@pytest.mark.parametrize("inside", [1, 2, 5, 12])
def test_a_product_is_right_to_rounding(inside: int) -> None:
    A, B = rng.standard_normal((4, inside)), rng.standard_normal((inside, 3))
    bound = inside * EPS * (np.abs(A) @ np.abs(B))
    assert (np.abs(product(A, B) - exactly(A, B)) <= bound).all()
    assert (np.abs(gram(A.T, B) - exactly(A, B)) <= bound).all()


def test_a_product_is_added_from_the_first_to_the_last() -> None:
    a, b = np.array([1e16, 1.0, -1e16]), np.ones(3)
    assert inner(a, b) == 0.0  # 1e16 + 1 is 1e16; in any other order one is left
    assert inner(a[[0, 2, 1]], b) == 1.0
    assert product(a[None], b[:, None]) == 0.0


def test_a_product_does_not_depend_on_what_is_multiplied_beside_it() -> None:
    A, B = rng.standard_normal((40, 5, 5)), rng.standard_normal((40, 5, 5))
    whole = product(A, B)
    assert all(np.array_equal(product(A[n], B[n]), whole[n]) for n in range(40))
    X = rng.standard_normal((1001, 5))
    assert np.array_equal(product(X, B[0])[17], product(X[17:18], B[0])[0])
    assert np.array_equal(gram(X, X)[1:3, 2:4], gram(X[:, 1:3], X[:, 2:4]))


def test_axes_are_broadcast_as_by_matmul() -> None:
    T, many = rng.standard_normal((3, 3)), rng.standard_normal((7, 3, 3))
    assert product(T, many) == pytest.approx(T @ many)
    assert inner(many, T[0]) == pytest.approx(many @ T[0])
    assert product(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[0.0] * 3] * 2
    assert norm(np.array([3.0, 4.0])) == 5.0
