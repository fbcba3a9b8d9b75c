"""Chebyshev polynomials: exact sums over many points, and the quadrature that such sums amount to.

    symbol   meaning                                                               shape
    x        points in [-1, 1]                                                     (n,)
    basis    values of the polynomials at the points, T_q(x) or T_a(x) T_b(t)      (q, n)
    factors  what each point counts for; several columns                           (c, n)
    nodes    roots of T_m, ascending
    E        from the moments of degree below m to weights at the nodes            (m, m)

A sum over points of f(x) is, for every polynomial f of degree below m, the sum over the m nodes of f times weights that
follow linearly from the m moments ``sum T_q(x)``: so m numbers represent any number of points.

Each basis value is rounded once to a multiple of 2^-48 and each factor once to a multiple of 2^-72, ties to even; the
products are then summed as integers, exactly. An auditor needs one line of Python: ``sum(a * t for a, t in rows)``.
"""

from __future__ import annotations

from functools import cache
from math import ldexp, prod

import numpy as np

from strikeout.kernels import elementary, int192
from strikeout.kernels.arrays import Floats, Rows, Words
from strikeout.kernels.compiled import native

BASIS_GRID = 48
FACTOR_GRID = 72
EXPONENT = -(BASIS_GRID + FACTOR_GRID)  # of the lowest bit of a sum
AT_ONCE = 1 << 13  # points in a sum of products of digits of 24 and of 16 bits, which then stays below 2^53
_MOST_BITS = 20  # of a number of points in compiled code: bounds the memory
_BASIS_DIGIT, _FACTOR_DIGIT = 24, 16
_QUIET = 1 << 17  # multiplications: a larger product wakes the threads of BLAS, which takes longer than the product


def polynomials(x: Floats, count: int) -> Floats:
    """Return ``T_0(x) .. T_{count-1}(x)``, one per row; elementwise recurrence, so the twin has the same bits."""
    module = native()
    if module is None:
        return polynomials_twin(x, count)
    values: Floats = module.chebyshev_polynomials(np.ascontiguousarray(x), count)
    return values


def polynomials_twin(x: Floats, count: int) -> Floats:
    """``polynomials`` without compiled code, and its definition."""
    out = np.empty((count, len(x)))
    out[0] = 1.0
    if count > 1:
        out[1] = x
        twice = 2.0 * x
        for q in range(2, count):
            np.multiply(twice, out[q - 1], out=out[q])
            out[q] -= out[q - 2]
    return out


@cache
def nodes(count: int) -> Floats:
    """Return the roots of ``T_count``, ascending."""
    roots: Floats = elementary.sin(np.pi * (np.arange(count) - 0.5 * (count - 1)) / count)
    roots.flags.writeable = False
    return roots


def transform(matrix: Floats, values: Floats, axis: int) -> Floats:
    """Multiply ``values`` by ``matrix`` along an axis: products are added column by column, in one fixed order."""
    module = native()
    if module is None:
        return transform_twin(matrix, values, axis)
    before, after = values.shape[:axis], values.shape[axis + 1 :]
    flat = np.ascontiguousarray(values).reshape(prod(before), values.shape[axis], prod(after))
    out: Floats = module.chebyshev_transform(np.ascontiguousarray(matrix), flat)
    return out.reshape(*before, len(matrix), *after)


def transform_twin(matrix: Floats, values: Floats, axis: int) -> Floats:
    """``transform`` without compiled code, and its definition."""
    along = np.moveaxis(values, axis, 0)
    columns = matrix.T.reshape(matrix.shape[1], matrix.shape[0], *(1,) * (values.ndim - 1))
    out = columns[0] * along[0]
    for column, value in zip(columns[1:], along[1:], strict=True):
        out += column * value
    return np.moveaxis(out, 0, axis)


@cache
def quadrature(count: int) -> Floats:
    """E: row j gives the weight at node j, ``(mu_0 + 2 sum_q T_q(x_j) mu_q) / count``."""
    matrix = polynomials(nodes(count), count).T * (2.0 / count)
    matrix[:, 0] *= 0.5
    matrix = np.ascontiguousarray(matrix)
    matrix.flags.writeable = False
    return matrix


def exact_sums(basis: Floats, factors: Floats, starts: Rows) -> Words:
    """Return sums of ``factor * basis`` over consecutive groups of points, ``(groups, c, q, 3)`` words of 192 bits.

    Group g begins at point ``starts[g]``; none is empty. In NumPy: digits small enough that a matrix product of doubles
    is exact.
    """
    groups = len(starts)
    digits, places = _digits(factors)
    if not places:
        return np.zeros((groups, len(factors), len(basis), 3), np.uint64)
    # Groups are cut into blocks of one width, the last of a group filled up with zeros, so that one call multiplies
    # all of them.
    sizes = np.diff(np.r_[starts, factors.shape[1]])
    most = min(AT_ONCE, max(1, _QUIET // (len(basis) * len(digits))))
    # The power of two at the mean size or above, up to the most.
    width = 1 << min((-(-factors.shape[1] // groups) - 1).bit_length(), most.bit_length() - 1)
    blocks = -(-sizes // width)
    first = np.cumsum(blocks) - blocks
    slot = np.repeat(first * width - starts, sizes) + np.arange(factors.shape[1])
    count = int(blocks.sum())

    left = np.zeros((count * width, len(digits)))
    left[slot] = digits.T
    upper = np.zeros((count * width, len(basis)))
    upper[slot] = basis.T
    upper *= 2.0**BASIS_GRID
    lower = np.rint(upper, out=upper).copy()
    np.floor(np.multiply(upper, 2.0**-_BASIS_DIGIT, out=upper), out=upper)
    lower -= upper * 2.0**_BASIS_DIGIT

    parts = []
    by_block = left.reshape(count, width, -1).transpose(0, 2, 1)
    for right, at in ((lower, 0), (upper, _BASIS_DIGIT)):
        # Integers below 2^53 throughout: whatever the order in which BLAS adds, the sums are exact.
        sums = (by_block @ right.reshape(count, width, -1)).astype(np.int64)
        products = np.add.reduceat(sums, first, axis=0)
        for place in sorted({p for _, p in places}):
            rows = [d for d, (_, p) in enumerate(places) if p == place]
            part = np.zeros((groups, len(factors), len(basis), 3), np.uint64)
            part[:, [places[d][0] for d in rows]] = int192.placed(products[:, rows], at + place)
            parts.append(part)
    total: Words = int192.sums_twin(np.stack(parts), np.zeros(1, np.intp))[0]
    return total


def points_at_once(factors: Floats) -> int:
    """Return how many points of these four factors ``exact_cells`` takes: their sums then fit into 192 bits."""
    if native() is None:
        return AT_ONCE
    largest = np.maximum(factors.max(axis=1, initial=0.0), -factors.min(axis=1, initial=0.0))  # without a copy
    room = 191 - FACTOR_GRID - np.frexp(largest)[1] - np.array([BASIS_GRID + 1, BASIS_GRID + 1, 0, 0])
    return max(AT_ONCE, (1 << max(0, min(int(room.min()), _MOST_BITS))) - 1)


def exact_cells(cells: Floats, places: Floats, factors: Floats, *, along: int, across: int) -> int192.Table:
    """Return what points leave behind, by cell: of its first two factors the sums times its polynomials, of the others
    alone.

    Args:
        cells: a pair of numbers a point, ``(n, 2)``; at least one point.
        places: x, and t where ``across`` is above one: ``(1 or 2, n)``.
        factors: four a point, ``(4, n)``.
        along, across: how many polynomials in x, and in t.
    """
    module = native()
    if module is None:
        return exact_cells_twin(cells, places, factors, along=along, across=across)
    columns = map(np.ascontiguousarray, (cells, places, factors))
    return int192.Table(*module.exact_cells(*columns, along, across, BASIS_GRID, FACTOR_GRID))


def exact_cells_twin(cells: Floats, places: Floats, factors: Floats, *, along: int, across: int) -> int192.Table:
    """``exact_cells`` without compiled code."""
    _check_points(cells, places, factors)
    order, starts = int192.grouped(cells)
    places, factors = places[:, order], factors[:, order]
    basis = polynomials_twin(places[0], along)
    if across > 1:
        basis = (polynomials_twin(places[1], across)[:, None, :] * basis[None, :, :]).reshape(along * across, -1)
    resolved = exact_sums(basis, factors[:2], starts)
    plain = exact_sums(np.full((1, len(order)), 2.0**-BASIS_GRID), factors[2:], starts)
    both = np.concatenate([part.reshape(len(starts), -1, 3) for part in (resolved, plain)], axis=1)
    return int192.Table(cells[order[starts]], both, np.diff(starts, append=len(order)).astype(np.int64))


def _check_points(cells: Floats, places: Floats, factors: Floats) -> None:
    """Raise as the compiled ``exact_cells`` does: a basis value is below two, n of them below ``2^bit_length(n)``."""
    if not (np.isfinite(cells).all() and np.isfinite(factors).all()):
        raise ValueError("a cell or a factor is not finite")
    if not (np.abs(places) < 1.0 + 2.0**-30).all():
        raise ValueError("places must lie between -1 and 1")
    room = 191 - len(cells).bit_length() - FACTOR_GRID
    size = np.abs(factors)
    if not ((size[:2] < ldexp(1.0, room - BASIS_GRID - 1)).all() and (size[2:] < ldexp(1.0, room)).all()):
        raise ValueError("a factor is too large: its sums would not fit into 192 bits")


def _digits(factors: Floats) -> tuple[Floats, list[tuple[int, int]]]:
    """Signed digits of 16 bits of the factors on their grid, and of each its column and its place in the bits.

    Digits that are zero for all points are left out: a double has 53 bits, so few remain.
    """
    size = np.rint(np.ldexp(np.abs(factors), FACTOR_GRID))
    digits: list[Floats] = []
    places: list[tuple[int, int]] = []
    for column, (rest, sign) in enumerate(zip(size, np.sign(factors), strict=True)):
        top = int(np.frexp(np.max(rest, initial=0.0))[1])
        for place in range((top - 1) // _FACTOR_DIGIT * _FACTOR_DIGIT, -1, -_FACTOR_DIGIT):
            digit = np.floor(np.ldexp(rest, -place))
            rest = rest - np.ldexp(digit, place)
            if digit.any():
                digits.append(digit * sign)
                places.append((column, place))
    return np.array(digits).reshape(len(digits), factors.shape[1]), places
