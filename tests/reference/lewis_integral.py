"""The Heston price, slowly and obviously: Lewis' integral, 30 digits, Gauss-Legendre panel by panel.

    otm(k) = min(1, e^k) - e^(k/2) / pi * integral over u > 0 of Re[exp(-i u k) cf(u - i/2)] / (u^2 + 1/4)

Shares nothing with the kernels: another line than their contours, another rule, another form of the characteristic
function, another arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import mpmath as mp
import numpy as np

POINTS = 40  # a panel; exact to 1e-16 while the phase turns by no more than TURN
TURN = 20.0


def cf(z: mp.mpc, T: mp.mpf, theta: Sequence[float]) -> mp.mpc:
    """Heston's characteristic function of ln(S_T / forward), as Albrecher and others (2007) print it."""
    kappa, vbar, sigma, rho, v0 = map(mp.mpf, theta)
    beta = kappa - rho * sigma * 1j * z
    d = mp.sqrt(beta**2 + sigma**2 * (1j * z + z**2))
    g = (beta - d) / (beta + d)
    e = mp.exp(-d * T)
    a = kappa * vbar / sigma**2 * ((beta - d) * T - 2 * mp.log((1 - g * e) / (1 - g)))
    return mp.exp(a + v0 / sigma**2 * (beta - d) * (1 - e) / (1 - g * e))


def panels(theta: Sequence[float], T: float, farthest: float, most: int) -> list[tuple[float, float]] | None:
    """Intervals of u up to where the integrand is below 1e-20: doubling, but never longer than the phase allows.

    None where there would be more than ``most`` of them.
    """
    kappa, vbar, sigma, _, v0 = theta
    longest = 2.0 * TURN / (farthest + (v0 + kappa * vbar * T) / sigma)
    edges = [0.0, min(1.0, longest)]
    while abs(cf(mp.mpc(edges[-1], -0.5), mp.mpf(T), theta)) > mp.mpf("1e-20"):
        edges.append(edges[-1] + min(edges[-1], longest))
        if len(edges) > most + 1:
            return None
    return list(pairwise(edges))


def otm(theta: Sequence[float], T: float, k: Sequence[float], most: int = 8000) -> np.ndarray | None:
    """Out-of-the-money values over the discounted forward; None where more than ``most`` nodes would be needed."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    with mp.workdps(30):
        cuts = panels(theta, T, max(map(abs, k)), most // POINTS)
        if cuts is None:
            return None
        total = [mp.mpf(0) for _ in k]
        for a, b in cuts:
            for xi, wi in zip(x.tolist(), w.tolist(), strict=True):
                u = mp.mpf(a) + (mp.mpf(b) - a) * (1 + mp.mpf(xi)) / 2
                f = wi * (mp.mpf(b) - a) / 2 * cf(mp.mpc(u, -0.5), mp.mpf(T), theta) / (u**2 + 0.25)
                for i, ki in enumerate(k):
                    total[i] += (f * mp.expj(-u * ki)).real
        pairs = zip(k, total, strict=True)
        return np.array([float(min(mp.mpf(1), mp.exp(ki)) - mp.exp(mp.mpf(ki) / 2) / mp.pi * t) for ki, t in pairs])
