"""The states of a panel rebuilt from nothing but its quotes, in whole numbers, with none of the operators' code.

    symbol  meaning
    T       the sums of a group, as ``audit.Audit`` has them; k the column of its latent parameter
    S_ij    T_ij - T_ik T_jk / T_kk, a fraction rounded once to a whole number, ties to even; T_ij where T_kk is zero

The digest is SHA-256 over the line "strikeout panel 1", the latent parameter's name, the number of groups, and for
every group, in order, its name as text, whether its latent parameter is held, and the digest of its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

from strikeout.assurance.audit import Audit, nearest
from strikeout.kernels.symmetric import solve
from strikeout.statistics.system import Group


@dataclass(frozen=True)
class PanelAudit:
    """The sums of every group, in the order of the groups, and which latent parameters are held."""

    latent: str
    parts: Mapping[Group, Audit]
    held: frozenset[Group] = frozenset()

    def digest(self) -> str:
        """As ``System.digest`` of the same quotes."""
        body = sha256(f"strikeout panel 1\n{self.latent}\n{len(self.parts)}\n".encode())
        for group, part in self.parts.items():
            name = str(group)
            body.update(f"{len(name)} {name} {group in self.held} {part.digest()}\n".encode("utf-8", "surrogatepass"))
        return body.hexdigest()

    def step(self, *, free: list[int]) -> tuple[list[float], list[float]]:
        """The Gauss-Newton step of the free shared parameters, and that of every group's latent one, which follows."""
        k, size = self._place, self._size
        kept = [i for i in range(size) if i != k]
        e = next(iter(self.parts.values())).schema.exponents
        sums = {(i, j): 0 for i in kept for j in kept if i <= j}
        for group, part in self.parts.items():
            for (i, j), piece in _pieces(part, k, is_held=group in self.held).items():
                sums[i, j] += piece
        whole = {place: nearest(total, e[place[0]] + e[place[1]]) for place, total in sums.items()}
        moving = [kept[n] for n in free]
        H = [[whole[min(i, j), max(i, j)] for j in moving] for i in moving]
        change = [0.0] * (len(kept) - 1)
        for n, x in zip(free, solve(H, [whole[i, size - 1] for i in moving]), strict=True):
            change[n] = x
        return change, [self._follower(group, part, change) for group, part in self.parts.items()]

    def _follower(self, group: Group, part: Audit, change: list[float]) -> float:
        k, row = self._place, part.matrix()[self._place]
        if not row[k] > 0.0 or group in self.held:
            return 0.0
        others = [x for i, x in enumerate(row) if i != k]
        follows = 0.0
        for slope, x in zip(others[:-1], change, strict=True):
            follows += slope / row[k] * x
        return others[-1] / row[k] - follows

    @property
    def _place(self) -> int:
        return next(iter(self.parts.values())).schema.parameters.index(self.latent)

    @property
    def _size(self) -> int:
        return next(iter(self.parts.values())).schema.columns


def _pieces(part: Audit, k: int, *, is_held: bool) -> dict[tuple[int, int], int]:
    """S of one group, by place."""
    size = part.schema.columns
    T = dict(zip(((i, j) for i in range(size) for j in range(i, size)), part.sums, strict=True))
    places = [(i, j) for i, j in T if k not in (i, j)]
    pivot = T[k, k]
    if is_held or pivot == 0:
        return {place: T[place] for place in places}
    side = {i: T[min(i, k), max(i, k)] for i in range(size)}
    return {(i, j): round(T[i, j] - Fraction(side[i] * side[j], pivot)) for i, j in places}
