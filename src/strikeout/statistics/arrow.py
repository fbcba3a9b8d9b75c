"""One parameter eliminated from exact normal equations: what the others know, whatever value that one takes.

    symbol  meaning                                                         on the grid
    T       the sums of a group, upper triangle of (H, G; G', cost)         T_ij on 2^-(e_i + e_j)
    k       the column of the latent parameter
    S       T_ij - T_ik T_jk / T_kk, i and j other than k                   the same as T_ij

In a panel every group has a latent parameter of its own, and the normal equations of all groups together have the
shape of an arrow: shared parameters along two sides, latent ones on the diagonal. With the latent ones eliminated
(Schur's complement), what is left is a plain sum over groups of S, as many numbers for one group as for a thousand.

S is a ratio of integers, found exactly and rounded once, half to even, to the grid of the schema. So it is again
integers that add and subtract without a trace, and a group of one quote, which its latent parameter meets whatever the
others are, leaves exactly nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels import exact
from strikeout.kernels.exact import Integers, Words
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.schema import Schema

Floats = NDArray[np.float64]

BITS, BYTES = 192, 24  # of one sum


def eliminated(equations: NormalEquations, latent: str, *, held: bool = False) -> NormalEquations:
    """The normal equations of the other parameters once the latent one follows them; exact but for one rounding.

    Args:
        held: the latent parameter stays where it is (on a bound, say): its column is only left out.

    Raises:
        UsageError: the schema has no parameter of that name.
    """
    schema = equations.schema
    k = place_of(schema, latent)
    kept = [i for i in range(schema.columns) if i != k]
    T = _square(exact.to_integers(equations.words), schema.columns)
    pivot = T[k][k]
    if held or pivot == 0:  # a column of zeros: every product with it is zero as well
        left = [T[i][j] for n, i in enumerate(kept) for j in kept[n:]]
    else:
        left = [_nearest(T[i][j] * pivot - T[i][k] * T[j][k], pivot) for n, i in enumerate(kept) for j in kept[n:]]
    return NormalEquations(shared_schema(schema, latent), exact.from_integers(left), equations.count)


def place_of(schema: Schema, latent: str) -> int:
    """The column of a parameter.

    Raises:
        UsageError: the schema has no parameter of that name.
    """
    if latent not in schema.parameters:
        raise UsageError(f"{latent!r} is no parameter of {schema.model}: they are {', '.join(schema.parameters)}.")
    return schema.parameters.index(latent)


@cache
def shared_schema(schema: Schema, latent: str) -> Schema:
    """The schema without the latent parameter: equal for groups that differ in nothing but the latent reference.

    Raises:
        UsageError: the schema has no parameter of that name.
    """
    k = place_of(schema, latent)
    return replace(
        schema,
        parameters=_dropped(schema.parameters, k),
        reference=_dropped(schema.reference, k),
        exponents=_dropped(schema.exponents, k),
    )


def packed(words: Words) -> int:
    """All sums of a state as one integer, ``sum of v_n 2^(192 n)``: a difference of states is then one subtraction."""
    total = 0
    for value in reversed(exact.to_integers(words)):
        total = (total << BITS) + value
    return total


def unpacked(total: int, count: int) -> Words:
    """The inverse of ``packed`` for ``count`` sums; read-only."""
    # Half of 2^192 added to every sum makes all of them positive, so that none borrows from the next; flipping the
    # same bits takes it away again in two's complement.
    data = ((total + _halves(count)) ^ _halves(count)).to_bytes(count * BYTES + 8, "little", signed=True)
    words: Words = np.frombuffer(data, "<u8", 3 * count).reshape(-1, 3)
    return words


def solved(words: Words, schema: Schema) -> NormalEquations:
    """The state of these words, read out and solved in one call of the kernel; its count is not known and left zero."""
    same, numbers = exact.downdate(words, _no_rows(schema.columns), None, schema.grid)
    # As in NormalEquations.less: shapes and flags are the kernel's own, and microseconds count.
    state = object.__new__(NormalEquations)
    state.__dict__.update(schema=schema, words=same, count=0, _solved=numbers)
    return state


def _nearest(numerator: int, denominator: int) -> int:
    """The ratio to the nearest integer, half to even; the denominator is above zero."""
    whole, rest = divmod(numerator, denominator)
    twice = 2 * rest
    return whole + (twice > denominator or (twice == denominator and whole % 2 == 1))


def _square(triangle: list[int], size: int) -> list[list[int]]:
    rows: list[list[int]] = []
    at = 0
    for i in range(size):
        rows.append([row[i] for row in rows] + triangle[at : at + size - i])
        at += size - i
    return rows


def _dropped(values: tuple, k: int) -> tuple:  # type: ignore[type-arg]
    return (*values[:k], *values[k + 1 :])


@cache
def _halves(count: int) -> int:
    return sum(1 << (BITS * n + BITS - 1) for n in range(count))


@cache
def _no_rows(columns: int) -> Integers:
    return np.zeros((0, columns), np.int64)
