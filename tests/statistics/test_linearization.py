"""Normal equations: what a set of quotes leaves behind adds up."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import UsageError
from strikeout.statistics.linearization import Linearization
from tests.raising import raises


def of(jacobian: np.ndarray, residual: np.ndarray) -> Linearization:
    a = np.column_stack([jacobian, residual])
    return Linearization(tuple((a.T @ a)[np.triu_indices(a.shape[1])].tolist()), len(residual))


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    # Small integers: every sum below is exact, so equality means equality.
    return rng.integers(-9, 9, (20, 3)).astype(float), rng.integers(-9, 9, 20).astype(float)


def test_curvature_score_and_cost_are_read_back_from_the_triangle(rows):
    jacobian, residual = rows
    equations = of(jacobian, residual)
    assert (equations.curvature == jacobian.T @ jacobian).all()
    assert (equations.score == jacobian.T @ residual).all()
    assert equations.cost == residual @ residual
    assert equations.count == 20


def test_two_halves_equal_the_whole(rows):
    jacobian, residual = rows
    assert of(jacobian[:7], residual[:7]) + of(jacobian[7:], residual[7:]) == of(jacobian, residual)


def test_a_total_is_the_sum_of_its_parts(rows):
    jacobian, residual = rows
    parts = [of(jacobian[i : i + 5], residual[i : i + 5]) for i in range(0, 20, 5)]
    assert Linearization.total(parts) == of(jacobian, residual)


def test_no_quotes_add_nothing(rows):
    assert of(*rows) + Linearization.zero(3) == of(*rows)


def test_states_of_different_models_cannot_be_added(rows):
    with pytest.raises(UsageError, match="of 3 and of 2 parameters"):
        of(*rows) + Linearization.zero(2)


def test_the_total_of_nothing_is_refused():
    with pytest.raises(UsageError, match="zero"):
        Linearization.total([])


def test_numbers_that_are_no_triangle_are_refused():
    with raises(UsageError, count=4):
        Linearization((1.0, 2.0, 3.0, 4.0), 1)
