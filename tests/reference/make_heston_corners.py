"""Writes heston_corners.json: Heston's prices and sensitivities where they are hardest, to 20 digits.

    python -m tests.reference.make_heston_corners        # minutes; with --check it compares and writes nothing

Lewis' integral as in ``lewis_integral``, in arithmetic of 45 digits: Gauss-Legendre panel by panel, up to where the
integrand is below 1e-28. A sensitivity is the integral of the central difference of the characteristic function over
2e-14 of the parameter, which is right to about 1e-27. Every slice is computed twice, with other panels and another
number of nodes, and the two must agree to 22 digits after the point.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp

from tests.reference.lewis_integral import TURN, cf

FILE = Path(__file__).with_name("heston_corners.json")
NAMES = ("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance")
DIGITS, SMALLEST, MOVE, AGREE = 45, "1e-28", "1e-14", "1e-22"
DAY = 1.0 / 365.0
# Name, parameters, expiry in years, log-strikes. A day to ten years, correlations to 0.95, Feller's condition kept and
# violated, next to no variance to begin with, next to no and a lot of volatility of volatility, 50 to 200 % of the
# forward where there is something to price so far out.
SLICES: tuple[tuple[str, list[float], float, list[float]], ...] = (
    ("ordinary", [2.0, 0.06, 0.3, -0.6, 0.06], 0.5, [-0.69, -0.2, 0.0, 0.1, 0.69]),
    ("a day, little variance", [1.0, 0.04, 0.5, -0.7, 0.001], DAY, [-0.008, -0.001, 0.0, 0.002, 0.006]),
    ("a day, steep", [2.0, 0.04, 1.5, -0.95, 0.04], DAY, [-0.05, -0.01, 0.0, 0.01, 0.03]),
    ("a week, fast", [20.0, 0.09, 1.5, 0.95, 0.01], 7.0 * DAY, [-0.05, 0.0, 0.02, 0.1]),
    ("three months, Feller violated", [0.5, 0.04, 1.0, -0.9, 0.04], 0.25, [-0.4, -0.05, 0.0, 0.05, 0.2]),
    ("a year, variance from nothing", [3.0, 0.09, 1.2, -0.5, 1e-8], 1.0, [-0.69, -0.1, 0.0, 0.3]),
    ("a year, next to no vol of vol", [1.5, 0.04, 0.02, -0.5, 0.04], 1.0, [-0.69, -0.1, 0.0, 0.3, 0.69]),
    ("two years, upward", [6.0, 0.25, 0.9, 0.95, 0.2], 2.0, [-0.69, 0.0, 0.4, 0.69]),
    ("ten years, Feller violated", [0.5, 0.04, 1.0, -0.95, 0.04], 10.0, [-0.69, -0.1, 0.0, 0.3, 0.69]),
    ("ten years, slow", [0.05, 0.09, 0.3, 0.5, 0.09], 10.0, [-0.69, 0.0, 0.69]),
)


def rows(theta: Sequence[float], T: float, k: Sequence[float], *, points: int, first: str) -> list[list[mp.mpf]]:
    """Out-of-the-money value over the discounted forward and its five derivatives, a row a log-strike.

    Args:
        points: of a panel.
        first: where the first panel ends.
    """
    total = [[mp.mpf(0)] * 6 for _ in k]
    nodes = list(legendre(points))
    for a, b in panels(theta, T, max(map(abs, k)), mp.mpf(first)):
        for x, weight in nodes:
            u = a + (b - a) * (1 + x) / 2
            factor = weight * (b - a) / 2 / (u**2 + mp.mpf(1) / 4)
            f = [factor * value for value in integrands(mp.mpc(u, -0.5), T, theta)]
            for at, strike in zip(total, k, strict=True):
                turn = mp.expj(-u * mp.mpf(strike))
                for i, value in enumerate(f):
                    at[i] += (value * turn).real
    for at, strike in zip(total, k, strict=True):
        scale = -mp.exp(mp.mpf(strike) / 2) / mp.pi
        at[:] = [scale * x for x in at]
        at[0] += min(mp.mpf(1), mp.exp(mp.mpf(strike)))
    return total


def integrands(z: mp.mpc, T: float, theta: Sequence[float]) -> list[mp.mpc]:
    """The characteristic function and its derivatives by the parameters."""
    out = [cf(z, mp.mpf(T), theta)]
    for i, value in enumerate(theta):
        h = mp.mpf(MOVE) * abs(mp.mpf(value))
        moved = [[*theta[:i], mp.mpf(value) + sign * h, *theta[i + 1 :]] for sign in (1, -1)]
        out.append((cf(z, mp.mpf(T), moved[0]) - cf(z, mp.mpf(T), moved[1])) / (2 * h))
    return out


def panels(theta: Sequence[float], T: float, farthest: float, first: mp.mpf) -> Iterator[tuple[mp.mpf, mp.mpf]]:
    """Intervals from zero on: doubling, but never longer than the phase allows."""
    kappa, vbar, sigma, _, v0 = theta
    longest = 2.0 * TURN / (farthest + (v0 + kappa * vbar * T) / sigma)
    a, b = mp.mpf(0), min(first, mp.mpf(longest))
    while True:
        yield a, b
        if abs(cf(mp.mpc(b, -0.5), mp.mpf(T), theta)) < mp.mpf(SMALLEST):
            return
        a, b = b, b + min(b, mp.mpf(longest))


def legendre(count: int) -> Iterator[tuple[mp.mpf, mp.mpf]]:
    """Nodes and weights of Gauss-Legendre, by Newton's method from the usual first guess."""
    for i in range(count):
        x = mp.cos(mp.pi * (i + mp.mpf(3) / 4) / (count + mp.mpf(1) / 2))
        for _ in range(8):
            before, p = mp.mpf(1), x
            for n in range(2, count + 1):
                before, p = p, ((2 * n - 1) * x * p - (n - 1) * before) / n
            slope = count * (x * p - before) / (x**2 - 1)
            x -= p / slope
        yield x, 2 / ((1 - x**2) * slope**2)


def slice_of(name: str, theta: list[float], T: float, k: list[float]) -> dict[str, Any]:
    """One slice as it is written, computed twice."""
    with mp.workdps(DIGITS):
        found = rows(theta, T, k, points=44, first="0.25")
        again = rows(theta, T, k, points=36, first="0.2")
        apart = max(
            abs(a - b) for one, other in zip(found, again, strict=True) for a, b in zip(one, other, strict=True)
        )
        if not apart < mp.mpf(AGREE):
            raise SystemExit(f"{name}: two ways to integrate are {mp.nstr(apart, 3)} apart.")
        numbers = [[mp.nstr(x, 20, strip_zeros=False, min_fixed=-30, max_fixed=30) for x in row] for row in found]
    return {"name": name, "theta": theta, "expiry": T, "log_strikes": k, "values": numbers}


def main() -> None:
    found = []
    for each in SLICES:
        found.append(slice_of(*each))
        print(each[0], file=sys.stderr, flush=True)
    about = (
        "Out-of-the-money values over the discounted forward and their derivatives by "
        f"{', '.join(NAMES)}; made by make_heston_corners.py beside this file. Apache-2.0, as the project."
    )
    slices = ",\n".join(json.dumps(one) for one in found)
    text = f'{{"about": {json.dumps(about)},\n"slices": [\n{slices}\n]}}\n'
    if "--check" in sys.argv:
        raise SystemExit(0 if text == FILE.read_text() else f"{FILE.name} is not what this script makes.")
    FILE.write_text(text)


if __name__ == "__main__":
    main()
