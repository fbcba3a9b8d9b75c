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
from strikeout.kernels.products import gram, inner, product
from strikeout.kernels.symmetric import eigenvalues, factor, forward, inverses

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


def whitener(H: Floats) -> Floats:
    """T with ``T' H T = 1``: of coordinates in which the curvature of all quotes is the identity.

    Raises:
        numpy.linalg.LinAlgError: H is singular.
    """
    p = len(H)
    d, L = factor(H.tolist())
    T = np.array([forward(d, L, unit) for unit in np.eye(p).tolist()]).reshape(p, p)
    if not np.isfinite(T).all() or 0.0 in d:
        raise np.linalg.LinAlgError("the curvature is singular")
    return T


@dataclass(frozen=True, eq=False)
class Struck:
    """Sums over groups, each struck out on its own; ``gone`` and ``score`` in the coordinates of ``T``.

    ``count`` are the quotes of a group, ``members`` those of them that count, ``freedom`` how many more than parameters
    are left. ``now`` is the cost of all quotes at their optimum and ``pooled`` their s^2. ``noise`` is the s^2 of a
    loss that is not squared.
    """

    T: Floats
    gone: Floats  # (groups, p, p): curvature that goes
    score: Floats  # (groups, p): of what is left
    diagonal: Floats  # (groups, p): of the curvature of what is left, in the parameters themselves
    cost: Floats  # of what is left, at the parameters of all
    freedom: Floats
    members: Floats
    count: Rows
    now: float
    pooled: float
    noise: float | None = None
    inflation: float = INFLATION


def judged(struck: Struck) -> Deletions:
    """What striking out each group does, by one exact step; identified only where what is left determines it."""
    T, p, groups, pooled = struck.T, len(struck.T), len(struck.count), struck.pooled
    K, shares = np.eye(p) - struck.gone, eigenvalues(struck.gone)
    safe = (shares[:, -1] < 1.0 - 1e-12) & (struck.freedom > 0)
    inverse = inverses(np.where(safe[:, None, None], K, np.eye(p)))
    variance = inner(product(T, inverse), T)
    safe &= np.all(variance * struck.diagonal < struck.inflation, axis=1)
    d = np.where(safe[:, None], inner(inverse, struck.score[:, None, :]), np.nan)
    after = struck.cost - inner(struck.score, d)
    squared = struck.noise is None
    left = np.maximum(struck.freedom, 0.0)
    noise = np.sqrt(over(np.maximum(after, 0.0), left)) if squared else np.full(groups, np.sqrt(pooled))
    move, fall = product(d, T.T), np.maximum(struck.now - after, 0.0)
    return Deletions(
        count=struck.count,
        move=move,
        leverage=shares[:, -1].clip(0.0, None),
        cooks_d=np.where(safe, over(inner(d, d), p * pooled), np.inf),
        dfbetas=over(-move, noise[:, None] * np.sqrt(inner(T, T))),
        studentized=np.sqrt(over(fall, np.maximum(struck.members, 1.0) * pooled)),
        reach=over(np.sqrt(inner(inner(K, d[:, None, :]), d).clip(0.0)), noise),
        noise=noise,
        is_identified=safe,
    )


def _whitened(evidence: Evidence) -> tuple[Floats, Floats, float]:
    X = evidence.X
    T = whitener(gram(X, X * evidence.stiffness[:, None]))
    pooled = (
        evidence.noise
        if evidence.noise is not None
        else over(evidence.cost.sum(), np.maximum(evidence.counted.sum() - len(T), 0.0))
    )
    return T, gram(product(X, T), evidence.pull[:, None])[:, 0], float(pooled)


def _struck(evidence: Evidence, T: Floats, total: Floats, pooled: float, rows: Rows, counts: Rows) -> Deletions:
    """``pooled`` is s^2 of all quotes, ``total`` the score of all in the whitened coordinates."""
    X, stiff = evidence.X[rows], evidence.stiffness[rows]
    Z = product(X, T)
    owner = np.repeat(np.arange(len(counts)), counts)
    members = _summed(evidence.counted[rows], owner, len(counts))
    whole = np.sum(evidence.X * evidence.X * evidence.stiffness[:, None], axis=0)
    return judged(
        Struck(
            T=T,
            gone=_summed(stiff[:, None, None] * Z[:, :, None] * Z[:, None, :], owner, len(counts)),
            score=total - _summed(Z * evidence.pull[rows, None], owner, len(counts)),
            diagonal=whole - _summed(stiff[:, None] * X * X, owner, len(counts)),
            cost=evidence.cost.sum() - _summed(evidence.cost[rows], owner, len(counts)),
            freedom=evidence.counted.sum() - members - len(T),
            members=members,
            count=counts,
            now=evidence.cost.sum() - inner(total, total),  # at the optimum of all quotes, a last step away from here
            pooled=pooled,
            noise=evidence.noise,
            inflation=evidence.inflation,
        )
    )


def _summed(values: Floats, owner: Rows, groups: int) -> Floats:
    """One sum a group; rows of a group stand together, in the order of the groups."""
    out = np.zeros((groups, *values.shape[1:]))
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])
    if len(starts):
        out[owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return out


def over(a: Floats, b: Floats | float) -> Floats:
    """a / b; infinite or not-a-number where b is zero, without a word."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(a, b))
