"""Quotes that do not fit their own smile, found without a model.

Cook's distance lists the quotes that move the parameters, and on a real day those are the quotes that the model misses.
Here a quote is compared with its neighbours: quotes of the same timestamp, underlying and expiry at the nearest
strikes.

symbol   meaning
k        log-moneyness ln(K/F); v the implied volatility of a quote
pair     one neighbour below k and one above it (at the ends of a slice: two on one side); the line through their v is
         one estimate of the volatility at k. The median over all pairs is robust: one bad neighbour of eight changes a
         quarter of the estimates
expected Black's price at that median
noise    half the quoted spread and the neighbours' own typical distance from their smile, added in quadrature; four
         times that at the ends of a slice, where a line leaves out the curvature of the smile
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError
from strikeout.kernels import black, elementary
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.quotes.quotes import Quotes
from strikeout.text import as_lines, many, printable

NEIGHBOURS = 4  # on each side
SLICE = ("underlying", "root", "date", "quote_time")  # labels that, with the expiry, make a slice; those that are there
FEW = 7  # a slice with fewer strikes is not judged: there, too many of a quote's neighbours are at an end
AT_ENDS = 4.0
TICK = 0.5e-4  # of the forward: noise of a price without a quoted spread


@dataclass(frozen=True, eq=False, repr=False)
class Outliers(Mapping[str, NDArray[Any]]):
    """Columns by name, one row per quote, the least plausible quote first; see ``outliers``."""

    columns: dict[str, NDArray[Any]]
    unjudged: int  # quotes of slices with too few neighbours

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def rows(self) -> int:
        """The number of quotes."""
        return len(self.columns["id"])

    def above(self, score: float) -> Outliers:
        """Return the quotes whose score is at least this."""
        kept = self.columns["score"] >= score
        return Outliers({name: column[kept] for name, column in self.columns.items()}, self.unjudged)

    def to_dict(self, count: int | None = None) -> dict[str, Any]:
        """Return the first rows as plain values for JSON; a number that does not exist is None."""
        rows = [
            {name: _plain(column[row]) for name, column in self.columns.items()}
            for row in range(self.rows if count is None else min(count, self.rows))
        ]
        return {"quotes": self.rows, "unjudged": self.unjudged, "outliers": rows}

    def summary(self, count: int = 10) -> str:
        """Return the first rows as a table of plain text."""
        names, cells = self.shown(count)
        widths = [max(len(row[i]) for row in [names, *cells]) for i in range(len(names))]
        return as_lines(
            ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in (names, *cells)]
        )

    def shown(self, count: int) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the first rows as text."""
        names = [*self.columns]
        return names, [
            [printable(_cell(self.columns[name][row])) for name in names] for row in range(min(count, self.rows))
        ]

    def __repr__(self) -> str:
        return f"<Outliers of {many(self.rows, 'quote')}: {', '.join(self.columns)}>"


def outliers(quotes: Quotes) -> Outliers:
    """Rank quotes by their distance from the smile of their neighbours, in units of its noise.

    The columns: ``id``, ``expiry``, ``strike``, ``right``, ``price``, ``expected`` (the price on the smile of its
    neighbours), ``score`` (the distance in units of the noise; about 1 for an ordinary quote), ``volatility``,
    ``expected_volatility``, ``arbitrage`` (whether the price is below its intrinsic value, or out of order with its
    neighbours in strike, by more than the noise).

    Raises:
        RefusedError: no slice has enough quotes.
        UsageError: the quotes are not options.
    """
    contracts = quotes.contracts
    F, K, T, D, is_call = (getattr(contracts, name) for name in ("forward", "strike", "expiry", "discount", "is_call"))
    v = black.implied_volatility(quotes.observed, F, K, T, D, is_call)
    spread = _half_spread(quotes)
    expected = np.full(len(quotes), np.nan)
    scale = np.full(len(quotes), np.nan)
    arbitrage = np.zeros(len(quotes), dtype=bool)
    for rows in _slices(quotes):
        k = elementary.log(K[rows] / F[rows])
        guess = _expected_volatilities(k, v[rows])
        price = black.price(F[rows], K[rows], T[rows], guess, D[rows], is_call[rows])
        away = np.abs(quotes.observed[rows] - price)
        vega = black.vega(F[rows], K[rows], T[rows], guess, D[rows])
        typical = _neighbours_median(k, np.divide(away, vega, out=np.full(len(rows), np.nan), where=vega > 0.0)) * vega
        expected[rows] = price
        levels = np.unique(k)[[2, -3]]  # the three outermost strikes on each side are ends
        ends = (k <= levels[0]) | (k >= levels[1])
        scale[rows] = np.sqrt(spread[rows] * spread[rows] + np.nan_to_num(typical * typical)) * np.where(
            ends, AT_ENDS, 1.0
        )
        arbitrage[rows] = _crossed(K[rows], quotes.observed[rows], spread[rows], is_call[rows], D[rows])
    arbitrage |= quotes.observed < D * np.maximum(np.where(is_call, F - K, K - F), 0.0) - spread
    judged = np.isfinite(expected)
    if not judged.any():
        raise RefusedError(
            f"outliers: no slice (one timestamp, one expiry) has {FEW} strikes to compare. Read more strikes."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.abs(quotes.observed - expected) / scale
    score[~judged] = np.nan
    order = np.argsort(np.where(judged, -score, np.inf), kind="stable")
    columns: dict[str, NDArray[Any]] = {
        "id": quotes.ids,
        "expiry": quotes.labels.get("expiry_date", T),
        "strike": K,
        "right": np.where(is_call, "C", "P"),
        "price": quotes.observed,
        "expected": expected,
        "score": score,
        "volatility": v,
        "expected_volatility": black.implied_volatility(expected, F, K, T, D, is_call),
        "arbitrage": arbitrage,
    }
    found = {name: column[order] for name, column in columns.items()}
    for column in found.values():
        column.flags.writeable = False
    return Outliers(found, int(np.sum(~judged)))


def _half_spread(quotes: Quotes) -> Floats:
    """Return half the quoted spread of each quote, at least half a hundredth of a per cent of the forward."""
    least = TICK * quotes.contracts.forward * quotes.contracts.discount
    if quotes.spread is None:
        return least
    return np.fmax(0.5 * np.asarray(quotes.spread, float), least)


def _slices(quotes: Quotes) -> Iterator[Rows]:
    """Yield the rows of every slice with enough quotes, by strike."""
    number = np.unique(quotes.contracts.expiry, return_inverse=True)[1]
    for name in SLICE:
        if name in quotes.labels:
            _, code = np.unique(quotes.labels[name].astype(str), return_inverse=True)
            number = np.unique(number * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1]
    order = np.lexsort((quotes.ids.astype(str), quotes.contracts.is_call, quotes.contracts.strike, number))
    for rows in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        if len(np.unique(quotes.contracts.strike[rows])) >= FEW:
            yield rows


def _expected_volatilities(k: Floats, v: Floats) -> Floats:
    """Return the median volatility of lines through pairs of neighbours, for each quote of a slice sorted by k."""
    usable = np.flatnonzero(np.isfinite(v))
    out = np.full(len(k), np.nan)
    for i, at in enumerate(k):
        others = usable[usable != i]
        below, above = others[k[others] <= at][-NEIGHBOURS:], others[k[others] > at][:NEIGHBOURS]
        same = others[k[others] == at]  # the other right of the same strike is an estimate of its own
        if min(len(below), len(above)) < 3:  # an end of the slice: lines through the nearest quotes, continued
            near = others[np.argsort(np.abs(k[others] - at), kind="stable")[: 2 * NEIGHBOURS]]
            below, above = near, near
        a, b = (one.ravel() for one in np.meshgrid(below, above))
        wide = k[b] > k[a]
        a, b = a[wide], b[wide]
        estimates = np.r_[v[a] + (v[b] - v[a]) * (at - k[a]) / (k[b] - k[a]), v[same]]
        if len(estimates):
            out[i] = max(float(np.median(estimates)), 1e-4)
    return out


def _neighbours_median(k: Floats, away: Floats) -> Floats:
    """Return the median distance from their smile of the quotes around each quote, without the quote itself."""
    known = np.flatnonzero(np.isfinite(away))
    out = np.full(len(k), np.nan)
    for i in range(len(k)):
        others = known[known != i]
        near = others[np.argsort(np.abs(k[others] - k[i]), kind="stable")[: 4 * NEIGHBOURS]]
        if len(near):
            out[i] = float(np.median(away[near]))
    return out


def _crossed(K: Floats, price: Floats, noise: Floats, is_call: Mask, D: Floats) -> Mask:
    """Return whether each price is out of order with both neighbours of the same right, by more than their noise.

    Calls fall with the strike and puts rise, by at most the discounted distance.
    """
    out = np.zeros(len(K), dtype=bool)
    for right in (False, True):
        rows = np.flatnonzero(is_call == right)
        sign = -1.0 if right else 1.0
        rise = sign * np.diff(price[rows])
        slack = noise[rows][1:] + noise[rows][:-1]
        bad = (rise < -slack) | (rise > D[rows][1:] * np.diff(K[rows]) + slack)
        touched = np.r_[bad, False] & np.r_[False, bad]
        if len(bad):
            touched[0], touched[-1] = bool(bad[0]), bool(bad[-1])
        out[rows] = touched
    return out


def _plain(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not isfinite(plain) else plain


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
