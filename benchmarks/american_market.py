"""What reading American prices as European ones does to calibrations: a round trip, and real chains. No timing.

The round trip: a European Heston surface, American prices of it by QuantLib's finite differences for Heston, converted
under Black-Scholes dynamics and calibrated. The parameter error that is left is that of converting: an American price
of a Heston model has no exact European twin at one Black-Scholes volatility (Burkovska et al., 2018).

The chains lie in ../shared/data beside the repository. Their dividends are what their own forwards imply: what spot is
above the discounted forward, fitted by one amount for the next ex-date and one for those after it. Rates of 2026 are
those of the European SPX options of 2026-08-05. The data have no day with both SPX and SPY: the yields of SPY of
2026-08-07 are compared with those of SPX two days before.
"""

from __future__ import annotations

import datetime as dt
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import QuantLib as ql  # noqa: N813

import strikeout as so
from benchmarks.rows import Result, Row
from strikeout.kernels import black
from strikeout.quotes.forwards import Forwards

SPOT, RATE, DIVIDEND = 100.0, 0.045, 0.013
TRUTHS = {
    "ordinary": (2.0, 0.05, 0.4, -0.6, 0.05),
    "steep skew": (1.5, 0.06, 0.8, -0.8, 0.04),
}  # mean reversion, long variance, vol of vol, correlation, initial variance
NAMES = ("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance")
DAYS = (91, 182, 365)
MARKETS = {365: (RATE, DIVIDEND), 861: (RATE, DIVIDEND)}  # days to expiry, rate and yield
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SHORT = 0.25  # years
FITTED = 30 / 365, 0.2  # years at least, |K / F - 1| at most: what Heston's five parameters are fitted to
COMPARABLE = 0.6  # years: a quarterly dividend of a fund moves the yield of a shorter slice too much


@dataclass(frozen=True)
class Chain:
    """A day of American options: a file below DATA, the rows of it, a rate, and ex-dates by month and day."""

    file: str
    day: str
    rate: float | None  # none: of SPX, by expiry
    months: tuple[int, ...]
    on: int  # day of the month, or 0 for the third Friday
    symbol: str = ""

    def frame(self) -> pl.DataFrame | Path:
        path = DATA / self.file
        if path.suffix != ".parquet":
            return path
        chosen = (pl.col("symbol") == self.symbol) & (pl.col("quote_date").cast(pl.String) == self.day)
        return pl.read_parquet(path).filter(chosen)

    def ex_dates(self, until: str) -> list[str]:
        first = dt.date.fromisoformat(self.day)
        months = [dt.date(first.year + n // 12, n % 12 + 1, 1) for n in range(first.month - 1, first.month + 47)]
        days = [
            month.replace(day=self.on) if self.on else month + dt.timedelta(days=14 + (4 - month.weekday()) % 7)
            for month in months
            if month.month in self.months
        ]
        return [day.isoformat() for day in days if first < day and day.isoformat() <= until]


QUARTERS = (3, 6, 9, 12)
CHAINS = {
    "SPY 2023-09-14": Chain("raw/cboe_spy_2023-09-14.csv.gz", "2023-09-14", 0.054, QUARTERS, 0),
    "SPY 2026-08-07": Chain("chains/panel_spy_2026-08-07_13.parquet", "2026-08-07", None, QUARTERS, 0, "SPY"),
    "QQQ 2026-08-14": Chain("chains/panel_us_etf_yahoo_2026-08_a.parquet", "2026-08-14", None, QUARTERS, 0, "QQQ"),
    "AAPL 2019-08-23": Chain("raw/cboe_aapl_2019-08-23.csv.gz", "2019-08-23", 0.02, (2, 5, 8, 11), 7),
}
TWIN = "chains/panel_spx_2026-07-22_08-05.parquet", "2026-08-05"


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Parameter errors of the round trip, and jumps and fit errors of real chains."""
    rows = []
    for name, truth in list(TRUTHS.items())[: 1 if is_quick else None]:
        given, grid = dict(zip(NAMES, truth, strict=True)), (40, 60, 30) if is_quick else (100, 200, 100)
        rows += [*_round_trip(name, given, grid), _flat_premiums(f"Heston, {name}", given, grid, MARKETS, (1.0,))]
    if not is_quick:
        for name in CHAINS:
            rows += _chain(name)
        rows += _premiums_of_spx((100, 250, 60))
        rows += [*_against_spx("SPY 2026-08-07"), *_by_strike("SPY 2026-08-07"), *_by_expiry("SPY 2026-08-07")]
    return Result("american-market", is_quick, tuple(rows), {"dividends": "as the forwards of each chain imply"})


def _round_trip(name: str, truth: dict[str, float], grid: tuple[int, int, int]) -> list[Row]:
    frame = _american_surface(truth, grid)
    ways = {
        "European prices": (frame.with_columns(mid=pl.col("european"), exercise=pl.lit("E")), "european"),
        "American, read as European": (frame, "european"),
        "American, converted": (frame, "auto"),
    }
    rows = []
    for way, (table, exercise) in ways.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quotes = so.read_quotes(table.drop("european"), exercise=exercise)
            found = so.calibrate(quotes, so.Heston(), residual="implied_vol").parameters
        off = ", ".join(f"{each} {100.0 * (found[each] / truth[each] - 1.0):+.2f} %" for each in NAMES)
        rows.append(Row(f"Heston, {name}", way, note=off))
    return rows


def _american_surface(truth: dict[str, float], grid: tuple[int, int, int]) -> pl.DataFrame:
    """Out-of-the-money options: exact European prices, plus the difference of American and European on one grid."""
    rows = []
    for days in DAYS:
        T = days / 365
        F, D, K = SPOT * np.exp((RATE - DIVIDEND) * T), np.exp(-RATE * T), np.arange(80.0, 121.0, 5.0)
        contracts = so.Contracts(forward=F, strike=K, expiry=T, discount=D, is_call=K >= F)
        exact = so.Heston().price(truth, contracts)
        for strike, price in zip(K.tolist(), exact.tolist(), strict=True):
            extra = _premium(truth, strike, days, (RATE, DIVIDEND), grid, is_call=strike >= F)
            right = "C" if strike >= F else "P"
            rows.append((T, strike, right, price + max(extra, 0.0), price, SPOT, RATE, float(F), "A"))
    names = ["expiry_years", "strike", "right", "mid", "european", "spot", "rate", "forward", "exercise"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _premium(
    truth: dict[str, float],
    strike: float,
    days: int,
    market: tuple[float, float],
    grid: tuple[int, int, int],
    *,
    is_call: bool,
) -> float:
    """The premium of early exercise in the Heston model: American less European, on one grid."""
    today = ql.Date(1, 1, 2024)
    ql.Settings.instance().evaluationDate = today
    count, end = ql.Actual365Fixed(), today + days
    rate, dividend = (ql.YieldTermStructureHandle(ql.FlatForward(today, each, count)) for each in market)
    kappa, theta, sigma, rho, v0 = (truth[name] for name in NAMES)
    process = ql.HestonProcess(rate, dividend, ql.QuoteHandle(ql.SimpleQuote(SPOT)), v0, kappa, theta, sigma, rho)
    engine = ql.FdHestonVanillaEngine(ql.HestonModel(process), *grid)
    payoff, found = ql.PlainVanillaPayoff(ql.Option.Call if is_call else ql.Option.Put, strike), []
    for exercise in (ql.AmericanExercise(today, end), ql.EuropeanExercise(end)):
        option = ql.VanillaOption(payoff, exercise)
        option.setPricingEngine(engine)
        found.append(float(option.NPV()))
    return found[0] - found[1]


def _flat_premiums(
    name: str,
    truth: dict[str, float],
    grid: tuple[int, int, int],
    markets: dict[int, tuple[float, float]],
    shares: tuple[float, ...],
) -> Row:
    """Premiums of puts by their own volatilities over those of the Heston model; strikes are shares of the forward."""
    found = []
    for days, (rate, dividend) in markets.items():
        T = days / 365
        F, D = SPOT * np.exp((rate - dividend) * T), np.exp(-rate * T)
        for share in shares:
            K = np.array([share * F])
            contracts = so.Contracts(forward=F, strike=K, expiry=T, discount=D, is_call=False)
            extra = _premium(truth, float(K[0]), days, (rate, dividend), grid, is_call=False)
            price = so.Heston().price(truth, contracts) + extra
            sigma = so.american.implied_volatility(
                price=price, spot=SPOT, strike=K, expiry=T, rate=rate, dividend_yield=dividend, is_call=False
            )
            flat = price - black.price(contracts.forward, K, contracts.expiry, sigma, contracts.discount, [False])
            found.append(f"{T:.2f} years {share:.2f} {float(flat[0]) / extra:.2f}")
    return Row(name, "premium at the quote's volatility over Heston's, by strike / forward", note=", ".join(found))


def _premiums_of_spx(grid: tuple[int, int, int]) -> list[Row]:
    """The same for the Heston model that is fitted to the European options of SPX."""
    if not (DATA / TWIN[0]).exists():
        return []
    quotes = _twin_reading().quotes
    c = quotes.contracts
    near = (c.expiry >= FITTED[0]) & (np.abs(np.log(c.strike / c.forward)) < 0.5 * np.sqrt(c.expiry))
    fit = so.calibrate(quotes[near], so.Heston(), select="otm", residual="implied_vol", weights="none")
    twin, markets = _twin(), {}
    for years in (0.54, 1.04, 2.36):
        n = int(np.argmin(np.abs(twin.years - years)))
        markets[round(365 * float(twin.years[n]))] = float(twin.rate[n]), float(twin.borrow[n])
    truth = {name: float(fit.parameters[name]) for name in NAMES}
    return [_flat_premiums(f"Heston, fitted to SPX {TWIN[1]}", truth, grid, markets, (0.85, 0.95, 1.0, 1.05))]


def _chain(name: str) -> list[Row]:
    chain = CHAINS[name]
    if not (DATA / chain.file).exists():
        return [Row(name, "strikeout", note="the reference chains are not in ../shared/data beside the repository")]
    rows, dividends = [], {}
    for way in ("read as European", "converted, yield", "converted, cash dividends"):
        if way.endswith("dividends") and not dividends:
            rows.append(Row(name, way, note="its forwards imply no dividends"))
            continue
        how: dict[str, Any] = {} if way.endswith("European") else {"exercise": "american"}
        reading = _read(chain, **how, **({"dividends": dividends} if way.endswith("dividends") else {}))
        if way.endswith("yield"):
            dividends = implied_dividends(reading, chain)
        quotes = reading.quotes
        c, (shortest, far) = quotes.contracts, FITTED
        part = quotes[(c.expiry >= shortest) & (np.abs(c.strike / c.forward - 1.0) <= far)]
        fit = so.calibrate(part, so.Heston(), select="otm", residual="implied_vol", weights="none")
        jumps = jumps_of(quotes)
        short = [abs(j) for T, _, j, _ in jumps if T < SHORT]
        long = [abs(j) for T, _, j, _ in jumps if T >= SHORT] or [np.nan]
        spread = [s for T, _, _, s in jumps if T < SHORT]
        note = (
            f"{len(quotes):,} quotes; call less put volatility at the forward, median over slices: below 3 months "
            f"{100 * np.median(short):.2f} points (half a spread is {100 * np.median(spread):.2f}), longer "
            f"{100 * np.median(long):.2f}; Heston RMSE {fit.fit_errors.overall.vol_points:.2f} points"
        )
        paid = list(dict.fromkeys(dividends.values())) if way.endswith("dividends") else []
        rows.append(
            Row(name, way, note=note + (f"; dividends {', then '.join(f'{d:.2f}' for d in paid)}" if paid else ""))
        )
    return rows


def _read(chain: Chain, **how: Any) -> so.Reading:
    rate = {"constants": {"rate": chain.rate}} if chain.rate is not None else {"rates": _twin_rates()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return so.inspect_quotes(chain.frame(), **rate, **how)


def implied_dividends(reading: so.Reading, chain: Chain) -> dict[str, float]:
    """Return the amount by ex-date that the forwards imply: one for the next ex-date, one for those after it.

    Spot less the discounted forward is the value of the dividends before expiry. Slices weigh by the error of their
    forwards, a cent at least.
    """
    table, spot = reading.all_forwards(), float(np.median(reading.quotes.labels["spot"]))
    last = str(max(name.split()[-1] for name in table.names))
    days = chain.ex_dates(last)
    years = np.array([(dt.date.fromisoformat(day) - dt.date.fromisoformat(chain.day)).days / 365 for day in days])
    worth = (np.exp(-table.rate[:, None] * years) * (years <= table.years[:, None] + 1e-3)).T
    columns = np.stack([worth[0], worth[1:].sum(axis=0)], axis=1)[:, : min(len(days), 2)]
    weight = 1.0 / np.maximum(table.forward_error, 0.01)
    good = np.isfinite(weight)
    found = np.linalg.lstsq(
        (columns * weight[:, None])[good], ((spot - table.forward * table.discount) * weight)[good], rcond=None
    )[0]
    amounts = [round(float(amount), 2) for amount in found]
    if not amounts or min(amounts) <= 0.0:  # spot and options were not taken together
        return {}
    return {day: amounts[min(n, len(amounts) - 1)] for n, day in enumerate(days)}


@cache
def _twin_reading() -> so.Reading:
    file, day = TWIN
    frame = pl.read_parquet(DATA / file).filter(pl.col("quote_date").cast(pl.String) == day)
    return so.inspect_quotes(frame.drop("forward", "discount", "rate"), forwards="parity")


def _twin() -> Forwards:
    found = _twin_reading().forwards
    assert found is not None
    return found


def _twin_rates() -> dict[float, float]:
    twin = _twin()
    return {float(T): float(r) for T, r in zip(twin.years, twin.rate, strict=True) if T > 7 / 365}


def _against_spx(name: str) -> list[Row]:
    """Yields of SPY by expiry against those of SPX, before and after converting."""
    if not (DATA / TWIN[0]).exists() or not (DATA / CHAINS[name].file).exists():
        return []
    twin = _twin()
    theirs = {label.split()[-1]: float(b) for label, b in zip(twin.names, twin.borrow, strict=True)}
    rows = []
    for way, exercise in (("read as European", "european"), ("converted, yield", "american")):
        table = _read(CHAINS[name], exercise=exercise).all_forwards()
        apart = [
            (T, 100.0 * (b - theirs[label.split()[-1]]))
            for label, T, b in zip(table.names, table.years, table.borrow, strict=True)
            if T >= COMPARABLE and label.split()[-1] in theirs
        ]
        note = "yield less that of SPX: " + ", ".join(f"{T:.2f} years {d:+.2f} %" for T, d in apart)
        rows.append(Row(f"{name} against SPX {TWIN[1]}", way, note=note))
    return rows


def _by_strike(name: str) -> list[Row]:
    """The forward that the pair of each strike implies at the longest expiry, converted with the yield of SPX."""
    if not (DATA / TWIN[0]).exists() or not (DATA / CHAINS[name].file).exists():
        return []
    quotes = _read(CHAINS[name], exercise="american").quotes
    last = quotes[quotes.contracts.expiry == quotes.contracts.expiry.max()]
    c, mid, spot, twin = last.contracts, last.labels["american_mid"], float(last.labels["spot"][0]), _twin()
    T, D = float(c.expiry[0]), float(c.discount[0])
    yields = float(twin.borrow[np.argmin(np.abs(twin.years - T))])
    forward, rate = spot * np.exp(-yields * T) / D, -np.log(D) / T
    sigma = so.american.implied_volatility(
        price=mid, spot=spot, strike=c.strike, expiry=T, rate=rate, dividend_yield=yields, is_call=c.is_call
    )
    price = black.price(np.full(len(c), forward), c.strike, c.expiry, sigma, c.discount, c.is_call)
    found = []
    for K in range(500, 901, 50):
        call, put = (np.flatnonzero((c.strike == K) & (c.is_call == side)) for side in (True, False))
        if call.size and put.size:
            implied = K + (price[call[0]] - price[put[0]]) / D
            found.append(f"{K}: {implied:.1f} (premium {mid[put[0]] - price[put[0]]:.1f})")
    note = f"by the yield of SPX {forward:.1f}; by the pair of a strike (premium of its put) " + ", ".join(found)
    return [Row(f"{name}, forward at {T:.2f} years", "converted, yield", note=note)]


def _by_expiry(name: str) -> list[Row]:
    """Fit errors by time to expiry before and after, on the quotes that are out of the money both times."""
    if not (DATA / CHAINS[name].file).exists():
        return []
    shortest, far = FITTED
    parts = []
    for exercise in ("european", "american"):
        quotes = _read(CHAINS[name], exercise=exercise).quotes
        c = quotes.contracts
        near = (c.expiry >= shortest) & (np.abs(c.strike / c.forward - 1.0) <= far)
        parts.append(quotes[near & (c.is_call == (c.strike >= c.forward))])
    both, rows = np.intersect1d(parts[0].ids, parts[1].ids), []
    for way, part in zip(("read as European", "converted, yield"), parts, strict=True):
        quotes = part.only(both)
        fit = so.calibrate(quotes, so.Heston(), residual="implied_vol", weights="none")
        c = quotes.contracts
        market, model = (
            black.implied_volatility(price, c.forward, c.strike, c.expiry, c.discount, c.is_call)
            for price in (quotes.observed, so.Heston().price(fit.parameters, c))
        )
        off = np.square(100.0 * (market - model))
        found = [
            f"{low:g} to {high:g} years {np.sqrt(np.nanmean(off[(c.expiry >= low) & (c.expiry < high)])):.2f}"
            for low, high in ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (1.5, 3.0))
        ]
        rows.append(
            Row(f"{name}, the same {len(both):,} quotes", way, note="Heston RMSE in points: " + ", ".join(found))
        )
    return rows


def jumps_of(quotes: so.Quotes) -> list[tuple[float, float, float, float]]:
    """Return years, forward, call less put volatility (median of five strikes) and half a spread in volatility."""
    c = quotes.contracts
    sigma = black.implied_volatility(quotes.observed, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    vega = black.vega(c.forward, c.strike, c.expiry, np.where(np.isfinite(sigma), sigma, 0.2), c.discount)
    found = []
    for T in np.unique(c.expiry):
        at = np.flatnonzero(c.expiry == T)
        both = np.intersect1d(c.strike[at][c.is_call[at]], c.strike[at][~c.is_call[at]])
        near = both[np.argsort(np.abs(both / c.forward[at[0]] - 1.0))[:5]]
        apart, wide = [], []
        for K in near:
            rows = at[c.strike[at] == K]
            call, put = rows[c.is_call[rows]][0], rows[~c.is_call[rows]][0]
            apart.append(sigma[call] - sigma[put])
            wide.append(0.5 * (quotes.spread[call] + quotes.spread[put]) / (2.0 * vega[call]))
        if apart and np.isfinite(apart).any():
            found.append((float(T), float(c.forward[at[0]]), float(np.nanmedian(apart)), float(np.nanmedian(wide))))
    return found
