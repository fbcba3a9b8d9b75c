"""Write american_grid.json: American options by QuantLib's QdFp engine, 20 iterations of tanh-sinh quadrature to 1e-12.

    python tests/reference/make_american_grid.py [COUNT]

QuantLib's own ``highPrecisionScheme`` is up to 4e-7 of spot from this one on the same contracts, so it is not the
reference. About 60 ms per contract.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import QuantLib as ql  # noqa: N813

HERE = Path(__file__).parent
COLUMNS = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility", "is_call")


def contracts(count: int, seed: int = 1) -> dict[str, np.ndarray]:
    """One day to 5 years, volatility 5 to 150 %, rates -2 to 15 %, yields 0 to 10 %, calls and puts."""
    g = np.random.default_rng(seed)
    T = np.exp(g.uniform(np.log(1 / 365), np.log(5), count))
    sigma = np.exp(g.uniform(np.log(0.05), np.log(1.5), count))
    r, q, call = g.uniform(-0.02, 0.15, count), g.uniform(0.0, 0.10, count), g.random(count) < 0.5
    K = 100.0 * np.exp(0.5 * (r - q) * T + sigma * np.sqrt(T) * g.uniform(-2, 2, count))
    return dict(zip(COLUMNS, (np.full(count, 100.0), K, T, r, q, sigma, call), strict=True))


def quantlib(given: dict[str, np.ndarray], scheme: object) -> list[float]:
    """Prices by QuantLib. Time is one year: rates and variance are scaled instead, so that T need not be whole days."""
    today = ql.Date(1, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    days, out = ql.Actual365Fixed(), []
    for S, K, T, r, q, sigma, call in zip(*(given[name].tolist() for name in COLUMNS), strict=True):
        process = ql.BlackScholesMertonProcess(
            ql.QuoteHandle(ql.SimpleQuote(S)),
            ql.YieldTermStructureHandle(ql.FlatForward(today, q * T, days)),
            ql.YieldTermStructureHandle(ql.FlatForward(today, r * T, days)),
            ql.BlackVolTermStructureHandle(ql.BlackConstantVol(today, ql.NullCalendar(), sigma * T**0.5, days)),
        )
        payoff = ql.PlainVanillaPayoff(ql.Option.Call if call else ql.Option.Put, K)
        option = ql.VanillaOption(payoff, ql.AmericanExercise(today, today + 365))
        option.setPricingEngine(ql.QdFpAmericanEngine(process, scheme))
        out.append(option.NPV())
    return out


def converged(given: dict[str, np.ndarray]) -> list[float]:
    """The reference."""
    return quantlib(given, ql.QdFpTanhSinhIterationScheme(20, 30, 1e-12))


if __name__ == "__main__":
    given = contracts(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    table = {**{name: column.tolist() for name, column in given.items()}, "price": converged(given)}
    (HERE / "american_grid.json").write_text(json.dumps(table, indent=0).replace(",\n", ", ") + "\n")
