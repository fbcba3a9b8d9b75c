"""The state of quotes rebuilt from the quotes alone, in whole numbers, with none of the operators' code.

    symbol  meaning
    a       one quote's row, rint(sqrt(w) (J_1 .. J_p, r) * 2^exponents), ties to even
    T_ij    sum over the quotes of a group of a_i a_j, i <= j: Python integers, so nothing overflows or is rounded
    k       the column of the latent parameter
    S_ij    T_ij - T_ik T_jk / T_kk, a fraction rounded once to a whole number, ties to even; T_ij if T_kk is zero

The digest of a group is SHA-256 over the line "strikeout normal equations 1", the schema's digest, the count, and every
T_ij as 24 bytes, lowest first, in two's complement. A plain state has one group, and its digest is that of the group.
The digest of a panel is SHA-256 over the line "strikeout panel 1", the latent parameter's name, the number of groups,
and for every group, in order, its name as text, whether its latent parameter is held, and the digest of the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from operator import mul
from typing import Any

import numpy as np

from strikeout.errors import RefusedError
from strikeout.kernels.arrays import Floats
from strikeout.kernels.symmetric import solve
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import rows
from strikeout.statistics.normal_equations import Schema, schema_of
from strikeout.statistics.objective import Weighting, objective_of, weights_of
from strikeout.statistics.system import Group

BYTES = 24  # of one sum
RANGE = 2.0**62  # a number of a row stays below


@dataclass(frozen=True)
class IndependentBlock:
    """The sums T of one group, row by row of the upper triangle, and the number of quotes in them."""

    schema: Schema
    sums: tuple[int, ...]
    count: int

    def digest(self) -> str:
        """Return the digest that ``NormalEquations`` of the same quotes have."""
        head = f"strikeout normal equations 1\n{self.schema.digest()}\n{self.count}\n".encode()
        body = b"".join((total % (1 << 8 * BYTES)).to_bytes(BYTES, "little") for total in self.sums)
        return sha256(head + body).hexdigest()

    def matrix(self) -> list[list[float]]:
        """Return ``[[H, G], [G', cost]]``, each number the double nearest to the exact one."""
        e, size = self.schema.exponents, self.schema.columns
        matrix = [[0.0] * size for _ in range(size)]
        places = [(i, j) for i in range(size) for j in range(i, size)]
        for (i, j), total in zip(places, self.sums, strict=True):
            matrix[i][j] = matrix[j][i] = nearest(total, e[i] + e[j])
        return matrix


@dataclass(frozen=True)
class IndependentState:
    """The sums of every group, in the order of the groups, and which latent parameters are held.

    ``latent`` is None for a plain state, which has one block.
    """

    latent: str | None
    blocks: Mapping[Group, IndependentBlock]
    held: frozenset[Group] = frozenset()

    def digest(self) -> str:
        """Return the digest that the ``System`` of the same quotes has."""
        if self.latent is None:
            return self.first.digest()
        body = sha256(f"strikeout panel 1\n{self.latent}\n{len(self.blocks)}\n".encode())
        for group, block in self.blocks.items():
            name = str(group)
            body.update(f"{len(name)} {name} {group in self.held} {block.digest()}\n".encode("utf-8", "surrogatepass"))
        return body.hexdigest()

    def step(self, *, free: list[int]) -> tuple[list[float], list[float]]:
        """Return the Gauss-Newton step of the shared parameters, and that of every group's latent one, which follows.

        Args:
            free: numbers of the shared parameters that may move.
        """
        k, size = self._place, self.first.schema.columns
        kept = [i for i in range(size) if i != k]
        e = self.first.schema.exponents
        sums = {(i, j): 0 for i in kept for j in kept if i <= j}
        for group, block in self.blocks.items():
            for (i, j), number in _eliminate(block, k, is_held=group in self.held).items():
                sums[i, j] += number
        whole = {place: nearest(total, e[place[0]] + e[place[1]]) for place, total in sums.items()}
        moving = [kept[n] for n in free]
        H = [[whole[min(i, j), max(i, j)] for j in moving] for i in moving]
        change = [0.0] * (len(kept) - 1)
        for n, x in zip(free, solve(H, [whole[i, size - 1] for i in moving]), strict=True):
            change[n] = x
        latent = {} if k is None else self.blocks
        return change, [self._follower(group, block, change) for group, block in latent.items()]

    @property
    def first(self) -> IndependentBlock:
        """The first block; the only one of a plain state."""
        return next(iter(self.blocks.values()))

    def _follower(self, group: Group, block: IndependentBlock, change: list[float]) -> float:
        k = block.schema.parameters.index(str(self.latent))
        row = block.matrix()[k]
        if not row[k] > 0.0 or group in self.held:
            return 0.0
        others = [x for i, x in enumerate(row) if i != k]
        follows = 0.0
        for slope, x in zip(others[:-1], change, strict=True):
            follows += slope / row[k] * x
        return others[-1] / row[k] - follows

    @property
    def _place(self) -> int | None:
        return None if self.latent is None else self.first.schema.parameters.index(self.latent)


def _eliminate(block: IndependentBlock, k: int | None, *, is_held: bool) -> dict[tuple[int, int], int]:
    """Return S of one group, by place; T itself if there is no latent parameter."""
    size = block.schema.columns
    T = dict(zip(((i, j) for i in range(size) for j in range(i, size)), block.sums, strict=True))
    if k is None:
        return T
    places = [(i, j) for i, j in T if k not in (i, j)]
    pivot = T[k, k]
    if is_held or pivot == 0:
        return {place: T[place] for place in places}
    side = {i: T[min(i, k), max(i, k)] for i in range(size)}
    return {(i, j): round(T[i, j] - Fraction(side[i] * side[j], pivot)) for i, j in places}


def independent_block(
    quotes: Quotes, model: Model, reference: Any, *, residual: Any, weights: Weighting
) -> IndependentBlock:
    """Rebuild the state of these quotes at a reference."""
    weight, rule = weights_of(quotes, weights)
    schema = schema_of(model, reference, residual=residual, weights=rule)
    theta = np.array(schema.reference)
    root = np.sqrt(weight)
    if residual == "price":
        price, jacobian = model.linearize(theta, quotes.contracts)
        values = np.column_stack([root[:, None] * jacobian, root * (quotes.observed + 0.0 - price)])
        values = values[weight > 0.0]
    else:
        objective, _ = objective_of(quotes, residual=residual, weights=weights)
        difference, jacobian = rows(objective, model, theta)
        values = np.column_stack([objective.root_weight[:, None] * jacobian, objective.root_weight * difference])
    columns = [_whole(values[:, c], exponent) for c, exponent in enumerate(schema.exponents)]
    count = sum(any(row) for row in zip(*columns, strict=True))
    size = schema.columns
    sums = (sum(map(mul, columns[i], columns[j])) for i in range(size) for j in range(i, size))
    return IndependentBlock(schema, tuple(sums), count)


def _whole(column: Floats, exponent: int) -> list[int]:
    scaled = np.ldexp(column, exponent)
    if not np.all(np.abs(scaled) < RANGE):
        raise RefusedError("A retained quote is too large for the grid of the state, so it has no state.")
    return [round(x) for x in scaled.tolist()]  # Python rounds ties to even


def nearest(total: int, scale: int) -> float:
    """Return the double nearest to ``total / 2^scale``."""
    return total / (1 << scale) if scale >= 0 else float(total << -scale)
