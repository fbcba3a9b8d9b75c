"""The effect of striking out each of many groups, by an exact block downdate of the normal equations.

    symbol  meaning                                                                          shape
    X       rows of sqrt(w) dm/dtheta at the parameters, free parameters only                (n, p)
    e       weighted residuals; psi how they pull (e itself under squared loss), psi' how they stiffen
    T       H = (T T')^-1: with z = T'x the curvature is the identity                        (p, p)
    K       1 - sum over the group of psi' z z': the curvature without the group             (p, p) per group
    d       K^-1 (sum of the others' z psi): the step without the group; the parameters move by T d

For a model that is linear in its parameters this is the refit itself; otherwise it is one Gauss-Newton step. Sums of
single quotes' effects are something else: for one strike of a book they were off by 290 %.

A panel has a latent parameter per day, which is eliminated first:

    symbol  meaning                                                                           shape
    a       a quote's row at the parameters: sqrt(w) (J of the shared ones, J of its day's latent one), residual   p + 2
    A       sum of a a' over the quotes of a day                                              (p + 2, p + 2) per day
    S       A with the latent parameter eliminated (Schur's complement)                       (p + 1, p + 1) per day
    R       sum of S over the days: curvature, score and cost of the shared parameters
    cell    the quotes that a group and a day have in common: all that a group changes of a day

Without a group, ``R' = R - sum over its cells of (S - S')`` with S' of what the cell leaves of the day, and zero if it
leaves nothing: a day without quotes has no latent parameter. The cost is linear in the quotes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from strikeout.calibration.identifiability import INFLATION
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.arrow import eliminate_each
from strikeout.kernels.products import gram, inner, product
from strikeout.kernels.symmetric import eigenvalues, factor, forward, inverses

AT_ONCE = 20_000  # groups solved together, to bound memory
# A latent parameter whose own curvature is below this share of the day's largest is not determined by the day.
NOTHING = 1e-24


@dataclass(frozen=True, eq=False)
class QuoteRows:
    """The quotes of a plain calibration as rows at its parameters.

    ``counted`` is one, or zero for a quote of weight zero, whose row is zero too. ``noise`` is the variance of a
    residual if the loss is not squared, and stays.
    """

    X: Floats
    pull: Floats
    stiffness: Floats
    cost: Floats
    counted: Floats
    noise: float | None = None
    inflation: float = INFLATION  # of a variance by the other parameters, beyond which they cannot be distinguished


@dataclass(frozen=True, eq=False)
class Deletions:
    """One entry per group; not-a-number if the remaining quotes do not determine the parameters."""

    count: Rows  # quotes in the group
    move: Floats  # (groups, p): of the parameters, if the group is struck out
    leverage: Floats  # largest eigenvalue of H^-1 dH
    cooks_d: Floats
    dfbetas: Floats  # (groups, p): parameters with the group less without, in standard errors
    studentized: Floats  # sqrt((cost now - cost after) / (m s^2)): of a single quote, its studentised residual
    reach: Floats  # the step in standard errors of what is left
    noise: Floats  # s without the group
    is_identified: Mask


NAMES = tuple(field.name for field in fields(Deletions))


def deletions(evidence: QuoteRows, number: Rows, groups: int) -> Deletions:
    """Strike out every group on its own, from the same starting point.

    Args:
        number: the group of each row, 0 .. groups - 1.
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
    """Return T with ``T' H T = 1``: in its coordinates the curvature of all quotes is the identity."""
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
    gone: Floats  # (groups, p, p): curvature that is removed
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
    """Return the effect of striking out each group, by one exact step."""
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


def _whitened(evidence: QuoteRows) -> tuple[Floats, Floats, float]:
    X = evidence.X
    T = whitener(gram(X, X * evidence.stiffness[:, None]))
    pooled = (
        evidence.noise
        if evidence.noise is not None
        else over(evidence.cost.sum(), np.maximum(evidence.counted.sum() - len(T), 0.0))
    )
    return T, gram(product(X, T), evidence.pull[:, None])[:, 0], float(pooled)


def _struck(evidence: QuoteRows, T: Floats, total: Floats, pooled: float, rows: Rows, counts: Rows) -> Deletions:
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
    """Return one sum per group; rows of a group are adjacent, in the order of the groups."""
    out = np.zeros((groups, *values.shape[1:]))
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])
    if len(starts):
        out[owner[starts]] = np.add.reduceat(values, starts, axis=0)
    return out


def over(a: Floats, b: Floats | float) -> Floats:
    """Return a / b; infinite or not-a-number if b is zero, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(a, b))


@dataclass(frozen=True, eq=False)
class PanelRows:
    """The quotes of a panel as weighted rows at its parameters: shared columns, the latent one, the residual.

    ``day`` is the number of each row's day, 0 .. days - 1; a quote of weight zero is a row of zeros. Under a loss that
    is not squared, ``pull`` is psi, ``stiffness`` psi', ``cost`` rho, and ``noise`` the variance of a residual.
    """

    rows: Floats  # (n, p + 2)
    day: Rows
    days: int
    counted: Floats
    pull: Floats | None = None
    stiffness: Floats | None = None
    cost: Floats | None = None
    noise: float | None = None
    inflation: float = INFLATION

    @property
    def sensitivity(self) -> Floats:
        """``sqrt(w) J``, the latent parameter last."""
        return self.rows[:, :-1]

    @property
    def shared(self) -> int:
        return int(self.rows.shape[1]) - 2

    def sums(self, owner: Rows, count: int) -> Floats:
        """Return A of every owner."""
        if self.pull is None or self.stiffness is None or self.cost is None:
            return outer_sums(self.rows, owner, count)
        found = outer_sums(self.rows, owner, count, self.stiffness)
        for i in range(self.rows.shape[1] - 1):
            found[:, i, -1] = found[:, -1, i] = np.bincount(owner, self.sensitivity[:, i] * self.pull, count)
        found[:, -1, -1] = np.bincount(owner, self.cost, count)
        return found


@dataclass(frozen=True, eq=False)
class Cells:
    """Every pair of a group and a day that have quotes in common, and what the group leaves of the day."""

    group: Rows
    day: Rows
    of_row: Rows  # the cell of each row of the evidence
    left: Floats  # A of what is left of the day
    is_left: Mask  # whether anything is


def days_of(evidence: PanelRows) -> Floats:
    """Return A of every day."""
    return evidence.sums(evidence.day, evidence.days)


def cells_of(evidence: PanelRows, number: Rows, days: Floats) -> Cells:
    """Return the cells of groups whose number each row has, and of days with these A."""
    keys, of_row = np.unique(number * evidence.days + evidence.day, return_inverse=True)
    group, day = keys // evidence.days, keys % evidence.days
    counted = evidence.counted
    members = np.bincount(of_row, counted, len(keys))
    is_left = members < np.bincount(evidence.day, counted, evidence.days)[day]
    left = np.where(is_left[:, None, None], days[day] - evidence.sums(of_row, len(keys)), 0.0)
    return Cells(group, day, of_row, left, is_left)


def eliminated(A: Floats) -> Floats:
    """Return S of every A: the last column but one eliminated."""
    return eliminate_each(A, A.shape[-1] - 2, ~(_over_pivot(A) > 0.0))


def followers(A: Floats) -> Floats:
    """Return by how much the latent parameter of each A follows: ``f . (1, -move)``, the score over the pivot first."""
    return np.concatenate([A[:, -2, -1:], A[:, -2, :-2]], axis=1) * _over_pivot(A)[:, None]


def panel_deletions(evidence: PanelRows, cells: Cells, days: Floats, groups: int) -> Deletions:
    """Strike out every group on its own, from the same starting point; return the effect on the shared parameters."""
    p, S, noise = evidence.shared, eliminated(days), evidence.noise
    R = S.sum(axis=0)
    change = np.zeros((groups, p + 1, p + 1))
    np.add.at(change, cells.group, S[cells.day] - eliminated(cells.left))
    members: Floats = np.asarray(np.bincount(cells.group[cells.of_row], evidence.counted, groups), float)
    lives = _over_pivot(days) > 0.0
    lost = np.bincount(cells.group, (lives[cells.day] & ~(_over_pivot(cells.left) > 0.0)).astype(float), groups)
    H, G, cost = R[:p, :p], R[:p, p], R[p, p]
    T = whitener(H)
    total = inner(T.T, G)
    now = cost - inner(total, total)
    return judged(
        Struck(
            T=T,
            gone=product(T.T, product(change[:, :p, :p], T)),
            score=product(G - change[:, :p, p], T),
            diagonal=np.diagonal(R - change, axis1=1, axis2=2)[:, :p],
            cost=cost - change[:, p, p],
            freedom=evidence.counted.sum() - members - p - (lives.sum() - lost),
            members=members,
            count=np.bincount(cells.group[cells.of_row], minlength=groups),
            now=now,
            pooled=float(over(now, evidence.counted.sum() - p - lives.sum())) if noise is None else noise,
            noise=noise,
            inflation=evidence.inflation,
        )
    )


def outer_sums(rows: Floats, owner: Rows, count: int, factor: Floats | None = None) -> Floats:
    """Return the sum of ``a a'``, times the factor of each row if given, over the rows of every owner."""
    scaled = rows if factor is None else rows * factor[:, None]
    size = rows.shape[1]
    out = np.empty((count, size, size))
    for i in range(size):  # column by column: an array of all products would be large
        for j in range(i, size):
            out[:, i, j] = out[:, j, i] = np.bincount(owner, scaled[:, i] * rows[:, j], count)
    return out


def _over_pivot(A: Floats) -> Floats:
    """Return one over the latent parameter's curvature; zero if the day does not determine it, or it is held."""
    pivot = A[:, -2, -2]
    largest = np.diagonal(A, axis1=1, axis2=2).max(axis=1)
    return np.where(pivot > NOTHING * largest, 1.0 / np.where(pivot > 0.0, pivot, 1.0), 0.0)
