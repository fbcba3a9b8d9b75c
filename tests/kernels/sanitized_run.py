"""Drives every path of the compiled kernel, for a build that watches memory and undefined behaviour. Prints `clean`.

python sanitized_run.py [heston_corners.json]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from strikeout.kernels import _native, black, chebyshev, exact, int192, parity, smooth_curves, symmetric
from strikeout.models.bates import Bates
from strikeout.models.double_heston import DoubleHeston
from strikeout.models.heston import Heston
from strikeout.models.variance_gamma import VarianceGamma
from strikeout.quotes import names
from strikeout.quotes.contracts import Contracts


def drive(theta: list[float], book: Contracts) -> None:
    for expiries in ("shared", "scattered"):
        model = Heston("native", expiries)
        price, _ = model.linearize(theta, book)
        model.accumulate(theta, book, price, np.ones(len(book)))
        model.weigher(book, price, -price, 0.5 * price)(theta)


def drive_line_and_clock(rng: np.random.Generator, book: Contracts) -> None:
    jumps = [*np.exp(rng.uniform(-6.0, 4.0, 1)), rng.uniform(-2.0, 2.0), *np.exp(rng.uniform(-8.0, 1.0, 1))]
    Bates("native").linearize([*random_theta(rng), *jumps], book)
    DoubleHeston(kernel="native").linearize([*random_theta(rng), *random_theta(rng)], book)
    sigma, nu = np.exp(rng.uniform(-5.0, 2.0, 2))
    VarianceGamma("native").linearize([sigma, nu, rng.uniform(-3.0, 3.0)], book)
    for shape in ((1, 1), (3, 4), (64, 2), (17, 12)):
        F = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        _native.line_rows(F, 0.3, 0.1, -1.0, 1.0, np.sort(rng.normal(size=19)))


def drive_exact(rng: np.random.Generator) -> None:
    """Sums, read-out and solves: extremes of int64, no rows, one row, singular and negative systems, bad arguments."""
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 0, 1], np.int64)
    for width in (1, 2, 6, 11):
        exponents = rng.integers(-60, 61, width).astype(np.int32)
        for count in (0, 1, 2, 127, 128, 129, 700):
            rows = rng.choice(extremes, (count, width)) if count % 2 else rng.integers(-(2**62), 2**62, (count, width))
            state = exact.change(exact.zero(width), rows)
            exact.read(state, exponents)
            exact.solve(exact.read(state, exponents)) if width > 1 else None
            places = np.arange(0, count, 3)
            for pick in (None, places):
                exact.downdate(state, rows, pick, exponents) if width > 1 else None
        for bad in (np.array([999]), np.array([-1])):
            try:
                exact.downdate(state, rows, bad, exponents)
            except ValueError:
                continue
            raise AssertionError("a row that is not there was taken away")
    for count in (0, 1, 2, 30):
        cells, factors = (
            rng.choice([0.25, 1.0], (count, 2)),
            rng.choice([0.0, 1e-30, -0.75, 2.0**55, 2.0**-73], (4, count)),
        )
        factors[2:] *= 2.0**40  # sums of factors alone have that much more room
        for across in (1, 4) if count else ():
            places = rng.uniform(-1.0, 1.0, (1 if across == 1 else 2, count))
            table = chebyshev.exact_cells(cells, places, factors, along=5, across=across)
            for subtract in (False, True):
                int192.merged(table, int192.Table(*(column[1:] for column in table)), subtract=subtract)
                int192.merged(int192.Table(*(column[:0] for column in table)), table, subtract=subtract)
            int192.read(table.sums, -120)
            int192.sums(table.sums, np.arange(len(table.counts)))
        chebyshev.polynomials(factors[0], 1), chebyshev.polynomials(factors[0], 7)
        numbers = np.repeat(np.abs(factors), 9, axis=1)
        for some in (0, 1, 5, numbers.shape[1]):
            quotes = parity.Quotes(np.arange(some) % 3, *(numbers[i, :some] for i in range(4)))
            parity.parity_lines(quotes._replace(is_call=np.arange(some) % 2 == 0), parity.Slices(*np.ones((5, 3))))
        names.sorted_rows(*np.repeat(factors, 500, axis=1)[:3])
        prices = np.abs(factors[0]) + 1.0
        found = black.price(prices, prices[::-1], prices, 0.2, 1.0, True)
        black.implied_volatility(found, prices, prices[::-1], prices, 1.0, True)
        exact.footprint_sums(np.abs(factors), factors[0], prices, np.full(len(factors) + 1, 40, np.int32))
        smooth_curves.unexplained(np.sort(prices), np.array([0, 0, len(prices)]), prices, prices, 9)
    one = np.ones((1, 1))
    for cell, place, factor in (
        (np.nan, 0, 0),
        (np.inf, 0, 0),
        (0, 1e9, 0),
        (0, np.nan, 0),
        (0, 0, 1e60),
        (0, 0, -np.inf),
    ):
        try:
            chebyshev.exact_cells(
                cell * np.ones((1, 2)), place * one, np.full((4, 1), float(factor)), along=5, across=1
            )
        except ValueError:
            continue
        raise AssertionError("what has no sums was summed")
    for p in (1, 5, 9):
        A = rng.normal(size=(p, p))
        for matrix in (A @ A.T, A - A.T, np.zeros((p, p)), np.full((p, p), np.nan)):
            symmetric.solve(matrix.tolist(), [1.0] * p)
            symmetric.length(matrix.tolist(), [1.0] * p)
            symmetric.inverse(matrix.tolist())
            for held in (None, [2.0] * p):
                _native.box_step(
                    [0.5] * p,
                    matrix.tolist(),
                    [1.0] * p,
                    1e-3,
                    held,
                    [0.0] * p,
                    [0.6] * p,
                    ((0, p - 1),),
                    3.0,
                    0.7,
                    0.02,
                )


def random_theta(rng: np.random.Generator) -> list[float]:
    """Far beyond the bounds of a calibration, so that overflow, no contour and no worth all happen."""
    kappa, vbar, sigma, v0 = np.exp(rng.uniform([-8.0, -10.0, -6.9, -12.0], [5.0, 2.0, 3.0, 2.0])).tolist()
    return [kappa, vbar, sigma, float(rng.uniform(-0.99999, 0.99999)), v0]


def run(corners: list[str]) -> None:
    rng = np.random.default_rng(0)
    drive_exact(rng)
    for instructions in reversed(_native.available_instructions()):
        _native.use_instructions(instructions)
        for file in corners:
            for case in json.loads(Path(file).read_text())["slices"]:
                k = np.array([row["log_moneyness"] for row in case["rows"]], float)
                strike = np.exp(k)
                drive(
                    case["theta"],
                    Contracts(forward=1.0, strike=strike, expiry=case["expiry"], discount=1.0, is_call=True),
                )
        for count in (1, 2, 3, 7, 8, 9, 17, 200, 3000):
            for expiry in (rng.choice([0.1, 0.5, 2.0], count), np.exp(rng.uniform(-7.0, 3.0, count))):
                strike = np.exp(rng.normal(0.0, 3.0, count) * np.sqrt(expiry)).clip(1e-12, 1e12)
                book = Contracts(forward=1.0, strike=strike, expiry=expiry, discount=1.0, is_call=True)
                for _ in range(6):
                    drive(random_theta(rng), book)
                drive_line_and_clock(rng, book[:40])
    os.environ["STRIKEOUT_THREADS"] = "3"
    expiry = np.repeat(np.linspace(0.02, 4.0, 300), 170)
    strike = np.exp(rng.normal(0.0, 0.3, len(expiry)))
    drive(
        [2.0, 0.06, 0.4, -0.6, 0.05], Contracts(forward=1.0, strike=strike, expiry=expiry, discount=1.0, is_call=True)
    )
    print("clean")


if __name__ == "__main__":
    run(sys.argv[1:])
