"""The honest opponent: one Gauss-Newton pass over raw quotes as a good quant writes it in NumPy, analytic gradient.

Lewis' single integral on Im z = -1/2 with Gauss-Legendre nodes, the characteristic function once an expiry, one matrix
product for all strikes of it:

    call = Black - D sqrt(F K) / pi int_0^U Re[exp(-i u k) (phi(u - i/2) - gauss(u))] / (u^2 + 1/4) du,  k = ln(K / F)

with Black's price and gauss(u) = exp(-s^2 T (u^2 + 1/4) / 2) at one fixed volatility s, which takes the peak at u = 0
away. Calls on few expiries, ordinary parameters; exact to about 1e-9 there. For anything else, `strikeout.Heston`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import black
from strikeout.kernels.heston_cf import log_cf
from strikeout.paper.method import solved
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]

NODES, REACH = 48, 60.0  # the integral is cut at REACH / sqrt(T)
CONTROL = 0.24  # volatility of Black's price that the integral corrects
X, WEIGHT = np.polynomial.legendre.leggauss(NODES)


def numpy_linearize(contracts: Contracts, theta: Floats) -> tuple[Floats, Floats]:
    """Return prices ``(n,)`` and sensitivities ``(n, 5)`` of calls."""
    out = np.empty((len(contracts), 6))
    forward, strike, discount = contracts.forward, contracts.strike, contracts.discount
    k = np.log(strike / forward)
    front = -discount * np.sqrt(forward * strike) / np.pi
    for T in np.unique(contracts.expiry).tolist():
        rows = np.flatnonzero(contracts.expiry == T)
        half = 0.5 * REACH / np.sqrt(T)
        u = half * (X + 1.0)
        z = u - 0.5j
        exponent, gradient = log_cf(z, z * z + 1j * z, T, theta)
        weight = half * WEIGHT / (u * u + 0.25)
        phi = np.exp(exponent) * weight
        gauss = np.exp(-0.5 * CONTROL**2 * T * (u * u + 0.25)) * weight
        terms = np.stack([phi - gauss, *(phi * part for part in gradient)])
        angle = np.multiply.outer(k[rows], u)
        out[rows] = (np.cos(angle) @ terms.real.T + np.sin(angle) @ terms.imag.T) * front[rows, None]
    out[:, 0] += black.price(forward, strike, contracts.expiry, CONTROL, discount, True)
    return out[:, 0], out[:, 1:]


def numpy_restep(quotes: Quotes, reference: Floats) -> Floats:
    """Take one Gauss-Newton step from raw quotes, vectorised: what a well-written retrain costs."""
    price, J = numpy_linearize(quotes.contracts, reference)
    return solved(reference, J.T @ J, J.T @ (quotes.observed - price))
