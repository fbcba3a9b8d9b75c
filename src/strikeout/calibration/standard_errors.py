"""Standard errors of the parameters in the requested unit: independent quotes, clusters, or a jackknife.

The unit changes neither the parameters nor the state. Tolerances, moves, influence and certificates are counted in the
standard errors of independent quotes, which follow from the curvature alone and so can be computed without the quotes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.deletions import (
    PanelRows,
    QuoteRows,
    cells_of,
    days_of,
    deletions,
    eliminated,
    followers,
    panel_deletions,
)
from strikeout.calibration.panels import LABEL, values_of
from strikeout.calibration.quote_rows import free_names, in_canonical_order
from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.normal import two_sided
from strikeout.kernels.products import gram
from strikeout.kernels.symmetric import inverse
from strikeout.statistics.groups import (
    clustered_covariance,
    column_of,
    correction,
    jackknife_covariance,
)
from strikeout.statistics.shards import split_cuts
from strikeout.text import Argument, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes


AUTO = "auto"
BINDING = 1e-9  # of Feller's ratio above one
FEW = 10  # clusters; with fewer the errors themselves are rough


class Unit(Enum):
    """What is taken to be independent; the value is the word in ``errors=``."""

    INDEPENDENT = "independent"
    CLUSTER = "cluster"
    JACKKNIFE = "jackknife"


class Reason(Enum):
    """Why the errors are those of independent quotes although none were asked for."""

    ASKED = "asked"
    MOMENTS = "moments"  # these do not record which cluster a quote is in
    ONE_CLUSTER = "one_cluster"
    FEW_CLUSTERS = "few_clusters"  # no more than parameters: their scores cannot span the covariance
    NO_LABEL = "no_label"  # neither dates nor expiries
    PRIOR = "prior"  # the path of a panel has one: the errors are those of the posterior
    FELLER = "feller"  # the condition is enforced and binds: it ties parameters to each other
    MANY_CLUSTERS = "many_clusters"  # one step of a book, which stores the states of up to 4,096
    STEP = "step"  # one step, and its clusters are not cut by one label, which in a panel is that of its groups


@dataclass(frozen=True)
class Errors:
    """What was asked for: a unit and the labels of its clusters; ``unit`` None for "auto".

    >>> Errors.asked("cluster:date,source")
    Errors(unit=<Unit.CLUSTER: 'cluster'>, labels=('date', 'source'))
    """

    unit: Unit | None
    labels: tuple[str, ...] = ()

    @staticmethod
    def asked(text: str | Sequence[str]) -> Errors:
        """Return what ``errors=`` of ``calibrate`` asks for."""
        found = [_parsed(one) for one in ([text] if isinstance(text, str) else text)]
        units = {one.unit for one in found}
        labels = tuple(label for one in found for label in one.labels)
        is_mixed = len(units) != 1 or (len(found) > 1 and not labels)
        if is_mixed or (units == {Unit.JACKKNIFE} and len(labels) > 1):
            raise UsageError(
                Argument("errors", text),
                ': give one unit. Several labels go with "cluster" only: "cluster:date,source".',
            )
        return Errors(found[0].unit, labels)


@dataclass(frozen=True)
class Basis:
    """What standard errors take to be independent, in facts.

    ``clusters`` and ``corrections`` have one number per label: how many clusters, and the small-sample correction of
    their variances (not-a-number for a jackknife). If "auto" found too few clusters, ``labels`` and ``clusters`` are of
    those, and ``reason`` is ``FEW_CLUSTERS`` or ``ONE_CLUSTER``.
    """

    unit: Unit
    labels: tuple[str, ...] = ()
    clusters: tuple[int, ...] = ()
    corrections: tuple[float, ...] = ()
    estimated: int = 0  # parameters, without latent ones
    reason: Reason = Reason.ASKED

    @property
    def is_few(self) -> bool:
        """Whether there are fewer than ten clusters, so that the errors are rough."""
        return self.unit is not Unit.INDEPENDENT and min(self.clusters) < FEW

    @property
    def sentence(self) -> str:
        """The unit, the number of clusters, the correction, and how rough it is."""
        if self.unit is Unit.INDEPENDENT:
            found = dict(zip(self.labels, self.clusters, strict=True))
            label, count = next(iter(found.items()), ("", 0))
            return _INDEPENDENT[self.reason].format(label=label, clusters=many(count, "cluster"))
        corrected = [f", small-sample correction {c:.3g}" if isfinite(c) else "" for c in self.corrections]
        by = " and ".join(
            f"{label} ({many(count, 'cluster')}{correction})"
            for label, count, correction in zip(self.labels, self.clusters, corrected, strict=True)
        )
        how = "clustered by" if self.unit is Unit.CLUSTER else "delete-one-cluster jackknife by"
        rough = f"; fewer than {FEW} clusters, so these errors are rough" if self.is_few else ""
        if self.unit is Unit.CLUSTER and min(self.clusters) <= self.estimated:
            rough = "; no more clusters than parameters, so do not rely on these errors"
        return f"{how} {by}{rough}"

    def to_plain(self) -> dict[str, Any]:
        """For JSON; numbers as ``float.hex`` writes them."""
        return {
            "unit": self.unit.value,
            "labels": list(self.labels),
            "clusters": list(self.clusters),
            "corrections": [c.hex() for c in self.corrections],
            "estimated": self.estimated,
            "reason": self.reason.value,
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Basis:
        """Return what ``to_plain`` wrote."""
        return Basis(
            Unit(plain["unit"]),
            tuple(plain["labels"]),
            tuple(plain["clusters"]),
            tuple(map(float.fromhex, plain["corrections"])),
            plain["estimated"],
            Reason(plain["reason"]),
        )


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard errors of the (shared) parameters, and the unit they are in.

    ``covariance`` is over ``names``, the parameters that were estimated. ``freedom`` is that of Student's distribution
    in ``interval``: one less than the clusters. ``independent`` are the errors of independent quotes, for comparison.
    """

    basis: Basis
    standard_errors: dict[str, float]
    names: tuple[str, ...]
    covariance: Floats
    freedom: int
    parameters: Mapping[str, float]
    independent: Mapping[str, float]

    @property
    def unit(self) -> Unit:
        return self.basis.unit

    @property
    def labels(self) -> tuple[str, ...]:
        return self.basis.labels

    @property
    def clusters(self) -> tuple[int, ...]:
        return self.basis.clusters

    @property
    def sentence(self) -> str:
        """The unit, the number of clusters, and how the errors compare with those of independent quotes."""
        return self.basis.sentence if self.unit is Unit.INDEPENDENT else f"{self.basis.sentence}{self._compared()}"

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Return the interval that contains a parameter with this probability, by Student's distribution.

        Raises:
            KeyError: no such parameter.
            UsageError: a level that is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise UsageError(f"interval: level {level:g} is not between 0 and 1. Give 0.95, for example.")
        wide = two_sided(level, self.freedom) * self.standard_errors[name]
        return self.parameters[name] - wide, self.parameters[name] + wide

    @property
    def ratios(self) -> dict[str, float]:
        """How many times the error of independent quotes each error is; parameters that were estimated only."""
        pairs = {name: (self.standard_errors[name], self.independent[name]) for name in self.names}
        return {name: ours / plain if plain > 0.0 else nan for name, (ours, plain) in pairs.items()}

    def _compared(self) -> str:
        known = sorted(ratio for ratio in self.ratios.values() if isfinite(ratio))
        if not known:
            return "; no error can be computed with them"
        span = f"{known[0]:.2g}" if f"{known[0]:.2g}" == f"{known[-1]:.2g}" else f"{known[0]:.2g} to {known[-1]:.2g}"
        return f"; {span} times those of independent quotes"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a missing number is None."""
        return {
            "unit": self.unit.value,
            "labels": list(self.labels),
            "clusters": list(self.clusters),
            "corrections": [c if isfinite(c) else None for c in self.basis.corrections],
            "reason": self.basis.reason.value,
            "standard_errors": {name: x if isfinite(x) else None for name, x in self.standard_errors.items()},
            "sentence": self.sentence,
        }


_INDEPENDENT = {
    Reason.ASKED: "independent quotes",
    Reason.MOMENTS: "independent quotes: moments do not record clusters",
    Reason.ONE_CLUSTER: "independent quotes: there is one {label} only, so errors that its quotes share are not seen",
    Reason.FEW_CLUSTERS: "independent quotes: {clusters} of {label} are too few to see shared errors",
    Reason.NO_LABEL: "independent quotes: they have neither dates nor expiries to cluster by",
    Reason.PRIOR: "independent quotes, and the prior on the path: clusters are not supported with a prior",
    Reason.FELLER: "independent quotes: clusters are not supported where Feller's condition is enforced and binds",
    Reason.MANY_CLUSTERS: "independent quotes: there are more clusters than a book keeps states of",
    Reason.STEP: "independent quotes: after one step clusters have one label, in a panel that of its groups",
}


def standard_errors(calibration: Calibration) -> StandardErrors:
    """Return the standard errors of a calibration in the unit of its settings."""
    asked = Errors.asked(calibration.settings.errors)
    if calibration.moments is not None:
        return _independent(calibration, Reason.MOMENTS)
    if asked.unit is Unit.INDEPENDENT:
        return _independent(calibration, Reason.ASKED)
    if calibration.has_prior:
        return _independent(calibration, Reason.PRIOR)
    if _feller_binds(calibration):
        return _independent(calibration, Reason.FELLER)
    if asked.unit is not None:
        return _by_clusters(calibration, asked.unit, asked.labels)
    label = usual_label(calibration)
    if label is None:
        return _independent(calibration, Reason.NO_LABEL)
    number = cluster_numbers(calibration.used, label)
    count, names = _count(number, _counted(calibration)), free_names(calibration)
    if count <= len(names):
        reason = Reason.ONE_CLUSTER if count < 2 else Reason.FEW_CLUSTERS
        return _independent(calibration, reason, (label,), (count,))
    return _by_clusters(calibration, Unit.CLUSTER, (label,))


def check_errors(quotes: Quotes, errors: str | Sequence[str]) -> None:
    """Raise UsageError if ``errors=`` cannot be understood, or names a label that the quotes do not have."""
    for label in Errors.asked(errors).labels:
        cluster_numbers(quotes, label)


def cluster_numbers(quotes: Quotes, label: str) -> Rows:
    """Return the number of the cluster of each quote, from 0 on; quotes without a value are a cluster of their own."""
    try:
        column = column_of(quotes, label)
    except UsageError as error:
        known = [*quotes.labels, *(["expiry"] if hasattr(quotes.contracts, "expiry") else [])]
        raise UsageError(
            Argument("errors", f"cluster:{label}"),
            f": the quotes have no label {label!r}. Use one that they have: {', '.join(known)}.",
            label=label,
        ) from error
    values, _ = values_of(np.asarray(column))
    _, number = np.unique(values, return_inverse=True)
    return number.ravel()


def usual_label(calibration: Calibration) -> str | None:
    """Return what errors are clustered by unless asked: groups of a panel, dates if there are several, or expiries."""
    if calibration.panel is not None:
        return calibration.panel
    labels = calibration.used.labels
    if LABEL in labels and len(set(labels[LABEL].tolist())) > 1:
        return LABEL
    is_option = getattr(calibration.used.contracts, "columns", None) is None  # not rows of a custom model
    return "expiry" if is_option else None


def _by_clusters(calibration: Calibration, unit: Unit, labels: tuple[str, ...]) -> StandardErrors:
    names = tuple(free_names(calibration))
    evidence, order = in_canonical_order(calibration)
    kept = [_renumbered(cluster_numbers(calibration.used, label)[order]) for label in labels]
    clusters = tuple(int(number.max(initial=-1)) + 1 for number in kept)
    if unit is Unit.CLUSTER:
        scores, curvature = _scores(evidence)
        moving = len(names) + len(calibration.latent) - len(calibration.latent_on_bound)
        corrections = tuple(correction(count, len(scores), moving) for count in clusters)
        covariance = clustered_covariance(scores, curvature, kept, moving)
    else:
        corrections = (nan,)
        covariance = jackknife_covariance(_moves(evidence, kept[0], len(names)))
    basis = Basis(unit, labels, clusters, corrections, len(names))
    known = calibration.parameters, calibration.standard_errors
    return stated(basis, names, covariance, min(clusters) - 1, known)


def _independent(
    calibration: Calibration, reason: Reason, labels: tuple[str, ...] = (), clusters: tuple[int, ...] = ()
) -> StandardErrors:
    """Return the errors of independent quotes, from the curvature."""
    names = tuple(name for name in free_names(calibration) if isfinite(calibration.standard_errors[name]))
    kept = [list(calibration.parameters).index(name) for name in names]
    covariance = scaled(calibration.equations.curvature[np.ix_(kept, kept)], names, calibration.standard_errors)
    basis = Basis(Unit.INDEPENDENT, labels, clusters, (), len(names), reason)
    freedom = max(calibration.count - len(names) - len(calibration.latent), 1)
    known = calibration.parameters, calibration.standard_errors
    return replace(stated(basis, names, covariance, freedom, known), standard_errors=dict(calibration.standard_errors))


def scaled(curvature: Floats, names: Sequence[str], errors: Mapping[str, float]) -> Floats:
    """Return the covariance with these errors, and the correlations of a curvature."""
    C = np.array(inverse(curvature.tolist())).reshape(len(names), len(names))
    scale = np.array([errors[name] for name in names]) / np.sqrt(np.diag(C))
    return np.asarray(scale[:, None] * C * scale[None, :])


def stated(
    basis: Basis,
    names: tuple[str, ...],
    covariance: Floats,
    freedom: int,
    known: tuple[Mapping[str, float], Mapping[str, float]],
) -> StandardErrors:
    """Return the errors that a covariance has; ``known`` are the parameters and their errors of independent quotes."""
    found = {name: sqrt(v) if v >= 0.0 else nan for name, v in zip(names, np.diag(covariance).tolist(), strict=True)}
    errors = {name: found.get(name, nan) for name in known[0]}
    return StandardErrors(basis, errors, names, covariance, freedom, *known)


def _feller_binds(calibration: Calibration) -> bool:
    return calibration.feller == "enforce" and (calibration.feller_ratio or 0.0) < 1.0 + BINDING


def _scores(evidence: QuoteRows | PanelRows) -> tuple[Floats, Floats]:
    """Return the score of every quote and the curvature.

    Of a panel, both are those of the shared parameters once the latent ones follow.
    """
    if isinstance(evidence, QuoteRows):
        X = evidence.X
        return X * evidence.pull[:, None], gram(X, X * evidence.stiffness[:, None])
    days, p = days_of(evidence), evidence.shared
    follow = followers(days)[:, 1:]  # how much of the latent column each shared one has, by day
    reduced = evidence.sensitivity[:, :p] - evidence.sensitivity[:, p:] * follow[evidence.day]
    pull = evidence.rows[:, -1] if evidence.pull is None else evidence.pull
    return reduced * pull[:, None], np.add.reduce(eliminated(days), axis=0)[:p, :p]


def _moves(evidence: QuoteRows | PanelRows, number: Rows, free: int) -> Floats:
    """Return the moves of the parameters if one cluster is deleted, each by one exact step."""
    groups = int(number.max(initial=-1)) + 1
    try:
        if isinstance(evidence, QuoteRows):
            return deletions(evidence, number, groups).move
        days = days_of(evidence)
        return panel_deletions(evidence, cells_of(evidence, number, days), days, groups).move
    except np.linalg.LinAlgError:  # the quotes do not determine the parameters
        return np.full((2, free), np.nan)


def _renumbered(number: Rows) -> Rows:
    """Return the clusters numbered by their first row, so that sums do not depend on how labels are sorted.

    Days that are numbers sort differently once a CSV file has made them text.

    >>> _renumbered(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, code = np.unique(number, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[code.ravel()]


def _counted(calibration: Calibration) -> Mask:
    """Return which quotes have a weight above zero."""
    from strikeout.statistics.objective import weights_of

    weight, _ = weights_of(calibration.used, calibration.settings.weights)
    return np.asarray(weight > 0.0)


def _count(number: Rows, counted: Mask) -> int:
    return len(np.unique(number[counted]))


def _parsed(text: Any) -> Errors:
    if isinstance(text, str):
        word, _, labels = text.partition(":")
        if text == AUTO:
            return Errors(None)
        if text == Unit.INDEPENDENT.value:
            return Errors(Unit.INDEPENDENT)
        if word in (Unit.CLUSTER.value, Unit.JACKKNIFE.value) and labels:
            return Errors(Unit(word), tuple(split_cuts(labels)))
    raise UsageError(
        Argument("errors", text),
        ' is unknown. Use "auto", "independent", "cluster:LABEL" or "jackknife:LABEL".',
    )
