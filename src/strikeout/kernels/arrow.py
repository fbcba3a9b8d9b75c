"""Many groups with a latent parameter each, in floating point: equations in the shape of an arrow, to judge steps by.

    symbol  meaning                                                                      shape
    B       one block per group: shared parameters first, then the latent one if any     groups x q x q
    held    groups whose latent parameter does not move                                  groups
    H       curvature of a group                                                         groups x q x q
    S, T    its second-order sums: see ``statistics.second_order``                       q x q, q x q x q
    d       the step: the shared parameters', then the group's latent one's              groups x q

Nothing here is hashed. The exact elimination is ``statistics.schur.eliminate``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.compiled import native
from strikeout.kernels.products import inner, product
from strikeout.kernels.symmetric import inverse, solve


def eliminate_each(blocks: Floats, k: int, held: Mask) -> Floats:
    """Return S of every block, in floating point: (groups, q - 1, q - 1) from (groups, q, q), symmetric.

    Args:
        blocks: symmetric, one per group.
        k: row and column to eliminate.
        held: groups whose latent parameter does not move.
    """
    kept = [i for i in range(blocks.shape[-1]) if i != k]
    pivot = np.where(held, np.inf, blocks[:, k, k])
    along = blocks[:, kept, k] / pivot[:, None]
    whole: Floats = blocks[:, kept][:, :, kept] - along[:, :, None] * blocks[:, None, k, kept]
    # The two halves round differently; the upper one counts, so that S is symmetric to the bit.
    upper = np.triu(np.ones((len(kept), len(kept)), bool))
    return np.where(upper, whole, whole.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class ArrowBlocks:
    """The symmetric matrix of all groups.

    The whole matrix has the sum of the shared blocks in one corner and every group's latent parameter on its diagonal.
    Without latent parameters there is one block, and nothing is eliminated.
    """

    B: Floats
    held: Mask
    has_latent: bool = True

    def reduced(self) -> Floats:
        """Return the shared block once every latent parameter follows."""
        if not self.has_latent:
            return _added(self.B)
        pivots = self.B[:, -1, -1]
        return _added(eliminate_each(self.B, self.B.shape[-1] - 1, self.held | ~(pivots > 0.0)))

    def solve(self, m: Floats) -> tuple[Floats, Floats]:
        """Return x with ``B x = m`` over all groups, shared and latent; not-a-number if B is not positive definite."""
        size = self.B.shape[1] - self.has_latent
        nothing = np.full(size, np.nan), np.full(len(self.B) * self.has_latent, np.nan)
        if self.has_latent and not (self.B[~self.held, -1, -1] > 0.0).all():
            return nothing
        whole = self.reduced()
        if not (np.isfinite(whole).all() and (np.diag(whole) > 0.0).all()):
            return nothing
        if not self.has_latent:
            return np.array(solve(whole.tolist(), _added(m).tolist())), np.empty(0)
        side, over = self.B[:, :-1, -1], self._over_pivots()
        right = _added(m[:, :-1] - side * (m[:, -1] * over)[:, None])
        shared = np.array(solve(whole.tolist(), right.tolist()))
        return shared, (m[:, -1] - inner(side, shared)) * over

    def errors(self, noise: float) -> tuple[Floats, Floats]:
        """Return standard errors of the shared and of the latent parameters; not-a-number if one is held.

        ``noise^2 (1 / H_ll + c' C c)`` for a latent one: its uncertainty given the shared parameters, and that of the
        shared parameters, whose covariance is C and which it follows by c.
        """
        C = np.array(inverse(self.reduced().tolist()))
        with np.errstate(invalid="ignore"):
            shared: Floats = noise * np.sqrt(np.diag(C))
            if not self.has_latent:
                return shared, np.empty(0)
            over = self._over_pivots()
            follow = self.B[:, :-1, -1] * over[:, None]
            latent = np.where(self.held, np.nan, over + inner(product(follow, C), follow))
            return shared, noise * np.sqrt(latent)

    def _over_pivots(self) -> Floats:
        pivot = self.B[:, -1, -1]
        known = (pivot > 0.0) & ~self.held
        return np.where(known, 1.0 / np.where(known, pivot, 1.0), 0.0)


def _added(blocks: Floats) -> Floats:
    """Return the sum over groups, one after the other; ``sum`` adds in pairs in some layouts of memory."""
    total: Floats = np.add.accumulate(blocks, axis=0)[-1] if len(blocks) else np.zeros(blocks.shape[1:])
    return total


def expand(S: Floats, T: Floats, d: Floats) -> tuple[Floats, Floats, Floats]:
    """Return ``S_d = S - T . d``, ``S_d d - T(d, d) / 2`` and ``T d``, half of how the curvature turns.

    Of many sums at once if d has rows.
    """
    along = d[..., None, :]
    after, turned = S - inner(np.moveaxis(T, -3, -1), along[..., None, :]), inner(T, along[..., None, :])
    return after, inner(after, along) - 0.5 * inner(turned, along), turned


def missed(H: Floats, S: Floats, T: Floats, d: Floats, held: Mask, noise: float) -> tuple[float, Floats | None]:
    """Return what a step misses the optimum by: the worst parameter's second-order error over its standard error.

    And the curvature of the shared parameters where it ends, to first order; None if a latent one is undetermined
    there.
    """
    module, q = native(), d.shape[-1]
    if module is None:
        return missed_twin(H, S, T, d, held, noise)
    there = np.empty((q - 1) * (q - 1))
    flat = (np.ascontiguousarray(one, float).reshape(-1) for one in (H, S, T, d, held))
    worst, is_known = module.arrow_missed(*flat, noise, q, there)
    return worst, there.reshape(q - 1, q - 1) if is_known else None


def missed_twin(H: Floats, S: Floats, T: Floats, d: Floats, held: Mask, noise: float) -> tuple[float, Floats | None]:
    """``missed`` without compiled code, and its definition."""
    after, out, turned = expand(S, T, d)
    away, errors = ArrowBlocks(H - after, held).solve(out), ArrowBlocks(H, held).errors(noise)
    apart = np.abs(np.concatenate([away[0], away[1][~held]]))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(apart == 0.0, 0.0, apart / np.concatenate([errors[0], errors[1][~held]]))
    worst = float(np.max(np.where(np.isnan(shares), inf, shares), initial=0.0))
    # What the first order leaves out is nowhere negative (``SecondOrder.curvature_after``), and eliminating the latent
    # parameters keeps that order.
    there = ArrowBlocks(H + turned + turned.transpose(0, 2, 1), held)
    return worst, there.reduced() if bool((there.B[~held, -1, -1] > 0.0).all()) else None
