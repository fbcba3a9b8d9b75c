"""Write american_grid.json and american_hard.json: American options by QuantLib's QdFp engine.

    python tests/reference/make_american_grid.py [COUNT]
    python tests/reference/make_american_grid.py hard

The grid is computed with 20 nodes, 30 iterations and tanh-sinh quadrature to 1e-12, about 60 ms per contract.
QuantLib's own ``highPrecisionScheme`` is up to 4e-7 of spot from that on the same contracts: it is not the reference.
With 20 nodes one of 10,000 contracts is off by 1.8e-8 of spot. The hard contracts are therefore those of 10,000
others on which the two programs differ most, computed with 50 nodes and 60 iterations, 1.7 s each.
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


def converged_further(given: dict[str, np.ndarray]) -> list[float]:
    """The reference where 20 nodes are too few."""
    return quantlib(given, ql.QdFpTanhSinhIterationScheme(50, 60, 1e-13))


def hard(count: int = 16) -> dict[str, np.ndarray]:
    """The contracts of 10,000 on which QuantLib's 20 nodes, or our default, are furthest from our finest."""
    from strikeout import american

    given = contracts(10_000, seed=2)
    finest = american.price(**given, accuracy=1e-10)
    off = [np.abs(np.array(converged(given)) - finest), np.abs(american.price(**given) - finest)]
    rows = np.unique(np.concatenate([np.argsort(-each)[: count // 2] for each in off]))
    return {name: column[rows] for name, column in given.items()}


def write(name: str, given: dict[str, np.ndarray], price: list[float]) -> None:
    """Write contracts and prices as JSON."""
    table = {**{name: column.tolist() for name, column in given.items()}, "price": price}
    (HERE / name).write_text(json.dumps(table, indent=0).replace(",\n", ", ") + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["hard"]:
        chosen = hard()
        write("american_hard.json", chosen, converged_further(chosen))
    else:
        chosen = contracts(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
        write("american_grid.json", chosen, converged(chosen))
