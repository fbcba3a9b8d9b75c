"""Cash dividends: a schedule by underlying, and what of it falls into the life of a quote.

The label ``dividends`` of a quote has all that its European price depends on, as text: the model, years and amount of
each dividend between the quote and its expiry, and the tail, "escrowed 0.0027:1.58 0.2521:1.59 tail 0.5:0.014". So a
quote keeps its dividends in books, files and chunks, and no row depends on a schedule that is elsewhere.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import inf, isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from strikeout.errors import UnreadableFileError, UsageError
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.kernels.dividends import CashFlows
from strikeout.quotes.parquet_metadata import check_parquet

DIVIDENDS = "dividends"  # the label
MODELS = ("escrowed", "piecewise")
EX_DATES = ("ex_date", "exdate", "ex_dividend_date", "date")
AMOUNTS = ("amount", "dividend", "cash", "cash_amount")
YIELDS = ("yield", "dividend_yield")
UNDERLYINGS = ("underlying", "symbol", "ticker")
YEAR = 365.0  # days; the time to an expiry without a clock is counted in the same way
TAIL = "tail"


@dataclass(frozen=True)
class Dividend:
    """A cash amount at an ex-date, or a proportional yield per year from that date on (the tail)."""

    underlying: str  # empty: of every underlying
    ex_date: dt.date
    amount: float
    tail: float | None = None


@dataclass(frozen=True)
class Dividends:
    """A schedule of dividends, and how the asset moves with them.

    >>> schedule = Dividends.of({"2024-03-15": 1.5, "2024-06-21": 1.6})
    >>> schedule.text("SPY", dt.date(2024, 3, 5), 0.2)
    'escrowed 0.0273972602739726:1.5'
    """

    each: tuple[Dividend, ...]
    model: str = "escrowed"
    name: str = "the dividends given"

    @staticmethod
    def of(source: Any, model: str | None = None) -> Dividends:
        """Return the schedule in a file, a frame, or a mapping.

        Args:
            source: a path (.csv, .parquet) or a frame with the columns ex_date and amount, optionally underlying, and
                optionally yield: a row with a yield per year in place of an amount is the tail from that date on. Or a
                mapping from ex-dates to amounts, or from underlyings to such mappings.
            model: "escrowed" (default) or "piecewise".

        Raises:
            UsageError: a file or column is missing, a cell is not a date or a number above zero, or a date is repeated.
        """
        if model is not None and model not in MODELS:
            raise UsageError(f"dividends: the model is {model!r}. It is one of {', '.join(MODELS)}.", model=model)
        if isinstance(source, Dividends):
            return source if model is None else Dividends(source.each, model, source.name)
        if isinstance(source, (str, PathLike)):
            return _checked(_from_frame(_file(source), str(source)), model, str(source))
        if isinstance(source, Mapping):
            return _checked(_from_mapping(source), model, "the mapping")
        return _checked(_from_frame(_frame(source), "the frame"), model, "the frame")

    def text(self, underlying: str, day: dt.date, years: float) -> str:
        """Return the label of a quote of this day and time to expiry; empty if no dividend falls into its life."""
        paid: list[str] = []
        tail = ""
        for each in self.each:
            t = (each.ex_date - day).days / YEAR
            if each.underlying not in ("", underlying) or t > years:
                continue
            if each.tail is not None:
                tail = f" {TAIL} {max(t, 0.0)!r}:{each.tail!r}"
            elif t > 0.0:
                paid.append(f"{t!r}:{each.amount!r}")
        return f"{self.model} {' '.join(paid)}".rstrip() + tail if paid or tail else ""


@lru_cache(maxsize=4096)
def cash_flows(text: str) -> CashFlows:
    """Return the dividends that a label has."""
    model, _, rest = text.strip().partition(" ")
    cash, _, tail = rest.partition(TAIL)
    try:
        pairs = sorted(_pair(word) for word in cash.split())
        start, share = _pair(tail) if tail else (inf, 0.0)
    except ValueError:
        model = ""
    if model not in MODELS:
        raise UsageError(
            f"dividends: {text!r} is not understood. Expected a model ({', '.join(MODELS)}), then years:amount of "
            "each dividend, such as 'escrowed 0.25:1.5 0.5:1.5'.",
            text=text,
        )
    return CashFlows(tuple(t for t, _ in pairs), tuple(d for _, d in pairs), start, share, drops=model == "piecewise")


def less_dividends(forward: Floats, texts: list[str], *, spot: Floats, expiry: Floats, cost: Floats) -> Floats:
    """Return forwards from spot with those of quotes with cash dividends replaced; ``cost`` is rate less yield."""
    groups: dict[tuple[str, float], list[int]] = {}
    for row, text in enumerate(texts):
        if text and isfinite(forward[row]):
            groups.setdefault((text, float(expiry[row])), []).append(row)
    found = np.array(forward)
    for (text, T), rows in groups.items():
        found[rows] = cash_flows(text).forward(spot[rows], T, cost[rows])
    return found


def borrows(texts: list[str], *, spot: Floats, forward: Floats, expiry: Floats, rate: Floats) -> Floats:
    """Return the yield that each forward implies beside its cash dividends; not-a-number without a spot.

    Without cash dividends it is the whole dividend yield, borrow included.
    """
    with np.errstate(all="ignore"):
        found: Floats = rate - elementary.log(forward / spot) / expiry
        for row, text in enumerate(texts):
            if text and isfinite(found[row]):
                cost = cash_flows(text).cost(spot[row : row + 1], forward[row : row + 1], float(expiry[row]))
                found[row] = rate[row] - float(cost[0])
    return found


def _pair(word: str) -> tuple[float, float]:
    time, _, amount = word.partition(":")
    pair = float(time), float(amount)
    if not all(map(isfinite, pair)) or pair[0] < 0.0:
        raise ValueError(word)
    return pair


def _file(path: str | PathLike[str]) -> pl.DataFrame:
    try:
        if str(path).lower().endswith(".parquet"):
            check_parquet(Path(path))
            return pl.read_parquet(Path(path))
        return pl.read_csv(Path(path), infer_schema=False)
    except (OSError, UnreadableFileError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UsageError(
            f"dividends: {path} cannot be read. Give a .csv with the columns underlying, ex_date and amount.",
            path=str(path),
        ) from error


def _frame(source: Any) -> pl.DataFrame:
    import narwhals as nw

    try:
        return pl.DataFrame(nw.from_native(source, eager_only=True).to_polars())
    except TypeError as error:
        raise UsageError(
            f"dividends: {type(source).__name__} is neither a path nor a frame nor a mapping. Give a .csv with the "
            "columns underlying, ex_date and amount, or a mapping from ex-dates to amounts.",
        ) from error


def _from_frame(frame: pl.DataFrame, name: str) -> list[Dividend]:
    plain = {column.strip().lower().replace(" ", "_"): column for column in frame.columns}

    def column(words: Iterable[str]) -> list[Any] | None:
        found = next((plain[word] for word in words if word in plain), None)
        return None if found is None else frame[found].to_list()

    dates, amounts, yields, underlyings = (column(words) for words in (EX_DATES, AMOUNTS, YIELDS, UNDERLYINGS))
    if dates is None or amounts is None:
        raise UsageError(
            f"dividends: {name} has the columns {', '.join(frame.columns)}. Expected ex_date and amount, and "
            "underlying if there are several.",
            columns=frame.columns,
        )
    found = []
    for row, (day, amount) in enumerate(zip(dates, amounts, strict=True), start=2):
        share = None if yields is None else yields[row - 2]
        whose = "" if underlyings is None else str(underlyings[row - 2] or "").strip()
        is_tail = share not in (None, "") and amount in (None, "")
        found.append(
            Dividend(
                whose,
                _date(day, name, row),
                0.0 if is_tail else _number(amount, name, row, "amount"),
                _number(share, name, row, "yield") if is_tail else None,
            )
        )
    return found


def _from_mapping(given: Mapping[Any, Any]) -> list[Dividend]:
    found = []
    for key, value in given.items():
        if isinstance(value, Mapping):
            found += [
                Dividend(str(key), _date(day, "the mapping", n), _number(amount, "the mapping", n, "amount"))
                for n, (day, amount) in enumerate(value.items(), start=1)
            ]
        else:
            n = len(found) + 1
            found.append(Dividend("", _date(key, "the mapping", n), _number(value, "the mapping", n, "amount")))
    return found


def _date(cell: Any, name: str, row: int) -> dt.date:
    if isinstance(cell, dt.datetime):
        return cell.date()
    if isinstance(cell, dt.date):
        return cell
    text = str(cell).strip()
    try:
        return dt.date.fromisoformat(text[:10])
    except ValueError as error:
        raise UsageError(
            f"dividends: row {row} of {name}, column ex_date: {text!r} is not a date. Write 2024-03-15.",
            row=row,
            column="ex_date",
        ) from error


def _number(cell: Any, name: str, row: int, column: str) -> float:
    try:
        found = float(str(cell).strip())
    except ValueError:
        found = -1.0
    if not (isfinite(found) and found >= 0.0):
        raise UsageError(
            f"dividends: row {row} of {name}, column {column}: {cell!r} is not a number of zero or more. Correct it, "
            "or remove the row.",
            row=row,
            column=column,
        )
    return found


def _checked(found: list[Dividend], model: str | None, name: str) -> Dividends:
    if not found:
        raise UsageError(f"dividends: {name} has no dividend. Leave it out, or add rows.", name=name)
    ordered = sorted(found, key=lambda each: (each.underlying, each.ex_date, each.tail is not None))
    for one, two in pairwise(ordered):
        if (one.underlying, one.ex_date, one.tail is None) == (two.underlying, two.ex_date, two.tail is None):
            raise UsageError(
                f"dividends: {name} has {two.ex_date} twice{f' for {two.underlying}' if two.underlying else ''}. Keep "
                "one row per ex-date, with the sum.",
                ex_date=str(two.ex_date),
            )
    return Dividends(tuple(each for each in ordered if each.amount > 0.0 or each.tail), model or MODELS[0], name)
