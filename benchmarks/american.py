"""American options: our collocation against QuantLib's, and quotes converted per second.

QuantLib's schemes are timed by ``NPV()`` alone, with the engine already made. Accuracy is measured against our fine
resolution (1e-10), on the contracts of tests/reference/american_grid.json.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import QuantLib as ql  # noqa: N813

from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same
from strikeout import american
from strikeout.kernels import black, dividends

GRID = Path(__file__).parents[1] / "tests" / "reference" / "american_grid.json"
QUOTES = 1_000_000  # of the chain that is de-Americanised
FASTER = 10.0  # times QuantLib, at its accuracy or better


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Prices per second at a given accuracy, and implied volatilities per second of a chain."""
    given: dict[str, Any] = {name: np.array(column) for name, column in json.loads(GRID.read_text()).items()}
    reference = given.pop("price")
    if is_quick:
        given, reference = {name: column[:40] for name, column in given.items()}, reference[:40]
    exact, count = american.price(**given, accuracy=1e-10), len(reference)
    schemes = {
        "QuantLib high precision": ql.QdFpAmericanEngine.highPrecisionScheme(),
        "QuantLib accurate": ql.QdFpAmericanEngine.accurateScheme(),
    }
    options = {name: _options(given, scheme) for name, scheme in schemes.items()}
    ours = partial(american.price, **given)
    peers = {name: partial(_prices, made) for name, made in options.items()}
    timed = interleave(
        {"strikeout": same(ours), **{name: same(peer) for name, peer in peers.items()}}, rounds=2 if is_quick else 3
    )
    rows = []
    for name, function in {"strikeout": ours, **peers}.items():
        found = timed[name]
        off = float(np.abs(function() - exact).max()) / 100.0
        note = f"{found.seconds / count * 1e6:.3g} us an option, off by {off:.1e} of spot"
        needed = FASTER if "high" in name else None  # the other one is a thousand times less accurate than ours
        rows.append(Row(f"price {count} options", name, found.seconds, found.ratio, needed, note=note))
    quotes = QUOTES // 100 if is_quick else QUOTES
    seconds, off, most = _chain(quotes)
    note = (
        f"{1.0 / seconds:,.0f} quotes per second and core (asked: 100,000), off by {off:.1e} in volatility, "
        f"{most / 1e6:,.0f} MB more at most"
    )
    rows.append(Row(f"mid to European price, {quotes:,} quotes", "strikeout", seconds, None, None, note=note))
    seconds, off = _chain_with_dividends(200 if is_quick else 2_000)
    note = f"{1.0 / seconds:,.0f} quotes per second and core, off by {off:.1e} in volatility"
    rows.append(Row("mid to European price, cash dividends", "strikeout", seconds, None, None, note=note))
    return Result("american", is_quick, tuple(rows), {"reference": "our fine resolution, 1e-10 of spot"})


def _chain(count: int) -> tuple[float, float, float]:
    """Processor seconds from American mid to volatility and European price of a quote, the worst error, and memory.

    The chain is like an index fund's: both sides of the money, a week to two years.
    """
    g = np.random.default_rng(5)
    T = g.choice([7, 14, 30, 60, 90, 180, 365, 730], count) / 365
    K = np.round(500.0 * np.exp(g.uniform(-0.45, 0.45, count) * np.sqrt(T)))
    sigma = 0.2 - 0.05 * np.log(K / 500.0) / np.sqrt(T + 0.05)
    rest = {"spot": 500.0, "strike": K, "expiry": T, "rate": 0.045, "dividend_yield": 0.013, "is_call": K >= 500.0}
    price = american.price(volatility=sigma, **rest)
    forward, discount = 500.0 * np.exp(0.032 * T), np.exp(-0.045 * T)
    tracemalloc.start()  # NumPy's arrays are counted; the kernel's workspaces are some kB per thread
    begin = time.process_time()
    found = american.implied_volatility(price=price, **rest)
    black.price(forward, K, T, found, discount, rest["is_call"])
    seconds = (time.process_time() - begin) / count
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, float(np.nanmax(np.abs(found - sigma))), float(most)


def _chain_with_dividends(count: int) -> tuple[float, float]:
    """Processor seconds per conversion of a put of one year with four escrowed dividends, and the worst error."""
    flows = dividends.CashFlows((0.05, 0.3, 0.55, 0.8), (1.5, 1.5, 1.6, 1.6))
    steps = dividends.steps_of(flows, 1.0, 0.05, 0.045)
    spot, strike = np.full(count, 100.0), np.linspace(80.0, 110.0, count)
    sigma, forward = 0.25 - 0.001 * (strike - 100.0), flows.forward(spot, 1.0, np.full(count, 0.045))
    mid = dividends.values(steps, spot, strike, sigma, is_call=False)[0]
    begin = time.process_time()
    found, _ = dividends.conversions(
        mid, spot, strike, forward=forward, discount=float(np.exp(-0.05)), steps=steps, is_call=False
    )
    return (time.process_time() - begin) / count, float(np.nanmax(np.abs(found - sigma)))


def _options(given: dict[str, Any], scheme: Any) -> list[Any]:
    today = ql.Date(1, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    days, made = ql.Actual365Fixed(), []
    names = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility", "is_call")
    for S, K, T, r, q, sigma, call in zip(*(given[name].tolist() for name in names), strict=True):
        process = ql.BlackScholesMertonProcess(
            ql.QuoteHandle(ql.SimpleQuote(S)),
            ql.YieldTermStructureHandle(ql.FlatForward(today, q * T, days)),
            ql.YieldTermStructureHandle(ql.FlatForward(today, r * T, days)),
            ql.BlackVolTermStructureHandle(ql.BlackConstantVol(today, ql.NullCalendar(), sigma * T**0.5, days)),
        )
        payoff = ql.PlainVanillaPayoff(ql.Option.Call if call else ql.Option.Put, K)
        option = ql.VanillaOption(payoff, ql.AmericanExercise(today, today + 365))
        option.setPricingEngine(ql.QdFpAmericanEngine(process, scheme))
        made.append(option)
    return made


def _prices(options: list[Any]) -> Any:
    for option in options:
        option.recalculate()
    return np.array([option.NPV() for option in options])
