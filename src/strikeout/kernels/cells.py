"""From a contour to many strikes: Taylor polynomials on cells of log-strike.

    exp(-i zeta (c + h x)) = exp(-i zeta c) sum_p (-i zeta h)^p / p! x^p

so a cell with centre c and half-width h turns the contour sum into 16 real coefficients a function, and a quote costs a
Horner scheme instead of a sum over nodes. The cells lie on a grid given by k*, a smallest width and a largest width:
eight smallest cells on each side of k*, then four a doubling of the distance, until the largest width is reached.
A strike's cell follows from its own k alone.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.heston_cf import Complexes, Floats

DEGREE = 16  # coefficients a polynomial
FACTORIAL = np.array([float(factorial(p)) for p in range(DEGREE)])
AT_ONCE = 1 << 16  # terms of strikes evaluated together; bounds the memory, changes no bit
INNER = 8.0  # smallest cells on each side of k*


def cell_of(k: Floats, kstar: Floats, widest: Floats, doublings: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Centre and half-width of each strike's cell."""
    narrowest = np.ldexp(widest, -doublings)
    distance = np.abs(k - kstar)
    _, exponent = np.frexp(distance / (INNER * narrowest))
    width = np.ldexp(narrowest, np.clip(exponent, 0, doublings))
    middle = width * (np.floor(distance / width) + 0.5)
    centre, half = kstar + np.where(k < kstar, -middle, middle), 0.5 * width
    # A contour is good on its own side of the money, so a cell across it is cut there.
    begin, end = centre - half, centre + half
    across = (begin < 0.0) & (end > 0.0)
    outer = np.where(k < 0.0, begin, end)
    return np.where(across, 0.5 * outer, centre), np.where(across, 0.5 * np.abs(outer), half)


def coefficients(zeta: Complexes, F: Complexes, centre: Floats, half: Floats) -> Floats:
    """``(DEGREE, functions, cells)`` from contour terms ``zeta (nodes, cells)`` and ``F (nodes, functions, cells)``.

    For two or more cells, C-contiguous: then a cell's bits do not depend on the others.
    """
    weighted = F * np.exp(zeta * (-1j * centre))[:, None, :]
    terms = np.concatenate(
        [-weighted.real, weighted.imag]
    )  # so that terms . (Re power, Im power) = -Re(weighted power)
    step = zeta * (-1j * half)
    power = np.empty((DEGREE, *zeta.shape), complex)
    power[0] = 1.0
    for p in range(1, DEGREE):
        np.multiply(power[p - 1], step, out=power[p])
    # The sum over the nodes, added one node after the other whatever the number of cells. Not `@`: BLAS blocks by the
    # number of columns, and then a quote's price depends on its neighbours. einsum's own loop runs along the contiguous
    # axis of cells, and so adds node by node, as long as there are at least two cells: the caller sees to that.
    sums: Floats = np.einsum("nfc,pnc->pfc", terms, np.concatenate([power.real, power.imag], axis=1))
    sums /= FACTORIAL[:, None, None]
    return sums


def powers(x: Floats) -> Floats:
    """``1, x, ..., x^15``: ``(DEGREE, n)``."""
    out = np.empty((DEGREE, len(x)))
    out[0] = 1.0
    for p in range(1, DEGREE):
        np.multiply(out[p - 1], x, out=out[p])
    return out


def evaluate(coefficients: Floats, start: NDArray[np.intp], basis: Floats) -> Floats:
    """``(functions, n)``: the sum over p of each strike's ``coefficients[p, function, cell]`` times its ``basis[p]``.

    Strikes of a cell stand together, the first of each at ``start``. A few thousand at a time, so that what is repeated
    stays in the cache. As above, einsum adds term by term because the strikes are its contiguous axis; one strike is
    joined by a second, or that axis would be none.
    """
    terms, functions, _ = coefficients.shape
    count = basis.shape[1]
    size = np.diff(np.r_[start, count])
    out = np.empty((functions, count))
    width = AT_ONCE // terms
    for begin in range(0, count, width):
        end = min(begin + width, count)
        first, last = np.searchsorted(start, [begin, end - 1], side="right") - 1
        here = size[first : last + 1].copy()
        here[0] -= begin - start[first]
        here[-1] -= start[last] + size[last] - end
        points = basis[:, begin:end]
        if end - begin == 1:
            here, points = here + 1, points.repeat(2, axis=1)
        spread = coefficients[:, :, first : last + 1].reshape(terms * functions, -1).repeat(here, axis=1)
        found = np.einsum("pfn,pn->fn", spread.reshape(terms, functions, -1), np.ascontiguousarray(points))
        out[:, begin:end] = found[:, : end - begin]
    return out
