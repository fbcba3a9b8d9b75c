"""SABR: Hagan's implied volatilities, lognormal and normal, with their four derivatives.

    dF = alpha F^beta dW,    dalpha = nu alpha dZ,    dW dZ = rho dt

    symbol   meaning                                                  name outside the kernels
    alpha    volatility today, in units of forward^(1 - beta)         alpha
    beta     exponent: 0 normal, 1 lognormal                          beta
    rho      correlation of the two motions                           correlation
    nu       volatility of the volatility                             vol_of_vol
    L, B     ln(F / K); 1 - beta
    q        (F K)^(B / 2)
    D        1 + B^2 L^2 / 24 + B^4 L^4 / 1920
    z        nu q L / alpha
    R, x     sqrt(1 - 2 rho z + z^2); ln((R + z - rho) / (1 - rho))
    chi      z / x, which is 1 at the money
    e        the correction of first order in T

Hagan, Kumar, Lesniewski and Woodward, "Managing smile risk" (2002), equation 2.17 and its normal counterpart in the
appendix. An expansion in T: far from the money at long expiries it is not free of arbitrage. Elementwise; nothing
raises.
"""

from __future__ import annotations

import numpy as np

from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats

Columns = tuple[Floats, Floats, Floats, Floats]


def lognormal(F: Floats, K: Floats, T: Floats, theta: Columns) -> tuple[Floats, Columns]:
    """Return Black's volatility and its derivatives by alpha, beta, rho, nu; theta in that order."""
    alpha, beta, rho, nu = theta
    with np.errstate(all="ignore"):
        B, L, logs, q = _shared(F, K, beta)
        D, D_beta = _denominator(B, L)
        front = alpha / (q * D)
        by_beta = 0.5 * logs - D_beta / D  # d ln front
        u, uu = alpha / q, np.square(alpha / q)
        e = B * B * uu / 24.0 + 0.25 * rho * beta * nu * u + (2.0 - 3.0 * rho * rho) * nu * nu / 24.0
        e_alpha = (B * B * uu / 12.0 + 0.25 * rho * beta * nu * u) / alpha
        # u moves with beta too: du / dbeta = u ln(F K) / 2.
        e_beta = (B * logs - 2.0) * B * uu / 24.0 + 0.25 * rho * nu * u * (1.0 + 0.5 * beta * logs)
        return _joined(front, by_beta, (e, e_alpha, e_beta), (L, logs, q, u, beta), theta, T)


def normal(F: Floats, K: Floats, T: Floats, theta: Columns) -> tuple[Floats, Columns]:
    """Bachelier's volatility and its derivatives by alpha, beta, rho, nu; theta in that order."""
    alpha, beta, rho, nu = theta
    with np.errstate(all="ignore"):
        B, L, logs, q = _shared(F, K, beta)
        D, D_beta = _denominator(B, L)
        L2 = L * L
        front = alpha * elementary.exp(0.5 * beta * logs) * (1.0 + L2 / 24.0 + L2 * L2 / 1920.0) / D
        by_beta = 0.5 * logs - D_beta / D
        u, uu = alpha / q, np.square(alpha / q)
        bend = beta * (2.0 - beta)
        e = -bend * uu / 24.0 + 0.25 * rho * beta * nu * u + (2.0 - 3.0 * rho * rho) * nu * nu / 24.0
        e_alpha = (-bend * uu / 12.0 + 0.25 * rho * beta * nu * u) / alpha
        e_beta = -(2.0 * B + bend * logs) * uu / 24.0 + 0.25 * rho * nu * u * (1.0 + 0.5 * beta * logs)
        return _joined(front, by_beta, (e, e_alpha, e_beta), (L, logs, q, u, beta), theta, T)


def _shared(F: Floats, K: Floats, beta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    B, logs = 1.0 - beta, elementary.log(F) + elementary.log(K)
    # log1p keeps the digits of L where F and K nearly agree
    return B, np.sign(F - K) * elementary.log1p(np.abs(F - K) / np.minimum(F, K)), logs, elementary.exp(0.5 * B * logs)


def _denominator(B: Floats, L: Floats) -> tuple[Floats, Floats]:
    c = np.square(B * L)
    L2 = L * L
    return 1.0 + c / 24.0 + c * c / 1920.0, -(B * L2 / 12.0 + B * c * L2 / 480.0)


def _joined(
    front: Floats,
    by_beta: Floats,
    correction: tuple[Floats, Floats, Floats],
    at: tuple[Floats, Floats, Floats, Floats, Floats],
    theta: Columns,
    T: Floats,
) -> tuple[Floats, Columns]:
    """``front * chi * (1 + e T)`` and its derivatives, ``by_beta`` being that of ln(front)."""
    (e, e_alpha, e_beta), (L, logs, q, u, beta), (alpha, _, rho, nu) = correction, at, theta
    z = nu * q * L / alpha
    chi, z_chi, chi_rho = chi_of(z, rho)
    E = 1.0 + e * T
    volatility = front * chi * E
    body = front * chi
    e_rho = 0.25 * beta * nu * u - 0.25 * rho * nu * nu
    e_nu = 0.25 * rho * beta * u + (2.0 - 3.0 * rho * rho) * nu / 12.0
    # z falls like 1 / alpha, grows like nu, and d ln z / dbeta = -ln(F K) / 2.
    return volatility, (
        (body - front * z_chi) * E / alpha + body * T * e_alpha,
        volatility * by_beta - front * z_chi * E * (0.5 * logs) + body * T * e_beta,
        front * chi_rho * E + body * T * e_rho,
        front * _over(z_chi, nu, -0.5 * rho * q * L / alpha) * E + body * T * e_nu,
    )


def chi_of(z: Floats, rho: Floats) -> tuple[Floats, Floats, Floats]:
    """``chi``, ``z dchi/dz`` and ``dchi/drho``, with all digits near z = 0."""
    # chi(z, rho) = chi(-z, -rho); for z < 0 the formula as it stands would cancel.
    side = np.where(z < 0.0, -1.0, 1.0)
    z, rho = np.abs(z), side * rho
    square = z * z - 2.0 * rho * z
    R = np.sqrt(1.0 + square)
    d = square / (R + 1.0)  # R - 1
    x = elementary.log1p((z + d) / (1.0 - rho))
    chi = np.where(z == 0.0, 1.0, z / x)
    z_chi = chi * (1.0 - chi / R)
    # dx/drho over a common denominator; what is of first order in z drops out before it is computed.
    x_rho = (z * (z + rho * d) / (R + 1.0) + d * (d + z)) / (R * (R + z - rho) * (1.0 - rho))
    chi_rho = np.where(z == 0.0, 0.0, -side * chi * x_rho / x)
    return chi, z_chi, chi_rho


def _over(a: Floats, b: Floats, limit: Floats) -> Floats:
    return np.where(b == 0.0, limit, a / b)
