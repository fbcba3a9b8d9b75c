"""The Heston characteristic function, its five derivatives and its moments.

    X = ln(S_T / F), dv = kappa (vbar - v) dt + sigma sqrt(v) dW, correlation rho, v(0) = v0

    symbol   meaning                                     unit          name outside the kernels
    kappa    speed of mean reversion                     1/year        mean_reversion
    vbar     long-run variance (theta_v in the paper)    1/year        long_variance
    sigma    volatility of variance                      1/year        vol_of_vol
    rho      correlation of the two motions              -             correlation
    v0       variance today                              1/year        initial_variance
    z        complex frequency                           -
    T        time to expiry                              year

Source: Heston (1993), in the form of Albrecher, Mayer, Schoutens and Tistaert (2007), arranged so that nothing cancels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]


def log_cf(z: Complexes, q: Complexes, T: Floats | float, theta: Floats) -> tuple[Complexes, tuple[Complexes, ...]]:
    """``ln E[exp(i z X)]`` and its derivatives by kappa, vbar, sigma, rho, v0.

    With a = i z, q = z^2 + a, xi = kappa - rho sigma a, d = sqrt(xi^2 + sigma^2 q) (Re d > 0), E = exp(-d T):

        ln cf = kappa vbar A + v0 B,    P = (d + xi) + (d - xi) E,
        A = -(T (d - xi) + 2 ln(P / 2d)) / sigma^2,    B = -q (1 - E) / P.

    Of d + xi and d - xi one may cancel; (d + xi) (d - xi) = sigma^2 q gives it from the other. q is an
    argument because near the poles z = 0 and z = -i the caller knows it better than z does.
    """
    kappa, vbar, sigma, rho, v0 = theta
    kv, s2 = kappa * vbar, sigma * sigma
    # Every product of complex arrays has named operands. A temporary of 256 kB or more would be multiplied in place,
    # which NumPy does without the fused operations it uses otherwise: the last bit would depend on the batch.
    a = 1j * z
    xi = kappa - (rho * sigma) * a
    s2q = s2 * q
    d = np.sqrt(xi * xi + s2q)
    E = np.exp(d * -T)
    safe = xi.real >= 0.0
    large = d + np.where(safe, xi, -xi)
    small = s2q / large
    plus, minus = np.where(safe, large, small), np.where(safe, small, large)
    m = 1.0 - E
    P = plus + minus * E
    invP = 1.0 / P
    invd = 1.0 / d
    W = P * invd
    lnW = np.log(0.5 * W)
    A = (T * minus + 2.0 * lnW) * (-1.0 / s2)
    mP = m * invP
    B = -(q * mP)
    TE = T * E
    slope = 1.0 + E - TE * minus  # dP/dd at fixed xi
    PdP = slope * invP
    excess = PdP - invd
    qP = q * invP
    B_d = qP * TE + B * PdP  # -dB/dd
    ratio = xi * invd
    by_d = (T + 2.0 * excess) * (-kv / s2) - v0 * B_d  # at fixed xi
    by_xi = (T * (minus * invd) - 2.0 * (mP + excess * ratio)) * (kv / s2) - v0 * (
        B * mP + B_d * ratio
    )  # d moves along
    qd = q * invd
    by_sigma = sigma * (by_d * qd) - (2.0 * kv / sigma) * A  # at fixed xi
    a_by_xi = a * by_xi
    gradient = (vbar * A + by_xi, kappa * A, by_sigma - rho * a_by_xi, -sigma * a_by_xi, B)
    return kv * A + v0 * B, gradient


def log_mgf(p: Floats, T: Floats | float, theta: Floats) -> Floats:
    """``ln E[exp(p X)]`` for real p, +inf where that moment no longer exists at T.

    Source of the explosion time: Andersen and Piterbarg (2007), proposition 3.1.
    """
    kappa, vbar, sigma, rho, v0 = theta
    q = p - p * p
    xi = kappa - (rho * sigma) * p
    D2 = xi * xi + (sigma * sigma) * q
    d = np.sqrt(np.abs(D2))
    kv = kappa * vbar / (sigma * sigma)
    with np.errstate(all="ignore"):
        # D2 >= 0: hyperbolic; the moment explodes only where xi < 0 and p is outside [0, 1]
        E = np.exp(-d * T)
        P = d * (1.0 + E) + xi * (1.0 - E)
        real = kv * ((xi - d) * T - 2.0 * np.log(P / (2.0 * d))) - v0 * q * (1.0 - E) / P
        # D2 < 0: trigonometric; explodes when the phase d T / 2 + atan2(d, xi) reaches pi
        c, s = np.cos(0.5 * d * T), np.sin(0.5 * d * T)
        Q = d * c + xi * s
        trig = kv * (xi * T - 2.0 * np.log(Q / d)) - v0 * q * s / Q
        value = np.where(
            D2 >= 0, np.where(P > 0, real, np.inf), np.where(0.5 * d * T + np.arctan2(d, xi) < np.pi, trig, np.inf)
        )
    return np.where(np.isnan(value), np.inf, value)


def total_variance(T: Floats | float, theta: Floats) -> Floats:
    """``E[integral of v over 0..T]``."""
    kappa, vbar, _, _, v0 = theta
    return np.asarray(vbar * T + (v0 - vbar) * (-np.expm1(-kappa * T)) / kappa)
