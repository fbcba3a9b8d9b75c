"""Bates' model as two parts of its paths: those that never jump, and the others.

With N jumps until T, n = lam T expected and c = n m the drift that pays for them (jump_cf.py), the covered call is

    E[min(e^X, e^k)] = exp(-n (1 + m)) E[min(e^Y, e^(k + c))] + E[min(e^X, e^k); N > 0]

Y is Heston's own X, so the first part is Heston's kernel at k + c: contours and cells, a few dozen nodes per slice.
The characteristic function of the second part is

    cf(z) - cf(z; N = 0) = exp(H(z) - n (1 + i z m)) (exp(n phi(z)) - 1),    phi(z) = exp(i z mu - z^2 delta^2 / 2)

H Heston's logarithm. It falls like phi, as a Gaussian of the jumps' own deviation, while all of cf falls no faster than
Heston's: at short expiries that is the difference between thousands of nodes and dozens. On the line
(fourier_trapezoid.py) its images have the far ends P(N > 0) e^k and E[e^X; N > 0] instead of e^k and 1. Images and
strikes worth nothing are bounded by the moments of all of X, which are larger.

If more than ``MOST_JUMPS`` are expected, hardly a path is without a jump, and the line of all of X is used.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from strikeout.kernels import fourier_trapezoid, heston_cf, heston_twin
from strikeout.kernels.arrays import Complexes, Floats

VERSION = 1  # of the split: another one moves the last bits of a price
MOST_JUMPS = 16.0  # expected


def is_split(T: float, theta: Floats) -> bool:
    """Return whether a slice is priced in two parts."""
    lam, mu, delta = theta[5:].tolist()
    with np.errstate(over="ignore"):
        return bool((lam * T) * max(1.0, float(np.exp(mu + 0.5 * (delta * delta)))) <= MOST_JUMPS)


def values(
    T: float, theta: Floats, k: Floats, log_cf: fourier_trapezoid.LogCf, whole: fourier_trapezoid.Known
) -> Floats:
    """Return the out-of-the-money value over the discounted forward and its eight derivatives, ``(9, n)``.

    Args:
        T: time to expiry.
        theta: Heston's five parameters and the three of the jumps.
        k: log-moneyness, ascending.
        log_cf: of all paths.
        whole: what is known of all paths.
    """
    with np.errstate(all="ignore"):
        lam, mu, delta = theta[5:].tolist()
        n, forward, less = (
            lam * T,
            float(np.exp(mu + 0.5 * (delta * delta))),
            float(np.expm1(mu + 0.5 * (delta * delta))),
        )
        kept, none = float(np.exp(-n * forward)), float(np.exp(-n))
        by_drift = np.array([T * less, n * forward, n * delta * forward])
        by_kept = -np.array([T, n, n * delta]) * (forward * kept)
        far = np.zeros((9, 2))
        far[0], far[6:, 0], far[6, 1] = (1.0 - kept, 1.0 - none), -by_kept, T * none

        known = replace(whole, bound=partial(_bound, T, theta), terms=partial(_terms, T, theta))
        line = replace(fourier_trapezoid.rule(log_cf, T, theta, known), far=far)
        out, near = fourier_trapezoid.values(line, k, "numpy"), fourier_trapezoid.near(line, k)
        shifted = k[near] + n * less
        parts = heston_twin.Parts(np.array([T]), np.array([0, len(shifted)]), shifted)
        heston = heston_twin.rows_and_slope(theta[:5], parts)
        growth = np.exp(shifted)
        covered = np.minimum(growth, 1.0) - heston[0]
        slope = np.where(shifted < 0.0, growth, 0.0) - heston[6]
        out[0, near] -= kept * covered
        out[1:6, near] += kept * heston[1:6]
        out[6:, near] -= by_kept[:, None] * covered + kept * by_drift[:, None] * slope
        return out


def _terms(T: float, theta: Floats, u: Floats, h: float) -> Complexes:
    """``F`` of the paths that jump, ``(nodes, 9)``."""
    lam, mu, delta = theta[5:].tolist()
    z = np.asarray(u - 0.5j, np.complex128)
    a, square, n = 1j * z, z * z, lam * T
    forward, less = float(np.exp(mu + 0.5 * (delta * delta))), float(np.expm1(mu + 0.5 * (delta * delta)))
    jump = np.exp(mu * a - (0.5 * (delta * delta)) * square)
    value, gradient = heston_cf.log_cf(z, square + a, T, theta[:5])
    each = -1.0 - less * a
    start = np.exp(value + n * each) * ((h / np.pi) / (u * u + 0.25))
    grown = np.exp(n * jump)
    first, jumped = start * (grown - 1.0), start * (grown * jump)
    by_lam, by_mu = T * (first * each + jumped), n * (a * (jumped - forward * first))
    by_delta = -(n * delta) * (square * jumped + forward * (a * first))
    return np.stack([first, *(first * slope for slope in gradient), by_lam, by_mu, by_delta], axis=1)


def _bound(T: float, theta: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Return what ``ln |exp(H - n (1 + i z m) + n phi) phi|`` is at most, never rising, and each term over it."""
    lam, mu, delta = theta[5:].tolist()
    d2, n = delta * delta, lam * T
    size, slope = heston_cf.bound(u, T, theta[:5])
    a = np.sqrt(u * u + 0.25)
    forward, less = float(np.exp(mu + 0.5 * d2)), float(np.expm1(mu + 0.5 * d2))
    log_jump = 0.5 * mu + 0.125 * d2 - (0.5 * d2) * (u * u)
    slopes = (
        n * np.maximum(slope, 1.0),
        T + (n * T) * (1.0 + abs(less) * a),
        n * (a * (1.0 + n * forward)),
        (n * delta) * (a * (a + n * forward)),
    )
    return size + n * (np.exp(log_jump) - (1.0 + 0.5 * less)) + log_jump, np.maximum.reduce(slopes)
