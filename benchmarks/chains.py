"""One day of real options at a time: European chains that bring their forward, cleaned by a fixed, visible rule.

Apart from the package's own reading on purpose: what the peers are given must not change when a reader improves.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import strikeout as so
from strikeout.kernels import black

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "chains"

# Every European day among the reference chains with forwards and several expiries; of a panel, one date.
DAYS: dict[str, tuple[str, str | None]] = {
    "DAX 2002-07-05": ("day_quantlib_dax_2002-07-05", None),
    "SPX 2005-09-15": ("day_surface_spx_2005-09-15", None),
    "SX5E 2010-03-01": ("day_andreasenhuge_sx5e_2010-03-01", None),
    "SPX 2011-02-02": ("panel_spx_weekly_2011_h1", "2011-02-02"),
    "SPX 2011-05-11": ("panel_spx_weekly_2011_h1", "2011-05-11"),
    "SPX 2017-05-19": ("day_surface_spx_2017-05-19", None),
    "SPX 2019-05-10": ("day_cboe_spx_2019-05-10", None),
    "SPX 2020-09-04": ("day_cboe_spx_2020-09-04", None),
    "BTC 2020-09-12": ("day_deribit_btc_2020-09-12", None),
    "SPX 2022-01-07": ("day_cboe_spx_2022-01-07", None),
    "NDX 2022-02-04": ("day_cboe_ndx_2022-02-04", None),
    "SPX 2022-06-10": ("day_cboe_spx_2022-06-10", None),
    "SPX 2022-11-07": ("day_surface_spx_2022-11-07", None),
    "SPX 2023-06-09": ("day_cboe_spx_2023-06-09", None),
    "SPX 2023-12-08": ("day_cboe_spx_2023-12-08", None),
    "BTC 2026-03-02": ("panel_deribit_btc_2025-12_2026-04", "2026-03-02"),
    "SPX 2026-07-22": ("panel_spx_2026-07-22_08-05", "2026-07-22"),
}
NUMBERS = ("strike", "bid", "ask", "mid", "iv_mid", "forward", "discount")
SHORTEST = 7  # days: below, a jump matters more than anything a diffusion can show
FARTHEST = 3.0  # standard deviations of the log-price, at the volatility of the quote itself


def day(name: str, *, folder: Path = DATA) -> so.Quotes:
    """The out-of-the-money quotes of a day that have a volatility: two-sided, a week or longer, within the band.

    Expiries are rounded to whole days, the finest that every peer can count in. A source that gives volatilities and no
    prices is priced with them; one that quotes in coins is turned into money at the forward.

    Raises:
        KeyError: no such day.
        FileNotFoundError: the reference chains are not in ``../shared/data`` beside the repository.
    """
    return quotes_of(*DAYS[name], folder=folder)


def quotes_of(file: str, date: str | None, *, folder: Path = DATA) -> so.Quotes:
    """The quotes of a file, of one date of it if it has several, cleaned as ``day`` does."""
    frame = pl.read_parquet(folder / f"{file}.parquet")
    frame = frame if date is None else frame.filter(pl.col("quote_date").cast(pl.String).str.starts_with(date))
    frame = frame.filter(pl.col("forward").is_finite() & (pl.col("exercise") == "E"))
    column = {key: frame[key].cast(pl.Float64).fill_null(np.nan).to_numpy() for key in NUMBERS}
    forward, strike, expiry = column["forward"], column["strike"], _expiry(frame)
    discount = np.where(np.isfinite(column["discount"]), column["discount"], 1.0)
    is_call = (frame["cp_flag"] == "C").to_numpy()
    unit = np.where(frame["price_unit"].fill_null("").str.starts_with("coin").to_numpy(), forward, 1.0)
    bid, ask = unit * column["bid"], unit * column["ask"]
    price = np.where(np.isnan(bid) & np.isnan(ask), unit * column["mid"], 0.5 * (bid + ask))
    if np.isnan(price).all():  # a surface: each strike once, on the side that is out of the money
        is_call = strike >= forward
        price = black.price(forward, strike, expiry, column["iv_mid"], discount, is_call)
    vol = black.implied_volatility(price, forward, strike, expiry, discount, is_call)
    with np.errstate(invalid="ignore"):
        good = np.isfinite(vol) & (vol > 0.0) & (expiry >= SHORTEST / 365.0) & ((strike >= forward) == is_call)
        good &= np.abs(np.log(strike / forward)) <= FARTHEST * vol * np.sqrt(expiry)
        good &= np.isnan(bid) | ((bid > 0.0) & (ask > bid))
    rows = np.flatnonzero(good)
    contracts = so.Contracts(
        forward=forward[rows], strike=strike[rows], expiry=expiry[rows], discount=discount[rows], is_call=is_call[rows]
    )
    return so.Quotes(ids=rows.astype(str), contracts=contracts, observed=price[rows], spread=(ask - bid)[rows])


def thinned(quotes: so.Quotes, count: int) -> so.Quotes:
    """At most n quotes, evenly chosen by expiry and log-moneyness."""
    rows = np.unique(np.linspace(0, len(quotes) - 1, min(count, len(quotes))).round().astype(int))
    return quotes[quotes.contracts.slices.order[rows]]


def _expiry(frame: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Years of whole days: the source's own time where it gave one, else from date to date."""
    if frame["t_years"].null_count() == 0:
        return np.rint(frame["t_years"].to_numpy().astype(float) * 365.0) / 365.0
    days = frame["expiry"].str.slice(0, 10).str.to_date() - frame["quote_date"].str.slice(0, 10).str.to_date()
    return days.dt.total_days().to_numpy().astype(float) / 365.0
