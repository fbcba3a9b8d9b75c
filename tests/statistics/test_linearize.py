"""Linearize: curvature and score are those of the rows, by every path."""

from __future__ import annotations

import numpy as np
import pytest

import strikeout as so
from strikeout.statistics.linearize import linearize, linearize_each, price_residuals, rows
from strikeout.statistics.losses import Huber
from strikeout.statistics.objective import objective_of
from tests.calibration.smile_model import Smile, book

THETA = [0.25, -0.05, 0.2]


@pytest.mark.parametrize("residual", ["price", "implied_vol"])
@pytest.mark.parametrize("huber", [False, True])
def test_the_score_is_minus_half_the_gradient_of_the_cost(residual, huber):
    objective, _ = objective_of(book(noise=0.001), residual=residual)
    if huber:
        objective = objective.with_loss(Huber(1.0 if residual == "price" else 0.05))
    score = linearize(objective, Smile(), THETA).score
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-6
        up, down = (linearize(objective, Smile(), THETA + sign * step).cost for sign in (1.0, -1.0))
        # A central difference of step 1e-6: third derivative * 1e-12, and eps * cost / 1e-6.
        assert score[i] == pytest.approx(-(up - down) / 4e-6, rel=1e-5, abs=1e-7)


def test_the_curvature_is_that_of_the_weighted_rows():
    weight = np.linspace(0.5, 2.0, 18)
    objective, _ = objective_of(book(noise=0.2), weights=weight)
    residual, jacobian = rows(objective, Smile(), np.array(THETA))
    equations = linearize(objective, Smile(), THETA)
    weighted = jacobian.T * objective.weight
    assert equations.curvature == pytest.approx(weighted @ jacobian, rel=1e-13)  # 18 terms, each to an eps
    assert equations.score == pytest.approx(weighted @ residual, rel=1e-11)  # terms of both signs cancel
    assert equations.cost == pytest.approx(objective.weight @ residual**2, rel=1e-13)


def test_an_outlier_pulls_but_does_not_stiffen():
    quotes = book()
    spoiled = quotes.with_observed(np.where(quotes.ids == "q7", 1e6, quotes.observed))
    clean, _ = objective_of(quotes.without(["q7"]))
    outlier, _ = objective_of(spoiled)
    loss = Huber(100.0)
    a, b = (linearize(o.with_loss(loss), Smile(), THETA) for o in (clean, outlier))
    # The same seventeen terms, summed in another grouping.
    assert b.curvature == pytest.approx(a.curvature, rel=1e-13)
    assert abs(b.score - a.score).max() > 1.0


def test_the_fused_pass_equals_the_rows():
    quotes = so.paper.quotes("small", seed=1)
    model, theta = so.Heston(), [1.5, 0.05, 0.4, -0.5, 0.07]
    objective, _ = objective_of(quotes, weights=np.linspace(1.0, 3.0, len(quotes)))
    fused = linearize(objective, model, theta)
    residual, jacobian = rows(objective, model, np.array(theta))
    a = np.column_stack([jacobian, residual]) * objective.root_weight[:, None]
    summed = (a.T @ a)[np.triu_indices(6)]
    size = np.sqrt(np.outer((a * a).sum(0), (a * a).sum(0)))[np.triu_indices(6)]
    # Both sum 540 products; what they differ by is rounding of the rows themselves, 1e-13 of the forward.
    assert np.abs(np.array(fused.triangle) - summed).max() <= 1e-9 * size.max()
    assert (np.abs(np.array(fused.triangle) - summed) <= 1e-10 * size).all()


def test_price_residuals_are_prices_even_where_volatilities_are_compared():
    objective, _ = objective_of(book(noise=0.001), residual="implied_vol")
    residual = price_residuals(objective, Smile(), THETA)
    assert (residual == objective.observed - Smile().price(np.array(THETA), objective.contracts)).all()


def test_a_vanishing_price_moves_with_no_parameter():
    c = so.Contracts(forward=100.0, strike=[100.0, 1e6], expiry=0.01, discount=1.0, is_call=True)
    quotes = so.Quotes(ids=["atm", "nothing"], contracts=c, observed=[1.0, 1e-8])
    objective, _ = objective_of(quotes, residual="implied_vol")
    residual, jacobian = rows(objective, Smile(), np.array([0.2, 0.0, 0.0]))
    assert np.isfinite(residual).all()
    assert (jacobian[1] == 0.0).all()


@pytest.mark.parametrize("residual", ["price", "implied_vol"])
def test_several_objectives_at_once_give_the_bits_of_each_alone(residual):
    quotes = so.synthetic.panel_quotes(5, seed=2)
    parts = [objective_of(quotes[quotes.labels["day"] == day], residual=residual)[0] for day in range(5)]
    thetas = [[2.0, 0.06, 0.3, -0.6, 0.02 + 0.01 * day] for day in range(5)]
    together = linearize_each(list(zip(parts, thetas, strict=True)), so.Heston())
    alone = [linearize(part, so.Heston(), theta) for part, theta in zip(parts, thetas, strict=True)]
    assert together == alone
