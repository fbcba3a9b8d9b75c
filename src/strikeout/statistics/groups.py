"""Groups of quotes: one per quote, or one per label.

Covariance of estimates whose errors agree within clusters: one day, one expiry, one source.

symbol  meaning                                                                                     shape
X       rows of sqrt(w) dm/dtheta at the estimate                                                   (n, p)
e       how each residual pulls: the weighted residual itself under squared loss                    (n,)
H       the curvature, X' diag(stiffness) X                                                         (p, p)
G_k     score of cluster k, the sum over its rows of x_i e_i; the scores of all clusters sum to zero (p,)
V       H^-1 (sum over k of c G_k G_k') H^-1, with c = K/(K-1) (n-1)/(n-p) for K clusters            (p, p)

Liang and Zeger (1986) for one clustering; Cameron, Gelbach and Miller (2011) for several: the sum over all
combinations of clusterings, with the sign of their number. The delete-a-group jackknife is (K-1)/K times the scatter
of the estimates without one cluster each, around their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Rows
from strikeout.kernels.products import gram, product
from strikeout.kernels.symmetric import inverse
from strikeout.quotes.conditions import Column, computed_columns, full_name, own_columns
from strikeout.statistics.shards import OWN, cut_names, split_cuts
from strikeout.text import did_you_mean

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


By = str | Sequence[str] | NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class Groups:
    """What names each group, and the number of the group each quote is in."""

    keys: dict[str, NDArray[Any]]
    number: Rows
    count: int


def groups_of(quotes: Quotes, by: By) -> Groups:
    """Return the groups of a book.

    Args:
        by: None for every quote on its own; a label, a column of the contracts or a cut of ``states.shard`` ("month",
            "maturity:30,60", "date:30"), or several of them; or an array of one group name per quote.
    """
    if by is None:
        return Groups({"id": quotes.ids}, np.arange(len(quotes)), len(quotes))
    if isinstance(by, np.ndarray):
        if by.shape != (len(quotes),):
            raise UsageError(
                f"by: {len(quotes):,} quotes need one group name each; got an array of shape {by.shape}.",
                count=len(quotes),
            )
        columns = {"group": by}
    else:
        names = (
            split_cuts(by)
            if isinstance(by, str) and by not in quotes.labels
            else [by]
            if isinstance(by, str)
            else list(by)
        )
        if not names:
            raise UsageError("by: no label was given. Leave it out for every quote on its own.")
        columns = {name: column_of(quotes, name) for name in names}
    return _grouped(columns)


def column_of(quotes: Quotes, name: str) -> NDArray[Any]:
    """Return a label of the quotes, a column of their contracts, or the names of a cut."""
    if name in quotes.labels:
        return quotes.labels[name]
    contracts = getattr(quotes.contracts, "columns", None)  # of a custom model's quotes, by name
    own = dict(contracts) if contracts is not None else _described(quotes)
    if name in own:
        return np.asarray(own[name])
    if name.partition(":")[0] in (*OWN, *quotes.labels) and contracts is None:
        return cut_names(quotes, name)
    named: dict[str, Column] = {**computed_columns(quotes), **own_columns(quotes)}
    meant = full_name(name, (*quotes.labels, *named))
    if meant is not None:
        return named[meant]() if meant in named else quotes.labels[meant]
    known = list(dict.fromkeys([*quotes.labels, *own, *(OWN if contracts is None else ()), *named]))
    raise UsageError(
        f"by: the quotes have no label {name!r}.{did_you_mean(name, known)} They have {', '.join(known)}.", label=name
    )


def _described(quotes: Quotes) -> dict[str, NDArray[Any]]:
    try:
        return {field.name: getattr(quotes.contracts, field.name) for field in fields(quotes.contracts)}
    except TypeError:
        return {}


def _grouped(columns: dict[str, NDArray[Any]]) -> Groups:
    rows = len(next(iter(columns.values())))
    codes, firsts = np.zeros(rows, np.intp), np.arange(min(rows, 1))
    for column in columns.values():
        code, count = _codes(column)
        if count > 1:
            codes, firsts = _ranked(codes * count + code)
    return Groups({name: column[firsts] for name, column in columns.items()}, codes, len(firsts))


def _codes(column: NDArray[Any]) -> tuple[Rows, int]:
    """Return the rank of each value among the values that occur, and how many occur."""
    if not len(column) or (column == column[0]).all():  # one value for all, which is common, needs no sorting
        return np.zeros(len(column), np.intp), 1
    if column.dtype.kind == "O":
        values = column.tolist()
        try:
            ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
        except TypeError:  # values of several types: by what they look like
            values = column.astype(str).tolist()
            ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
        return np.fromiter(map(ranks.__getitem__, values), np.intp, len(values)), len(ranks)
    found, codes = np.unique(column, return_inverse=True)
    return codes.ravel(), len(found)


def _ranked(codes: Rows) -> tuple[Rows, Rows]:
    """Return the rank of each code among those that occur, and the first row of each."""
    if not len(codes) or codes.max() > 4 * len(codes):
        _, firsts, ranks = np.unique(codes, return_index=True, return_inverse=True)
        return ranks.ravel(), firsts
    occurs = np.bincount(codes) > 0
    ranks = (np.cumsum(occurs) - 1)[codes]
    firsts = np.empty(int(occurs.sum()), np.intp)
    firsts[ranks[::-1]] = np.arange(len(codes))[::-1]  # of several assignments to one place the last one stays
    return ranks, firsts


def clustered_covariance(scores: Floats, curvature: Floats, clusterings: Sequence[Rows], moving: int) -> Floats:
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


def covariance_of_sums(sums: Floats, curvature: Floats, factor: float) -> Floats:
    """Return ``H^-1 (factor sum of G_k G_k') H^-1`` from the scores of the clusters, one row each."""
    bread = np.array(inverse(curvature.tolist()))
    return product(product(bread, factor * gram(sums, sums)), bread)


def jackknife_covariance(moves: Floats) -> Floats:
    """Return the covariance from the moves of the estimates if one cluster is deleted, one row per cluster."""
    groups = len(moves)
    if groups < 2:
        return np.full((moves.shape[1], moves.shape[1]), np.nan)
    apart = moves - np.add.reduce(moves, axis=0) / groups
    return (groups - 1) / groups * gram(apart, apart)


def cluster_sums(values: Floats, number: Rows) -> Floats:
    """Return one row of sums per cluster, added in the order of the rows.

    >>> cluster_sums(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 0])).tolist()
    [[5.0], [2.0]]
    """
    sums = np.zeros((int(number.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, number, values)
    return sums


def joint(clusterings: Sequence[Rows]) -> Rows:
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
