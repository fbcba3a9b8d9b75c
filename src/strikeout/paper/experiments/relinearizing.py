"""Propositions 2 and 6 as experiments: the second Gauss-Newton step, and what it leaves, against the first.

symbol   meaning
d, d+    the first step, and the one after relinearizing all quotes where it led
left     the distance to the optimum after both steps
||.||    Euclidean, each parameter over its size (for a correlation over 1 - rho^2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.indicator import sizes
from strikeout.models.model import Model
from strikeout.paper.experiments.measuring import Slope, slope_of
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import objective_of
from strikeout.synthetic.heston_quotes import TRUTH

Floats = NDArray[np.float64]
DIRECTION = (1.0, -0.6, 0.8, 0.5, -0.7)  # where the reference lies from the truth, in parameter sizes; any will do
ROUNDING = 1e-11  # a step shorter than this, in parameter sizes, is the rounding of prices divided by curvature


@dataclass(frozen=True, eq=False)
class Relinearizing:
    """Lengths of first and second steps from references nearer and nearer, for prices with some noise.

    ``slope`` is the exponent of the second step in the first (Proposition 2), ``accuracy`` that of what both steps
    leave (Proposition 6), each over the points above rounding.
    """

    noise: float  # standard deviation, in currency
    first: Floats
    second: Floats
    left: Floats
    slope: Slope
    accuracy: Slope


def relinearizing(
    book: Quotes, model: Model, *, noises: Sequence[float], points: int, seed: int
) -> list[Relinearizing]:
    """Measure one curve per noise. The paper's small-residual regime is a noise of zero, where the slope is two.

    With noise the score's first-order term ``C1 ||r|| ||d||`` takes over as the step shrinks, and the slope is one.

    Raises:
        RefusedError, UsageError: as ``calibrate``, of the quotes.
    """
    truth = model.parameters.vector(TRUTH)
    errors = np.random.default_rng(seed).standard_normal(len(book))
    exact = model.price(truth, book.contracts)
    away = np.geomspace(3e-4, 3e-2, points)
    return [_curve(book.with_observed(exact + noise * errors), model, truth, away, noise=noise) for noise in noises]


def _curve(book: Quotes, model: Model, truth: Floats, away: Floats, *, noise: float) -> Relinearizing:
    size = np.array(sizes(model.parameters, tuple(truth.tolist())))
    middle = truth
    for _ in range(20):  # the optimum of these prices, from which the references are measured
        middle = middle + _step(book, model, middle)
    lengths = []
    for distance in away:
        reference = middle + distance * np.array(DIRECTION) * size
        d = _step(book, model, reference)
        ahead = _step(book, model, reference + d)
        rest = reference + d + ahead - middle
        lengths.append([np.linalg.norm(x / size) for x in (d, ahead, rest)])
    first, second, left = np.array(lengths).T
    clear, known = second > ROUNDING, left > ROUNDING
    slope, accuracy = slope_of(first[clear], second[clear]), slope_of(first[known], left[known])
    return Relinearizing(noise, first, second, left, slope, accuracy)


def _step(book: Quotes, model: Model, theta: Floats) -> Floats:
    objective, _ = objective_of(book)
    residual, J = rows(objective, model, theta)
    norms = np.linalg.norm(J, axis=0)
    return np.asarray(np.linalg.lstsq(J / norms, residual, rcond=None)[0] / norms)
