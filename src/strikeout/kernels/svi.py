"""Total variance as a curve of log-strike: SVI of one smile, raw and natural, and the surface SSVI, with derivatives.

    w(k) = a + b (rho (k - m) + R),    R = sqrt((k - m)^2 + sigma^2)                                     raw
    w(k) = theta / 2 (1 + rho phi k + R),    R = sqrt((phi k + rho)^2 + 1 - rho^2)                       natural
    phi  = eta theta^-gamma (1 + theta)^(gamma - 1)                                                      SSVI

    symbol   meaning                                          name outside the kernels
    k, w     ln(K / F); Black's variance times T
    w0       w at the forward, a + b (R(0) - rho m)           level
    p, c     slopes of the wings, b (1 - rho) and b (1 + rho) left, right
    rho      tilt of the wings                                correlation
    m, sigma where the smile is centred; how round it is      centre, width
    theta    total variance at the money                      variance (theta / T)
    phi      curvature at the money                           curvature
    eta, gamma   of SSVI: its size, and how it fades with theta      curvature, fading

Gatheral (2004) and Gatheral and Jacquier, "Arbitrage-free SVI volatility surfaces" (2014), sections 3 and 4. w0, p
and c replace a, b and rho in raw smiles: w is linear in them, quotes determine w0 whatever else they leave open, and a
wing without quotes is one parameter, not a direction in three. Elementwise; nothing raises.
"""

from __future__ import annotations

import numpy as np

from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats


def raw(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by w0, p, c, m, sigma."""
    w0, p, c, m, sigma = theta
    x = k - m
    R, R0 = np.sqrt(x * x + sigma * sigma), np.sqrt(m * m + sigma * sigma)
    b, rise = 0.5 * (p + c), R - R0
    left, right = 0.5 * (rise - k), 0.5 * (rise + k)
    return w0 + p * left + c * right, (
        np.ones_like(k),
        left,
        right,
        -b * (x / R + m / R0),
        b * (sigma / R - sigma / R0),
    )


def natural(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by theta, rho, phi."""
    total, rho, phi = theta
    x = phi * k
    R = np.sqrt(x * x + 2.0 * rho * x + 1.0)
    inner = 1.0 + rho * x + R
    by_x = 0.5 * total * (rho + (x + rho) / R)
    return 0.5 * total * inner, (0.5 * inner, 0.5 * total * (x + x / R), by_x * k)


def surface(k: Floats, theta: tuple[Floats, ...]) -> tuple[Floats, tuple[Floats, ...]]:
    """w and its derivatives by theta, rho, eta, gamma."""
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
    """
    a, b, rho, m, sigma = theta
    x = k - m
    R = np.sqrt(x * x + sigma * sigma)
    w = a + b * (rho * x + R)
    first = b * (rho + x / R)
    second = b * sigma * sigma / (R * R * R)
    return np.asarray(np.square(1.0 - k * first / (2.0 * w)) - 0.25 * first * first * (1.0 / w + 0.25) + 0.5 * second)
