"""Total variance as a curve of log-strike: raw SVI of one smile, and the surface SSVI, with their derivatives.

    w(k) = a + b (rho (k - m) + R),    R = sqrt((k - m)^2 + sigma^2)                                     raw SVI
    w(k) = theta / 2 (1 + rho phi k + R),    R = sqrt((phi k + rho)^2 + 1 - rho^2)                       SSVI
    phi  = eta theta^-gamma (1 + theta)^(gamma - 1)

    symbol   meaning                                          name outside the kernels
    k, w     ln(K / F); Black's variance times T
    a, b     level; how fast the wings rise                   level, slope
    rho      tilt of the wings                                tilt
    m, sigma where the smile is centred; how round it is      centre, width
    theta    total variance at the money                      variance (theta / T)
    eta, gamma   curvature at the money, and how it fades with theta      curvature, fading

Gatheral (2004) and Gatheral and Jacquier, "Arbitrage-free SVI volatility surfaces" (2014), sections 3 and 4 and
equation 4.5. Elementwise; nothing raises.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def raw(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by a, b, rho, m, sigma.

    Raises:
        Nothing.
    """
    a, b, rho, m, sigma = theta
    x = k - m
    R = np.sqrt(x * x + sigma * sigma)
    rise = rho * x + R
    return a + b * rise, (np.ones_like(k), rise, b * x, -b * (rho + x / R), b * (sigma / R))


def surface(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by theta, rho, eta, gamma.

    Raises:
        Nothing.
    """
    total, rho, eta, gamma = theta
    phi = eta * total**-gamma * (1.0 + total) ** (gamma - 1.0)
    x = phi * k
    R = np.sqrt(x * x + 2.0 * rho * x + 1.0)
    inner = 1.0 + rho * x + R
    by_x = 0.5 * total * (rho + (x + rho) / R)  # dw/dx, and x moves like phi
    moved = by_x * x
    fade = -gamma / total + (gamma - 1.0) / (1.0 + total)  # d ln phi / d theta
    spread = np.log1p(1.0 / total)  # d ln phi / d gamma = ln((1 + theta) / theta)
    return 0.5 * total * inner, (
        0.5 * inner + moved * fade,
        0.5 * total * (x + x / R),
        moved / eta,
        moved * spread,
    )


def durrleman(k: Floats, theta: Floats) -> Floats:
    """g(k) of a raw SVI smile: the density of ln K is g times a positive function, so below zero is an arbitrage.

    Gatheral and Jacquier (2014), equation 2.1. Raises: nothing.
    """
    a, b, rho, m, sigma = theta
    x = k - m
    R = np.sqrt(x * x + sigma * sigma)
    w = a + b * (rho * x + R)
    first = b * (rho + x / R)
    second = b * sigma * sigma / R**3
    return np.asarray((1.0 - k * first / (2.0 * w)) ** 2 - 0.25 * first**2 * (1.0 / w + 0.25) + 0.5 * second)
