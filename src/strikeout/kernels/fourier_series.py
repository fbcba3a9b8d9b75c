"""Sums of a search in NumPy: every expiry is a Fourier series in log-strike, on one line.

    otm(k) = min(1, e^k) - (1 + e^k) / (e^(L/2) + 1) - e^(k/2) Re sum_n F_n exp(-i u_n k) + images,
    u_n = (n + 1/2) h,    h = 2 pi / L,    F_n = (h / pi) cf(u_n - i/2) / (u_n^2 + 1/4)

is the rule of line.py, with nodes half-way between its own: the images alternate in sign, and the terms add up to one
at most however short the period L is. What is subtracted from min(1, e^k) is smooth in k; so it is summed at a few
dozen log-strikes, the samples of its slice, and goes from there to the strikes by polynomials (samples.py). Two
products of small matrices, which depend on theta through L alone.

These sums lead a search, and nothing that is hashed is added up here: for that, quotes are kept apart
(heston_twin.rows). They still follow from the book and theta alone, to the bit: a slice's first and last strike choose
L, matrices that were kept are those that would be computed again, and none is so large that BLAS would share it among
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
from strikeout.kernels.arrays import Complexes, Floats
from strikeout.kernels.fourier_samples import FUNCTIONS, PERIODS, Slice, is_negligible, keep, period, squares
from strikeout.kernels.heston_cf import log_cf, log_moment
from strikeout.kernels.heston_twin import Parts

IMAGES = 29.0  # ln of 1 / the images, of the forward
# ln of the decay of cf at the last node, were it Gaussian and were it exponential: with the node's own weight, this
# suffices in all but a few cases of a hundred.
GAUSSIAN, EXPONENTIAL = 28.0, 22.0
PROBES = 2.4, 3.2, 4.2, 5.5, 7.0  # of moments, in 1 / sd; the last is a Gaussian's best
FAT_PROBES = 1.8, 1.3, 0.9  # where the first of them was the best
LONGEST = 1e3  # period
SANE = 1e-6, 10.0  # standard deviations; no market has others
HALF_CELL = 1.4, 0.85  # standard deviations, and of the rate at which cf decays exponentially
STRETCHES = 1.0, 1.3  # of the usual number of nodes, tried one after the other
MOST_NODES, MOST_CELLS = 136, 64
SLICES = 16  # whose terms are found at once, to the last node of the longest
COLUMNS = 1024  # of rows that are multiplied by themselves at once
# What is kept of a book, those made last: lines, matrices of phases (some 50 kB each), and meshes of a slice, with the
# polynomials of its strikes (192 bytes each) in books up to KEPT quotes.
LINES, PHASES, TABLES, KEPT = 512, 256, 3, 1 << 16
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
        self._k, self._scale, self._target = parts.k, scale, target
        ends = [(a, b) for a, b in pairwise(parts.offsets.tolist()) if a < b]
        self._expiries: list[float] = parts.expiries[np.diff(parts.offsets) > 0].tolist()
        self._lines: dict[tuple[tuple[tuple[int, int], ...], int], Line] = {}
        tables = TABLES if len(parts.k) <= KEPT else 0
        phases = PHASES // max(len(ends), 1)
        self._ends = ends
        self._slices = [Slice(parts.k[a:b], scale[a:b], target[a:b], tables=tables, phases=phases) for a, b in ends]

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
        """Add the slices whose series and polynomials may be cut, and return the others."""
        numbers = tuple(theta.tolist())
        plans = [(one, self._plan(numbers, one, stretch)) for one in these]
        chosen = [(one, plan) for one, plan in plans if plan is not None]
        rest = [one for one, plan in plans if plan is None]
        if not chosen:
            return rest
        F = _terms(theta, self._line(tuple((one, plan.level) for one, plan in chosen), max(p.nodes for _, p in chosen)))
        flat = F.view(float)
        for at, (one, plan) in enumerate(chosen):
            found = self._slices[one]
            terms, cells = flat[:, at, : 2 * plan.nodes], (plan.cells, 2 * plan.cells)
            is_whole = is_negligible(np.abs(F[:6, at, plan.nodes - 1]), found.growth)
            if not (is_whole and found.add(terms, plan.level, cells, total)):
                rest.append(one)
        return rest

    def _plan(self, theta: tuple[float, ...], one: int, stretch: float) -> Plan | None:
        """Return the line, or None without a period or an end within the most nodes."""
        # Number by number: for the few slices of a book that costs less than arrays.
        T, found = self._expiries[one], self._slices[one]
        variance, asymptote = contours.scales(T, theta)
        sd = sqrt(variance)
        longest = _period(T, sd, found.lowest, found.highest, theta) if SANE[0] < sd < SANE[1] else inf
        if not 0.0 < longest < LONGEST:
            return None
        level = ceil(PERIODS * log2(longest))
        # ln |cf| falls like sd^2 u^2 / 2 at first, then like rate u.
        rate = max(asymptote * sqrt(1.0 - theta[3] * theta[3]), 1e-300)
        far = EXPONENTIAL / rate
        nodes = stretch * sqrt(far * far + 2.0 * GAUSSIAN / variance) * period(level) / (2.0 * pi)
        cells = (found.highest - found.lowest) / (2.0 * min(HALF_CELL[0] * sd, HALF_CELL[1] * rate))
        return Plan(level, int(nodes) + 1, int(cells) + 1) if nodes < MOST_NODES and cells < MOST_CELLS else None

    def _line(self, levels: tuple[tuple[int, int], ...], nodes: int) -> Line:
        """Return the line of slices and levels of their periods; cached, since a search ends at one period."""
        found = self._lines.get((levels, nodes))
        if found is None:
            expiries = [self._expiries[one] for one, _ in levels]
            found = keep(self._lines, (levels, nodes), _line(expiries, [level for _, level in levels], nodes), LINES)
        return found

    def _add_contours(self, theta: Floats, these: list[int], total: Floats) -> None:
        ends = [self._ends[one] for one in these]
        rows = np.concatenate([np.arange(a, b) for a, b in ends])
        expiries, offsets = np.array([self._expiries[one] for one in these]), np.cumsum([0, *(b - a for a, b in ends)])
        some = Parts(expiries, offsets, self._k[rows])
        add(heston_twin.rows(theta, some), self._scale[rows], self._target[rows], total)


def sums_of_rows(values: Floats, scale: Floats, target: Floats) -> Floats:
    """Return ``Sums`` of rows ``(6, n)`` that are given, the value first."""
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
    """Return the shortest at which the images of out-of-the-money values are small at every strike."""
    # An image at k + L is largest at the lowest k and falls as a call does, one at k - L at the highest, as a put does.
    calls, puts = (1.0, 1.0, min(lowest, 0.0)), (0.0, -1.0, max(highest, 0.0))
    fatter, other = (puts, calls) if theta[3] < 0.0 else (calls, puts)
    longest = _one_side(T, sd, *fatter, theta, 0.0)
    return max(longest, _one_side(T, sd, *other, theta, longest))


def _one_side(
    T: float, sd: float, begin: float, sign: float, edge: float, theta: tuple[float, ...], enough: float
) -> float:
    """Return by Chernoff's bound, which falls and then rises with the moment: the least among the probes, or one
    enough."""
    best, first = inf, nan
    for probes in (PROBES, FAT_PROBES):
        for probe in probes:
            s = probe / sd
            p = begin + sign * s
            # What the bound leaves out, s (1 + s) times the standard deviation of the tilted X, is added.
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


class Line(NamedTuple):
    """The nodes of some slices; every field ``(slices, nodes)``."""

    z: Complexes  # frequencies
    q: Complexes  # z^2 + i z
    T: Complexes
    weight: Complexes  # of the terms: h / pi over q


def _line(expiries: list[float], levels: list[int], nodes: int) -> Line:
    h = np.array([2.0 * pi / period(level) for level in levels])[:, None]
    u = h * NUMBERS[:nodes]
    square = u * u + 0.25
    T = np.repeat(np.array(expiries, complex)[:, None], nodes, axis=1)
    return Line(u - 0.5j, square.astype(complex), T, ((h / pi) / square).astype(complex))


def _terms(theta: Floats, line: Line) -> Complexes:
    """F, to the last node of the longest series."""
    ln_cf, gradient = log_cf(line.z, line.q, line.T, theta)
    F = np.zeros((FUNCTIONS, *ln_cf.shape), complex)
    value = np.multiply(np.exp(ln_cf), line.weight, out=F[5])
    np.multiply(-value, gradient, out=F[:5])
    return F
