"""Integers of 192 bits as arrays of three words: added and negated without a lost bit, and read as doubles.

    symbol  meaning                                                                   shape
    words   integers modulo 2^192 in two's complement, lowest word first              (..., 3) uint64
    at      where in the bits the lowest bit of a smaller integer goes                int, 0 .. 191

Sums modulo 2^192 form a group: no order, batch or shard can show, and what was added can be taken away. Integers, and
doubles read from them in one order of operations: the compiled functions and their twins have the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from strikeout.kernels.arrays import Floats, Integers, Rows, Words
from strikeout.kernels.compiled import native

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Table(NamedTuple):
    """Sums by key. Keys are pairs of numbers, ascending, none of them twice."""

    keys: Floats  # (r, 2)
    sums: Words  # (r, m, 3)
    counts: Integers  # (r,)


def placed(values: Integers, at: int) -> Words:
    """``values * 2^at``."""
    out = np.empty((*values.shape, 3), np.uint64)
    sign = (values >> 63).view(np.uint64)
    skip, shift = divmod(at, 64)
    out[..., :skip] = 0
    out[..., skip] = (values << shift).view(np.uint64)
    if skip < 2:
        out[..., skip + 1] = (values >> (64 - shift)).view(np.uint64) if shift else sign
    if skip < 1:
        out[..., 2] = sign
    return out


def sums(words: Words, starts: Rows) -> Words:
    """Return sums of consecutive groups along the first axis; group g begins at ``starts[g]``. Up to 2^32 in a
    group."""
    module = native()
    if module is None:
        return sums_twin(words, starts)
    flat = np.ascontiguousarray(words).reshape(len(words), -1, 3)
    found: Words = module.exact_groups(flat, starts.astype(np.int64)).reshape(len(starts), *words.shape[1:])
    return found


def sums_twin(words: Words, starts: Rows) -> Words:
    """``sums`` without compiled code."""
    halves = np.empty((*words.shape[:-1], 6), np.uint64)
    halves[..., 0::2] = words & _LOW
    halves[..., 1::2] = words >> _HALF
    return _carried(np.add.reduceat(halves, starts, axis=0))


def merged(a: Table, b: Table, *, subtract: bool = False) -> Table:
    """Return the sums of both, or of the first without the second, by key. A key whose sums cancel is still there."""
    module = native()
    if module is None:
        return merged_twin(a, b, subtract=subtract)
    return Table(*module.exact_merge(*map(np.ascontiguousarray, (*a, *b)), subtract))


def merged_twin(a: Table, b: Table, *, subtract: bool = False) -> Table:
    """``merged`` without compiled code."""
    taken = (b.keys, negated(b.sums), -b.counts) if subtract else b
    keys, parts, counts = (np.concatenate(pair) for pair in zip(a, taken, strict=True))
    if not len(keys):
        return Table(keys, parts, counts)
    order, starts = grouped(keys)
    return Table(keys[order[starts]], sums_twin(parts[order], starts), np.add.reduceat(counts[order], starts))


def grouped(keys: Floats) -> tuple[Rows, Rows]:
    """Return an order that brings equal keys together, ascending, and where in it each begins. One key at least."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    is_first = np.empty(len(order), bool)
    is_first[0] = True
    np.any(ordered[1:] != ordered[:-1], axis=1, out=is_first[1:])
    return order, np.flatnonzero(is_first)


def negated(words: Words) -> Words:
    """``-words``."""
    halves = np.empty((*words.shape[:-1], 6), np.uint64)
    halves[..., 0::2] = ~words & _LOW
    halves[..., 1::2] = ~words >> _HALF
    halves[..., 0] += np.uint64(1)
    return _carried(halves)


def read(words: Words, exponent: int) -> Floats:
    """``words * 2^exponent`` as doubles, to within 1.5 units in the last place and one unit of the grid.

    ``exponent`` lies between -900 and 800: neither a part nor the whole can leave the range of doubles.
    """
    module = native()
    if module is None:
        return read_twin(words, exponent)
    found: Floats = module.exact_words(np.ascontiguousarray(words).reshape(-1, 3), exponent).reshape(words.shape[:-1])
    return found


def read_twin(words: Words, exponent: int) -> Floats:
    """``read`` without compiled code, and its definition."""
    is_negative = words[..., 2] >> np.uint64(63) == 1
    # Flipping the bits of a negative number gives its size less one: no carry, and one unit of the grid is nothing.
    size = words ^ (words[..., 2:].view(np.int64) >> 63).view(np.uint64)
    parts = np.ldexp(size.astype(np.float64), np.array([0, 64, 128]) + exponent)
    value = parts[..., 2] + (parts[..., 1] + parts[..., 0])
    signed: Floats = np.where(is_negative, -value, value)
    return signed


def _carried(halves: Words) -> Words:
    out = np.empty((*halves.shape[:-1], 3), np.uint64)
    carry = np.zeros(halves.shape[:-1], np.uint64)
    for word in range(3):
        low = halves[..., 2 * word] + carry
        high = halves[..., 2 * word + 1] + (low >> _HALF)
        out[..., word] = (low & _LOW) | (high << _HALF)
        carry = high >> _HALF
    return out
