"""Arrow-shaped systems in floating point, to judge by: shared parameters along two sides, a latent one a group.

    symbol  meaning                                                                  shape
    B       symmetric, one a group: shared parameters first, the latent one last     groups x q x q
    m       right-hand sides                                                         groups x q
    held    groups whose latent parameter does not move                              groups

The whole system has the sum of the shared blocks in one corner and every group's latent parameter on its diagonal; with
those eliminated one small system is left, so the cost is linear in the groups. Nothing here is hashed or solved for
parameters: see ``statistics.schur`` for that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.products import inner, product
from strikeout.kernels.symmetric import inverse, solve
from strikeout.statistics.schur import eliminate_each

Floats = NDArray[np.float64]
Held = NDArray[np.bool_]


def reduced(B: Floats, held: Held) -> Floats:
    """The shared block of the whole system once every latent parameter follows."""
    total: Floats = eliminate_each(B, B.shape[-1] - 1, held | ~(B[:, -1, -1] > 0.0)).sum(axis=0)
    return total


def arrow_solve(B: Floats, m: Floats, held: Held) -> tuple[Floats, Floats]:
    """x with ``B x = m`` over all groups, shared and latent; not-a-number where B is not positive definite."""
    nothing = np.full(B.shape[1] - 1, np.nan), np.full(len(B), np.nan)
    if not (B[~held, -1, -1] > 0.0).all():
        return nothing
    side, over = B[:, :-1, -1], _over(B, held)
    whole = reduced(B, held)
    right = (m[:, :-1] - side * (m[:, -1] * over)[:, None]).sum(axis=0)
    if not (np.isfinite(whole).all() and (np.diag(whole) > 0.0).all()):
        return nothing
    shared = np.array(solve(whole.tolist(), right.tolist()))
    return shared, (m[:, -1] - inner(side, shared)) * over


def arrow_errors(H: Floats, held: Held, noise: float) -> tuple[Floats, Floats]:
    """Standard errors of the shared and of the latent parameters at this noise; not-a-number where one is held.

    ``noise^2 (1 / H_ll + c' C c)`` for a latent one: what its own group leaves open, and what is not known of the
    shared parameters, whose covariance is C and which it follows by c.
    """
    C = np.array(inverse(reduced(H, held).tolist()))
    over = _over(H, held)
    follow = H[:, :-1, -1] * over[:, None]
    latent = np.where(held, np.nan, over + inner(product(follow, C), follow))
    with np.errstate(invalid="ignore"):
        return noise * np.sqrt(np.diag(C)), noise * np.sqrt(latent)


def _over(B: Floats, held: Held) -> Floats:
    pivot = B[:, -1, -1]
    known = (pivot > 0.0) & ~held
    return np.where(known, 1.0 / np.where(known, pivot, 1.0), 0.0)
