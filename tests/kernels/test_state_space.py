"""Filters and smoothers of a linear Gaussian state and of regimes, against statsmodels and brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from strikeout.kernels.state_space import (
    Transition,
    filter_regimes,
    filter_states,
    predict,
    smooth_states,
    update,
)

RNG = np.random.default_rng(5)
DATES = 60
Y = RNG.normal(size=(DATES, 1)).cumsum(axis=0)
J = RNG.uniform(0.2, 5.0, DATES)
STEPS = [
    Transition(*row) for row in zip(RNG.uniform(0.5, 1, DATES - 1), RNG.normal(size=DATES - 1),
                                    RNG.uniform(0.1, 2, DATES - 1), np.zeros(DATES - 1), strict=True)
]  # fmt: skip


def peer(y: np.ndarray, J: np.ndarray, steps: list[Transition]) -> object:
    """statsmodels' smoother with an exact diffuse beginning; a missing date is not-a-number."""
    n = len(y)
    model = KalmanSmoother(k_endog=1, k_states=1, nobs=n)
    model.bind(y.reshape(n, 1))
    model["design"] = np.ones((1, 1))
    model["selection"] = np.ones((1, 1))
    model["obs_cov"] = (1.0 / J).reshape(1, 1, n)
    ahead = [*steps, steps[-1]]
    model["transition"] = np.array([step.a for step in ahead]).reshape(1, 1, n)
    model["state_intercept"] = np.array([step.c for step in ahead]).reshape(1, n)
    model["state_cov"] = np.array([step.u for step in ahead]).reshape(1, 1, n)
    model.initialize_diffuse()
    return model.smooth()


def test_the_filter_and_the_smoother_are_those_of_statsmodels():
    wanted = peer(Y, J, STEPS)
    found = filter_states(Y, J, STEPS)
    smoothed = smooth_states(found, STEPS)
    np.testing.assert_allclose([b.M[0] for b in found.after], wanted.filtered_state[0], rtol=1e-10)
    np.testing.assert_allclose([b.P for b in found.after], wanted.filtered_state_cov[0, 0], rtol=1e-10)
    np.testing.assert_allclose([b.M[0] for b in smoothed], wanted.smoothed_state[0], rtol=1e-10)
    np.testing.assert_allclose([b.P for b in smoothed], wanted.smoothed_state_cov[0, 0], rtol=1e-10)
    np.testing.assert_allclose(found.log_density, wanted.llf_obs[1:], rtol=1e-10)


def test_derivatives_pass_through_the_gains_of_the_state():
    follows = RNG.normal(size=DATES)
    both = smooth_states(filter_states(np.column_stack([Y, follows]), J, STEPS), STEPS)
    h = 1e-3  # the smoother is linear in what it observes, so a difference has no error but rounding
    moved = smooth_states(filter_states(Y + h * follows[:, None], J, STEPS), STEPS)
    difference = [(there.M[0] - here.M[0]) / h for there, here in zip(moved, both, strict=True)]
    np.testing.assert_allclose([b.M[1] for b in both], difference, atol=1e-10)


def test_a_filter_that_is_continued_has_the_bits_of_the_whole_one():
    whole = filter_states(Y, J, STEPS)
    part = filter_states(Y[:-1], J[:-1], STEPS[:-1])
    step = update(predict(part.after[-1], STEPS[-1]), Y[-1], float(J[-1]))
    assert (step.M[0], step.P) == (whole.after[-1].M[0], whole.after[-1].P)
    again = filter_states(Y, J, STEPS, part)
    assert again.log_density == whole.log_density
    assert [b.P for b in again.after] == [b.P for b in whole.after]


def test_a_variance_that_depends_on_the_state_is_taken_at_its_filtered_mean_and_not_below_zero():
    step = Transition(0.9, 0.1, 0.2, 3.0)
    seen = filter_states(np.array([[2.0], [1.0]]), np.ones(2), [step])
    np.testing.assert_allclose(seen.before[0].P, 0.81 + 0.2 + 6.0, rtol=1e-15)
    below = filter_states(np.array([[-2.0], [1.0]]), np.ones(2), [step])
    np.testing.assert_allclose(below.before[0].P, 0.81 + 0.2, rtol=1e-15)


def brute(log_densities: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, float]:
    """Probabilities of regimes and the log density of all dates, from every path one by one."""
    n, R = log_densities.shape
    total, by_date = 0.0, np.zeros((n, R))
    for path in product(range(R), repeat=n):
        weight = 1.0 / R
        for t, r in enumerate(path):
            weight *= np.exp(log_densities[t, r]) * (A[path[t - 1], r] if t else 1.0)
        total += weight
        by_date[range(n), path] += weight
    return by_date / total, float(np.log(total))


@pytest.mark.parametrize("regimes", [1, 2, 3])
def test_the_smoothed_probabilities_are_those_of_all_paths(regimes):
    A = RNG.dirichlet(np.ones(regimes), regimes)
    density = RNG.normal(size=(6, regimes)) - 800.0  # densities of this size underflow on their own
    found = filter_regimes(density, A)
    wanted, total = brute(density + 800.0, A)
    np.testing.assert_allclose(found.smoothed, wanted, rtol=1e-12)
    assert found.log_likelihood == pytest.approx(total - 6 * 800.0, rel=1e-12)
    np.testing.assert_allclose(found.changes.sum(), 5.0, rtol=1e-12)
    np.testing.assert_allclose(found.changes.sum(axis=1), found.smoothed[:-1].sum(axis=0), rtol=1e-12)


def test_the_filter_of_regimes_is_that_of_statsmodels():
    y = np.concatenate([RNG.normal(0.0, 1.0, 40), RNG.normal(2.5, 1.0, 40)])
    A = np.array([[0.95, 0.05], [0.1, 0.9]])
    model = MarkovRegression(y, k_regimes=2)
    # statsmodels moves the known probabilities two steps ahead before the first date; ours are those of the first date.
    model.initialize_known(np.linalg.solve(A.T, np.linalg.solve(A.T, [0.5, 0.5])))
    wanted = model.smooth([0.95, 0.1, 0.0, 2.5, 1.0])
    found = filter_regimes(-0.5 * (np.log(2.0 * np.pi) + (y[:, None] - [0.0, 2.5]) ** 2), A)
    np.testing.assert_allclose(found.filtered, wanted.filtered_marginal_probabilities, atol=1e-12)
    np.testing.assert_allclose(found.smoothed, wanted.smoothed_marginal_probabilities, atol=1e-12)
    assert found.log_likelihood == pytest.approx(wanted.llf, rel=1e-12)
