"""Every real file of the reference data, read as a desk reads it: fit errors in volatility points by expiry, one table.

A file with several dates is fitted at its last one, each underlying by itself. American prices are converted. The files
go through the product's own reading: a file that is refused is a row with the reason.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import strikeout as so
from benchmarks.rows import Result, Row
from strikeout.quotes.reading import accept
from strikeout.tables import Cell, Table, number

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
HEADINGS = ("chain", "expiry", "quotes", "heston", "svi", "heston, spreads", "svi, spreads", "status")
CHECKS = "desk"
MODELS = {"heston": so.Heston(), "svi": so.SVI()}
# Surfaces of volatilities with a forward and no rate: they are read with a rate of zero.
UNDISCOUNTED = ("day_surface_spx_2005-09-15", "day_surface_spx_2017-05-19", "day_surface_vix_2017-05-19")
FEW = 30  # quotes within the rules: fewer are not a day to fit
QUICK = ("day_quantlib_dax_2002-07-05", "day_cboe_spx_2022-01-07", "cboe_aapl_2019-08-23")


class Chain(NamedTuple):
    """The quotes of one underlying on one date of a file, and what became of its rows."""

    name: str
    quotes: so.Quotes


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """Print the table; the facts count files, refusals and rows."""
    if not DATA.is_dir():
        note = "the reference chains are not installed beside the repository: skipped"
        return Result("chains", is_quick, (Row("every real chain", "strikeout", note=note),), {})
    files = sorted([*(DATA / "chains").glob("*.parquet"), *(DATA / "raw").glob("*.csv*")])
    files = [path for path in files if not is_quick or path.name.startswith(QUICK)]
    facts: dict[str, float | str] = {"files": float(len(files))}
    rows: list[tuple[Cell, ...]] = []
    refused: list[str] = []
    points: dict[str, list[float]] = {name: [] for name in MODELS}
    rejected = chains = converged = 0
    begun = time.process_time()
    for path in files:
        try:
            reading = _read(path)
        except so.errors.StrikeoutError as error:
            refused.append(f"{path.name} ({error.code})")
            rows.append((path.name, "all", *[number(None)] * 5, f"refused: {error.code}"))
            continue
        rejected += reading.rejected
        for chain in _chains(path.name, reading.quotes):
            chains += 1
            found = _fitted(chain)
            rows += _rows(chain, found)
            print(f"{chain.name}: {len(chain.quotes):,} quotes fitted", file=sys.stderr, flush=True)
            converged += all(fit.converged for fit in found.values())
            for name, fit in found.items():
                points[name] += [error.vol_points or np.nan for error in fit.fit_errors.by_expiry.values()]
    print(Table(HEADINGS, rows, numbers=(2, 3, 4, 5, 6)).to_text(), flush=True)
    facts |= {"chains": float(chains), "chains in which both models converged": float(converged)}
    facts |= {"rows outside the rules": float(rejected), "refused": "; ".join(refused) or "none"}
    for name, errors in points.items():
        facts[f"{name}: median and 90 % of expiries, volatility points"] = (
            f"{np.nanmedian(errors):.2f}, {np.nanquantile(errors, 0.9):.2f} ({len(errors)} expiries)"
        )
    facts["seconds of the processor"] = round(time.process_time() - begun, 1)
    return Result("chains", is_quick, (), facts)


def _read(path: Path) -> so.Reading:
    """Return a file as a desk reads it.

    Raises:
        QuotesError: it cannot be read, or more than a tenth of its rows cannot.
    """
    is_surface = path.name.startswith(UNDISCOUNTED)
    reading = so.inspect_quotes(path, checks=CHECKS, exercise="auto", rates=0.0 if is_surface else None)
    accept(reading)
    return reading


def _chains(name: str, quotes: so.Quotes) -> Iterator[Chain]:
    """Yield the last date of each underlying that has more than a few quotes."""
    count = len(quotes)
    underlyings = quotes.labels.get("underlying", np.full(count, "", object)).astype(str)
    dates = quotes.labels.get("date", np.full(count, "", object)).astype(str)
    for underlying in sorted(set(underlyings.tolist())):
        last = max(dates[underlyings == underlying].tolist())
        rows = np.flatnonzero((underlyings == underlying) & (dates == last))
        if len(rows) >= FEW:
            several = len(set(underlyings.tolist())) > 1 or len(set(dates.tolist())) > 1
            yield Chain(f"{name}, {underlying} {last}" if several else name, quotes[rows])


def _fitted(chain: Chain) -> dict[str, so.results.Calibration]:
    """Return each model fitted to implied volatilities out of the money, in units of their spread if all have one."""
    spread = chain.quotes.spread
    weights = "vol-spread" if np.isfinite(spread).all() and (spread > 0.0).all() else "none"
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in MODELS.items():
            try:
                found[name] = so.calibrate(
                    chain.quotes, model, residual="implied_vol", weights=weights, select="otm", starts=1
                )
            except so.errors.StrikeoutError as error:
                print(f"{chain.name}, {name}: {error}", flush=True)
    return found


def _rows(chain: Chain, found: dict[str, so.results.Calibration]) -> Iterator[tuple[Cell, ...]]:
    """Yield one row per expiry of a chain, and one for all."""
    fits = [found[name].fit_errors if name in found else None for name in MODELS]
    expiries = next(({**fit.by_expiry, "all": fit.overall} for fit in fits if fit is not None), {})
    states = ", ".join(fit.termination.name.lower() for fit in found.values())
    for expiry, first in expiries.items():
        both = [None if fit is None else {**fit.by_expiry, "all": fit.overall}.get(expiry) for fit in fits]
        yield (
            chain.name,
            expiry,
            number(first.count, ",d"),
            *(number(None if error is None else error.vol_points, ".3f") for error in both),
            *(number(None if error is None else error.spreads, ".2f") for error in both),
            states if expiry == "all" else "",
        )
