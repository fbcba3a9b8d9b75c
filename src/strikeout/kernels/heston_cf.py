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

import math

import numpy as np

from strikeout.kernels.arrays import Complexes, Floats

AMPLIFIED = 64.0  # kappa vbar / sigma^2: below, a logarithm may lose its last digits


def log_cf(z: Complexes, q: Complexes, T: Complexes | float, theta: Floats) -> tuple[Complexes, Complexes]:
    """``ln E[exp(i z X)]`` and its derivatives by kappa, vbar, sigma, rho, v0 along a first axis.

    With a = i z, q = z^2 + a, xi = kappa - rho sigma a, d = sqrt(xi^2 + sigma^2 q) (Re d > 0), E = exp(-d T):

        ln cf = kappa vbar A + v0 B,    P = (d + xi) + (d - xi) E,
        A = -(T (d - xi) + 2 ln(P / 2d)) / sigma^2,    B = -q (1 - E) / P.

    Of d + xi and d - xi one may cancel; (d + xi) (d - xi) = sigma^2 q gives it from the other. For small sigma P / 2d
    is near one, and kappa vbar / sigma^2 amplifies what its logarithm loses: it is found from 1 - P / 2d. q is an
    argument because near the poles z = 0 and z = -i the caller has it to more digits. T is one number, or an
    array like z: complex, because NumPy is faster without conversions.

    The derivatives are written in R = (d - xi) E / P and S = (d + xi) / P, which sum to one and are small or of order
    one wherever cf is not about to explode, even if q and P are both nearly zero: near z = -i with rho sigma >
    kappa over years. No two large terms cancel, and nothing grows with c = kappa vbar / sigma^2. By xi, d moves along;
    by sigma, xi moves along as well.
    """
    kappa, vbar, sigma, rho, v0 = theta.tolist()
    c, s2 = kappa * vbar / (sigma * sigma), sigma * sigma
    # Every product of complex arrays has named operands. A temporary of 256 kB or more would be multiplied in place,
    # which NumPy does without the fused operations it uses otherwise: the last bit would depend on the batch.
    a_sigma = (1j * sigma) * z
    xi = kappa - rho * a_sigma
    s2q = s2 * q
    d = np.sqrt(xi * xi + s2q)
    dT = d * T
    E = np.exp(-dT)
    safe = xi.real >= 0.0
    if safe.all():
        plus = d + xi
        minus = s2q / plus
    else:
        large = d + np.where(safe, xi, -xi)
        small = s2q / large
        plus, minus = np.where(safe, large, small), np.where(safe, small, large)
    minus_E, qE = minus * E, q * E
    P = plus + minus_E
    invP, half_invd = 1.0 / P, 0.5 / d
    invd = half_invd + half_invd
    m, v0q = 1.0 - E, v0 * q
    if c < AMPLIFIED:
        logarithm = log(P * half_invd)
    else:
        lack = minus * m
        logarithm = log_near_one(P * half_invd, lack * half_invd)
    cT, v0T, xiT, Ts2q = c * T, v0 * T, xi * T, s2q * T
    cT_minus = cT * minus
    level = -2.0 * c * logarithm - cT_minus  # kappa vbar A
    mP, R, S, qEP = m * invP, minus_E * invP, plus * invP, qE * invP
    v0B = -(v0q * mP)
    both = 2.0 * R + xiT * R
    minus_d, s2q_d, v0qEP = minus * invd, s2q * invd, v0T * qEP
    sum_xi = 2.0 * c * both - 2.0 * c * minus_d + cT_minus - v0qEP * xi + v0B * both - v0B
    by_xi = sum_xi * invd
    bent = minus * S + s2 * qEP - Ts2q * R
    sum_d = 2.0 * c * bent - 2.0 * c * s2q_d + c * Ts2q + v0qEP * s2q + v0B * bent
    by_d = sum_d * invd  # the derivative by d at fixed xi, times -sigma^2 q / d
    by_rho = a_sigma * by_xi
    by_sigma = by_d + rho * by_rho + 2.0 * level
    gradient = np.empty((5, *z.shape), complex)
    np.add(level * (1.0 / kappa), by_xi, out=gradient[0])
    np.multiply(level, 1.0 / vbar, out=gradient[1])
    np.multiply(by_sigma, -1.0 / sigma, out=gradient[2])
    np.negative(by_rho, out=gradient[3])
    np.multiply(v0B, 1.0 / v0, out=gradient[4])
    return level + v0B, gradient


def log(w: Complexes) -> Complexes:
    """Return the principal branch, from real functions: a third of the time of NumPy's own."""
    out = np.empty_like(w)
    re, im = w.real, w.imag
    np.log(re * re + im * im, out=out.real)
    out.real *= 0.5
    np.arctan2(im, re, out=out.imag)
    return out


def log_near_one(w: Complexes, lack: Complexes) -> Complexes:
    """Return ``log``, with all the digits of ``lack = 1 - w`` if that is small."""
    re, im = lack.real, lack.imag
    x = re * (re - 2.0) + im * im  # |w|^2 - 1
    out = log(w)
    near = np.abs(x) < 0.5
    out.real[near] = 0.5 * np.log1p(x[near])
    out.imag[near] = np.arctan2(-im[near], 1.0 - re[near])
    return out


def log_mgf(p: Floats, T: Floats | float, theta: Floats) -> Floats:
    """Return ``ln E[exp(p X)]`` for real p, +inf if it no longer exists at T.

    With D = xi^2 + sigma^2 q and d = sqrt(|D|), the functions of d T / 2 are hyperbolic for D >= 0 (both over
    exp(d T / 2), which cannot overflow), trigonometric for D < 0:

        Q = d cosh + xi sinh,    ln E = kappa vbar / sigma^2 (xi T - 2 ln(Q / d)) - v0 q sinh / Q.

    Source of the explosion time, the first T at which Q = 0: Andersen and Piterbarg (2007), proposition 3.1.
    """
    kappa, vbar, sigma, rho, v0 = theta.tolist()
    q = p - p * p
    xi = kappa - (rho * sigma) * p
    D = xi * xi + (sigma * sigma) * q
    is_real = D >= 0.0
    d = np.sqrt(np.abs(D))
    half = d * (0.5 * T)
    with np.errstate(all="ignore"):
        E = 0.5 * np.exp(-2.0 * half)
        c, s = np.where(is_real, 0.5 + E, np.cos(half)), np.where(is_real, 0.5 - E, np.sin(half))
        Q = d * c + xi * s
        linear = (xi - np.where(is_real, d, 0.0)) * T
        value = (kappa * vbar / (sigma * sigma)) * (linear - 2.0 * np.log(Q / d)) - v0 * q * (s / Q)
    # The phase of Q begins below pi and grows by half; it has not passed pi where Q is positive and half below pi.
    return np.where((Q > 0.0) & (is_real | (half < np.pi)), value, np.inf)


def log_moment(p: float, T: float, theta: tuple[float, ...]) -> float:
    """``log_mgf`` of one number: for a few of them that costs less than arrays."""
    kappa, vbar, sigma, rho, v0 = theta
    q, xi = p - p * p, kappa - rho * sigma * p
    D = xi * xi + sigma * sigma * q
    d = math.sqrt(abs(D))
    half = 0.5 * d * T
    if D >= 0.0:
        E = 0.5 * math.exp(-2.0 * half)
        c, s, linear = 0.5 + E, 0.5 - E, (xi - d) * T
    elif half < math.pi:
        c, s, linear = math.cos(half), math.sin(half), xi * T
    else:
        return math.inf
    Q = d * c + xi * s
    if not Q > 0.0:
        return math.inf
    found = kappa * vbar / (sigma * sigma) * (linear - 2.0 * math.log(Q / d)) - v0 * q * (s / Q)
    return found if found < math.inf else math.inf  # not-a-number, after an overflow, is infinite too


def bound(u: Floats, T: float, theta: Floats) -> tuple[Floats, Floats]:
    """Return what ``ln |cf(u - i/2)|`` is at most, never rising with u > 0, and what each of its derivatives is at
    most.

    On that line q = u^2 + 1/4 is real and xi = kappa' - i rho sigma u with kappa' = kappa - rho sigma / 2. B = x + i y
    solves Riccati's equation B' = -q/2 - xi B + sigma^2 B^2 / 2, B(0) = 0, whose real part is, after completing the
    square,

        x' = -((1 - rho^2) u^2 + 1/4) / 2 - kappa' x + sigma^2 x^2 / 2 - (sigma y + rho u)^2 / 2.

    Without the last square x rises faster: x is at most the solution of the equation that is left, a real Riccati
    equation with (1 - rho^2) u^2 in the place of u^2. That one falls with u, and so does its integral, so that

        ln |cf| = v0 x(T) + kappa vbar (integral of x)

    is bounded whatever cf does in between: it may come back, but not above this. As u grows the two fall alike. With
    e = (sigma y + rho u) / (rho u), e(0) = 1, e' = kappa' (1 - e) + sigma^2 x e: e stays between 0 and 1 (for kappa' >=
    0), hence |y| <= |rho| u / sigma, and with 1 for e x is at least the solution for rho = 0. That bounds |B|, and the
    linear equations that B's derivatives solve bound those.
    """
    kappa, vbar, sigma, rho, v0 = theta.tolist()
    speed, weight = kappa - 0.5 * (rho * sigma), v0 + kappa * vbar * T
    u2 = u * u
    a = np.sqrt(u2 + 0.25)
    B, integral = _riccati((1.0 - rho * rho) * u2 + 0.25, speed, sigma, T)
    y = (rho / sigma) * u
    least = _riccati(u2 + 0.25, speed, sigma, T)[0]
    size = np.sqrt(least * least + y * y)
    slopes = (
        size,
        (kappa * T) * size,
        ((vbar + weight) * T) * size,
        (weight * sigma * T) * (a * size),
        (weight * T) * (size * (sigma * size + abs(rho) * a)),
    )
    return v0 * B + (kappa * vbar) * integral, np.maximum.reduce(slopes)


def _riccati(q: Floats, kappa: float, sigma: float, T: float) -> tuple[Floats, Floats]:
    """B and its integral over 0..T for ``B' = -q/2 - kappa B + sigma^2 B^2 / 2``, ``B(0) = 0``, all real."""
    s2 = sigma * sigma
    d = np.sqrt(kappa * kappa + s2 * q)
    E = np.exp(-d * T)
    large = d + abs(kappa)
    small = s2 * q / large
    plus, minus = (small, large) if kappa < 0.0 else (large, small)
    P = plus + minus * E
    return -q * (1.0 - E) / P, -(T * minus + 2.0 * np.log(0.5 * P / d)) / s2
