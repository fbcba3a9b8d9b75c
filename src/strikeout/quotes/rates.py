"""A curve of interest rates: a rate for every time to expiry, from a file, a mapping or pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.errors import UnreadableFileError, UsageError
from strikeout.quotes.parquet_metadata import check_parquet

TENORS: Mapping[str, float] = {"years": 1.0, "tenor": 1.0, "t": 1.0, "expiry_years": 1.0, "days": 365.0, "months": 12.0}
RATES = ("rate", "zero_rate", "r", "yield")
Pairs = Iterable[tuple[float, float]]
LARGEST = 1.0  # a rate above 100 % is in percent


@dataclass(frozen=True)
class RateCurve:
    """Continuously compounded rates at some years, linear between them and constant beyond.

    >>> RateCurve.of({0.25: 0.05, 1.0: 0.04}).at(np.array([0.1, 0.5, 2.0])).round(4).tolist()
    [0.05, 0.0467, 0.04]
    """

    years: tuple[float, ...]
    rates: tuple[float, ...]
    name: str = "the curve given"

    @staticmethod
    def of(source: RateCurve | str | PathLike[str] | Mapping[float, float] | Pairs) -> RateCurve:
        """Return the curve in a .csv or .parquet file, a mapping from years to rates, or pairs of both.

        A file has a column of tenors (years, days or months) and one called rate, per year and as a decimal.

        Raises:
            UsageError: a file or column is missing, or a tenor or rate is not a number, repeated, or in percent.
        """
        if isinstance(source, RateCurve):
            return source
        if isinstance(source, (str, PathLike)):
            return _from_file(source)
        pairs = sorted((float(year), float(rate)) for year, rate in dict(source).items())
        return _checked(pairs, "the curve given")

    def at(self, years: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rate for each time to expiry; not-a-number for one that is unknown."""
        x, y = np.array(self.years), np.array(self.rates)
        if len(x) == 1:
            return np.where(np.isnan(years), np.nan, y[0])
        inside = np.clip(years, x[0], x[-1])
        right = np.clip(np.searchsorted(x, inside), 1, len(x) - 1)
        share = (inside - x[right - 1]) / (x[right] - x[right - 1])
        found: NDArray[np.float64] = (1.0 - share) * y[right - 1] + share * y[right]
        return found


def _from_file(path: str | PathLike[str]) -> RateCurve:
    name = str(path)
    try:
        if name.lower().endswith(".parquet"):
            check_parquet(Path(name))
            frame = pl.read_parquet(name)
        else:
            frame = pl.read_csv(name)
    except (OSError, UnreadableFileError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UsageError(
            f"rates: {name} cannot be read. Give a .csv with the columns years (or days) and rate.", path=name
        ) from error
    plain = {column.strip().lower().replace(" ", "_"): column for column in frame.columns}
    tenor = next((word for word in TENORS if word in plain), None)
    rate = next((word for word in RATES if word in plain), None)
    if tenor is None or rate is None:
        raise UsageError(
            f"rates: {name} has the columns {', '.join(frame.columns)}. Expected years, days or months, and rate.",
            path=name,
            columns=frame.columns,
        )
    numbers = [frame[plain[word]].cast(pl.Float64, strict=False) for word in (tenor, rate)]
    if not frame.height or any(column.null_count() for column in numbers):
        raise UsageError(f"rates: {name} has an empty cell or a word in {tenor} or {rate}. Give numbers.", path=name)
    years = (numbers[0].to_numpy() / TENORS[tenor]).tolist()
    return _checked(sorted(zip(years, numbers[1].to_list(), strict=True)), name)


def _checked(pairs: list[tuple[float, float]], name: str) -> RateCurve:
    years, rates = [year for year, _ in pairs], [rate for _, rate in pairs]
    if not pairs or not np.isfinite([*years, *rates]).all() or years[0] < 0 or len(set(years)) < len(years):
        raise UsageError(f"rates: {name} needs finite rates at distinct tenors that are not negative.", rates=name)
    largest: Any = max(map(abs, rates))
    if largest > LARGEST:
        raise UsageError(f"rates: {name} has a rate of {largest:g}. Give decimals: 0.05 is 5 %.", rates=name)
    return RateCurve(tuple(years), tuple(rates), name)
