"""A curve of interest rates: a rate for every time to expiry, from a file, a mapping or pairs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from strikeout.errors import UnreadableFileError, UsageError
from strikeout.kernels.arrays import Floats
from strikeout.quotes.parquet_metadata import check_parquet
from strikeout.text import Argument

TENORS: Mapping[str, float] = {"years": 1.0, "tenor": 1.0, "t": 1.0, "expiry_years": 1.0, "days": 365.0, "months": 12.0}
RATES = ("rate", "zero_rate", "r", "yield")
Pairs = Iterable[tuple[float, float]]
DATES = ("date", "quote_date", "quotedate", "day")  # columns with the date of a curve
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
    def of(
        source: RateCurve | DatedCurves | str | PathLike[str] | Mapping[Any, Any] | Pairs,
    ) -> RateCurve | DatedCurves:
        """Return the curve in a .csv or .parquet file, a mapping from years to rates, or pairs of both.

        A file has a column of tenors (years, days or months) and one called rate, per year and as a decimal. With a
        column date, or as a mapping from dates to curves, there is one curve per quote date.
        """
        if isinstance(source, (RateCurve, DatedCurves)):
            return source
        if isinstance(source, (str, PathLike)):
            return _from_file(source)
        try:
            given = dict(source)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"rates: {type(source).__name__} is not a curve. Give a number, a .csv, a mapping from years to rates, "
                "or one from dates to such mappings."
            ) from error
        if given and all(isinstance(key, (str, date)) for key in given):
            return _by_date({str(key): curve for key, curve in given.items()}, "the curves given")
        try:
            pairs = sorted((float(year), float(rate)) for year, rate in given.items())
        except (TypeError, ValueError) as error:
            raise UsageError(
                "rates: a curve maps years to rates, both numbers, such as {0.25: 0.05, 1.0: 0.04}."
            ) from error
        return _checked(pairs, "the curve given")

    def at(self, years: Floats, dates: Sequence[str | None] | None = None) -> Floats:  # noqa: ARG002
        """Return the rate for each time to expiry, whatever the date; not-a-number for one that is unknown."""
        x, y = np.array(self.years), np.array(self.rates)
        if len(x) == 1:
            return np.where(np.isnan(years), np.nan, y[0])
        inside = np.clip(years, x[0], x[-1])
        right = np.clip(np.searchsorted(x, inside), 1, len(x) - 1)
        share = (inside - x[right - 1]) / (x[right] - x[right - 1])
        found: Floats = (1.0 - share) * y[right - 1] + share * y[right]
        return found


@dataclass(frozen=True)
class DatedCurves:
    """One curve per quote date; a quote has the curve of its date, or of the last date before it.

    >>> curves = RateCurve.of({"2024-01-02": {1.0: 0.05}, "2024-01-05": {1.0: 0.04}})
    >>> curves.at(np.array([1.0, 1.0, 1.0]), ["2024-01-04", "2024-01-05", "2024-01-01"]).tolist()
    [0.05, 0.04, nan]
    """

    dates: tuple[str, ...]
    curves: tuple[RateCurve, ...]
    name: str = "the curves given"

    def at(self, years: Floats, dates: Sequence[str | None] | None = None) -> Floats:
        """Return the rate for each time to expiry and date; not-a-number before the first curve or without a date."""
        if dates is None:
            raise UsageError(
                f"rates: {self.name} has a curve per date, and the quotes have no quote_date. Give one curve, or "
                "the date (",
                Argument("constants", {"quote_date": "YYYY-MM-DD"}),
                ").",
            )
        place = np.array([-1 if day is None else bisect_right(self.dates, day) - 1 for day in dates], np.intp)
        found = np.full(len(place), np.nan)
        for number, curve in enumerate(self.curves):
            rows = place == number
            found[rows] = curve.at(years[rows])
        return found


def _by_date(curves: Mapping[str, Any], name: str) -> DatedCurves:
    """Return curves by date, the dates in order."""
    found: dict[str, RateCurve] = {}
    for day, curve in curves.items():
        try:
            key = date.fromisoformat(day[:10]).isoformat()
        except ValueError as error:
            raise UsageError(
                f"rates: {day!r} is not a date. Give dates such as 2024-01-31, or years as numbers.", date=day
            ) from error
        one = RateCurve.of({1.0: curve} if isinstance(curve, (int, float)) else curve)
        if not isinstance(one, RateCurve):
            raise UsageError(f"rates: the curve of {day} has dates itself. Give years and rates.", date=day)
        found[key] = one
    ordered = sorted(found)
    return DatedCurves(tuple(ordered), tuple(found[day] for day in ordered), name)


def _from_file(path: str | PathLike[str]) -> RateCurve | DatedCurves:
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
    years, found = (numbers[0].to_numpy() / TENORS[tenor]).tolist(), numbers[1].to_list()
    dated = next((word for word in DATES if word in plain), None)
    if dated is None:
        return _checked(sorted(zip(years, found, strict=True)), name)
    days = frame[plain[dated]].cast(pl.String).to_list()
    if any(day is None for day in days):
        raise UsageError(f"rates: {name} has an empty cell in {dated}. Give a date in every row.", path=name)
    curves = {
        day: _checked(
            sorted(row[1:] for row in zip(days, years, found, strict=True) if row[0] == day), f"{name}, {day}"
        )
        for day in dict.fromkeys(days)
    }
    return _by_date(curves, name)


def _checked(pairs: list[tuple[float, float]], name: str) -> RateCurve:
    years, rates = [year for year, _ in pairs], [rate for _, rate in pairs]
    if not pairs or not np.isfinite([*years, *rates]).all() or years[0] < 0 or len(set(years)) < len(years):
        raise UsageError(f"rates: {name} needs finite rates at distinct tenors that are not negative.", rates=name)
    largest: Any = max(map(abs, rates))
    if largest > LARGEST:
        raise UsageError(f"rates: {name} has a rate of {largest:g}. Give decimals: 0.05 is 5 %.", rates=name)
    return RateCurve(tuple(years), tuple(rates), name)
