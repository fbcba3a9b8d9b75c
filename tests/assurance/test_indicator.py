"""The indicator warns of the error of one step; the next step is an error bar."""

from __future__ import annotations

from math import isinf

import numpy as np
import pytest

import strikeout as so
from strikeout.assurance.indicator import indicator, sizes
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of


def linearized(quotes, model, theta):
    return linearize(objective_of(quotes)[0], model, list(theta))


def next_step(system, *, free=None):
    """The length of the next Gauss-Newton step in standard errors, and the largest move of a parameter in its own."""
    rows = np.array(system.rows)
    free = list(range(len(rows) - 1)) if free is None else free
    H, G = rows[np.ix_(free, free)], rows[-1][free]
    step, noise = np.linalg.solve(H, G), np.sqrt(system.cost / (system.count - len(free)))
    return np.sqrt(G @ step) / noise, max(abs(step) / np.sqrt(np.diag(np.linalg.inv(H)))) / noise


@pytest.fixture(scope="module")
def book():
    return so.paper.quotes("small", seed=3)


def struck(calibration, kept):
    """The step from the calibration of everything, its indicator, and its true error in standard errors."""
    model, space = calibration.model, calibration.model.parameters
    theta = space.vector(calibration.parameters)
    system = linearized(kept, model, theta)
    step = np.linalg.solve(system.curvature, system.score)
    truth = so.calibrate(kept, model)
    error = np.abs(theta + step - space.vector(truth.parameters)) / space.vector(truth.standard_errors)
    return indicator(system, space, reference=theta), float(error.max()), theta + step, truth


def test_on_clean_deletions_the_indicator_is_small_and_so_is_the_error(book):
    calibration = so.calibrate(book, so.Heston())
    for share, seed in ((0.01, 0), (0.1, 1), (0.25, 2)):
        kept = book[np.random.default_rng(seed).random(len(book)) > share]
        found, error, _, _ = struck(calibration, kept)
        assert found.value < 0.05
        assert error <= 0.06


def test_a_decimal_shift_raises_the_indicator_and_one_step_is_far_off(book):
    bad = book.labels["day"] < 5
    shifted = book.with_observed(np.where(bad, 10.0 * book.observed, book.observed))
    found, error, _, _ = struck(so.calibrate(shifted, so.Heston()), shifted[~bad])
    assert found.value > 1.0
    assert error > 10.0


def test_the_value_is_the_formula():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((40, 4)) * [1.0, 10.0, 0.1, 1.0]
    gram = rows.T @ rows
    system = Linearization(tuple(gram[np.triu_indices(4)].tolist()), 40)
    H, G = gram[:3, :3], gram[:3, 3]
    d = np.linalg.solve(H, G)
    s = np.sqrt((gram[3, 3] - G @ d) / 37)
    space = so.ParameterSpace(
        ("a", "rho", "c"), np.array([0.0, -0.999, -1e6]), np.array([9.0, 0.999, 1e6]), np.array([[1.0, 0.1, 2.0]])
    )
    scale = np.array([3.0, 1.0 - 0.6**2, 2.0])
    found = indicator(system, space, reference=[3.0, -0.6, 0.5])
    assert found.standard_errors == pytest.approx(np.sqrt(d @ H @ d) / s, rel=1e-10)
    # The room of a correlation is measured between its bounds, 0.999 and not 1: a difference of 0.2 %.
    assert found.relative == pytest.approx(np.max(np.abs(d) / scale), rel=3e-3)
    assert found.value == pytest.approx(found.standard_errors * found.relative, rel=1e-14)


def test_a_step_that_cannot_be_solved_for_is_infinitely_wrong():
    system = Linearization((1.0, 1.0, 1.0, 1.0, 1.0, 5.0), 10)  # two parameters that cannot be told apart
    space = so.ParameterSpace(("a", "b"), np.zeros(2), np.ones(2), np.ones((1, 2)))
    found = indicator(system, space, reference=[0.5, 0.5])
    assert isinf(found.value)


def test_no_step_at_all_is_not_wrong_even_without_noise():
    space = so.ParameterSpace(("a",), np.zeros(1), np.ones(1), np.ones((1, 1)))
    assert indicator(Linearization((4.0, 0.0, 0.0), 10), space, reference=[0.5]).value == 0.0
    assert isinf(indicator(Linearization((4.0, 1.0, 0.0), 10), space, reference=[0.5]).value)


def test_only_free_parameters_count(book):
    calibration = so.calibrate(book, so.Heston(), fixed={"mean_reversion": 1.9})
    space = calibration.model.parameters
    theta = space.vector(calibration.parameters)
    system = linearized(book, calibration.model, theta)
    assert next_step(system, free=[1, 2, 3, 4])[0] < 1e-7
    assert next_step(system)[0] > 1e-4
    found = indicator(system, space, reference=theta, free=[1, 2, 3, 4])
    assert found.value < indicator(system, space, reference=theta).value


def test_the_next_step_predicts_the_error_that_is_left(book):
    """Over all retained quotes the ratio of the predicted to the true error is near one."""
    calibration = so.calibrate(book, so.Heston())
    kept = book[np.random.default_rng(7).random(len(book)) > 0.25]
    _, error, reached, truth = struck(calibration, kept)
    _, bar = next_step(linearized(kept, calibration.model, reached))
    assert bar == pytest.approx(error, rel=0.2)
    assert next_step(linearized(kept, truth.model, truth.parameters.values()))[0] < 1e-7


def test_a_positive_parameter_has_its_own_size_and_a_correlation_the_room_around_it():
    space = so.Heston().parameters
    assert sizes(space, (4.0, 0.09, 0.8, 0.0, 0.09)) == pytest.approx([4.0, 0.09, 0.8, 0.999, 0.09])
    assert sizes(space, (4.0, 0.09, 0.8, -0.99, 0.09))[3] == pytest.approx(1 - 0.99**2, rel=0.1)
