"""One data-free step with different cached curvatures: what each keeps of a quote, and where its step leads.

    symbol     meaning                                                          shape
    r, J, D    residual, sensitivities, second derivatives of a quote's price   n; n, p; n, p, p
    H, G       sum J J', sum J r: Gauss-Newton's curvature and the score        p, p; p
    S, T, Q    sum r D, sum J D, sum D D: what the second order adds            p, p; p, p, p; p, p, p, p
    C          what a secant update found missing in H, from the calibration    p, p
    d          the step                                                         p

Rows are weighted by the square roots of the weights. All sums are of the retained quotes at a reference that was fitted
with the forgotten ones in it. They are summed here directly, which gives what subtracting the forgotten rows gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.sr1 import updated
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import linearize, rows
from strikeout.statistics.objective import objective_of
from strikeout.statistics.second_order import STEP, SecondOrder

Floats = NDArray[np.float64]

ITERATIONS = 50  # of the search in the quadratic model of the prices, which has no prices to compute
SETTLED = 1e-10
# Standard errors: a shorter step of a calibration changes the score by little more than its rounding; a longer one
# comes from so far away that its curvature shows nothing of the optimum.
TELLING = (1e-2, 30.0)


@dataclass(frozen=True, eq=False)
class Cache:
    """What is kept of the retained quotes at one reference."""

    reference: Floats
    r: Floats
    J: Floats
    D: Floats

    @property
    def curvature(self) -> Floats:
        return np.asarray(self.J.T @ self.J)

    @property
    def score(self) -> Floats:
        return np.asarray(self.J.T @ self.r)

    @property
    def second_order(self) -> SecondOrder:
        return SecondOrder(np.einsum("n,nab->ab", self.r, self.D), np.einsum("nk,nab->kab", self.J, self.D))


def cached(quotes: Quotes, model: Model, reference: Floats) -> Cache:
    """Return residuals, sensitivities and second derivatives of these quotes at a reference."""
    objective, _ = objective_of(quotes)
    root = objective.root_weight[:, None]
    r, J = rows(objective, model, reference)
    D = np.empty((len(r), len(reference), len(reference)))
    for i, h in enumerate(STEP * np.abs(reference)):
        up, down = (rows(objective, model, reference + s * h * np.eye(len(reference))[i])[1] for s in (1.0, -1.0))
        D[:, :, i] = (up - down) / (2.0 * h)
    return Cache(reference, objective.root_weight * r, root * J, 0.5 * root[:, :, None] * (D + D.transpose(0, 2, 1)))


def learnt(calibration: Calibration, update: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
    """Return C: what a secant update along the accepted steps of the calibration adds to H, forgotten quotes and all.

    ``update`` takes a curvature, a step and the change of the score over it. As in structured methods H is that of the
    point, and only what is missing is carried on. Steps too short to separate curvature from rounding are left out.
    """
    objective, _ = objective_of(calibration.quotes)
    points = [calibration.model.parameters.vector(one.parameters) for one in calibration.history]
    systems = [linearize(objective, calibration.model, point.tolist()) for point in points]
    C = np.zeros_like(systems[-1].curvature)
    for here, there, a, b in zip(points[:-1], points[1:], systems[:-1], systems[1:], strict=True):
        s, H = there - here, b.curvature
        if TELLING[0] < np.sqrt(s @ H @ s / (b.cost / b.count)) < TELLING[1]:
            C = update(H + C, s, a.score - b.score) - H
    return C


def rank_one(B: Floats, s: Floats, y: Floats) -> Floats:
    """Return the symmetric rank-one update."""
    found = updated(None, B.tolist(), s.tolist(), y.tolist())
    return B if found is None else B + np.array(found)


def bfgs(B: Floats, s: Floats, y: Floats) -> Floats:
    """Return Broyden's, Fletcher's, Goldfarb's and Shanno's update; None if the step finds no positive curvature."""
    if not y @ s > 0.0:
        return B
    Bs = B @ s
    return np.asarray(B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (y @ s))


def step(H: Floats, G: Floats) -> Floats:
    """``H^-1 G``, scaled; not-a-number if H is not positive definite and a step would lead uphill."""
    diagonal = np.diag(H)
    if not (diagonal > 0.0).all():
        return np.full(len(G), np.nan)
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * np.outer(scale, scale)
    if not np.linalg.eigvalsh(scaled)[0] > 0.0:
        return np.full(len(G), np.nan)
    return np.asarray(scale * np.linalg.solve(scaled, scale * G))


def gauss_newton(cache: Cache) -> Floats:
    """Return the paper's: H alone."""
    return step(cache.curvature, cache.score)


def newton(cache: Cache) -> Floats:
    """Step with the second-order term of the residuals, H - S, the true second derivative of the cost."""
    return step(cache.curvature - cache.second_order.residual, cache.score)


def corrected(cache: Cache) -> Floats:
    """Take Gauss-Newton's step, then what it misses to second order: S and T."""
    d = gauss_newton(cache)
    return d + cache.second_order.left_out(cache.curvature, d)


def quadratic(cache: Cache) -> Floats:
    """Return the optimum of the quotes when every price is its own quadratic at the reference: H, G, S, T and Q.

    The search needs the sums alone; it runs over the rows here, which is the same.
    """
    d, damping = np.zeros(len(cache.reference)), 0.0
    r, J = _bent(cache, d)
    cost = r @ r
    for _ in range(ITERATIONS):
        H, G = J.T @ J, J.T @ r
        change = step(H + damping * np.diag(np.diag(H)), G)
        ahead = _bent(cache, d + change)
        if not ahead[0] @ ahead[0] <= cost:
            damping = max(4.0 * damping, 1e-3)
            continue
        (r, J), d, damping = ahead, d + change, 0.2 * damping
        if cost - r @ r <= SETTLED * cost:
            break
        cost = r @ r
    return d


def _bent(cache: Cache, d: Floats) -> tuple[Floats, Floats]:
    Dd = cache.D @ d
    return cache.r - (cache.J + 0.5 * Dd) @ d, cache.J + Dd
