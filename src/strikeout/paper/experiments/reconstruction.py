"""A quote rebuilt from its cached statistics: forward, strike, expiry and price out of ``(u, psi)``.

symbol   meaning
psi      J'J, a 5 x 5 matrix of rank one: it gives J up to its sign, and a call's vega is above zero
u        J'r: with J it gives the residual r
F, k, T  forward, ln(strike / forward) and expiry; the discount follows from a public interest rate

J has five entries and three unknowns, so they are found by damped Gauss-Newton on J(F, k, T) / J - 1. Then
observed = model price + r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts
from strikeout.synthetic.heston_quotes import RATE, SPOT

Floats = NDArray[np.float64]
DIFFERENCE = 1e-6  # of a central difference in ln F, k, ln T
STARTS = tuple((k, T) for T in (0.15, 0.3, 0.08) for k in (0.0, -0.15, 0.15))
GOOD = 1e-8  # relative, of every one of the four


@dataclass(frozen=True)
class Rebuilt:
    """Relative errors of what was rebuilt of one quote."""

    forward: float
    strike: float
    expiry: float
    price: float

    @property
    def worst(self) -> float:
        """The largest of the four; infinite if none was found."""
        errors = (self.forward, self.strike, self.expiry, self.price)
        return max(error if error == error else float("inf") for error in errors)


def rebuilt(calibration: Calibration, rows: Sequence[int]) -> list[Rebuilt]:
    """Return these quotes rebuilt from nothing but the calibrated parameters, an interest rate, and their ``(u, psi)``.

    Raises:
        ParameterError: the parameters are not a point of the model.
    """
    quotes, model = calibration.quotes, calibration.model
    theta = np.array(list(calibration.parameters.values()))
    price, J = model.linearize(theta, quotes.contracts)
    out = []
    for row in rows:
        psi, u = np.outer(J[row], J[row]), J[row] * (quotes.observed[row] - price[row])
        found = rebuild(model, theta, psi=psi, u=u)
        true = quotes.contracts
        known = (true.forward[row], true.strike[row], true.expiry[row], quotes.observed[row])
        out.append(Rebuilt(*(abs(a / b - 1.0) for a, b in zip(found, map(float, known), strict=True))))
    return out


def rebuild(model: Model, theta: Floats, *, psi: Floats, u: Floats) -> tuple[float, float, float, float]:
    """Return forward, strike, expiry and observed price of a call from its cached statistics.

    Not-a-number if no start leads to them.

    Raises:
        ParameterError: theta is not a point of the model.
    """
    sensitivities = psi[:, -1] / sqrt(psi[-1, -1])
    residual = float(u[-1] / sensitivities[-1])

    def miss(point: Floats) -> Floats:
        return np.asarray(model.linearize(theta, _call(point))[1][0] / sensitivities - 1.0)

    best, left = np.full(3, np.nan), np.inf
    for k, T in STARTS:
        point, rest = _descend(miss, np.array([np.log(SPOT), k, np.log(T)]))
        if rest < left:
            best, left = point, rest
        if left < 1e-20:
            break
    if not np.isfinite(best).all():
        return (np.nan,) * 4
    call = _call(best)
    price = float(model.price(theta, call)[0]) + residual
    return float(call.forward[0]), float(call.strike[0]), float(call.expiry[0]), price


def _call(point: Floats) -> Contracts:
    forward, T = np.exp(point[0]), np.exp(point[2])
    return Contracts(
        forward=forward, strike=forward * np.exp(point[1]), expiry=T, discount=np.exp(-RATE * T), is_call=True
    )


def _descend(miss: Callable[[Floats], Floats], point: Floats) -> tuple[Floats, float]:
    """Search by Levenberg-Marquardt in three unknowns, kept within what any exchange lists."""
    damping, here = 1e-3, miss(point)
    cost = float(here @ here)
    for _ in range(60):
        A = np.stack([_slope(miss, point, i) for i in range(3)], axis=1)
        H, G = A.T @ A, A.T @ here
        moved = False
        for _ in range(12):
            try:
                step = np.linalg.solve(H + damping * np.diag(np.diag(H)), -G)
            except np.linalg.LinAlgError:
                return point, cost
            there = np.clip(point + step, [0.0, -2.0, np.log(1 / 365)], [12.0, 2.0, np.log(10.0)])
            ahead = miss(there)
            gained = float(ahead @ ahead)
            if gained < cost:
                point, here, cost, damping, moved = there, ahead, gained, damping * 0.1, True
                break
            damping *= 10.0
        if not moved or cost < 1e-26:
            break
    return point, cost


def _slope(miss: Callable[[Floats], Floats], point: Floats, i: int) -> Floats:
    shift = np.zeros(3)
    shift[i] = DIFFERENCE
    return (miss(point + shift) - miss(point - shift)) / (2.0 * DIFFERENCE)
