"""American options by an integral equation, on nodes, quadrature and arithmetic that the package does not share.

    python tests/reference/american_boundary.py

prints the contract on which QuantLib with 80 nodes and ``accuracy=1e-10`` differ most, with 30 digits.

Kim's equation for the value at the boundary (the B of Andersen, Lake and Offengenden) is iterated to its fixed point.
The package and QuantLib place Chebyshev nodes in the square root of time, where the boundary has a logarithm at
expiry, so that errors fall with a power of the number of nodes only. Here nodes are placed in the fourth root, and the
integrals are tanh-sinh, whose points crowd at both ends. In floats it is good to about 1e-11 of spot.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
from scipy.special import ndtr

FLOATS = SimpleNamespace(exp=np.exp, log=np.log, sqrt=np.sqrt, cos=np.cos, cdf=ndtr, of=np.float64, pi=np.pi)
DIGITS = SimpleNamespace(
    **{name: np.frompyfunc(getattr(mpmath, name), 1, 1) for name in ("exp", "log", "sqrt", "cos")},
    cdf=np.frompyfunc(lambda d: 0.5 * mpmath.erfc(-d / mpmath.sqrt(2)), 1, 1),
    of=np.frompyfunc(mpmath.mpf, 1, 1),
    pi=mpmath.pi,
)
ROOT = 4  # nodes are Chebyshev's in (tau / T)^(1 / ROOT)
# Spot, strike, years, rate, yield, volatility, call: of 2,000 contracts the one on which the two differ most, 2.3e-10.
ARBITRATED = (
    100.0,
    127.14029473369976,
    3.8743282484039856,
    0.08186595427728631,
    0.09719018298347441,
    0.6893122585916697,
    False,
)
DIGITS_30 = 60.7378763406787  # 64 nodes; 48 nodes are 6e-13 of spot from it
QUANTLIB_80 = 60.737876320873745  # QdFpTanhSinhIterationScheme(80, 100, 1e-14), 2.0e-10 of spot from it


def points(m: Any, width: float, most: float) -> tuple[Any, Any, Any]:
    """Tanh-sinh rule for a share of time from 0 to 1: the share, what is left of it, and the weight."""
    k = m.of(np.arange(-int(most / width), int(most / width) + 1)) * width
    e = m.exp(-m.pi * (m.exp(k) - m.exp(-k)) / 2)
    share, left = 1 / (1 + e), e / (1 + e)
    return share, left, m.pi * (m.exp(k) + m.exp(-k)) / 2 * share * left * width


def lagrange(z: Any, at: Any) -> Any:
    """Lagrange polynomials of Chebyshev's nodes z at other points, without the last: H is zero there."""
    sign = np.where(np.arange(len(z)) % 2 == 0, 1.0, -1.0)
    sign[[0, -1]] *= 0.5
    apart = at[None, :] - z[:, None]
    hit = apart == 0
    shares = sign[:, None] / np.where(hit, 1.0, apart)
    return np.where(hit.any(axis=0), hit * 1.0, shares / shares.sum(axis=0))[:-1]


@cache
def tables(digits: int, n: int) -> tuple[Any, ...]:
    """Nodes, rule and interpolation; ``digits`` is 0 for floats."""
    m = DIGITS if digits else FLOATS
    z = m.cos(m.pi * m.of(np.arange(n + 1)) / n)
    u = (1 + z[:-1]) / 2
    share, left, weight = points(m, 0.045 if digits else 0.06, 4.1 if digits else 3.3)
    root = m.sqrt(m.sqrt(left))
    return z, u, share, weight, np.stack([lagrange(z, 2 * each * root - 1) for each in u])


def boundary(r: Any, q: Any, sigma: Any, T: Any, *, n: int, digits: int, begin: Any = None) -> Any:
    """ln B at the nodes for a put with strike 1, r > 0."""
    m = DIGITS if digits else FLOATS
    _, u, share, weight, basis = tables(digits, n)
    start, mu, tau = (m.log(r / q) if r < q else 0 * r), r - q - sigma * sigma / 2, T * u**ROOT
    s, whole = tau[:, None] * share, sigma * m.sqrt(tau)
    sd, rest = sigma * m.sqrt(s), tau[:, None] * weight
    cash, stock = r * m.exp(-r * s) * rest, q * m.exp(-q * s) * rest
    b = start - 0.9 * whole if begin is None else m.of(begin)
    for _ in range(2_000):
        H = (basis * ((b - start) ** 2)[None, :, None]).sum(axis=1)
        dm = (b[:, None] - start + m.sqrt(np.maximum(H, 0 * H)) + mu * s) / sd
        d = (b + mu * tau) / whole
        N = m.exp(-r * tau) * m.cdf(d) + (cash * m.cdf(dm)).sum(axis=1)
        D = m.exp(-q * tau) * m.cdf(d + whole) + (stock * m.cdf(dm + sd)).sum(axis=1)
        following = np.minimum(m.log(N / D), start)
        step, b = abs(following - b).max(), following
        if step < (mpmath.mpf(10) ** (3 - digits) if digits else 1e-13):
            return b
    raise AssertionError("the boundary did not converge")


def put(x: Any, r: Any, q: Any, sigma: Any, T: Any, *, n: int, digits: int) -> Any:
    """Put with strike 1 and ln spot x."""
    m = DIGITS if digits else FLOATS
    mu, whole = r - q - sigma * sigma / 2, sigma * m.sqrt(T)
    d = (x + mu * T) / whole
    plain = m.exp(-r * T) * m.cdf(-d) - m.exp(x - q * T) * m.cdf(-d - whole)
    if not r > 0:
        assert not q < r, "two boundaries"
        return plain
    begin = boundary(*map(float, (r, q, sigma, T)), n=n, digits=0) if digits else None
    b, start = boundary(r, q, sigma, T, n=n, digits=digits, begin=begin), (m.log(r / q) if r < q else 0 * r)
    if x <= b[0]:
        return 1 - m.exp(x)
    share, left, weight = points(m, 0.01, 4.1 if digits else 3.3)
    at = ((b - start) ** 2) @ lagrange(tables(digits, n)[0], 2 * m.sqrt(m.sqrt(left)) - 1)
    s = T * share
    sd = sigma * m.sqrt(s)
    dm = (x - start + m.sqrt(np.maximum(at, 0 * at)) + mu * s) / sd
    gain = r * m.exp(-r * s) * m.cdf(-dm) - m.exp(x) * q * m.exp(-q * s) * m.cdf(-dm - sd)
    return plain + (T * weight * gain).sum()


def price(contract: tuple[Any, ...], *, n: int = 48, digits: int = 0) -> Any:
    """Price of spot, strike, years, rate, yield, volatility, call; with so many digits, or in floats."""
    mpmath.mp.dps = digits or 15
    m, (*numbers, call) = DIGITS if digits else FLOATS, contract
    S, K, T, r, q, sigma = (m.of(float(number)) for number in numbers)
    if call:
        return S * put(m.log(K / S), q, r, sigma, T, n=n, digits=digits)
    return K * put(m.log(S / K), r, q, sigma, T, n=n, digits=digits)


if __name__ == "__main__":
    for nodes in (48, 64):
        print(f"{nodes} nodes, 30 digits: {mpmath.nstr(price(ARBITRATED, n=nodes, digits=30), 18)}")
