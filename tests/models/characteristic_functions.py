"""Log-characteristic functions of ln(S_T / forward) with their gradients, as a user would write them."""

from __future__ import annotations

import numpy as np


def black_scholes(z, T, theta):
    """theta: vol."""
    q = -0.5 * T * (z * z + 1j * z)
    return theta[0] ** 2 * q, (2.0 * theta[0] * q,)


def heston(z, T, theta):
    """theta: kappa, vbar, sigma, rho, v0. Derivatives by the chain rule over (xi, d), unlike the kernels'."""
    kappa, vbar, sigma, rho, v0 = theta
    a = 1j * z
    q = z * z + a
    xi = kappa - rho * sigma * a
    d = np.sqrt(xi * xi + sigma * sigma * q)
    e = np.exp(-d * T)
    p = d * (1.0 + e) + xi * (1.0 - e)
    log = np.log(p / (2.0 * d))
    s2 = sigma * sigma
    A = -q * T / (xi + d) - 2.0 * log / s2
    B = -q * (1.0 - e) / p
    # partial derivatives of A and B by xi and by d, the other held still
    p_xi, p_d = 1.0 - e, 1.0 + e - T * e * (d - xi)
    A_xi = q * T / (xi + d) ** 2 - 2.0 / s2 * p_xi / p
    A_d = q * T / (xi + d) ** 2 - 2.0 / s2 * (p_d / p - 1.0 / d)
    B_xi = q * (1.0 - e) * p_xi / p**2
    B_d = -q * T * e / p + q * (1.0 - e) * p_d / p**2

    def along(xi_slope, d_slope):
        return kappa * vbar * (A_xi * xi_slope + A_d * d_slope) + v0 * (B_xi * xi_slope + B_d * d_slope)

    by_kappa = vbar * A + along(1.0, xi / d)
    by_sigma = kappa * vbar * 4.0 * log / sigma**3 + along(-rho * a, (-rho * a * xi + sigma * q) / d)
    by_rho = along(-sigma * a, -sigma * a * xi / d)
    return kappa * vbar * A + v0 * B, (by_kappa, kappa * A, by_sigma, by_rho, B)


def jumps(z, T, theta):
    """theta: intensity, mean and standard deviation of the log jump; drift compensated."""
    intensity, mean, sd = theta
    a = 1j * z
    jump, forward = np.exp(a * mean - 0.5 * sd * sd * z * z), np.exp(mean + 0.5 * sd * sd)
    each = jump - 1.0 - a * (forward - 1.0)
    by_mean, by_sd = a * (jump - forward), -sd * (z * z * jump + a * forward)
    return intensity * T * each, (T * each, intensity * T * by_mean, intensity * T * by_sd)


def merton(z, T, theta):
    """theta: vol, then the jumps'."""
    diffusion, by_vol = black_scholes(z, T, theta[:1])
    jump, by_jump = jumps(z, T, theta[1:])
    return diffusion + jump, (*by_vol, *by_jump)


def bates(z, T, theta):
    """theta: Heston's five, then the jumps'."""
    diffusion, by_heston = heston(z, T, theta[:5])
    jump, by_jump = jumps(z, T, theta[5:])
    return diffusion + jump, (*by_heston, *by_jump)


def variance_gamma(z, T, theta):
    """theta: sigma, nu, mean (Madan, Carr and Chang 1998)."""
    sigma, nu, mean = theta
    a = 1j * z
    left = 1.0 - mean * nu - 0.5 * sigma * sigma * nu
    omega = np.log(left) / nu
    inside = 1.0 - mean * nu * a + 0.5 * sigma * sigma * nu * z * z
    log = np.log(inside)
    by_sigma = a * (-sigma / left) - sigma * z * z / inside
    by_nu = a * (-(mean + 0.5 * sigma * sigma) / left - omega) / nu
    by_nu = by_nu + (log / nu - (-mean * a + 0.5 * sigma * sigma * z * z) / inside) / nu
    by_mean = -a / left + a / inside
    return T * (a * omega - log / nu), (T * by_sigma, T * by_nu, T * by_mean)
