"""Strike quotes out of the normal equations by subtraction: microseconds, and no quote is read."""

from __future__ import annotations

from numpy.typing import ArrayLike

from strikeout.statistics.normal_equations import Ridge
from strikeout.statistics.system import FootprintBlocks, OneStep


def downdate(
    footprints: FootprintBlocks, ids: ArrayLike, *, ridge: Ridge = None, free: tuple[int, ...] | None = None
) -> OneStep:
    """Return the Gauss-Newton step at the reference once these quotes are taken away, exact to the last bit.

        H' = H - sum over F of w J J',    G' = G - sum over F of w J r,    step = H'^-1 G'

    The system equals the one built from the retained quotes alone. In a panel, a group that loses all its quotes is
    removed with its latent parameter; the blocks of groups that lose none are the same objects. The step is one step:
    the reference itself was found with the quotes that are struck out, so check its error (``forgetting.step_error``)
    before relying on it.

    Args:
        footprints: of all quotes, those to strike out included.
        ridge: none, a number that scales with the curvature, or "paper" for the paper's 1e-6 I.
        free: numbers of the shared parameters that may move; all if not given.
    """
    return footprints.less(ids).step(ridge=ridge, free=free)
