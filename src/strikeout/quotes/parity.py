"""Put-call parity, slice by slice: call - put = discount (forward - strike), a straight line in the strike.

    s        number of the slice a quote or a pair is in
    K, y     strike of a pair, and its call less its put
    sigma    how far y may be off: half of the two spreads together
    D, F     discount and forward of a slice: minus the slope of the line, and where it crosses zero

A slice's answer follows from the quotes of that slice alone, in whatever order they come and whatever other slices are
fitted beside it: rows are sorted by value, summed one after the other, and passed over a fixed number of times.

Slices: the quotes that share one underlying, timestamp and expiry, and so one forward and one discount.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.quotes.names import sorted_rows

PAIRS = 3  # below this a line through noise is not informative
NEAREST = 5  # pairs around the money that count even if the band has fewer
BAND, NARROW = 0.15, 0.05  # |K / F - 1|; an American put is worth more than by parity, the more so away from there
# Of reweighting. More move no forward of the 647 slices of a real fortnight by more than 2e-6 of itself, and most by no
# bit. A fixed number: a rule for stopping would make a slice depend on those fitted beside it.
PASSES = 20
HUBER = 1.345  # of the scale of the residuals, from where the effect of a pair no longer grows
NORMAL = 1.4826  # median of |x| to standard deviation
TICK = 1e-5  # of the strike; no quote is better than that, whatever its spread is
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


def parity_lines(
    s: Rows,
    *,
    strike: Floats,
    is_call: Mask,
    observed: Floats,
    spread: Floats,
    years: Floats,
    discount: Floats,
    american: Mask,
) -> Lines:
    """Forward and discount of every slice, by Huber's robust line through the pairs around the money.

    A pair weighs by its spreads; where one of a slice is unknown, all its pairs weigh the same.

    Args:
        s: of each quote; ``strike`` to ``spread`` go with it.
        years: of each slice, like the two below.
        discount: if it is known, and only the forward is to be found; else not-a-number.
        american: parity is an inequality there, so the band is narrow.
    """
    count = len(years)
    known = np.isfinite(discount)
    pair, K, y, width = _pairs(s, strike, is_call, observed, spread)
    D = np.where(known, discount, 1.0)
    F = _medians(pair, K + y / D[pair], count)
    inside = _near_the_money(pair, K, F, np.where(american, NARROW, BAND))
    pair, K, y, width = pair[inside], K[inside], y[inside], width[inside]
    pairs = np.bincount(pair, minlength=count)
    unknown = np.bincount(pair, weights=~np.isfinite(width), minlength=count) > 0
    F = _medians(pair, K + y / D[pair], count)  # again: from here on pairs outside the band have no effect
    sigma = np.sqrt(np.square(np.where(unknown[pair], 0.0, width)) + np.square(TICK * K))
    x = K - F[pair]
    begin, expected, prior = F, elementary.exp(-RATE * years), np.square(EITHER_WAY * years)
    leaning = np.where(american, LEAN_AMERICAN, LEAN)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(PASSES):
            u = (y - D[pair] * (F[pair] - K)) / sigma
            scale = np.maximum(NORMAL * _medians(pair, np.abs(u), count), 1e-9)
            w = np.minimum(1.0, HUBER * scale[pair] / np.abs(u)) / (sigma * sigma)
            w = np.where(np.isfinite(w), w, 1.0 / (sigma * sigma))  # a pair on the line itself
            slope, x_mean, y_mean, total, squares = _line(pair, x, y, w, count)
            lean = leaning * _sum(pair, w * sigma, count) / total
            error = (scale * scale + lean * lean * total) / squares  # of the slope, squared
            D = np.where(known, discount, (prior * -slope + error * expected) / (prior + error))
            F = begin + x_mean + y_mean / D
        left = y - D[pair] * (F[pair] - K)
        about = y - y_mean[pair]
        r_squared = 1.0 - _sum(pair, w * left * left, count) / _sum(pair, w * about * about, count)
        # Spreads weigh pairs but need not be their errors. So the error is that of the residuals themselves (HC3 of
        # MacKinnon and White, 1985): a pair's effect on the line at the forward, times what it is off without
        # itself. The slope counts as far as pairs determine it, and pairs beyond Huber's bound (psi' = 0) not at all.
        trust, away, beside = np.where(known, 0.0, prior / (prior + error)), F - begin - x_mean, x - x_mean[pair]
        effect = w * (1.0 / total[pair] + (trust * away / squares)[pair] * beside)
        own = w * (1.0 / total[pair] + (trust / squares)[pair] * beside * beside)
        holding = _sum(pair, np.where(np.abs(u) <= HUBER * scale[pair], w, 0.0), count) / total
        wrong = _sum(pair, np.square(effect * left / (1.0 - own)), count) / np.square(holding)
        wrong = np.sqrt(wrong + np.where(known, 0.0, prior * np.square((1.0 - trust) * away))) / np.abs(D)
        low, high = elementary.exp(-HIGHEST * years) - SLACK, elementary.exp(-LOWEST * years) + SLACK
        plausible = known | ((low <= D) & (high >= D) & (D > 0.0))
        sound = (pairs >= PAIRS) & (F > 0.0) & np.isfinite(F) & plausible
    implied = np.where(pairs >= PAIRS, -slope, np.nan)
    found = (np.where(sound, column, np.nan) for column in (F, D, wrong))
    forward, factor, off = found
    return Lines(forward, factor, pairs, r_squared, implied, off)


def _pairs(
    s: Rows, strike: Floats, is_call: Mask, observed: Floats, spread: Floats
) -> tuple[Rows, Floats, Floats, Floats]:
    """Return every strike with a call and a put: slice, strike, call - put, half of both spreads.

    Several quotes of one contract count as their mean.
    """
    order = np.lexsort((spread, observed, is_call, strike, s))
    s, strike, is_call = s[order], strike[order], is_call[order]
    same = (s[1:] == s[:-1]) & (strike[1:] == strike[:-1]) & (is_call[1:] == is_call[:-1])
    first = np.flatnonzero(np.r_[True, ~same][: len(s)])
    contract = np.cumsum(np.r_[True, ~same][: len(s)]) - 1
    many = np.bincount(contract, minlength=len(first))
    price = _sum(contract, observed[order], len(first)) / many
    wide = _sum(contract, spread[order], len(first)) / many
    s, strike, is_call = s[first], strike[first], is_call[first]
    put = np.flatnonzero((s[1:] == s[:-1]) & (strike[1:] == strike[:-1]))  # the put sorts before its call
    call = put + 1
    return s[put], strike[put], price[call] - price[put], 0.5 * (wide[call] + wide[put])


def _near_the_money(s: Rows, K: Floats, F: Floats, band: Floats) -> Mask:
    with np.errstate(divide="ignore"):  # prices of nonsense may cross zero at a strike of zero
        away = np.abs(K / F[s] - 1.0)
    order = np.lexsort((K, away, s))
    ranked = np.empty(len(s), np.intp)
    ranked[order] = np.arange(len(s)) - np.searchsorted(s[order], s[order])
    inside: Mask = (away <= band[s]) | (ranked < NEAREST)
    return inside


def _line(s: Rows, x: Floats, y: Floats, w: Floats, count: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Slope, the weighted means it goes through, the sum of the weights and that of the weighted squares of x."""
    total = _sum(s, w, count)
    x_mean, y_mean = _sum(s, w * x, count) / total, _sum(s, w * y, count) / total
    apart = x - x_mean[s]
    squares = _sum(s, w * apart * apart, count)
    return _sum(s, w * apart * (y - y_mean[s]), count) / squares, x_mean, y_mean, total, squares


def _sum(s: Rows, values: NDArray[Any], count: int) -> Floats:
    # One after the other, in the order of the rows: a sum by blocks would depend on how many rows there are.
    total: Floats = np.bincount(s, weights=values, minlength=count).astype(float, copy=False)
    return total


def _medians(s: Rows, values: Floats, count: int) -> Floats:
    is_finite = np.isfinite(values).all()  # the quick sort is for numbers
    order = sorted_rows(s.astype(float), values) if is_finite else np.lexsort((values, s))
    ordered, many = values[order], np.bincount(s, minlength=count)
    begin = np.cumsum(many) - many
    out = np.full(count, np.nan)
    some = many > 0
    lower, upper = (begin + (many - 1) // 2)[some], (begin + many // 2)[some]
    out[some] = 0.5 * (ordered[lower] + ordered[upper])
    return out


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
