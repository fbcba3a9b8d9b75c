"""The leverage spectrum: which share of the information, in each direction, depends on the quotes to be forgotten."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels.symmetric import eigenvalues, factor, forward
from strikeout.statistics.linearization import Linearization

Floats = NDArray[np.float64]
ROUNDING = 1e-14  # an eigenvalue of a curvature with unit diagonal that may as well be zero


def leverages(before: Linearization, after: Linearization) -> Floats:
    """Return the eigenvalues of ``H^-1 (H - H')``, ascending, between 0 and 1 for squared losses.

    0: the forgotten quotes contain nothing in that direction. 1: no other quote does, and forgetting loses it.
    Independent of units. Random deletions of 1 % have a largest one near 0.02, of 70 % near 0.75.

    Raises:
        UsageError: the two are of different models, or the curvature before is singular.
    """
    H, H2 = before.curvature, after.curvature
    if H.shape != H2.shape:
        raise UsageError(f"leverages: {len(H)} parameters before, {len(H2)} after. Linearize both with the same model.")
    scale = 1.0 / np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), 1.0))
    both = scale[:, None] * scale
    d, L = factor((H * both).tolist())
    if not (eigenvalues(H * both)[0] > ROUNDING and all(row[-1] > 0.0 for row in L)):
        raise UsageError(
            "leverages: the curvature before forgetting is singular, so no direction has a share to lose. "
            "Fix the parameters that the quotes do not determine."
        )
    half = [forward(d, L, column) for column in ((H - H2) * both).tolist()]
    whole = np.array([forward(d, L, row) for row in np.array(half).T.tolist()])
    return eigenvalues(0.5 * (whole + whole.T))
