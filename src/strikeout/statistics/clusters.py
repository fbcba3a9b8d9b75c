"""Covariance of estimates whose errors agree within clusters: one day, one expiry, one source.

symbol  meaning                                                                                     shape
X       rows of sqrt(w) dm/dtheta at the estimate                                                   (n, p)
e       how each residual pulls: the weighted residual itself under squared loss                    (n,)
H       the curvature, X' diag(stiffness) X                                                         (p, p)
G_k     score of cluster k, the sum over its rows of x_i e_i; the scores of all clusters sum to zero (p,)
V       H^-1 (sum over k of c G_k G_k') H^-1, with c = K/(K-1) (n-1)/(n-p) for K clusters            (p, p)

Liang and Zeger (1986) for one clustering; Cameron, Gelbach and Miller (2011) for several: the sum over all combinations
of clusterings, with the sign of their number. The delete-a-group jackknife is (K-1)/K times the scatter of the
estimates without one cluster each, around their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.products import gram, product
from strikeout.kernels.symmetric import inverse

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


def clustered_covariance(scores: Floats, curvature: Floats, clusterings: Sequence[Numbers], moving: int) -> Floats:
    """Return the covariance of the estimates under one or several clusterings.

    Args:
        scores: ``x_i e_i``, one row per quote.
        clusterings: the number of the cluster of each row, one array per clustering.
        moving: how many parameters were estimated, latent ones included.

    With several clusterings a variance can be negative, if they explain less than their overlap.
    """
    bread = np.array(inverse(curvature.tolist()))
    middle = np.zeros_like(bread)
    for count in range(1, len(clusterings) + 1):
        for chosen in combinations(clusterings, count):
            sums = cluster_sums(scores, joint(chosen))
            sign = 1.0 if count % 2 else -1.0
            middle += sign * correction(len(sums), len(scores), moving) * gram(sums, sums)
    return product(product(bread, middle), bread)


def jackknife_covariance(moves: Floats) -> Floats:
    """Return the covariance from the moves of the estimates if one cluster is deleted, one row per cluster."""
    groups = len(moves)
    if groups < 2:
        return np.full((moves.shape[1], moves.shape[1]), np.nan)
    apart = moves - np.add.reduce(moves, axis=0) / groups
    return (groups - 1) / groups * gram(apart, apart)


def cluster_sums(values: Floats, number: Numbers) -> Floats:
    """Return one row of sums per cluster, added in the order of the rows.

    >>> cluster_sums(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 0])).tolist()
    [[5.0], [2.0]]
    """
    sums = np.zeros((int(number.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, number, values)
    return sums


def joint(clusterings: Sequence[Numbers]) -> Numbers:
    """Return the number of the cluster that each row is in under all clusterings at once.

    >>> joint([np.array([7, 7, 3]), np.array([1, 2, 1])]).tolist()
    [1, 2, 0]
    """
    number = np.zeros(len(clusterings[0]), dtype=np.intp)
    for one in clusterings:
        _, code = np.unique(one, return_inverse=True)
        _, number = np.unique(number * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
    return number


def correction(clusters: int, rows: int, parameters: int) -> float:
    """Return the small-sample correction of the middle matrix; not-a-number if there is no scatter to measure.

    >>> correction(5, 41, 1)
    1.25
    """
    if clusters < 2 or rows <= parameters:
        return float("nan")
    return clusters / (clusters - 1.0) * ((rows - 1.0) / (rows - parameters))
