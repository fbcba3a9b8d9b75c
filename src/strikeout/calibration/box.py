"""Damped steps that stay in a box and follow the valleys of the model.

    symbol  meaning
    u       the point; lower <= u <= upper
    H, G    curvature and score at u
    s       the step, tangent at u; the cost falls by 2 G's - s'Hs to second order
    (i, j)  a pair: coordinate i acts through the product u_i u_j, so steps and damping are those of the product

In Heston's model prices depend on mean_reversion * long_variance and on correlation * vol_of_vol far more than on
either factor alone: in the plain coordinates the cost has valleys curved like hyperbolas, which a search in straight
lines is slow to follow. Along the products they are straight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from operator import lt

from strikeout.kernels.compiled import native
from strikeout.kernels.symmetric import solve

Rows = Sequence[Sequence[float]]

# One step moves a positive coordinate by this factor at most, any other by this share of the way to its wall (and all
# the way once it is this near): the first steps from afar are wild, and one that lands on a wall is slow to leave it.
FACTOR = 3.0
SHARE = 0.7
NEAR = 0.02
# A coordinate on its way to zero would take these steps for ever smaller gains, until none exceeds rounding:
# once a step is cut short of an edge by less than this many times its bound, it goes there.
EDGE = 1000.0


@dataclass(frozen=True)
class Box:
    """Bounds of the coordinates, which of them act through products, and whose lower bounds represent zero."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    edges: tuple[int, ...] = ()

    def pushed(self, u: Sequence[float], G: Sequence[float]) -> tuple[int, ...]:
        """Return the coordinates on a wall that the cost pushes against; they are held there."""
        lower, upper = self.lower, self.upper
        if all(map(lt, lower, u)) and all(map(lt, u, upper)):  # nearly always
            return ()
        walls = [i for i, x in enumerate(u) if x <= lower[i] or x >= upper[i]]
        return tuple(i for i in walls if (G[i] < 0.0 and u[i] <= lower[i]) or (G[i] > 0.0 and u[i] >= upper[i]))

    def straight(self, u: Sequence[float], to: Sequence[float]) -> list[float]:
        """Return the step s at u that leads to ``to`` if nothing stops it: straight in the products."""
        s = [b - a for a, b in zip(u, to, strict=True)]
        for i, j in self.pairs:
            s[i] *= to[j] / u[j]
        return s

    def step(
        self, u: Sequence[float], H: Rows, G: Sequence[float], damping: float, *, scale: Sequence[float] | None = None
    ) -> tuple[list[float], float]:
        """Return where the damped Gauss-Newton step leads, and the fall of the cost it promises.

        Damping is relative to ``scale``, one number per coordinate; to the diagonal of H by default.
        Coordinates that would go too far stop, the one that overshoots most first, and the others are solved again
        given that.
        """
        module = native()
        if module is None:
            return self.step_twin(u, H, G, damping, scale=scale)
        size = None if scale is None else list(scale)
        found: tuple[list[float], float] = module.box_step(list(u), H, list(G), damping, size, *self._given)
        return self._to_edges(u, *found)

    @cached_property
    def _given(self) -> tuple[list[float], list[float], tuple[tuple[int, int], ...], float, float, float]:
        """What every step of the compiled code is given."""
        return list(self.lower), list(self.upper), self.pairs, FACTOR, SHARE, NEAR

    def step_twin(
        self, u: Sequence[float], H: Rows, G: Sequence[float], damping: float, *, scale: Sequence[float] | None = None
    ) -> tuple[list[float], float]:
        """``step`` without compiled code, and its definition."""
        A = self._damped(u, H, damping) if scale is None else _added(H, damping, scale)
        lower, upper = self._stride(u)
        s, stops = _strides(u, A, G, lower, upper, self.pushed(u, G))
        to = [stops.get(i, min(max(a + s[i], lower[i]), upper[i])) for i, a in enumerate(u)]
        for i, j in self.pairs:  # straight in the product is curved in u
            if i not in stops:
                to[i] = min(max(u[i] + s[i] * (u[j] / to[j]), lower[i]), upper[i])
        return self._to_edges(u, to, _promised(H, G, s))

    def _to_edges(self, u: Sequence[float], to: list[float], promised: float) -> tuple[list[float], float]:
        """Return the step, with coordinates that were stopped next to an edge taken there."""
        for i in self.edges:
            if to[i] <= u[i] / FACTOR and to[i] < EDGE * self.lower[i]:
                to[i] = self.lower[i]
        return to, promised

    def _damped(self, u: Sequence[float], H: Rows, damping: float) -> list[list[float]]:
        """``H + damping * D``, with D the diagonal of the curvature in the products, carried back to u."""
        A = [list(row) for row in H]
        extra = [row[i] for i, row in enumerate(H)]
        for i, j in self.pairs:
            r, h = u[i] / u[j], damping * H[i][i]
            extra[i] = 0.0
            extra[j] = max(extra[j] + r * (r * H[i][i] - 2.0 * H[i][j]), 0.0)
            A[i][i] += h
            A[i][j] += h * r
            A[j][i] += h * r
            A[j][j] += h * r * r
        for k, d in enumerate(extra):
            A[k][k] += damping * d
        return A

    def _stride(self, u: Sequence[float]) -> tuple[list[float], list[float]]:
        lower, upper = [], []
        for i, x in enumerate(u):
            lo, hi = self.lower[i], self.upper[i]
            if lo > 0.0:
                lower.append(max(lo, x / FACTOR))
                upper.append(min(hi, x * FACTOR))
            else:
                near = NEAR * (hi - lo)
                lower.append(lo if x - lo < near else x + SHARE * (lo - x))
                upper.append(hi if hi - x < near else x + SHARE * (hi - x))
        return lower, upper


def _strides(
    u: Sequence[float],
    A: Rows,
    G: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    held: Iterable[int],
) -> tuple[list[float], dict[int, float]]:
    """Return steps that solve ``A s = G`` within their strides, and where the coordinates stand that were stopped by
    them."""
    s = [0.0] * len(u)
    stops = {i: u[i] for i in held}
    free = [i for i in range(len(u)) if i not in stops]
    while free:
        x = solve([[A[i][j] for j in free] for i in free], [G[i] - _moved(A[i], s, stops) for i in free])
        over, worst = 1.0, -1
        for n, i in enumerate(free):
            s[i] = xi = x[n]
            room = upper[i] - u[i] if xi > 0.0 else lower[i] - u[i]
            if abs(xi) > over * abs(room):
                over, worst = (xi / room if room != 0.0 else inf), i
        if worst < 0:
            break
        stops[worst] = upper[worst] if s[worst] > 0.0 else lower[worst]
        s[worst] = stops[worst] - u[worst]
        free.remove(worst)
    return s, stops


def _moved(row: Sequence[float], s: Sequence[float], stops: Iterable[int]) -> float:
    total = 0.0  # not sum(), which adds with a correction from Python 3.12 on
    for j in stops:
        total += row[j] * s[j]
    return total


def _added(H: Rows, damping: float, scale: Sequence[float]) -> list[list[float]]:
    A = [list(row) for row in H]
    for i, d in enumerate(scale):
        A[i][i] += damping * d
    return A


def _promised(H: Rows, G: Sequence[float], s: Sequence[float]) -> float:
    total = 0.0
    for i, row in enumerate(H):
        inner = 2.0 * G[i]
        for j, x in enumerate(s):
            inner -= row[j] * x
        total += s[i] * inner
    return total
