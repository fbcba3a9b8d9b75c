"""The sums of a search, in NumPy: every expiry a Fourier series in log-strike, on one line.

    otm(k) = min(1, e^k) - (1 + e^k) / (e^(L/2) + 1) - e^(k/2) Re sum_n F_n exp(-i u_n k) + images,
    u_n = (n + 1/2) h,    h = 2 pi / L,    F_n = (h / pi) cf(u_n - i/2) / (u_n^2 + 1/4)

is the rule of line.py, with nodes half-way between its own: the images alternate in sign, and the terms add up to one
at most however short the period L is. What is subtracted from min(1, e^k) is smooth in k; so it is summed at a few
dozen log-strikes, the samples of its slice, and goes from there to the strikes by polynomials (samples.py). Two
products of small matrices, which know theta through L alone.

These sums lead a search, and nothing that is hashed is added up here: for that, quotes are kept apart
(heston_twin.rows). They still follow from the book and theta alone, to the bit: a slice's first and last strike choose
L, matrices that were kept are those that would be made anew, and none is so large that BLAS would share it among
threads. A slice that decays too slowly for a series is priced on its contours.

    symbol   meaning                                                        shape
    L        period, a power of 2^(1 / PERIODS)                             -
    F        terms of the series: minus five derivatives, value, two idle   (8, slices, nodes)
    a        rows to be multiplied: five derivatives, residual              (6, strikes)

Source of the line: Lewis (2001).
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, inf, log, log2, nan, pi, sqrt
from typing import NamedTuple

import numpy as np

from strikeout.kernels import contours, heston_twin
from strikeout.kernels.heston_cf import Complexes, Floats, log_cf, log_moment
from strikeout.kernels.heston_twin import Parts
from strikeout.kernels.samples import FUNCTIONS, PERIODS, Slice, is_negligible, period, squares

IMAGES = 29.0  # ln of 1 / the images, of the forward
# ln of the decay of cf at the last node, were it Gaussian and were it exponential: with the node's own weight, this
# suffices in all but a few cases of a hundred.
GAUSSIAN, EXPONENTIAL = 28.0, 22.0
PROBES = 2.4, 3.2, 4.2, 5.5, 7.0  # of moments, in 1 / sd; the last is a Gaussian's best
FAT_PROBES = 1.8, 1.3, 0.9  # where the first of them was the best
LONGEST = 1e3  # period
HALF_CELL = 1.4, 0.85  # standard deviations, and of the rate at which cf decays exponentially
STRETCHES = 1.0, 1.3  # of the usual number of nodes, tried one after the other
MOST_NODES, MOST_CELLS = 136, 64
SLICES = 16  # whose terms are found at once, to the last node of the longest
COLUMNS = 1024  # of rows that are multiplied by themselves at once
KEPT = 1 << 16  # strikes of a book whose polynomials are kept, 192 bytes each and mesh
NUMBERS = np.arange(MOST_NODES) + 0.5
UPPER = np.flatnonzero(np.triu(np.ones((6, 6))))


class Plan(NamedTuple):
    """How a slice is summed."""

    level: int  # of the period
    nodes: int
    cells: int


class Sums:
    """The 21 sums of ``a a'``, ``a = (scale * derivatives, target - scale * value)``: upper triangle, row by row.

    Of one book of slices, for one theta after the other.
    """

    def __init__(self, parts: Parts, scale: Floats, target: Floats) -> None:
        self._parts, self._scale, self._target = parts, scale, target
        is_kept = len(parts.k) <= KEPT
        self._slices = [
            Slice(parts.k[a:b], scale[a:b], target[a:b], is_kept=is_kept) for a, b in pairwise(parts.offsets.tolist())
        ]

    def __call__(self, theta: Floats) -> Floats:
        total = np.zeros((6, 6))
        with np.errstate(all="ignore"):
            for begin in range(0, len(self._slices), SLICES):
                rest = list(range(begin, min(begin + SLICES, len(self._slices))))
                for stretch in STRETCHES:
                    rest = self._add_series(theta, rest, stretch, total)
                if rest:
                    self._add_contours(theta, rest, total)
        return total.take(UPPER)

    def _add_series(self, theta: Floats, these: list[int], stretch: float, total: Floats) -> list[int]:
        """Adds the slices whose series and polynomials end where they are cut, and returns the others."""
        if not these:
            return these
        expiries = self._parts.expiries[these]
        plans = self._plans(theta, these, expiries, stretch)
        if not any(plans):
            return these
        F = _terms(theta, expiries, plans)
        flat, rest = F.view(float), []
        for at, (one, plan) in enumerate(zip(these, plans, strict=True)):
            found = self._slices[one]
            if plan is not None and is_negligible(F[:6, at, plan.nodes - 1], found.growth):
                terms, cells = flat[:, at, : 2 * plan.nodes], (plan.cells, 2 * plan.cells)
                if found.add(terms, plan.level, cells, total):
                    continue
            rest.append(one)
        return rest

    def _plans(self, theta: Floats, these: list[int], expiries: Floats, stretch: float) -> list[Plan | None]:
        # Number by number: for the few slices of a book that costs less than arrays.
        numbers = tuple(theta.tolist())
        root = sqrt(1.0 - numbers[3] * numbers[3])
        shapes = contours.geometry(expiries, theta)
        columns = shapes.T.tolist(), shapes.sd.tolist(), shapes.asymptote.tolist()
        plans: list[Plan | None] = []
        for one, T, sd, asymptote in zip(these, *columns, strict=True):
            found = self._slices[one]
            longest = _period(T, sd, found.lowest, found.highest, numbers)
            if not 0.0 < longest < LONGEST:
                plans.append(None)
                continue
            level = ceil(PERIODS * log2(longest))
            rate = asymptote * root  # ln |cf| falls like sd^2 u^2 / 2 at first, then like rate u
            reach = sqrt((EXPONENTIAL / rate) ** 2 + 2.0 * GAUSSIAN / (sd * sd))
            nodes = stretch * reach * period(level) / (2.0 * pi)
            cells = (found.highest - found.lowest) / (2.0 * min(HALF_CELL[0] * sd, HALF_CELL[1] * rate))
            fits = nodes < MOST_NODES and cells < MOST_CELLS
            plans.append(Plan(level, int(nodes) + 1, int(cells) + 1) if fits else None)
        return plans

    def _add_contours(self, theta: Floats, these: list[int], total: Floats) -> None:
        ends = [self._parts.offsets[one : one + 2].tolist() for one in these]
        rows = np.concatenate([np.arange(a, b) for a, b in ends])
        some = Parts(self._parts.expiries[these], np.cumsum([0, *(b - a for a, b in ends)]), self._parts.k[rows])
        add(heston_twin.rows(theta, some), self._scale[rows], self._target[rows], total)


def sums_of_rows(values: Floats, scale: Floats, target: Floats) -> Floats:
    """As ``Sums``, of rows ``(6, n)`` that are known, the value first."""
    total = np.zeros((6, 6))
    add(values, scale, target, total)
    return total.take(UPPER)


def add(values: Floats, scale: Floats, target: Floats, total: Floats) -> None:
    for begin in range(0, len(scale), COLUMNS):
        some = slice(begin, begin + COLUMNS)
        a = values[[1, 2, 3, 4, 5, 0], some] * scale[some]
        np.subtract(target[some], a[5], out=a[5])
        total += squares(a)


def _period(T: float, sd: float, lowest: float, highest: float, theta: tuple[float, ...]) -> float:
    """The shortest at which the images of out-of-the-money values are small at every strike."""
    # An image at k + L is largest at the lowest k and falls as a call does, one at k - L at the highest, as a put does.
    calls, puts = (1.0, 1.0, min(lowest, 0.0)), (0.0, -1.0, max(highest, 0.0))
    fatter, other = (puts, calls) if theta[3] < 0.0 else (calls, puts)
    longest = _one_side(T, sd, *fatter, theta, 0.0)
    return max(longest, _one_side(T, sd, *other, theta, longest))


def _one_side(
    T: float, sd: float, begin: float, sign: float, edge: float, theta: tuple[float, ...], enough: float
) -> float:
    """By Chernoff's bound, which falls and then rises with the moment: the least among the probes, or one enough."""
    best, first = inf, nan
    for probes in (PROBES, FAT_PROBES):
        for probe in probes:
            s = probe / sd
            p = begin + sign * s
            # What the bound leaves out, s (1 + s) times the standard deviation of X where it is tilted, is put in.
            cut = IMAGES - log(s * (1.0 + s) * sd)
            found = (log_moment(p, T, theta) + cut + (1.0 - p) * edge) / (s + 0.5)
            if found > best:
                break
            best = found
            if best <= enough:
                return best
            if probe == PROBES[0]:
                first = found
        if best < first:
            return best
    return best


def _terms(theta: Floats, T: Floats, plans: list[Plan | None]) -> Complexes:
    """F, to the last node of the longest series; not-a-number for a slice without a plan."""
    nodes = max(plan.nodes for plan in plans if plan is not None)
    h = np.array([np.nan if plan is None else 2.0 * pi / period(plan.level) for plan in plans])[:, None]
    u = h * NUMBERS[:nodes]
    square = u * u
    square += 0.25
    z, q, times = np.empty((3, *u.shape), complex)
    z.real, z.imag = u, -0.5
    q.real, q.imag = square, 0.0
    times[:] = T[:, None]
    ln_cf, gradient = log_cf(z, q, times, theta)
    F = np.zeros((FUNCTIONS, *u.shape), complex)
    value = np.multiply(np.exp(ln_cf), (h / pi) / square, out=F[5])
    np.multiply(-value, gradient, out=F[:5])
    return F
