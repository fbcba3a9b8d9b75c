"""Lognormal jumps: what they add to a log-characteristic function, and its three derivatives.

    symbol   meaning                                          unit      name outside the kernels
    lam      how many jumps are expected                      1/year    jump_intensity
    mu       mean of a jump of ln S                           -         jump_mean
    delta    standard deviation of a jump of ln S             -         jump_deviation
    m        E[e^jump] - 1 = exp(mu + delta^2 / 2) - 1        -
    z, T     complex frequency, time to expiry                -, year

Merton (1976), as Bates (1996) adds it to Heston's model; the drift is compensated, so that E[S_T] stays the forward.
"""

from __future__ import annotations

import numpy as np

from strikeout.kernels.arrays import Complexes, Floats


def log_cf(z: Complexes, T: float, theta: Floats) -> tuple[Complexes, tuple[Complexes, Complexes, Complexes]]:
    """``lam T (exp(i z mu - z^2 delta^2 / 2) - 1 - i z m)`` and its derivatives by lam, mu, delta."""
    lam, mu, delta = theta
    a = 1j * z
    d2 = delta * delta
    square = z * z
    exponent = mu * a - (0.5 * d2) * square
    less = np.expm1(exponent)
    forward = np.exp(mu + 0.5 * d2)
    drift = a * np.expm1(mu + 0.5 * d2)
    each = less - drift
    jump = less + 1.0
    by_mu = a * (jump - forward)
    squared = square * jump
    by_delta = -delta * (squared + a * forward)
    return (lam * T) * each, (T * each, (lam * T) * by_mu, (lam * T) * by_delta)


def log_mgf(p: Floats, T: float, theta: Floats) -> Floats:
    """``ln E[exp(p X)]`` for real p."""
    lam, mu, delta = theta.tolist()
    half = 0.5 * (delta * delta)
    found: Floats = (lam * T) * (np.expm1(mu * p + half * (p * p)) - float(np.expm1(mu + half)) * p)
    return found


def bound(u: Floats, T: float, theta: Floats) -> tuple[Floats, Floats]:
    """Return what ``ln |cf(u - i/2)|`` is at most, never rising with u, and what each of its derivatives is at most.

    A jump's own cf is there of size exp(mu / 2 + delta^2 / 8 - u^2 delta^2 / 2), which falls, and of any phase: with
    jumps of nearly one size |cf| falls to exp(-2 lam T) and comes back, again and again. The bound takes the phase for
    the worst.
    """
    lam, mu, delta = theta.tolist()
    d2 = delta * delta
    jump = np.exp(0.5 * mu + 0.125 * d2 - (0.5 * d2) * (u * u))
    less = float(np.expm1(mu + 0.5 * d2))
    a = np.sqrt(u * u + 0.25)
    slopes = (
        T * (jump + 1.0 + abs(less) * a),
        (lam * T) * (a * (jump + 1.0 + less)),
        (lam * T * delta) * (a * (a * jump + 1.0 + less)),
    )
    return (lam * T) * (jump - (1.0 + 0.5 * less)), np.maximum.reduce(slopes)
