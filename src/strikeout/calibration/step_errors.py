"""Standard errors of one step, from the exact state of every cluster of quotes.

symbol       meaning
H_k, G_k     curvature and score of cluster k at the reference of the step, in integers
d            the step
G_k - H_k d  the score of the cluster where the step ends, to first order; these sum to zero

States are added and subtracted without rounding, and a strike-out changes those of the clusters that lose quotes. So
the errors are those of quotes that were never seen, bit for bit, whatever the order and the names of the clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from strikeout.calibration.panels import values_of
from strikeout.calibration.standard_errors import (
    Basis,
    Errors,
    Reason,
    StandardErrors,
    Unit,
    scaled,
    stated,
    usual_label,
)
from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats
from strikeout.kernels.products import inner
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.groups import column_of, correction, covariance_of_sums, jackknife_covariance
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.system import Group, OneStep

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.quotes.quotes import Quotes

States = Mapping[Group, NormalEquations]  # of clusters, by the text of their names


@dataclass(frozen=True)
class StepUnit:
    """The unit that was asked for (None for "auto") and the label of the clusters; without one, why there are none."""

    unit: Unit | None
    label: str | None
    reason: Reason = Reason.ASKED

    @staticmethod
    def of(base: Calibration) -> StepUnit:
        """Return the unit of the steps that begin at a calibration."""
        asked = Errors.asked(base.settings.errors)
        if asked.unit is Unit.INDEPENDENT:
            return StepUnit(asked.unit, None)
        label = asked.labels[0] if asked.labels else usual_label(base)
        if label is None:
            return StepUnit(asked.unit, None, Reason.NO_LABEL)
        is_cut = len(asked.labels) < 2 and base.panel in (None, label)
        return StepUnit(asked.unit, label) if is_cut else StepUnit(asked.unit, None, Reason.STEP)


def cluster_states(quotes: Quotes, footprints: Footprints, label: str) -> States:
    """Return the state of every cluster; those in which no quote counts have none.

    Quotes without a value, or without the label that other quotes of a book have, are a cluster of their own.

    Args:
        footprints: of these quotes, in their order.
    """
    try:
        values, missing = values_of(np.asarray(column_of(quotes, label)))
    except UsageError:
        values, missing = np.zeros(len(quotes), "U1"), np.ones(len(quotes), bool)
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    pairs = zip(values[first].tolist(), missing[first].tolist(), strict=True)
    names = ["" if is_missing else str(name) for name, is_missing in pairs]
    rows = np.split(np.argsort(number.ravel(), kind="stable"), np.cumsum(np.bincount(number.ravel()))[:-1])
    states = {name: footprints.total(at) for name, at in zip(names, rows, strict=True)}
    return {name: state for name, state in states.items() if state.count}


def exchanged(states: States, lost: States, more: States) -> States:
    """Return the states once quotes are removed and added: all other clusters are the same objects."""
    found = {name: state - lost[name] if name in lost else state for name, state in states.items()}
    found |= {name: found[name] + state if name in found else state for name, state in more.items()}
    return {name: state for name, state in found.items() if state.count}


def step_errors(
    asked: StepUnit, step: OneStep, independent: Mapping[str, float], states: States | None
) -> StandardErrors:
    """Return the standard errors of one step; no quote is read.

    Args:
        independent: the errors of independent quotes after the step.
        states: of every cluster of a plain calibration; None for a panel, whose groups are its clusters.
    """
    source, whole, label = step.system, step.equations, asked.label
    kept = list(range(len(whole.schema.parameters))) if step.free is None else list(step.free)
    names, known = tuple(whole.schema.parameters[i] for i in kept), (step.parameters, independent)
    moving = len(kept) + len(source.groups) - int(np.count_nonzero(source.are_held))
    curvature = whole.system().curvature[np.ix_(kept, kept)]
    pieces = [] if label is None else list((source.pieces if states is None else states).values())
    if label is None or (asked.unit is None and len(pieces) <= len(kept)):
        few = Reason.ONE_CLUSTER if len(pieces) < 2 else Reason.FEW_CLUSTERS
        basis = (
            Basis(Unit.INDEPENDENT, estimated=len(kept), reason=asked.reason)
            if label is None
            else Basis(Unit.INDEPENDENT, (label,), (len(pieces),), estimated=len(kept), reason=few)
        )
        return stated(basis, names, scaled(curvature, names, independent), max(whole.count - moving, 1), known)
    factor = correction(len(pieces), sum(piece.count for piece in pieces), moving)
    if asked.unit is Unit.JACKKNIFE:
        factor = nan
        left = (
            [OneStep(whole - piece, free=step.free) for piece in pieces]
            if states is not None
            else [source.without([group]).step(free=step.free) for group in source.groups]
        )
        covariance = jackknife_covariance(_ordered(np.array([one.change for one in left])[:, kept]))
    else:
        equations = [piece.system() for piece in pieces]
        scores = np.array([one.score - inner(one.curvature, step.change) for one in equations])[:, kept]
        covariance = covariance_of_sums(_ordered(scores), curvature, factor)
    basis = Basis(asked.unit or Unit.CLUSTER, (label,), (len(pieces),), (factor,), len(kept))
    return stated(basis, names, covariance, len(pieces) - 1, known)


def _ordered(rows: Floats) -> Floats:
    """Return the rows by their values: names sort differently once a file has made text of numbers, and sums round."""
    return np.asarray(rows[np.lexsort(rows.T)])
