"""The problem linearized at one reference: curvature, score, cost and count, in floating point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats


@lru_cache(maxsize=64)
def places(size: int) -> tuple[tuple[int, ...], ...]:
    """Return where the upper triangle of a symmetric matrix, row after row, has each of its numbers: one tuple per row.

    >>> places(3)
    ((0, 1, 2), (1, 3, 4), (2, 4, 5))
    """
    first = [i * size - i * (i - 1) // 2 - i for i in range(size)]
    return tuple(tuple(first[min(i, j)] + max(i, j) for j in range(size)) for i in range(size))


@lru_cache(maxsize=64)
def _size(numbers: int) -> int:
    """Return the number of rows of a triangle of n numbers; zero if there is no such triangle."""
    size = (isqrt(8 * numbers + 1) - 1) // 2
    return size if size * (size + 1) // 2 == numbers else 0


@dataclass(frozen=True)
class Linearization:
    """``H = sum w J J'``, ``G = sum w J r``, ``cost = sum w r^2`` and the number of quotes, at one reference.

    Held as the upper triangle, row after row, of ``sum w a a'`` with ``a = (J_1 .. J_p, r)``, so that a sum of two is
    a sum of numbers. G is minus half the gradient of the cost: a Gauss-Newton step is ``H^-1 G``.

    >>> one = Linearization((4.0, 2.0, 1.0), count=1)     # one parameter: J = 2, r = 1
    >>> (one + one).curvature, (one + one).cost, (one + one).count
    (array([[8.]]), 2.0, 2)
    """

    triangle: tuple[float, ...]
    count: int

    def __post_init__(self) -> None:
        if not _size(len(self.triangle)):
            raise UsageError(
                f"Linearization: {len(self.triangle)} numbers are not a triangle; (p+1)(p+2)/2 are needed.",
                count=len(self.triangle),
            )

    @classmethod
    def zero(cls, parameters: int) -> Linearization:
        """Return what no quotes leave behind."""
        return cls((0.0,) * ((parameters + 1) * (parameters + 2) // 2), 0)

    @property
    def size(self) -> int:
        """Rows of the triangle: parameters and the residual."""
        return _size(len(self.triangle))

    @cached_property
    def rows(self) -> list[list[float]]:
        """The whole symmetric matrix ``[[H, G], [G', cost]]`` as rows of plain floats; not to be written to."""
        triangle = self.triangle
        return [[triangle[k] for k in row] for row in places(self.size)]

    @property
    def curvature(self) -> Floats:
        return np.array([row[:-1] for row in self.rows[:-1]])

    @property
    def score(self) -> Floats:
        return np.array(self.rows[-1][:-1])

    @property
    def cost(self) -> float:
        return self.triangle[-1]

    def __add__(self, other: Linearization) -> Linearization:
        """Return what the quotes of both leave behind."""
        if len(self.triangle) != len(other.triangle):
            raise UsageError(
                f"Linearization of {self.size - 1} and of {other.size - 1} parameters cannot be added: "
                "linearize both with the same model."
            )
        pairs = zip(self.triangle, other.triangle, strict=True)
        return Linearization(tuple(a + b for a, b in pairs), self.count + other.count)

    @staticmethod
    def total(parts: Iterable[Linearization]) -> Linearization:
        """Return the sum of one or more, in the order given."""
        whole: Linearization | None = None
        for part in parts:
            whole = part if whole is None else whole + part
        if whole is None:
            raise UsageError("Linearization.total of nothing: use Linearization.zero(parameters).")
        return whole
