"""Sums over weighted nodes: what a calibration from moments needs of a model, from its rows.

symbol      meaning                                                  shape
d           model less the centre at the nodes                       (n,)
J           its derivatives                                          (p, n)
quadratic   weights of products of two of them; of any sign          (n,)
linear      weights of one of them                                   (n,)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.products import gram

Floats = NDArray[np.float64]


def weighed(d: Floats, J: Floats, quadratic: Floats, linear: Floats) -> Floats:
    """Return the sums of ``quadratic J J'`` and ``(linear - quadratic d) J``, the upper triangle row by row as in a
    linearization, then those of ``linear d`` and ``quadratic d d``.
    """
    p = len(J)
    rows = np.concatenate([J, d[None]])
    products = gram(rows.T, np.concatenate([quadratic * rows, linear[None]]).T).tolist()
    triangle = [number for i in range(p) for number in (*products[i][i:p], products[i][-1] - products[i][p])]
    return np.array([*triangle, products[p][-1], products[p][p]])
