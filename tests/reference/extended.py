"""Prices of Bates, double Heston and variance gamma in extended arithmetic: slow, plain, and not the kernels' way.

Bates and double Heston: Lewis' integral by Gauss' rule, panel by panel, in NumPy's long doubles (64 bits of mantissa on
x86; the kernels take the trapezoid rule, in doubles). The integral ends where the diffusion alone, and the jumps
without their phase, have fallen below 1e-19: whatever the jumps' phase does.

Variance gamma: Black's formula averaged over the clock, in 25 digits of mpmath, with steps that are halved until
nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import mpmath as mp
import numpy as np

Real, Complex = np.longdouble, np.clongdouble
POINTS = 32  # a panel; exact to 1e-18 while the phase turns by no more than TURN
TURN = 16.0
NEGLIGIBLE = 1e-19
PI = 4 * np.arctan(Real(1))


@cache
def gauss() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [-1, 1]: NumPy's, improved by Newton's method."""
    x = np.polynomial.legendre.leggauss(POINTS)[0].astype(Real)
    for _ in range(4):
        before, now = np.ones_like(x), x.copy()
        for j in range(2, POINTS + 1):
            before, now = now, ((2 * j - 1) * x * now - (j - 1) * before) / Real(j)
        slope = POINTS * (x * now - before) / (x * x - 1)
        x = x - now / slope
    return x, 2 / ((1 - x * x) * slope * slope)


def log_variance(z: np.ndarray, T: np.longdouble, theta: Sequence[float]) -> np.ndarray:
    """Heston's log-characteristic function of ln(S_T / forward)."""
    kappa, vbar, sigma, rho, v0 = (Real(x) for x in theta)
    q = z * z + 1j * z
    xi = kappa - rho * sigma * 1j * z
    d = np.sqrt(xi * xi + sigma * sigma * q)
    less = np.where(xi.real >= 0, sigma * sigma * q / (d + xi), d - xi)  # d - xi
    e = np.exp(-d * T)
    lack = -less * (1 - e) / (2 * d)  # of P / 2d to one
    near = 0.5 * np.log1p(2 * lack.real + lack.real**2 + lack.imag**2) + 1j * np.arctan2(lack.imag, 1 + lack.real)
    log = np.where(np.abs(lack) < 0.3, near, np.log(1 + lack))
    return -kappa * vbar * (T * less + 2 * log) / (sigma * sigma) - v0 * q * (1 - e) / (2 * d - less * (1 - e))


def log_jumps(z: np.ndarray, T: np.longdouble, theta: Sequence[float]) -> np.ndarray:
    """Merton's, compensated."""
    lam, mean, sd = (Real(x) for x in theta)
    return lam * T * (np.exp(1j * z * mean - sd * sd * z * z / 2) - 1 - 1j * z * np.expm1(mean + sd * sd / 2))


def on_the_line(theta: Sequence[float], T: float, k: np.ndarray, most: int = 800_000) -> np.ndarray | None:
    """Out-of-the-money values over the discounted forward; None where more than ``most`` nodes would be needed.

    Eight parameters are Bates', ten those of double Heston.
    """
    variances = [theta[:5]] if len(theta) == 8 else [theta[:5], theta[5:]]
    jumps = theta[5:] if len(theta) == 8 else None
    years, strikes = Real(T), np.asarray(k, Real)
    turns = float(np.max(np.abs(strikes)))  # how fast the phase may turn with u
    for kappa, vbar, sigma, rho, v0 in variances:
        turns += 2.0 * abs(rho) * (v0 + kappa * vbar * T) / sigma + 16.0 * abs(rho) * np.sqrt((v0 + vbar) * T)
    if jumps is not None:
        lam, mean, sd = jumps
        size = np.exp(mean / 2 + sd * sd / 8)
        turns += lam * T * (abs(mean) * size + abs(np.expm1(mean + sd * sd / 2)) + sd * sd / 2) + abs(mean) + 8.0 * sd
    longest = TURN / turns

    def is_over(u: float) -> bool:
        total = sum(float(log_variance(np.array([u], Complex) - 0.5j, years, part)[0].real) for part in variances)
        if jumps is not None:
            total += lam * T * (size * np.exp(-sd * sd * u * u / 2) - 1 - np.expm1(mean + sd * sd / 2) / 2)
        return bool(total - np.log(u) < np.log(NEGLIGIBLE))

    end = 1.0
    while not is_over(end):
        end *= 1.5
        if end / longest * POINTS > most:
            return None
    edges = [0.0]
    while edges[-1] < end:
        edges.append(edges[-1] + min(longest, max(0.05, 0.3 * edges[-1])))
    x, w = gauss()
    total = np.zeros(len(strikes), Real)
    for begin in range(0, len(edges) - 1, 256):
        edge = np.array(edges[begin : begin + 257], Real)
        length = np.diff(edge)[:, None]
        u, weight = (edge[:-1, None] + length * (1 + x) / 2).ravel(), (length * w / 2).ravel()
        log = sum(log_variance(u - Complex(0.5j), years, part) for part in variances)
        if jumps is not None:
            log = log + log_jumps(u - Complex(0.5j), years, jumps)
        f = np.exp(log) * (weight / (u * u + Real(0.25)))
        total += [np.sum(f.real * np.cos(u * one) + f.imag * np.sin(u * one)) for one in strikes]
    return (np.minimum(Real(1), np.exp(strikes)) - np.exp(strikes / 2) / PI * total).astype(float)


def on_the_clock(theta: Sequence[float], T: float, k: Sequence[float], most: int = 8000) -> list[float] | None:
    """Variance gamma's; None where more than ``most`` nodes would be needed."""
    with mp.workdps(25):
        sigma, nu, drift, years = (mp.mpf(x) for x in (*theta, T))
        a = years / nu
        slope = drift + sigma**2 / 2
        omega = mp.log(1 - nu * slope) / nu
        # In y = ln(g / nu) the density is exp(a y - e^y) / Gamma(a). Its left tail is long, but prices rest in it.
        low, high = -120 / (2 * a + 1), mp.log(a + 60 + 12 * mp.sqrt(a) + 400 * max(0, slope) * nu / (1 - nu * slope))
        constant = mp.loggamma(a)

        def black(y: mp.mpf, strike: float) -> mp.mpf:
            g = nu * mp.exp(y)
            s, f, sign = sigma * mp.sqrt(g), omega * years + slope * g, 1 if strike >= 0 else -1
            d = (f - strike) / s + s / 2
            return sign * (mp.exp(f) * mp.ncdf(sign * d) - mp.exp(mp.mpf(strike)) * mp.ncdf(sign * (d - s)))

        def added(begin: mp.mpf, stride: mp.mpf) -> list[mp.mpf]:
            sums = [mp.mpf(0) for _ in k]
            for i in range(int((high - begin) / stride) + 1):
                y = begin + i * stride
                weight = mp.exp(a * y - mp.exp(y) - constant)
                for j, strike in enumerate(k):
                    sums[j] += weight * black(y, strike)
            return sums

        def rule() -> list[mp.mpf]:
            # What lies before the first node, as the rule has it: a geometric series of the price at rest.
            rest = mp.exp(a * low - constant) / mp.expm1(a * step)
            return [step * (total + rest * black(low, strike)) for total, strike in zip(sums, k, strict=True)]

        step = mp.mpf(1) / 8
        if (high - low) / step > most:
            return None
        sums = added(low, step)
        found = rule()
        while True:
            if (high - low) / step > most / 2:
                return None
            # The nodes of half the step are those there are, and the ones between them.
            sums = [total + more for total, more in zip(sums, added(low + step / 2, step), strict=True)]
            step /= 2
            finer = rule()
            if max(abs(x - y) for x, y in zip(found, finer, strict=True)) < mp.mpf(10) ** -15:
                return [float(x) for x in finer]
            found = finer
