"""From a contour to many strikes: Taylor polynomials on cells of log-strike.

    exp(-i zeta (c + h x)) = exp(-i zeta c) sum_p (-i zeta h)^p / p! x^p

so a cell with centre c and half-width h turns the contour sum into 16 real coefficients a function, and a quote costs a
Horner scheme instead of a sum over nodes. The cells lie on a grid given by k*, a smallest width and a largest width:
eight smallest cells on each side of k*, then four a doubling of the distance, until the largest width is reached.
A strike's cell follows from its own k alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial

import numpy as np

from strikeout.kernels.arrays import Complexes, Floats, Rows

DEGREE = 16  # coefficients a polynomial
MINUS_FACTORIALS = np.array([-1.0 / factorial(p) for p in range(DEGREE)])
MOST_CELLS = 2.0**10  # between the ends of a row of edges; bounds the memory, changes no bit
FARTHEST = 2.0**48  # cells from k*
LEAST_HALF = 2.0**-1000
AT_ONCE = 1 << 16  # terms of strikes evaluated together; bounds the memory, changes no bit


@dataclass(frozen=True)
class Cells:
    """The cells that hold strikes, in the order of the strikes; every field ``(cells,)``."""

    part: Rows  # the slice, or panel
    centre: Floats
    half: Floats
    start: Rows  # the first strike
    size: Rows  # strikes


def occupied(k: Floats, offsets: Rows, kstar: Floats, widest: Floats, doublings: Floats) -> Cells:
    """Return the cells with strikes in them; part j holds ``k[offsets[j]:offsets[j + 1]]``, ascending.

    A strike is compared with the edges alone, so its cell follows from its own k. The narrowest cell is wider than k*
    is precise, as contours.py sees to.
    """
    number = _number(k[np.minimum([offsets[:-1], offsets[1:] - 1], len(k) - 1)] - kstar, widest, doublings)
    count = np.fmax.reduce(number[1] - number[0], initial=0.0)
    if count > MOST_CELLS:  # few strikes far apart: a row of edges around each cell, not one from the first to the last
        part = np.repeat(np.arange(len(kstar)), np.diff(offsets))
        number = _number(k - kstar[part], widest[part], doublings[part])
        is_first = np.ones(len(k), bool)
        is_first[1:] = (number[1:] != number[:-1]) | (part[1:] != part[:-1])
        first = np.flatnonzero(is_first)
        part = part[first]
        found = occupied(k, np.append(first, len(k)), kstar[part], widest[part], doublings[part])
        return replace(found, part=part[found.part])
    edge = _edges(number[0], count, kstar, widest, doublings)
    ends = offsets.tolist()
    at = np.concatenate([k[begin:end].searchsorted(row) for begin, end, row in zip(ends, ends[1:], edge, strict=False)])
    at = at.reshape(edge.shape) + offsets[:-1, None]
    size = at[:, 1:] - at[:, :-1]
    cell = np.flatnonzero(size)
    row = cell // size.shape[1]
    left = cell + row  # there is an edge more in every row
    begin, end = edge.take(left), edge.take(left + 1)
    # Cut at the money, a cell may be narrower than any number; it stays one to divide by.
    return Cells(row, 0.5 * (begin + end), np.maximum(0.5 * (end - begin), LEAST_HALF), at.take(left), size.take(cell))


def _number(distance: Floats, widest: Floats, doublings: Floats) -> Floats:
    """Return the number of the edge at or before this distance from k*, negative below it; rounding may miss by one.

    Not-a-number if cells are too narrow, and k* too far, to distinguish their edges.
    """
    x = np.abs(distance) / widest
    e = np.minimum(np.maximum(np.frexp(np.maximum(x, LEAST_HALF))[1] + (doublings - 3.0), 0.0), doublings)
    number = np.floor(np.copysign(4.0 * e + x * np.exp2(doublings - e), distance))
    return np.where(np.abs(number) < FARTHEST, number, np.nan)


def _edges(first: Floats, count: float, kstar: Floats, widest: Floats, doublings: Floats) -> Floats:
    """Return where cells begin and end, ``(rows, edges)``, ascending: from the edge before the first, and at the money.

    Edge m on either side of k* is ``m - 4 e`` cells of width ``2^e narrowest`` away. A contour is good on its own side
    of the money, so a cell across it is cut there. Beyond the last edges are cells without end, in which nothing
    has a price.
    """
    number = (first - 1.0)[:, None] + np.arange(count + 4.0)
    m, most = np.abs(number), doublings[:, None]
    e = np.minimum(np.maximum(np.floor(0.25 * m) - 1.0, 0.0), most)
    away = (widest[:, None] * np.exp2(e - most)) * (m - 4.0 * e)
    out = np.empty((len(kstar), number.shape[1] + 3))
    out[:, 0], out[:, 1], out[:, 2] = -np.inf, 0.0, np.inf
    np.add(kstar[:, None], np.copysign(away, number), out=out[:, 3:])
    out.sort(axis=1)
    return out


def coefficients(zeta: Complexes, F: Complexes, centre: Floats, half: Floats) -> Floats:
    """``(DEGREE, functions, cells)`` from contour terms ``zeta (cells, nodes)`` and ``F (functions, cells, nodes)``.

    A cell's bits do not depend on the others, but they may on the number of nodes: the caller must take it from the
    cell's own contour.
    """
    step = zeta * (-1j * half[:, None])
    power = np.empty((DEGREE, *zeta.shape), complex)
    power[0], power[1] = 1.0, step
    have = 2
    while have < DEGREE:
        square = power[have // 2] * power[have // 2]
        np.multiply(power[:have], square, out=power[have : 2 * have])
        have *= 2
    # conj(u) . v, real and imaginary parts side by side, is Re(u v). The nodes are the contiguous axis, so einsum adds
    # along it, for one cell and function after the other. Not `@`: BLAS blocks by the number of columns, and then a
    # quote's price depends on its neighbours.
    phase = np.exp(np.conj(zeta) * (1j * centre[:, None]))
    weighted = F * phase
    sums: Floats = np.einsum("fcn,pcn->pfc", weighted.view(float), power.view(float))
    sums *= MINUS_FACTORIALS[:, None, None]
    return sums


def powers(x: Floats, count: int = DEGREE) -> Floats:
    """``1, x, ..., x^(count - 1)``: ``(count, n)``."""
    out = np.empty((count, len(x)))
    out[0] = 1.0
    for p in range(1, count):
        np.multiply(out[p - 1], x, out=out[p])
    return out


def evaluate(coefficients: Floats, size: Rows, basis: Floats) -> Floats:
    """``(functions, n)``: the sum over p of each strike's ``coefficients[p, function, cell]`` times its ``basis[p]``.

    Strikes of a cell stand together, ``size`` of them. A few thousand at a time, so that what is repeated stays in the
    cache.
    """
    count, most = basis.shape[1], max(1, AT_ONCE // len(basis))
    if count <= most:
        return _evaluate(coefficients, size, basis)
    out = np.empty((coefficients.shape[1], count))
    end = np.cumsum(size)
    for begin in range(0, count, most):
        stop = min(begin + most, count)
        here = np.minimum(end, stop) - np.maximum(end - size, begin)
        some = np.flatnonzero(here > 0)
        out[:, begin:stop] = _evaluate(coefficients[:, :, some], here[some], np.ascontiguousarray(basis[:, begin:stop]))
    return out


def _evaluate(coefficients: Floats, size: Rows, basis: Floats) -> Floats:
    terms, functions, _ = coefficients.shape
    if basis.shape[1] == 1:  # joined by a second, or there would be no axis of strikes
        return _evaluate(coefficients, 2 * size, basis.repeat(2, axis=1))[:, :1]
    spread = coefficients.reshape(terms * functions, -1).repeat(size, axis=1)
    # As above, einsum adds term by term because the strikes are its contiguous axis.
    found: Floats = np.einsum("pfn,pn->fn", spread.reshape(terms, functions, -1), basis)
    return found
