"""Total variance as a curve of log-strike: SVI of one smile, raw and natural, and the surface SSVI, with derivatives.

    w(k) = a + b (rho (k - m) + R),    R = sqrt((k - m)^2 + sigma^2)                                     raw
    w(k) = theta / 2 (1 + rho phi k + R),    R = sqrt((phi k + rho)^2 + 1 - rho^2)                       natural
    phi  = eta theta^-gamma (1 + theta)^(gamma - 1)                                                      SSVI

    symbol   meaning                                          name outside the kernels
    k, w     ln(K / F); Black's variance times T
    low      the lowest w, a + b sigma sqrt(1 - rho^2)        lowest
    b        how fast the wings rise                          slope
    rho      tilt of the wings                                tilt, correlation
    m, sigma where the smile is centred; how round it is      centre, width
    theta    total variance at the money                      variance (theta / T)
    phi      curvature at the money                           curvature
    eta, gamma   of SSVI: its size, and how it fades with theta      curvature, fading

Gatheral (2004) and Gatheral and Jacquier, "Arbitrage-free SVI volatility surfaces" (2014), sections 3 and 4. low
replaces a because it is above zero wherever w is. Elementwise; nothing raises.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import elementary

Floats = NDArray[np.float64]


def raw(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by low, b, rho, m, sigma.

    Raises:
        Nothing.
    """
    low, b, rho, m, sigma = theta
    x = k - m
    R = np.sqrt(x * x + sigma * sigma)
    upright = np.sqrt((1.0 - rho) * (1.0 + rho))
    rise = np.maximum(rho * x + R - sigma * upright, 0.0)  # zero at the lowest point, but for rounding
    return low + b * rise, (
        np.ones_like(k),
        rise,
        b * (x + sigma * (rho / upright)),
        -b * (rho + x / R),
        b * (sigma / R - upright),
    )


def natural(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by theta, rho, phi.

    Raises:
        Nothing.
    """
    total, rho, phi = theta
    x = phi * k
    R = np.sqrt(x * x + 2.0 * rho * x + 1.0)
    inner = 1.0 + rho * x + R
    by_x = 0.5 * total * (rho + (x + rho) / R)
    return 0.5 * total * inner, (0.5 * inner, 0.5 * total * (x + x / R), by_x * k)


def surface(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by theta, rho, eta, gamma.

    Raises:
        Nothing.
    """
    total, rho, eta, gamma = theta
    phi = eta * elementary.power(total, -gamma) * elementary.power(1.0 + total, gamma - 1.0)
    w, (by_total, by_rho, by_phi) = natural(k, (total, rho, phi))
    moved = by_phi * phi  # dw / d ln phi
    fade = -gamma / total + (gamma - 1.0) / (1.0 + total)  # d ln phi / d theta
    spread = elementary.log1p(1.0 / total)  # d ln phi / d gamma = ln((1 + theta) / theta)
    return w, (by_total + moved * fade, by_rho, moved / eta, moved * spread)


def durrleman(k: Floats, theta: Floats) -> Floats:
    """g(k) of a raw smile (a, b, rho, m, sigma): a density is g times something positive, so below zero is arbitrage.

    Gatheral and Jacquier (2014), equation 2.1.

    Raises:
        Nothing.
    """
    a, b, rho, m, sigma = theta
    x = k - m
    R = np.sqrt(x * x + sigma * sigma)
    w = a + b * (rho * x + R)
    first = b * (rho + x / R)
    second = b * sigma * sigma / (R * R * R)
    return np.asarray(np.square(1.0 - k * first / (2.0 * w)) - 0.25 * first * first * (1.0 / w + 0.25) + 0.5 * second)
