"""Drives every path of the compiled kernel, for a build that watches memory and undefined behaviour. Prints `clean`.

python sanitized_run.py [heston_corners.json]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from strikeout.kernels import _native
from strikeout.models.heston import Heston
from strikeout.quotes.contracts import Contracts


def drive(theta: list[float], book: Contracts) -> None:
    for expiries in ("shared", "scattered"):
        model = Heston("native", expiries)
        price, _ = model.linearize(theta, book)
        model.accumulate(theta, book, price, np.ones(len(book)))


def random_theta(rng: np.random.Generator) -> list[float]:
    """Far beyond the bounds of a calibration, so that overflow, no contour and no worth all happen."""
    kappa, vbar, sigma, v0 = np.exp(rng.uniform([-8.0, -10.0, -6.9, -12.0], [5.0, 2.0, 3.0, 2.0])).tolist()
    return [kappa, vbar, sigma, float(rng.uniform(-0.99999, 0.99999)), v0]


def run(corners: list[str]) -> None:
    rng = np.random.default_rng(0)
    for instructions in ("avx2", "plain"):
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
    os.environ["STRIKEOUT_THREADS"] = "3"
    expiry = np.repeat(np.linspace(0.02, 4.0, 300), 170)
    strike = np.exp(rng.normal(0.0, 0.3, len(expiry)))
    drive(
        [2.0, 0.06, 0.4, -0.6, 0.05], Contracts(forward=1.0, strike=strike, expiry=expiry, discount=1.0, is_call=True)
    )
    print("clean")


if __name__ == "__main__":
    run(sys.argv[1:])
