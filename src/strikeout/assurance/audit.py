"""The state of quotes rebuilt from nothing but the quotes, in whole numbers, with none of the operators' code.

    symbol  meaning
    a       one quote's row, rint(sqrt(w) (J_1 .. J_p, r) * 2^exponents), ties to even
    S_ij    sum over quotes of a_i a_j, i <= j: Python integers, so nothing overflows and nothing is rounded

The digest is SHA-256 over the line "strikeout normal equations 1", the schema's digest, the count, and every S_ij as 24
bytes, lowest first, in two's complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError
from strikeout.kernels.symmetric import solve
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import rows
from strikeout.statistics.objective import objective_of
from strikeout.statistics.schema import Schema, schema_of
from strikeout.statistics.weights import Weighting, weights_of

Floats = NDArray[np.float64]

BYTES = 24  # of one sum
RANGE = 2.0**62  # a number of a row stays below


@dataclass(frozen=True)
class Audit:
    """The sums of products of whole numbers, row by row of the upper triangle, and how many quotes they are of."""

    schema: Schema
    sums: tuple[int, ...]
    count: int

    def digest(self) -> str:
        """As ``NormalEquations.digest`` of the same quotes."""
        head = f"strikeout normal equations 1\n{self.schema.digest()}\n{self.count}\n".encode()
        body = b"".join((total % (1 << 8 * BYTES)).to_bytes(BYTES, "little") for total in self.sums)
        return sha256(head + body).hexdigest()

    def matrix(self) -> list[list[float]]:
        """``[[H, G], [G', cost]]``, each number the double nearest to the exact one."""
        e, size = self.schema.exponents, self.schema.columns
        matrix = [[0.0] * size for _ in range(size)]
        places = [(i, j) for i in range(size) for j in range(i, size)]
        for (i, j), total in zip(places, self.sums, strict=True):
            matrix[i][j] = matrix[j][i] = nearest(total, e[i] + e[j])
        return matrix

    def step(self, *, free: list[int]) -> list[float]:
        """The Gauss-Newton step of the free parameters."""
        whole = self.matrix()
        return solve([[whole[i][j] for j in free] for i in free], [whole[i][-1] for i in free])


def audited(quotes: Quotes, model: Model, reference: Any, *, residual: Any, weights: Weighting) -> Audit:
    """The state of these quotes at a reference.

    Raises:
        StrikeoutError: as ``calibrate``, of the quotes, the weights and the reference.
        RefusedError: a number of a row is not finite, or too large for the grid.
    """
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
    return Audit(schema, tuple(sums), count)


def _whole(column: Floats, exponent: int) -> list[int]:
    scaled = np.ldexp(column, exponent)
    if not np.all(np.abs(scaled) < RANGE):
        raise RefusedError("A retained quote is too large for the grid of the state, so no state has been built of it.")
    return [round(x) for x in scaled.tolist()]  # Python rounds ties to even


def nearest(total: int, scale: int) -> float:
    """The double nearest to ``total / 2^scale``."""
    return total / (1 << scale) if scale >= 0 else float(total << -scale)
