"""What striking out groups of quotes would do to a panel, by an exact block downdate of its arrow-shaped equations.

    symbol  meaning                                                                           shape
    a       a quote's row at the parameters: sqrt(w) (J of the shared ones, J of its day's latent one), residual   p + 2
    A       sum of a a' over the quotes of a day                                              (p + 2, p + 2) a day
    S       A with the latent parameter eliminated (Schur's complement)                       (p + 1, p + 1) a day
    R       sum of S over the days: curvature, score and cost of the shared parameters
    cell    the quotes that a group and a day have in common: all that a group changes of a day

Without a group, ``R' = R - sum over its cells of (S - S')`` with S' of what the cell leaves of the day, and zero where
it leaves nothing: a day that goes takes its latent parameter along. The cost is linear in the quotes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.deletions import Deletions, Struck, judged, over, whitener
from strikeout.calibration.identifiability import INFLATION
from strikeout.kernels.products import inner, product
from strikeout.statistics.schur import eliminate_each

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# A latent parameter whose own curvature is below this share of the day's largest is one the day says nothing of.
NOTHING = 1e-24


@dataclass(frozen=True, eq=False)
class PanelEvidence:
    """The quotes of a panel as weighted rows at its parameters: shared columns, the latent one, the residual.

    ``day`` is the number of each row's day, 0 .. days - 1; a quote of weight zero is a row of zeros.
    """

    rows: Floats  # (n, p + 2)
    day: Rows
    days: int
    inflation: float = INFLATION

    @property
    def shared(self) -> int:
        return int(self.rows.shape[1]) - 2

    @property
    def counted(self) -> Floats:
        return np.asarray(np.any(self.rows != 0.0, axis=1), float)


@dataclass(frozen=True, eq=False)
class Cells:
    """Every pair of a group and a day that have quotes in common, and what the group leaves of the day."""

    group: Rows
    day: Rows
    of_row: Rows  # the cell of each row of the evidence
    left: Floats  # A of what is left of the day
    is_left: NDArray[np.bool_]  # whether anything is


def days_of(evidence: PanelEvidence) -> Floats:
    """A, day by day."""
    return outer_sums(evidence.rows, evidence.day, evidence.days)


def cells_of(evidence: PanelEvidence, number: Rows, days: Floats) -> Cells:
    """The cells of groups whose number each row has, and of days whose A are known."""
    keys, of_row = np.unique(number * evidence.days + evidence.day, return_inverse=True)
    group, day = keys // evidence.days, keys % evidence.days
    counted = evidence.counted
    members = np.bincount(of_row, counted, len(keys))
    is_left = members < np.bincount(evidence.day, counted, evidence.days)[day]
    left = np.where(is_left[:, None, None], days[day] - outer_sums(evidence.rows, of_row, len(keys)), 0.0)
    return Cells(group, day, of_row, left, is_left)


def eliminated(A: Floats) -> Floats:
    """Return S of every A: the last column but one eliminated."""
    return eliminate_each(A, A.shape[-1] - 2, ~(_over_pivot(A) > 0.0))


def followers(A: Floats) -> Floats:
    """By how much the latent parameter of each A follows: ``f . (1, -move)``, the score over the pivot first."""
    return np.concatenate([A[:, -2, -1:], A[:, -2, :-2]], axis=1) * _over_pivot(A)[:, None]


def panel_deletions(evidence: PanelEvidence, cells: Cells, days: Floats, groups: int) -> Deletions:
    """Every group struck out on its own, from the same starting point; of the shared parameters.

    Raises:
        numpy.linalg.LinAlgError: the curvature of all quotes is singular.
    """
    p, S = evidence.shared, eliminated(days)
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
            pooled=float(over(now, evidence.counted.sum() - p - lives.sum())),
            inflation=evidence.inflation,
        )
    )


def outer_sums(rows: Floats, owner: Rows, count: int) -> Floats:
    """The sum of ``a a'`` over the rows of every owner."""
    size = rows.shape[1]
    out = np.empty((count, size, size))
    for i in range(size):  # column by column: an array of all products would be large
        for j in range(i, size):
            out[:, i, j] = out[:, j, i] = np.bincount(owner, rows[:, i] * rows[:, j], count)
    return out


def _over_pivot(A: Floats) -> Floats:
    """One over the latent parameter's curvature; zero where the day says nothing of it, or it is held."""
    pivot = A[:, -2, -2]
    largest = np.diagonal(A, axis1=1, axis2=2).max(axis=1)
    return np.where(pivot > NOTHING * largest, 1.0 / np.where(pivot > 0.0, pivot, 1.0), 0.0)
