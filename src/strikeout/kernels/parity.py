"""Forwards by put-call parity: Huber's robust line through the pairs of a call and a put of each slice.

    symbol      meaning                                                 shape
    s           slice of a quote, later of a pair                       (n,)
    K, y        strike of a pair, and its call less its put             (pairs,)
    sigma       how far y may be off: half of the two spreads together  (pairs,)
    D, F        discount and forward: minus the slope of the line, and where it crosses zero

A slice's line follows from the quotes of that slice alone, in whatever order they come and whatever other slices are
fitted beside it: rows are sorted by value, summed one after the other, and passed over a fixed number of times. So the
compiled function, which fits slice after slice, and its twin, which fits all of them at once, have the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.compiled import native

NEAREST = 5  # pairs around the money that count even if the band has fewer
# Of reweighting. More move no forward of the 647 slices of a real fortnight by more than 2e-6 of itself, and most by no
# bit. A fixed number: a rule for stopping would make a slice depend on those fitted beside it.
PASSES = 20
TICK = 1e-5  # of the strike; no quote is better than that, whatever its spread is
HUBER = 1.345  # of the scale of the residuals, from where the effect of a pair no longer grows
NORMAL = 1.4826  # median of |x| to standard deviation


class Quotes(NamedTuple):
    """Columns of quotes, and the slice of each."""

    s: Rows
    strike: Floats
    is_call: Mask
    observed: Floats
    spread: Floats


class Slices(NamedTuple):
    """What is known of each slice before its quotes are seen.

    ``discount`` is not-a-number if it is to be found; ``expected`` is then its prior mean, with the variance ``prior``.
    ``band`` is the largest |K / F - 1| of a pair that counts, ``leaning`` the share of half the spreads by which its
    mids may lean one way along the strikes.
    """

    discount: Floats
    band: Floats
    leaning: Floats
    expected: Floats
    prior: Floats


class Lines(NamedTuple):
    """The line of each slice; ``error`` is the standard error of its forward, ``pairs`` how many it goes through."""

    forward: Floats
    discount: Floats
    r_squared: Floats
    slope: Floats
    error: Floats
    pairs: Floats


def parity_lines(quotes: Quotes, slices: Slices) -> Lines:
    """Return the line of every slice; not-a-number if it has none.

    Pairs weigh by their spreads; if one of a slice is unknown, all its pairs weigh the same.
    """
    module = native()
    if module is None:
        return parity_lines_twin(quotes, slices)
    columns = map(np.ascontiguousarray, quotes)
    return Lines(*module.parity_lines(*columns, np.array(slices), (NEAREST, PASSES, TICK, HUBER, NORMAL)))


def parity_lines_twin(quotes: Quotes, slices: Slices) -> Lines:
    """``parity_lines`` without compiled code."""
    count, (discount, band, leaning, expected, prior) = len(slices.discount), slices
    known = np.isfinite(discount)
    s, K, y, width = _pairs(quotes)
    D = np.where(known, discount, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        F = _medians(s, K + y / D[s], count)
        inside = _near_the_money(s, K, F, band)
        s, K, y, width = s[inside], K[inside], y[inside], width[inside]
        pairs = np.bincount(s, minlength=count)
        unknown = np.bincount(s, weights=~np.isfinite(width), minlength=count) > 0
        begin = F = _medians(s, K + y / D[s], count)  # again: from here on pairs outside the band have no effect
        sigma = np.sqrt(np.square(np.where(unknown[s], 0.0, width)) + np.square(TICK * K))
        x = K - F[s]
        for _ in range(PASSES):
            u = (y - D[s] * (F[s] - K)) / sigma
            scale = np.maximum(NORMAL * _medians(s, np.abs(u), count), 1e-9)
            w = np.minimum(1.0, HUBER * scale[s] / np.abs(u)) / (sigma * sigma)
            w = np.where(np.isfinite(w), w, 1.0 / (sigma * sigma))  # a pair on the line itself
            total = _sum(s, w, count)
            x_mean, y_mean = _sum(s, w * x, count) / total, _sum(s, w * y, count) / total
            apart = x - x_mean[s]
            squares = _sum(s, w * apart * apart, count)
            slope = _sum(s, w * apart * (y - y_mean[s]), count) / squares
            lean = leaning * _sum(s, w * sigma, count) / total
            error = (scale * scale + lean * lean * total) / squares  # of the slope, squared
            D = np.where(known, discount, (prior * -slope + error * expected) / (prior + error))
            F = begin + x_mean + y_mean / D
        left = y - D[s] * (F[s] - K)
        about = y - y_mean[s]
        r_squared = 1.0 - _sum(s, w * left * left, count) / _sum(s, w * about * about, count)
        # Spreads weigh pairs but need not be their errors. So the error is that of the residuals themselves (HC3 of
        # MacKinnon and White, 1985): a pair's effect on the line at the forward, times what it is off without
        # itself. The slope counts as far as pairs determine it, and pairs beyond Huber's bound (psi' = 0) not at all.
        trust, away, beside = np.where(known, 0.0, prior / (prior + error)), F - begin - x_mean, x - x_mean[s]
        effect = w * (1.0 / total[s] + (trust * away / squares)[s] * beside)
        own = w * (1.0 / total[s] + (trust / squares)[s] * beside * beside)
        holding = _sum(s, np.where(np.abs(u) <= HUBER * scale[s], w, 0.0), count) / total
        wrong = _sum(s, np.square(effect * left / (1.0 - own)), count) / np.square(holding)
        wrong = np.sqrt(wrong + np.where(known, 0.0, prior * np.square((1.0 - trust) * away))) / np.abs(D)
    return Lines(F, D, r_squared, slope, wrong, pairs.astype(float))


def _pairs(quotes: Quotes) -> tuple[Rows, Floats, Floats, Floats]:
    """Return every strike with a call and a put: slice, strike, call - put, half of both spreads.

    Several quotes of one contract count as their mean.
    """
    s, strike, is_call, observed, spread = quotes
    order = np.lexsort((spread, observed, is_call, strike, s))
    s, strike, is_call = s[order], strike[order], is_call[order]
    same = (s[1:] == s[:-1]) & (strike[1:] == strike[:-1]) & (is_call[1:] == is_call[:-1])
    is_first = np.r_[True, ~same][: len(s)]
    first, contract = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    many = np.bincount(contract, minlength=len(first))
    price = _sum(contract, observed[order], len(first)) / many
    wide = _sum(contract, spread[order], len(first)) / many
    s, strike = s[first], strike[first]
    put = np.flatnonzero((s[1:] == s[:-1]) & (strike[1:] == strike[:-1]))  # the put sorts before its call
    call = put + 1
    return s[put], strike[put], price[call] - price[put], 0.5 * (wide[call] + wide[put])


def _near_the_money(s: Rows, K: Floats, F: Floats, band: Floats) -> Mask:
    away = np.abs(K / F[s] - 1.0)
    order = np.lexsort((K, away, s))
    ranked = np.empty(len(s), np.intp)
    ranked[order] = np.arange(len(s)) - np.searchsorted(s[order], s[order])
    inside: Mask = (away <= band[s]) | (ranked < NEAREST)
    return inside


def _sum(s: Rows, values: NDArray[Any], count: int) -> Floats:
    # One after the other, in the order of the rows: a sum by blocks would depend on how many rows there are.
    total: Floats = np.bincount(s, weights=values, minlength=count).astype(float, copy=False)
    return total


def _medians(s: Rows, values: Floats, count: int) -> Floats:
    ordered, many = values[np.lexsort((values, s))], np.bincount(s, minlength=count)
    begin = np.cumsum(many) - many
    out = np.full(count, np.nan)
    some = many > 0
    lower, upper = (begin + (many - 1) // 2)[some], (begin + many // 2)[some]
    out[some] = 0.5 * (ordered[lower] + ordered[upper])
    return out
