"""Sample the series of a slice at nodes, and interpolate from there to its strikes.

A slice of few strikes is its own samples. Any other is cut into cells of one width, from its first strike to its last,
and sampled at the Chebyshev nodes of each: from values there follow the coefficients of a polynomial a cell. All of it
depends on the strikes and on the period of the series, not on what was asked for before; so what was made is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import exp, pi
from typing import TypeVar

import numpy as np

from strikeout.kernels import chebyshev
from strikeout.kernels.arrays import Floats

PERIODS = 8  # in a doubling
FUNCTIONS = 8  # five derivatives, the value, and two idle rows: BLAS multiplies 8 faster than 6
PRODUCT = 1 << 18  # multiplications; OpenBLAS takes one thread for as many
DEGREE = 23  # coefficients per cell,
COLUMNS = 24  # and a place for what is added to the value
STRIKES = PRODUCT // (FUNCTIONS * COLUMNS)  # of one product
AT_ONCE = 16  # nodes; phases are made for a multiple, in products of one shape
VALUE, SLOPE = 3e-13, 3e-11  # the first term left out, of a value and of a derivative: of series and of polynomials

K = TypeVar("K")
V = TypeVar("V")
Block = tuple[slice, Floats]  # a cell, and the way from there to some of its strikes


def period(level: int) -> float:
    """Return a power of ``2^(1 / PERIODS)``."""
    return float(2.0 ** (level / PERIODS))


def is_negligible(sizes: Floats, growth: float = 1.0) -> bool:
    """Return whether terms ``(6,)`` may be the first to be left out; not-a-number may not."""
    *slopes, value = sizes.tolist()
    # A sum, since the largest of some numbers need not show that one of them is none.
    return bool(sum(slopes) * growth < SLOPE and value * growth < VALUE)


def squares(a: Floats) -> Floats:
    """``a a'`` of a few rows; of so few columns that BLAS takes one thread."""
    found: Floats = np.vecdot(a[:, None], a)
    return found


class Slice:
    """The strikes of one expiry, ascending, at least one.

    Args:
        tables: meshes to be kept, with the polynomials of the strikes.
        phases: matrices of phases to be kept.
    """

    def __init__(self, k: Floats, scale: Floats, target: Floats, *, tables: int, phases: int) -> None:
        self._k, self._scale, self._target = k, scale, target
        self._most_tables, self._most_phases = tables, phases
        self._meshes: dict[int, Mesh] = {}
        self._phases: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self.lowest: float = k.item(0)
        self.highest: float = k.item(-1)
        # Of the terms of a series, at the highest strike; so far out there is none.
        self.growth = exp(0.5 * min(max(self.highest, 0.0), 1000.0))

    def add(self, terms: Floats, level: int, cells: Iterable[int], total: Floats) -> bool:
        """Add ``a a'`` of all strikes to the total, with the first number of cells that resolves what terms give.

        Terms ``(FUNCTIONS, 2 nodes)``, real and imaginary parts in turn. Return False, and add nothing, if none does.
        """
        for count in cells:
            mesh = self.mesh(count)
            if terms.size * len(mesh) > PRODUCT:
                return False
            phases, images = self._phases_of(mesh, level, terms.shape[1])
            values = terms @ phases[: terms.shape[1]]
            values[5] += images
            if mesh.resolves(values):
                mesh.add(values, total)
                return True
        return False

    def mesh(self, cells: int) -> Mesh:
        """Return samples in this number of cells, unless the strikes themselves are no more than those."""
        if cells * DEGREE >= len(self._k):
            cells = 0
        found = self._meshes.get(cells)
        if found is None:
            made = Mesh(self._k, self._scale, self._target, cells, is_kept=self._most_tables > 0)
            found = keep(self._meshes, cells, made, max(self._most_tables, 1))
        return found

    def _phases_of(self, mesh: Mesh, level: int, count: int) -> tuple[Floats, Floats]:
        found = self._phases.get((mesh.cells, level))
        if found is None or len(found[0]) < count:
            self._phases.pop((mesh.cells, level), None)
            found = keep(self._phases, (mesh.cells, level), mesh.phases(level, count), self._most_phases)
        return found


class Mesh:
    """The samples of a slice; without cells they are its strikes."""

    def __init__(self, k: Floats, scale: Floats, target: Floats, cells: int, *, is_kept: bool) -> None:
        self._k, self._scale, self.cells = k, scale, cells
        self._samples = k
        self._offset = target - scale * np.minimum(np.exp(k), 1.0)
        if cells:
            edges = np.linspace(k.item(0), k.item(-1), cells + 1)
            self._centres = 0.5 * (edges[:-1] + edges[1:])
            self._half = max(0.5 * (edges.item(1) - edges.item(0)), 2.0**-1000)
            self._starts = [0, *k.searchsorted(edges[1:-1]).tolist(), len(k)]
            self._samples = (self._centres[:, None] + self._half * chebyshev.nodes(DEGREE)).ravel()
        self._blocks = list(self._made_blocks()) if cells and is_kept else None

    def __len__(self) -> int:
        """Return columns of values."""
        return COLUMNS * self.cells or len(self._samples)

    def resolves(self, values: Floats) -> bool:
        """Return True if the polynomials of the cells may be cut: what is missing is below a third of the last."""
        if not self.cells:
            return True
        last = values.reshape(FUNCTIONS, self.cells, COLUMNS)[:6, :, DEGREE - 2 : DEGREE]
        return is_negligible(np.maximum.reduce(np.abs(last), axis=(1, 2)), 1.0 / 3.0)

    def add(self, values: Floats, total: Floats) -> None:
        """Add ``a a'`` of all strikes to the total."""
        if not self.cells:
            a = values[:6] * self._scale
            a[5] += self._offset
            total += squares(a)
            return
        for cell, table in self._made_blocks() if self._blocks is None else self._blocks:
            total += squares((values[:, cell] @ table)[:6])

    def phases(self, level: int, count: int) -> tuple[Floats, Floats]:
        """``e^(k/2) cos(u k)`` and ``e^(k/2) sin(u k)`` in turn, count or more; and the images of min(1, e^k)."""
        nodes = -(-count // (2 * AT_ONCE)) * AT_ONCE
        k, length = self._samples, period(level)
        phase = np.empty((nodes, len(k)), complex)
        phase[0], turn = np.exp((1j * pi / length + 0.5) * k), np.exp((2j * pi / length) * k)
        have = 1
        while have < nodes:
            more = min(have, nodes - have)
            np.multiply(phase[:more], turn, out=phase[have : have + more])
            turn = np.square(turn)
            have *= 2
        both = np.stack([phase.real, phase.imag], axis=1)
        images = (1.0 + np.exp(k)) / (exp(0.5 * length) + 1.0)
        if not self.cells:
            return both.reshape(2 * nodes, -1), images
        to_coefficients = np.zeros((DEGREE, COLUMNS))
        to_coefficients[:, :DEGREE] = chebyshev.quadrature(DEGREE)
        both = both.reshape(-1, 2 * AT_ONCE, self.cells, DEGREE).swapaxes(1, 2) @ to_coefficients
        both = both.swapaxes(1, 2)
        images = images.reshape(self.cells, DEGREE) @ to_coefficients
        images[:, DEGREE] = 1.0
        return both.reshape(2 * nodes, -1), images.ravel()

    def _made_blocks(self) -> Iterator[Block]:
        """Yield polynomials times the scale; and the target less the value's part that is not smooth."""
        for cell, (begin, end) in enumerate(pairwise(self._starts)):
            for at in range(begin, end, STRIKES):
                some = slice(at, min(at + STRIKES, end))
                table = np.empty((COLUMNS, some.stop - at))
                x = (self._k[some] - self._centres[cell]) / self._half
                np.multiply(chebyshev.polynomials(x, DEGREE), self._scale[some], out=table[:DEGREE])
                table[DEGREE] = self._offset[some]
                yield slice(COLUMNS * cell, COLUMNS * (cell + 1)), table


def keep(kept: dict[K, V], key: K, value: V, most: int) -> V:
    """Keep a value among the last made, if any are to be, and return it."""
    while kept and len(kept) >= most:
        del kept[next(iter(kept))]
    if most:
        kept[key] = value
    return value
