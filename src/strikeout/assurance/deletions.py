"""What striking out each of many groups would do, by an exact block downdate of the normal equations.

    symbol  meaning                                                                          shape
    X       rows of sqrt(w) dm/dtheta at the parameters, free parameters only                (n, p)
    e       weighted residuals; psi how they pull (e itself under squared loss), psi' how they stiffen
    T       H = (T T')^-1: with z = T'x the curvature is the identity                        (p, p)
    K       1 - sum over the group of psi' z z': the curvature without the group             (p, p) a group
    d       K^-1 (sum of the others' z psi): the step without the group; the parameters move by T d

For a model that is linear in its parameters this is the refit itself; otherwise it is one Gauss-Newton step. Sums of
single quotes' effects are something else: for one strike of a book they were off by 290 %.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.identifiability import INFLATION

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

AT_ONCE = 20_000  # groups solved together, to bound memory


@dataclass(frozen=True, eq=False)
class Evidence:
    """The quotes of a calibration as rows at its parameters.

    ``counted`` is one, or zero for a quote of weight zero, whose row is zero too. ``noise`` is the variance of a
    residual where the loss is not squared, and stays.
    """

    X: Floats
    pull: Floats
    stiffness: Floats
    cost: Floats
    counted: Floats
    noise: float | None = None
    inflation: float = INFLATION  # of a variance by the other parameters, beyond which they cannot be told apart


@dataclass(frozen=True, eq=False)
class Deletions:
    """One entry a group; not-a-number where the remaining quotes do not determine the parameters."""

    count: Rows  # quotes in the group
    move: Floats  # (groups, p): of the parameters, if the group is struck out
    leverage: Floats  # largest eigenvalue of H^-1 dH
    cooks_d: Floats
    dfbetas: Floats  # (groups, p): parameters with the group less without, in standard errors
    studentized: Floats  # sqrt((cost now - cost after) / (m s^2)): of a single quote, its studentised residual
    reach: Floats  # the step in standard errors of what is left
    noise: Floats  # s without the group
    is_identified: NDArray[np.bool_]


NAMES = tuple(field.name for field in fields(Deletions))


def deletions(evidence: Evidence, number: Rows, groups: int) -> Deletions:
    """Every group struck out on its own, from the same starting point.

    Args:
        number: the group of each row, 0 .. groups - 1.

    Raises:
        numpy.linalg.LinAlgError: the curvature of all quotes is singular.
    """
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(groups + 1))
    T, total, pooled = _whitened(evidence)
    parts = []
    for begin in range(0, groups, AT_ONCE):
        edges = ends[begin : min(begin + AT_ONCE, groups) + 1]
        parts.append(_struck(evidence, T, total, pooled, order[edges[0] : edges[-1]], np.diff(edges)))
    return Deletions(*(np.concatenate([getattr(part, name) for part in parts]) for name in NAMES))


def _whitened(evidence: Evidence) -> tuple[Floats, Floats, float]:
    X = evidence.X
    H = X.T @ (X * evidence.stiffness[:, None])
    scale = 1.0 / np.sqrt(np.diag(H))
    L = np.linalg.cholesky(H * np.outer(scale, scale))
    T = scale[:, None] * np.linalg.inv(L).T
    pooled = (
        evidence.noise
        if evidence.noise is not None
        else _over(evidence.cost.sum(), np.maximum(evidence.counted.sum() - len(T), 0.0))
    )
    return T, (X @ T).T @ evidence.pull, float(pooled)


def _struck(evidence: Evidence, T: Floats, total: Floats, pooled: float, rows: Rows, counts: Rows) -> Deletions:
    """``pooled`` is s^2 of all quotes, ``total`` the score of all in the whitened coordinates."""
    p = len(T)
    X, stiff = evidence.X[rows], evidence.stiffness[rows]
    Z = X @ T
    owner = np.repeat(np.arange(len(counts)), counts)
    gone = _summed(stiff[:, None, None] * Z[:, :, None] * Z[:, None, :], owner, len(counts))
    score = total - _summed(Z * evidence.pull[rows, None], owner, len(counts))
    left = evidence.cost.sum() - _summed(evidence.cost[rows], owner, len(counts))
    members = _summed(evidence.counted[rows], owner, len(counts))
    freedom = np.maximum(evidence.counted.sum() - members - p, 0.0)
    K = np.eye(p) - gone
    shares = np.linalg.eigvalsh(gone)
    safe = (shares[:, -1] < 1.0 - 1e-12) & (freedom > 0)
    inverse = np.linalg.inv(np.where(safe[:, None, None], K, np.eye(p)))
    variance = np.einsum("ia,gab,ib->gi", T, inverse, T)
    curvature = np.sum(evidence.X**2 * evidence.stiffness[:, None], axis=0) - _summed(
        stiff[:, None] * X * X, owner, len(counts)
    )
    safe &= np.all(variance * curvature < evidence.inflation, axis=1)
    d = np.where(safe[:, None], np.einsum("gab,gb->ga", inverse, score), np.nan)
    after = left - np.einsum("ga,ga->g", score, d)
    squared = evidence.noise is None
    noise = np.sqrt(_over(np.maximum(after, 0.0), freedom)) if squared else np.full(len(counts), np.sqrt(pooled))
    move = d @ T.T
    now = evidence.cost.sum() - total @ total  # at the optimum of all quotes, a last step away from here
    fall = np.maximum(now - after, 0.0)
    return Deletions(
        count=counts,
        move=move,
        leverage=shares[:, -1].clip(0.0, None),
        cooks_d=np.where(safe, _over(np.einsum("ga,ga->g", d, d), p * pooled), np.inf),
        dfbetas=_over(-move, noise[:, None] * np.sqrt(np.einsum("ia,ia->i", T, T))),
        studentized=np.sqrt(_over(fall, np.maximum(members, 1.0) * pooled)),
        reach=_over(np.sqrt(np.einsum("ga,gab,gb->g", d, K, d).clip(0.0)), noise),
        noise=noise,
        is_identified=safe,
    )


def _summed(values: Floats, owner: Rows, groups: int) -> Floats:
    """One sum a group; rows of a group stand together, in the order of the groups."""
    out = np.zeros((groups, *values.shape[1:]))
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])
    if len(starts):
        out[owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return out


def _over(a: Floats, b: Floats | float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(a, b))
