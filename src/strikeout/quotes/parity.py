"""Put-call parity, slice by slice: call - put = discount (forward - strike), a straight line in the strike.

Slices: the quotes that share one underlying, timestamp and expiry, and so one forward and one discount.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import elementary, parity
from strikeout.kernels.arrays import Floats, Mask, Rows

PAIRS = 3  # below this a line through noise is not informative
BAND, NARROW = 0.15, 0.05  # |K / F - 1|; an American put is worth more than by parity, the more so away from there
# What is known of a rate before any price is seen: 2 % a year, give or take 5 %. Pairs that pin it down better speak
# for themselves; those of a slice of days, or with mids that are loose within wide spreads, are unreliable.
RATE, EITHER_WAY = 0.02, 0.05
# By how much of half the spreads the mids of a slice may lean one way along the strikes; American ones by exercise too
LEAN, LEAN_AMERICAN = 0.1, 0.5
# A discount outside exp(-HIGHEST T) .. exp(-LOWEST T), give or take SLACK for the noise of short slices, is none.
HIGHEST, LOWEST, SLACK = 1.0, -0.2, 0.02


@dataclass(frozen=True, eq=False)
class Lines:
    """One line per slice. ``forward`` is not-a-number if a slice has too few pairs or no plausible line."""

    forward: Floats
    discount: Floats
    pairs: Rows  # that the line was put through
    r_squared: Floats
    implied: Floats  # the discount the prices imply; ``discount`` is another if that was known
    error: Floats  # standard error of the forward, from the scatter of the pairs about the line


def parity_lines(quotes: parity.Quotes, *, years: Floats, discount: Floats, american: Mask) -> Lines:
    """Forward and discount of every slice, by Huber's robust line through the pairs around the money.

    Args:
        years: of each slice, like the two below.
        discount: if it is known, and only the forward is to be found; else not-a-number.
        american: parity is an inequality there, so the band is narrow.
    """
    known = np.isfinite(discount)
    band, leaning = np.where(american, NARROW, BAND), np.where(american, LEAN_AMERICAN, LEAN)
    expected, prior = elementary.exp(-RATE * years), np.square(EITHER_WAY * years)
    F, D, r_squared, slope, error, pairs = parity.parity_lines(
        quotes, parity.Slices(discount, band, leaning, expected, prior)
    )
    low, high = elementary.exp(-HIGHEST * years) - SLACK, elementary.exp(-LOWEST * years) + SLACK
    plausible = known | ((low <= D) & (high >= D) & (D > 0.0))
    sound = (pairs >= PAIRS) & (F > 0.0) & np.isfinite(F) & plausible
    implied = np.where(pairs >= PAIRS, -slope, np.nan)
    forward, factor, off = (np.where(sound, column, np.nan) for column in (F, D, error))
    return Lines(forward, factor, pairs.astype(np.intp), r_squared, implied, off)


MOMENT = ("underlying", "root", "quote_date", "quote_time")  # canonical columns; a slice is one expiry of these
LABELS = {"quote_date": "date", "expiry": "expiry_date"}  # what a book calls them, where by another name
MOMENT_LABELS = tuple(LABELS.get(name, name) for name in MOMENT)
KEYS = (*MOMENT_LABELS, LABELS["expiry"])  # labels; the time to expiry separates the others
AMERICAN_MID = "american_mid"  # the price of an American quote whose ``observed`` is European: see ``exercise``
SHOWN = ("underlying", "root", "date", "expiry_date")


def slice_numbers(labels: Mapping[str, NDArray[Any]], expiry: Floats) -> tuple[Rows, Rows]:
    """Return the number of the slice of every row, from zero, and the first row of every slice."""
    columns = [*(labels[name] for name in KEYS if name in labels), expiry]
    starts = run_starts(columns)  # files have slices in runs: what follows looks at one row of each
    table: dict[Any, int] = {}
    keys = zip(*(_plain(column[starts]) for column in columns[:-1]), expiry[starts].tolist(), strict=True)
    of_run = np.fromiter((table.setdefault(key, len(table)) for key in keys), np.intp, len(starts))
    _, first = np.unique(of_run, return_index=True)
    return np.repeat(of_run, np.diff(starts, append=len(expiry))), starts[first].astype(np.intp)


def run_starts(columns: Sequence[NDArray[Any]]) -> Rows:
    """Return the rows that differ from the row before in one of the columns; the first row is one of them."""
    differs = np.ones(len(columns[0]), bool)
    if len(differs):
        differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(differs)


def slice_name(labels: Mapping[str, NDArray[Any]], expiry: float, *, row: int) -> str:
    """Return a slice in words, from one of its rows: "SPX SPXW 2022-01-07 2022-01-10", or the years if it has no
    date."""
    underlying, root, day, end = (str(labels[name][row]) if name in labels else "" for name in SHOWN)
    words = (underlying, root if root != underlying else "", day, end or f"{expiry:.4g} years")
    return " ".join(filter(None, words))


def _plain(column: NDArray[Any]) -> list[str]:
    plain: list[str] = (column if column.dtype.kind in "OU" else column.astype(str)).tolist()
    return plain
