"""Strike quotes out of the normal equations by subtraction: microseconds, and no quote is looked at."""

from __future__ import annotations

from numpy.typing import ArrayLike

from strikeout.forgetting.step import OneStep
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations, Ridge


def downdate(
    footprints: Footprints,
    equations: NormalEquations,
    ids: ArrayLike,
    *,
    ridge: Ridge = None,
    free: tuple[int, ...] | None = None,
) -> OneStep:
    """The Gauss-Newton step at the reference once these quotes are taken away, exact to the last bit.

        H' = H - sum over F of w J J',    G' = G - sum over F of w J r,    step = H'^-1 G'

    The state equals the one built from the retained quotes alone. The step is one step: the reference itself was found
    with the quotes that are struck out, so ask ``assurance.indicator`` before relying on it.

    Args:
        footprints: of the quotes to strike out at least.
        equations: the sum of all footprints, those to strike out included.
        ridge: none, a number that scales with the curvature, or "paper" for the paper's 1e-6 I.
        free: numbers of the parameters that may move; all where not given.

    Raises:
        UnknownIdError: an id without a footprint, or one given twice. Such quotes are healed by ``recompute``.
        UsageError: footprints and equations are of different schemas.
    """
    return OneStep(equations.less(footprints, footprints.places(ids)), ridge, free)
