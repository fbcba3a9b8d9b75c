"""From a contour to many strikes: Taylor polynomials on cells of log-strike.

    exp(-i zeta (c + h x)) = exp(-i zeta c) sum_p (-i zeta h)^p / p! x^p

so a cell with centre c and half-width h turns the contour sum into 16 real coefficients a function, and a quote costs a
Horner scheme instead of a sum over nodes. The cells lie on a grid given by k*, a smallest width and a largest width:
eight smallest cells on each side of k*, then four a doubling of the distance, until the largest width is reached.
A strike's cell follows from its own k alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.heston_cf import Complexes, Floats

DEGREE = 16  # coefficients a polynomial
INNER = 8.0  # smallest cells on each side of k*


def cell_of(k: Floats, kstar: Floats, widest: Floats, doublings: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Centre and half-width of each strike's cell."""
    narrowest = np.ldexp(widest, -doublings)
    distance = np.abs(k - kstar)
    _, exponent = np.frexp(distance / (INNER * narrowest))
    width = np.ldexp(narrowest, np.clip(exponent, 0, doublings))
    middle = width * (np.floor(distance / width) + 0.5)
    return kstar + np.where(k < kstar, -middle, middle), 0.5 * width


def coefficients(zeta: Complexes, F: Complexes, centre: Floats, half: Floats) -> Floats:
    """``(DEGREE, functions, cells)`` from contour terms ``zeta (nodes, cells)`` and ``F (nodes, functions, cells)``."""
    step = -1j * zeta
    power = np.exp(step * centre)
    step = step * half
    terms = -F
    out = np.empty((DEGREE, *F.shape[1:]))
    for p in range(DEGREE):
        # Reduce along the leading axis, never with `@` or einsum: rows are then added one after the other, and the
        # result does not depend on how many cells stand side by side.
        out[p] = np.add.reduce((terms * power[:, None, :]).real, axis=0)
        power = power * step / (p + 1.0)
    return out


def evaluate(coefficients: Floats, cell: NDArray[np.intp], start: NDArray[np.intp], x: Floats) -> Floats:
    """``(functions, n)``: each strike's polynomials at its x in [-1, 1]; strikes of a cell stand together.

    Cells are cut into blocks of equal length, so that one Horner step is one array operation without a gather.
    """
    if not len(x):
        return np.zeros((coefficients.shape[1], 0))
    size = np.diff(np.r_[start, len(x)])
    block = 1 << int(np.clip(np.ceil(np.log2(np.mean(size))), 0, 6))
    blocks = -(-size // block)
    first = np.cumsum(blocks) - blocks
    slot = first[cell] * block + (np.arange(len(x)) - start[cell])
    padded = np.zeros(int(blocks.sum()) * block)
    padded[slot] = x
    padded = padded.reshape(-1, block)
    spread = np.repeat(coefficients, blocks, axis=2)[..., None]
    out = np.empty((coefficients.shape[1], *padded.shape))
    out[:] = spread[-1]
    for p in range(DEGREE - 2, -1, -1):
        out *= padded
        out += spread[p]
    return np.take(out.reshape(len(out), -1), slot, axis=1)
