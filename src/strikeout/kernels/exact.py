"""Exact sums of products of integers, which are added and subtracted without rounding.

    symbol      meaning                                                             shape
    rows        one quote a row, each column rounded once to an integer grid        (n, c) int64
    exponents   column i of a row is rint(x_i * 2^exponents[i]), ties to even       (c,) int32
    state       sum over rows of row_i * row_j, i <= j, upper triangle row by row,  (c (c + 1) / 2, 3) uint64
                each in 192-bit two's complement, lowest word first

States form a group under addition, so sums do not depend on order, batches or shards, and what was added can be
taken away exactly. An auditor needs one line of Python: ``sum(a * b for a, b in rows)``.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import symmetric
from strikeout.kernels.arrays import Floats, Integers, Mask, Words
from strikeout.kernels.compiled import native

Exponents = NDArray[np.int32]

LARGEST = 2.0**62  # a column of a row must stay below this on its grid
_DIGIT = 21  # bits; an int64 is two digits and a signed rest
_HALF = np.uint64(0xFFFFFFFF)
_AT_ONCE = 1 << 18  # rows whose products of digits still sum within an int64


def quantise(values: Floats, exponents: Exponents) -> tuple[Integers, Mask]:
    """Return rows on the grid, and which of them are fit for it: finite and in range. Unfit rows are zero."""
    with np.errstate(invalid="ignore", over="ignore"):
        # A product with a power of two is rounded like ldexp, and takes a third of the time.
        scaled = values * np.ldexp(1.0, exponents)
        np.rint(scaled, out=scaled)
        # Both are false if a value is not a number.
        if np.max(scaled, initial=0.0) < LARGEST and np.min(scaled, initial=0.0) > -LARGEST:
            return scaled.astype(np.int64), np.ones(len(values), bool)
        fit = np.all(np.abs(scaled) < LARGEST, axis=1)
    return np.where(fit[:, None], scaled, 0.0).astype(np.int64), fit


def zero(columns: int) -> Words:
    """Return what no rows leave behind."""
    return np.zeros((columns * (columns + 1) // 2, 3), np.uint64)


def change(state: Words, rows: Integers, *, subtract: bool = False, pick: Integers | None = None) -> Words:
    """Return the state with these rows (or those picked by number) added or taken away."""
    module = native()
    if module is not None:
        changed: Words = module.exact_change(state, np.ascontiguousarray(rows), pick, subtract)
        return changed
    return change_twin(state, rows if pick is None else rows[pick], subtract=subtract)


def change_twin(state: Words, rows: Integers, *, subtract: bool = False) -> Words:
    """``change`` without compiled code: digits of 21 bits, whose products sum exactly in int64."""
    sign = -1 if subtract else 1
    return from_integers([a + sign * b for a, b in zip(to_integers(state), _products(rows), strict=True)])


def footprint_sums(
    jacobian: Floats, residual: Floats, root_weight: Floats, exponents: Exponents
) -> tuple[Words, int, int]:
    """Return the state of the rows ``root_weight (J_1 .. J_p, residual)``, without keeping a row.

    Args:
        jacobian: ``(p, n)``, one row per parameter.

    Returns:
        the state, how many rows leave something behind, and how many are unfit for the grid; if any is, the state is
        good for nothing.
    """
    module = native()
    if module is None:
        return footprint_sums_twin(jacobian, residual, root_weight, exponents)
    words, counted, unfit = module.exact_footprints(jacobian, residual, root_weight, exponents)
    return words, counted, unfit


def footprint_sums_twin(
    jacobian: Floats, residual: Floats, root_weight: Floats, exponents: Exponents
) -> tuple[Words, int, int]:
    """``footprint_sums`` without compiled code, and its definition."""
    with np.errstate(invalid="ignore", over="ignore"):
        rows, fit = quantise(np.column_stack([*jacobian, residual]) * root_weight[:, None], exponents)
    counted = int(np.count_nonzero(rows.any(axis=1)))
    return change_twin(zero(len(exponents)), rows), counted, int(np.count_nonzero(~fit))


def combine(a: Words, b: Words, *, subtract: bool = False) -> Words:
    """Return the state of both sets of rows, or of the first without the second."""
    if not subtract:
        return total(np.stack([a, b]))
    return from_integers([x - y for x, y in zip(to_integers(a), to_integers(b), strict=True)])


def total(states: Words) -> Words:
    """Sum states, given as one array of shape (k, sums, 3)."""
    module = native()
    if module is not None and len(states):
        found: Words = module.exact_groups(np.ascontiguousarray(states), np.zeros(1, np.int64))[0]
        return found
    return total_twin(states)


def total_twin(states: Words) -> Words:
    """``total`` without compiled code: halves of 32 bits, then carries."""
    sums = [half.sum(axis=0, dtype=np.uint64) for half in (states & _HALF, states >> np.uint64(32))]
    found: Words = np.empty_like(sums[0])
    carry = np.zeros(len(sums[0]), np.uint64)
    for word in range(found.shape[1]):
        low = sums[0][:, word] + carry
        high = sums[1][:, word] + (low >> np.uint64(32))
        found[:, word], carry = (high << np.uint64(32)) | (low & _HALF), high >> np.uint64(32)
    return found


def read(state: Words, exponents: Exponents) -> Floats:
    """Return the sums as doubles, each rounded once, ties to even."""
    module = native()
    if module is not None:
        values: Floats = module.exact_read(state, exponents)
        return values
    return read_twin(state, exponents)


def read_twin(state: Words, exponents: Exponents) -> Floats:
    e = [int(x) for x in exponents]
    scales = [e[i] + e[j] for i in range(len(e)) for j in range(i, len(e))]
    return np.array([_nearest(total, scale) for total, scale in zip(to_integers(state), scales, strict=True)])


def downdate(state: Words, rows: Integers, pick: Integers | None, exponents: Exponents) -> tuple[Words, Floats]:
    """Take rows away, reads the sums and solves for the Gauss-Newton step: the state, and the sums then the step.

    Both are read-only.
    """
    module = native()
    if module is not None:
        words, solved = module.exact_downdate(state, rows, pick, exponents)
        return np.frombuffer(words, np.uint64).reshape(-1, 3), np.frombuffer(solved)
    return downdate_twin(state, rows, pick, exponents)


def downdate_twin(state: Words, rows: Integers, pick: Integers | None, exponents: Exponents) -> tuple[Words, Floats]:
    """``downdate`` without compiled code."""
    left = change_twin(state, rows if pick is None else rows[pick], subtract=True)
    triangle = read_twin(left, exponents)
    solved = np.concatenate([triangle, solve_twin(triangle)])
    left.flags.writeable = solved.flags.writeable = False
    return left, solved


def solve(triangle: Floats) -> Floats:
    """Return the step ``H^-1 G`` from the triangle of (H, G; G', cost); not-a-number if H is not positive
    definite."""
    module = native()
    if module is not None:
        step: Floats = module.symmetric_solve(triangle, isqrt(2 * len(triangle)) - 1)
        return step
    return solve_twin(triangle)


def solve_twin(triangle: Floats) -> Floats:
    """``solve`` without compiled code, in the order of ``symmetric.solve``."""
    size = isqrt(2 * len(triangle))
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    whole = np.where(np.tri(size, k=-1, dtype=bool), matrix.T, matrix).tolist()
    return np.array(symmetric.solve([row[:-1] for row in whole[:-1]], whole[-1][:-1]))


def to_integers(state: Words) -> list[int]:
    """Return the sums as Python integers."""
    data = np.ascontiguousarray(state).astype("<u8").tobytes()
    return [int.from_bytes(data[at : at + 24], "little", signed=True) for at in range(0, len(data), 24)]


def from_integers(sums: list[int]) -> Words:
    """Return the inverse of ``to_integers``; modulo 2^192."""
    data = b"".join((total % (1 << 192)).to_bytes(24, "little") for total in sums)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, 3)


def _products(rows: Integers) -> list[int]:
    columns = rows.shape[1]
    totals = [0] * (columns * (columns + 1) // 2)
    for begin in range(0, len(rows), _AT_ONCE):
        part = rows[begin : begin + _AT_ONCE]
        low = part & ((1 << _DIGIT) - 1)
        middle = (part >> _DIGIT) & ((1 << _DIGIT) - 1)
        high = part >> (2 * _DIGIT)
        digits = np.concatenate([low, middle, high], axis=1).T
        # Integer products: NumPy has no BLAS for them, and they are exact in any order.
        sums = np.array([[int(np.dot(a, b)) for b in digits] for a in digits], dtype=object)
        at = 0
        for i in range(columns):
            for j in range(i, columns):
                totals[at] += sum(
                    sums[u * columns + i, v * columns + j] << (_DIGIT * (u + v)) for u in range(3) for v in range(3)
                )
                at += 1
    return totals


def _nearest(total: int, scale: int) -> float:
    """``total * 2^-scale``, rounded once: Python divides integers with correct rounding."""
    return total / (1 << scale) if scale >= 0 else float(total << -scale)
