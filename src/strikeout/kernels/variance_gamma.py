"""Variance gamma prices: Black's formula averaged over a gamma-distributed time, right at every expiry.

    X = ln(S_T / forward) = omega T + theta g + sigma W(g),    g ~ Gamma(a, scale nu),    a = T / nu

    symbol   meaning                                                   name outside the kernels
    sigma    volatility of the Brownian motion                         volatility
    nu       variance of the gamma time, a year                        variance_rate
    theta    drift of the Brownian motion                              drift
    left     1 - theta nu - sigma^2 nu / 2, above zero                 -
    omega    ln(left) / nu, which makes E[S_T] the forward             -
    y        ln(g / nu), on a grid of step h                           -
    w        probability of a node: h exp(a y - e^y) / Gamma(a)        -
    s, f     sigma sqrt(g); ln of the forward given g                  -
    haste    nu theta^2 / sigma^2: how steep a price is in y            -

Given g an option is Black's, with total volatility s and forward e^f. What Fourier inversion cannot do (the
characteristic function falls like u^(-2a), so a day is out of reach) is easy here: the integrand is positive and
analytic in y, and the trapezoid rule gains a digit with every few nodes. How far into the complex plane it is tame,
and so how fine the grid must be, follows from a and the haste: where the drift is large beside the volatility, a price
turns from nothing to intrinsic within a small part of the clock's range.

As g vanishes the price does not, but what is left of it, P_0, is known, and the rest falls like sqrt(g).

Madan, Carr and Chang (1998). The nodes follow from theta and T alone, so a price does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import atan, exp, inf, isfinite, lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.normal import cdf, density

Floats = NDArray[np.float64]

LEVEL = 37.0  # exp(-37) = 9e-17: what each cut may cost
MEMORY = 1 << 18  # numbers at a time; bounds the memory, changes no bit
MOST_NODES = 1 << 15  # beyond, hardly anything but the drift moves the price: no price is given
ANGLES = np.geomspace(1e-6, 0.995, 400)  # shares of the largest angle, among which the best is sought


@dataclass(frozen=True, eq=False)
class Nodes:
    """The gamma times of one expiry, as ``y``, their probabilities, and how these change with the shape a."""

    y: Floats
    w: Floats
    by_shape: Floats  # d ln w / d a = y - digamma(a)


def values(theta: Floats, T: float, k: Floats) -> Floats:
    """Out-of-the-money value over the discounted forward and its derivatives by sigma, nu, theta: ``(4, n)``.

    Not-a-number where E[S_T] does not exist, or the haste asks for too many nodes.
    """
    sigma, nu, mean = (float(x) for x in theta)
    left = 1.0 - nu * (mean + 0.5 * sigma * sigma)
    out = np.full((4, len(k)), np.nan)
    if not (left > 0.0 and sigma > 0.0 and nu > 0.0 and isfinite(sigma) and isfinite(nu)):
        return out
    with np.errstate(all="ignore"):
        # Of the two halves of Black's formula; that of the forward sees a clock of rate ``left``.
        haste = max(mean * mean, (mean + sigma * sigma) ** 2 / left) * nu / (sigma * sigma)
        nodes = nodes_of(T / nu, left, haste)
        if nodes is None:
            return out
        for begin in range(0, len(k), max(MEMORY // len(nodes.y), 1)):
            some = slice(begin, begin + max(MEMORY // len(nodes.y), 1))
            out[:, some] = _averaged(nodes, (sigma, nu, mean), T, left, np.ascontiguousarray(k[some]))
    return out


def nodes_of(a: float, left: float, haste: float) -> Nodes | None:
    """The rule for a gamma time of shape a, whose density may be tilted to the rate ``left`` by the forward; None where
    it has too many nodes."""
    low = _root(lambda y: (a + 0.5) * y - exp(y) - lgamma(a), from_below=True, a=a + 0.5) - max(log(left), 0.0)
    high = _root(lambda y: a * y - exp(y) - lgamma(a), from_below=False, a=a) - min(log(left), 0.0)
    h = 2.0 * pi / _frequency(a + 1.0, haste)
    if not (high - low) / h < MOST_NODES:
        return None
    y: Floats = low + h * np.arange(int((high - low) / h) + 2, dtype=float)
    # Relative to where the density of shape a + 1 has its peak, so that nothing overflows or cancels.
    raw = np.exp(a * (y - log(a + 1.0)) - (np.exp(y) - (a + 1.0)))
    longer = raw * np.exp(y)  # of shape a + 1, whose left tail is short at every a
    total = float(np.add.reduce(longer))
    w = raw * (a / total)  # Gamma(a) = Gamma(a + 1) / a
    digamma = float(np.add.reduce(longer * y)) / total - 1.0 / a
    return Nodes(y, w, y - digamma)


def _averaged(nodes: Nodes, theta: tuple[float, float, float], T: float, left: float, k: Floats) -> Floats:
    sigma, nu, mean = theta
    omega = log(left) / nu
    slope = mean + 0.5 * sigma * sigma
    # By sigma, nu, theta: of f at g = 0, and of f and s at fixed y (so that g = nu e^y moves with nu).
    rest = np.array([-sigma / left, -(slope / left + omega) / nu, -1.0 / left]) * T
    g = nu * np.exp(nodes.y)
    s = sigma * np.sqrt(g)
    f = omega * T + slope * g
    by_f = (rest[0] + sigma * g, rest[1] + slope * (g / nu), rest[2] + g)
    by_s = (s / sigma, s / (2.0 * nu), 0.0 * s)
    sign = np.where(k >= 0.0, 1.0, -1.0)[:, None]  # call or put, whichever is out of the money
    strike, forward = np.exp(k)[:, None], np.exp(f)
    d = (f - k[:, None]) / s + 0.5 * s
    delta = sign * forward * cdf(sign * d)  # dP/df
    vega = forward * density(d)  # dP/ds
    price = delta - sign * strike * cdf(sign * (d - s))
    at_rest = np.exp(omega * T)
    inside = sign * (omega * T - k[:, None]) > 0.0
    price_0 = np.where(inside, sign * (at_rest - strike), 0.0)
    delta_0 = np.where(inside, sign * at_rest, 0.0)
    out = np.empty((4, len(k)))
    out[0] = _sum(price - price_0, nodes.w) + price_0[:, 0]
    for i in range(3):
        moved = delta * by_f[i] + vega * by_s[i] - delta_0 * rest[i]
        out[i + 1] = _sum(moved, nodes.w) + delta_0[:, 0] * rest[i]
    out[2] += _sum(price - price_0, nodes.w * nodes.by_shape) * (-T / (nu * nu))
    return out


def _sum(rows: Floats, weights: Floats) -> Floats:
    # Along the contiguous axis of nodes: a row's sum is then added in the same order whatever the number of rows.
    summed: Floats = np.add.reduce(np.ascontiguousarray(rows * weights), axis=1)
    return summed


def _frequency(a: float, haste: float) -> float:
    """Where the Fourier transform, in y, of density times price has fallen to exp(-LEVEL), at the worst strike.

    At an angle t off the real line e^-g/nu is larger by exp((1 - cos t) g / nu), and the normal distribution in Black's
    formula by up to exp(haste sin(t)^2 / (2 cos t) g / nu). Averaged over the clock the two are the power below; a line
    at t is worth exp(-u t) at the frequency u.
    """
    widest = atan(sqrt(2.0 / haste)) if haste > 0.0 else 0.5 * pi
    t = widest * ANGLES
    shrunk = np.cos(t) - 0.5 * haste * np.sin(t) ** 2 / np.cos(t)
    u = (LEVEL - a * np.log(shrunk)) / t
    return float(np.min(u, where=shrunk > 0.0, initial=inf))


def _root(excess: Callable[[float], float], *, from_below: bool, a: float) -> float:
    """Where a log-density with its peak at ln a crosses -LEVEL, on one side of the peak."""
    inside = log(a)
    outside = inside - 4.0 * LEVEL / a - 16.0 * sqrt(LEVEL / a)
    if not from_below:
        outside = log(a + 8.0 * LEVEL + 16.0 * sqrt(LEVEL * a))
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if excess(middle) < -LEVEL else (middle, outside)
    return outside
