"""What one step leaves out, as additive sums: they predict its error, whether the model fits or not."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.errors import ParameterError
from strikeout.statistics.second_order import SecondOrder, quote_terms_of, second_order_of

BOOK = so.paper.quotes("small", seed=7)
THETA = [1.9, 0.062, 0.32, -0.58, 0.061]


def test_the_sums_of_two_halves_are_those_of_the_whole_and_can_be_taken_away():
    model = so.Heston(expiries="shared")
    whole, first, second = (second_order_of(part, model, THETA) for part in (BOOK, BOOK[:200], BOOK[200:]))
    both, left = first + second, whole - second
    # Sums of 540 numbers of one size: 540 eps of the largest.
    for mine, theirs, rest in zip(vars(whole).values(), vars(both).values(), vars(left).values(), strict=True):
        limit = 540 * np.finfo(float).eps * np.abs(mine).max()
        assert np.abs(mine - theirs).max() <= limit
        assert np.abs(rest - vars(first)["residual" if rest.ndim == 2 else "sensitivity"]).max() <= 4 * limit


def test_every_quotes_part_is_what_it_adds():
    model = so.Heston(expiries="shared")
    bends = quote_terms_of(BOOK, model, THETA)
    part = bends.only(np.array([3, 77, 410]))
    alone = second_order_of(BOOK[[3, 77, 410]], model, THETA)
    assert part.residual == pytest.approx(alone.residual, rel=1e-9)
    assert part.sensitivity == pytest.approx(alone.sensitivity, rel=1e-9)


def test_the_sums_are_the_second_derivatives_of_the_score():
    """The derivative of G = sum w J r is S - H: checked along a direction by differences of the score itself."""
    model, direction = so.Heston(expiries="shared"), np.array([0.5, 0.01, -0.05, 0.03, 0.02])
    price, J = model.linearize(THETA, BOOK.contracts)
    h = 1e-4
    scores = []
    for sign in (1.0, -1.0):
        p, j = model.linearize(np.array(THETA) + sign * h * direction, BOOK.contracts)
        scores.append(j.T @ (BOOK.observed - p))
    slope = (scores[0] - scores[1]) / (2.0 * h)
    expected = (second_order_of(BOOK, model, THETA).residual - J.T @ J) @ direction
    assert slope == pytest.approx(expected, rel=1e-4)  # two differences of step 1e-4, each good to its square
    assert np.isfinite(price).all()


def test_what_is_left_out_of_a_step_in_one_parameter_is_known_in_closed_form():
    """m = exp(a x): with one parameter every sum is a number, and the optimum is found by Newton's method to 1e-15."""
    x = np.linspace(0.1, 1.0, 20)
    y = np.exp(0.7 * x) + 0.05 * np.cos(9.0 * x)
    a = 0.65
    r, J, D = y - np.exp(a * x), x * np.exp(a * x), x * x * np.exp(a * x)
    sums = SecondOrder(np.array([[r @ D]]), np.array([[[J @ D]]]))
    H, d = np.array([[J @ J]]), np.array([J @ r / (J @ J)])
    t = a
    for _ in range(50):
        r2, j2, d2 = y - np.exp(t * x), x * np.exp(t * x), x * x * np.exp(t * x)
        t += (j2 @ r2) / (j2 @ j2 - d2 @ r2)
    missed = t - (a + d[0])
    found = sums.left_out(H, d)[0]
    assert abs(missed) > 1e-4
    assert found == pytest.approx(missed, rel=0.1)  # second order: the rest is the step, 0.07, over the parameter


def test_where_there_is_no_minimum_nothing_is_predicted():
    sums = SecondOrder(np.array([[2.0]]), np.zeros((1, 1, 1)))
    assert np.isnan(sums.left_out(np.array([[1.0]]), np.array([0.1]))).all()


def test_no_quotes_leave_nothing_and_a_reference_at_the_edge_is_refused():
    nothing = second_order_of(BOOK[:0], so.Heston(), THETA)
    assert not nothing.residual.any()
    assert not nothing.sensitivity.any()
    with pytest.raises(ParameterError):
        second_order_of(BOOK, so.Heston(), [2.0, 0.06, 0.3, -0.99999, 0.06])


def test_only_some_parameters_means_the_others_are_fixed():
    sums = second_order_of(BOOK, so.Heston(expiries="shared"), THETA)
    part = sums.only([1, 4])
    assert part.residual.tolist() == sums.residual[np.ix_([1, 4], [1, 4])].tolist()
    assert part.sensitivity.shape == (2, 2, 2)
