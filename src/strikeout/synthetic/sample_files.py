"""Files of made-up quotes that look like those of the trade, to try things on: no market ever showed these prices.

Heston prices at `SAMPLE_TRUTH`, rounded outwards to ticks, with spreads, volumes and the blemishes of real files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.quotes.clock import Clock
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.writing import replace_file
from strikeout.synthetic.heston_quotes import NAMES, heston_prices, uniform_draws

KINDS = ("page", "feeds")
SAMPLE_TRUTH: Mapping[str, float] = MappingProxyType(dict(zip(NAMES, (2.5, 0.05, 0.55, -0.7, 0.03), strict=True)))
RATE, DIVIDEND_YIELD = 0.045, 0.014
CLOCK = Clock(zone="America/New_York")
TIME = "15:45:00"
TICK, COARSE_TICK, COARSE_FROM = 0.05, 0.1, 3.0  # of index options: nickels below three dollars, dimes above
EXPIRIES = (
    ("2024-04-12", "SPXW"), ("2024-04-19", "SPX"), ("2024-05-17", "SPX"), ("2024-06-21", "SPX"), ("2024-09-20", "SPX"),
    ("2024-12-20", "SPX"), ("2025-06-20", "SPX"), ("2025-12-19", "SPX"),
)  # fmt: skip
DAYS = ("2024-03-11", "2024-03-12", "2024-03-13", "2024-03-14", "2024-03-15")
INDEX = (5120.0, 5175.0, 5060.0, 5150.0, 5117.0)
HEAD = (
    "Expiration Date,Calls,Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest,Strike,"
    "Puts,Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest"
)


def write_sample(path: str | PathLike[str], kind: str = "page") -> Path:
    """Write a file of made-up index options; the same bytes every time.

    Args:
        path: ends in .csv.
        kind: "page", one day in the layout of the exchange's quotes page, with a crossed market, an empty cell and
            options that ended the day before; or "feeds", a week from two feeds in our own columns, one of which stood
            still for a day.

    Raises:
        UsageError: another kind or ending, or the file cannot be written.
    """
    if kind not in KINDS:
        raise UsageError(f"A sample is one of {', '.join(KINDS)}; {kind!r} was asked for.", sample=kind)
    if Path(path).suffix.lower() != ".csv":
        raise UsageError(f"{path}: a sample is a .csv. Give it that ending.", path=str(path))
    lines = list(_page() if kind == "page" else _feeds())
    return replace_file(path, lambda part: part.write_text("\n".join(lines) + "\n", encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class _Side:
    """The market in one expiry: bids and asks of calls and puts at these strikes."""

    strikes: Floats
    bids: Mapping[bool, Floats]
    asks: Mapping[bool, Floats]


def _side(spot: float, years: float, rng: np.random.Generator) -> _Side:
    forward = spot * elementary.exp((RATE - DIVIDEND_YIELD) * years)
    reach = np.sqrt(SAMPLE_TRUTH["long_variance"] * years)
    step = 25.0 if years < 0.3 else 50.0 if years < 0.8 else 100.0
    strikes = (
        np.arange(forward * elementary.exp(-2.6 * reach) // step, forward * elementary.exp(1.4 * reach) // step + 1)
        * step
    )
    bids, asks = {}, {}
    for is_call in (True, False):
        contracts = Contracts(
            forward=forward, strike=strikes, expiry=years, discount=elementary.exp(-RATE * years), is_call=is_call
        )
        price = heston_prices(np.array(list(SAMPLE_TRUTH.values())), contracts)
        half = 0.05 + 0.004 * price
        mid = price + half * uniform_draws(rng, -0.4, 0.4, price.size)
        bids[is_call], asks[is_call] = _ticks(mid - half, np.floor), _ticks(mid + half, np.ceil)
    return _Side(strikes, bids, asks)


def _ticks(prices: Floats, rounding: np.ufunc) -> Floats:
    tick = np.where(prices < COARSE_FROM, TICK, COARSE_TICK)
    rounded: Floats = np.maximum(np.round(rounding(prices / tick) * tick, 2), 0.0)
    return rounded


def _page() -> Iterator[str]:
    rng = np.random.default_rng(20240315)
    day, spot = DAYS[-1], INDEX[-1]
    yield ""
    yield f"A MADE-UP INDEX (no market data),Last: {spot:.4f},Change:  -33.0000"
    yield '"Date: March 15, 2024, 3:45 PM EDT",Bid: 5116.5,Ask: 5117.5,Size: 1*1,Volume: 0'
    yield HEAD
    for expiry, root in ((DAYS[-2], "SPXW"), *EXPIRIES):
        # Those that ended the day before are still listed, at prices that are not updated any more.
        settlement = "am" if root == "SPX" else "pm"
        years = CLOCK.years(day, TIME, expiry=max(expiry, EXPIRIES[0][0]), settlement=settlement)
        side = _side(spot, years, rng)
        ends = date.fromisoformat(expiry)
        for n, strike in enumerate(side.strikes.tolist()):
            halves = []
            for is_call in (True, False):
                symbol = f"{root}{ends:%y%m%d}{'C' if is_call else 'P'}{round(strike * 1000):08d}"
                bid, ask = f"{side.bids[is_call][n]:g}", f"{side.asks[is_call][n]:g}"
                if (expiry, strike, is_call) == ("2024-05-17", 5100.0, True):
                    bid, ask = ask, bid  # crossed
                if (expiry, strike, is_call) == ("2024-06-21", 5000.0, False):
                    ask = ""
                traded, held = rng.poisson(3.0), rng.poisson(40.0)
                halves.append(f"{symbol},0,0,{bid},{ask},{traded},0,0,0,{held}")
            yield f"{ends:%a %b %d %Y},{halves[0]},{strike:.2f},{halves[1]}"


def _feeds() -> Iterator[str]:
    yield "quote_date,underlying,root,expiry,strike,right,bid,ask,spot,forward,rate,source"
    for source, seed in (("north", 1), ("south", 2)):
        for n, day in enumerate(DAYS):
            # South stood still on the third day: the quotes of the second under a new date.
            shown = n - 1 if (source, day) == ("south", DAYS[2]) else n
            rng = np.random.default_rng([seed, shown])
            for expiry, root in EXPIRIES:
                side = _side(INDEX[shown], _days(DAYS[shown], expiry), rng)
                forward = INDEX[n] * float(elementary.exp((RATE - DIVIDEND_YIELD) * _days(day, expiry)))
                for k, strike in enumerate(side.strikes.tolist()):
                    is_call = strike >= forward  # out of the money: what a feed of volatilities is made of
                    bid, ask = f"{side.bids[is_call][k]:g}", f"{side.asks[is_call][k]:g}"
                    contract = f"{day},SPX,{root},{expiry},{strike:g},{'C' if is_call else 'P'}"
                    yield f"{contract},{bid},{ask},{INDEX[n]:g},{forward:.4f},{RATE:g},{source}"


def _days(day: str, expiry: str) -> float:
    """Return years as a file without times is read: whole days."""
    return (date.fromisoformat(expiry) - date.fromisoformat(day)).days / 365.0
