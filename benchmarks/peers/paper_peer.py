"""The paper's method: a Python loop over quotes, Simpson's rule, central differences, normal equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.paper import heston as paper_scheme

Floats = NDArray[np.float64]

U_MAX, NODES, STEP = 120.0, 800, 1e-4  # the paper's large configuration; the step is ours, the paper gives none


def accumulate(theta: ArrayLike, contracts: Any, observed: Floats) -> Floats:
    """One Gauss-Newton pass, quote by quote: the 6x6 sums over (residual, five sensitivities)."""
    total = np.zeros((6, 6))
    columns = (contracts.forward, contracts.strike, contracts.expiry, contracts.discount, contracts.is_call)
    for row, seen in enumerate(observed):
        model, gradient = paper_scheme.linearize_one(
            theta, *(column[row] for column in columns), u_max=U_MAX, nodes=NODES, step=STEP
        )
        line = np.concatenate([[seen - model], gradient])
        total += np.outer(line, line)
    return total
