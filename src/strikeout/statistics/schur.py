"""Eliminate one parameter of normal equations exactly: the Schur complement in integers.

    symbol  meaning                                                         on the grid
    T       sums of one block, upper triangle of (H, G; G', cost)           T_ij on 2^-(e_i + e_j)
    k       column of the latent parameter
    S       T_ij - T_ik T_jk / T_kk, i and j other than k                   the same as T_ij

In a panel every group has a latent parameter of its own. The normal equations of all groups together then have the
shape of an arrow: the shared parameters along two sides, the latent ones on the diagonal. Once the latent parameters
are eliminated, the equations of the shared ones are a plain sum over groups of S, of one size for any number of groups.

``eliminate`` is exact: S is a ratio of integers, rounded once, half to even, to the grid of the schema. The result adds
and subtracts without a rounding error, and a group of one quote, which its latent parameter fits for any values of the
others, contributes exactly zero. ``kernels.arrow`` has the same formula in floating point; searches and judgements use
it, digests never do. The verifier has its own elimination (``assurance.independent_state``), so that it does not trust
this one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import exact
from strikeout.kernels.arrays import Integers, Words
from strikeout.statistics.normal_equations import NormalEquations, Schema

BITS, BYTES = 192, 24  # of one sum


def eliminate(equations: NormalEquations, latent: str, *, held: bool = False) -> NormalEquations:
    """Return the normal equations of the other parameters with the latent one at its best; exact but for one rounding.

    Args:
        held: the latent parameter does not move (it is on a bound, for example): its column is only left out.
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
    """Return the column of a parameter."""
    if latent not in schema.parameters:
        raise UsageError(f"{latent!r} is not a parameter of {schema.model}: they are {', '.join(schema.parameters)}.")
    return schema.parameters.index(latent)


@cache
def shared_schema(schema: Schema, latent: str) -> Schema:
    """Return the schema without the latent parameter; equal for groups that differ only in the latent reference."""
    k = place_of(schema, latent)
    return replace(
        schema,
        parameters=_dropped(schema.parameters, k),
        reference=_dropped(schema.reference, k),
        exponents=_dropped(schema.exponents, k),
    )


def pack(words: Words) -> int:
    """Return all sums of a state as one integer, ``sum of v_n 2^(192 n)``: states are then subtracted in one step."""
    total = 0
    for value in reversed(exact.to_integers(words)):
        total = (total << BITS) + value
    return total


def unpack(total: int, count: int) -> Words:
    """Return the ``count`` sums that ``pack`` made one integer of; read-only."""
    # Half of 2^192 added to every sum makes all of them positive, so that none borrows from the next; flipping the
    # same bits takes it away again in two's complement.
    data = ((total + _halves(count)) ^ _halves(count)).to_bytes(count * BYTES + 8, "little", signed=True)
    words: Words = np.frombuffer(data, "<u8", 3 * count).reshape(-1, 3)
    return words


def solve_words(words: Words, schema: Schema) -> NormalEquations:
    """Return the state of these words, read out and solved in one kernel call; its count is unknown and left zero."""
    same, numbers = exact.downdate(words, _no_rows(schema.columns), None, schema.grid)
    # As in NormalEquations.less: shapes and flags are the kernel's own, and microseconds count.
    state = object.__new__(NormalEquations)
    state.__dict__.update(schema=schema, words=same, count=0, solved=numbers)
    return state


def _nearest(numerator: int, denominator: int) -> int:
    """Return the ratio rounded to the nearest integer, half to even; the denominator is positive."""
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
