"""Which few quotes, days or sources change a conclusion most if they are removed.

The most influential single quotes are not the most influential set: errors that agree with each other mask each other.
So the set grows by one group at a time, and after every removal the step of each remaining group is computed again from
the exact downdate of ``deletions``. The last set is confirmed by a refit without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.calibrate import fit
from strikeout.calibration.coordinates import feller_ratio
from strikeout.calibration.deletions import PanelRows, QuoteRows, cells_of, days_of, deletions, panel_deletions
from strikeout.calibration.quote_rows import PANEL_ROWS, PLAIN_ROWS, free_names, panel_rows, quote_rows, taken
from strikeout.calibration.summary import html_table
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.kernels.symmetric import inverse
from strikeout.statistics.groups import By, Groups, groups_of
from strikeout.text import Argument, as_lines, many, printable

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Target = str | Callable[[Mapping[str, float]], float]

FELLER = "feller_ratio"


@dataclass(frozen=True)
class Removal:
    """One set of groups, in the order in which they were chosen.

    Attributes:
        groups: the name of each group; an id if every quote is a group of its own.
        ids: the quotes of all these groups.
        predicted: the target after the first, the first two, ... groups, by one exact Gauss-Newton step.
        value: the target of the refit without all of them; not-a-number if that refit did not converge.
        moved: from the calibration to the refit, in standard errors after.
    """

    groups: tuple[str, ...]
    ids: tuple[str, ...]
    predicted: tuple[float, ...]
    value: float
    moved: float


@dataclass(frozen=True, repr=False)
class Robustness:
    """The sets that raise and lower a target most; see ``robustness``."""

    target: str
    value: float
    raising: Removal
    lowering: Removal
    quotes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None."""
        return {
            "target": self.target,
            "value": self.value,
            "quotes": self.quotes,
            **{name: _plain(getattr(self, name)) for name in ("raising", "lowering")},
        }

    def summary(self) -> str:
        """Return the two sets as a table of plain text."""
        names, cells = self._shown()
        widths = [max(len(row[i]) for row in [names, *cells]) for i in range(len(names))]
        return as_lines(
            [
                f"{self.target} {self.value:.6g} of {many(self.quotes, 'quote')}",
                *(
                    "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
                    for row in (names, *cells)
                ),
            ]
        )

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        names = ["removed to", "quotes", "predicted", "refitted", "moved (independent SE)", "groups"]
        return names, [
            [
                word,
                f"{len(one.ids):,}",
                f"{one.predicted[-1]:.6g}" if one.predicted else "-",
                f"{one.value:.6g}" if isfinite(one.value) else "not determined",
                f"{one.moved:+,.3g}" if isfinite(one.moved) else "-",
                printable(", ".join(one.groups[:5]) + (", ..." if len(one.groups) > 5 else "")),
            ]
            for word, one in (("raise", self.raising), ("lower", self.lowering))
        ]

    def __repr__(self) -> str:
        return f"<Robustness of {self.target}: {self.lowering.value:.4g} to {self.raising.value:.4g}>"

    def _repr_html_(self) -> str:
        return html_table(*self._shown())


def robustness(
    calibration: Calibration,
    target: Target = "mean_reversion",
    *,
    count: int | None = None,
    share: float | None = None,
    by: By = None,
) -> Robustness:
    """Find the few quotes, or groups of quotes, whose removal changes a conclusion most, in both directions.

    Of a panel the parameters are the shared ones, and every step lets the latent ones follow.

    Args:
        target: a parameter, "feller_ratio", or a function of the parameters by name, such as
            ``lambda p: p["long_variance"] / p["mean_reversion"]``.
        count: how many groups are removed at most; one per hundred quotes if neither it nor ``share`` is given.
        share: how many groups are removed at most, as a share of all groups, for example 0.01.
        by: what makes a group, as in ``influence``: None for every quote, "date", ["date", "source"], an array.

    Raises:
        UsageError: an unknown target or label, or a count that leaves nothing.
        RefusedError: the calibration has no quotes or did not converge.
    """
    if not calibration.converged:
        raise RefusedError(f"robustness: {calibration.termination}. Calibrate with what is free fixed, or add quotes.")
    groups = groups_of(calibration.used, by)
    most = _most(count, share, groups.count)
    value = _function(calibration, target)
    try:
        evidence = panel_rows(calibration) if calibration.is_panel else quote_rows(calibration)[0]
        chosen = [_greedy(calibration, evidence, groups, value, sign=sign, most=most) for sign in (1.0, -1.0)]
    except np.linalg.LinAlgError as error:
        raise RefusedError(
            "robustness: the quotes do not determine the parameters. Calibrate with the undetermined ones fixed (",
            Argument("fixed", ...),
            ").",
        ) from error
    now = value(calibration.parameters)
    raising, lowering = (_refitted(calibration, groups, value, now, *one) for one in chosen)
    name = target if isinstance(target, str) else getattr(target, "__name__", "target")
    return Robustness(name, now, raising, lowering, len(calibration.used))


def _most(count: int | None, share: float | None, groups: int) -> int:
    if count is not None and share is not None:
        raise UsageError("robustness: give count or share, not both.")
    if share is not None and not 0.0 < share < 1.0:
        raise UsageError(f"share={share}: give a share of the groups above 0 and below 1.")
    most = count if count is not None else max(1, int((0.01 if share is None else share) * groups))
    if not 1 <= most < groups:
        raise UsageError(f"robustness: {most} of {many(groups, 'group')} cannot be removed. Give 1 to {groups - 1}.")
    return most


def _function(calibration: Calibration, target: Target) -> Callable[[Mapping[str, float]], float]:
    if not isinstance(target, str):
        return target
    if target in calibration.parameters:
        held = "fixed" if target in calibration.fixed else "on a bound" if target in calibration.on_bound else None
        if held is not None:
            raise UsageError(f"target={target!r} is {held}, so no quote moves it. Name a parameter that is estimated.")
        return lambda parameters: parameters[target]
    if target == FELLER and feller_ratio(calibration.parameters) is not None:
        return lambda parameters: feller_ratio(parameters) or nan
    names = ", ".join([*calibration.parameters, FELLER])
    raise UsageError(f"target={target!r} is unknown. Use one of {names}, or a function of the parameters by name.")


def _greedy(
    calibration: Calibration,
    evidence: QuoteRows | PanelRows,
    groups: Groups,
    value: Callable[[Mapping[str, float]], float],
    *,
    sign: float,
    most: int,
) -> tuple[list[int], list[float]]:
    """Return the numbers of the chosen groups, and the target after each; fewer if what is left determines nothing."""
    names = list(calibration.parameters)
    free = [names.index(name) for name in free_names(calibration)]
    theta = np.array(list(calibration.parameters.values()))
    kept = np.ones(len(groups.number), dtype=bool)
    order: list[int] = []
    predicted: list[float] = []
    for _ in range(most):
        left, number = np.unique(groups.number[kept], return_inverse=True)
        moves = _moves(evidence, kept, number, len(left))
        found = np.full(len(left), nan)
        for row in np.flatnonzero(np.isfinite(moves).all(axis=1)):
            point = theta.copy()
            point[free] += moves[row]
            found[row] = value(dict(zip(names, point.tolist(), strict=True)))
        if not np.isfinite(found).any():
            break
        best = int(np.nanargmax(np.where(np.isfinite(found), sign * found, nan)))
        order.append(int(left[best]))
        predicted.append(float(found[best]))
        kept &= groups.number != left[best]
    return order, predicted


def _moves(evidence: QuoteRows | PanelRows, kept: Mask, number: Rows, groups: int) -> Floats:
    """Return the moves of the parameters if each group of the kept quotes is removed too."""
    if isinstance(evidence, QuoteRows):
        return deletions(replace(evidence, **taken(evidence, PLAIN_ROWS, kept)), number, groups).move
    some = replace(evidence, **taken(evidence, PANEL_ROWS, kept))
    days = days_of(some)
    return panel_deletions(some, cells_of(some, number, days), days, groups).move


def _refitted(
    calibration: Calibration,
    groups: Groups,
    value: Callable[[Mapping[str, float]], float],
    now: float,
    order: list[int],
    predicted: list[float],
) -> Removal:
    ids = calibration.used.ids[np.isin(groups.number, order)]
    names = tuple(" ".join(str(key[group]) for key in groups.keys.values()) for group in order)
    how = replace(calibration.settings, panel=calibration.panel)
    try:
        after = fit(calibration.book.without(ids), calibration.asked, **how.keywords()) if order else None
    except RefusedError:  # too few quotes are left
        after = None
    is_answer = after is not None and after.converged
    reached = value(after.parameters) if after is not None and is_answer else nan
    moved = (reached - now) / _error(after, value) if after is not None and is_answer else nan
    return Removal(names, tuple(map(str, ids)), tuple(predicted), reached, moved)


def _error(calibration: Calibration, value: Callable[[Mapping[str, float]], float]) -> float:
    """Return the standard error of a function of the parameters, by the delta method.

    The correlations are those of the inverse curvature; derivatives are central differences over 1e-4 standard errors.
    """
    names = list(calibration.parameters)
    errors = [calibration.standard_errors[name] for name in names]
    kept = [i for i, error in enumerate(errors) if isfinite(error) and error > 0.0]
    rows = calibration.equations.rows
    covariance = inverse([[rows[i][j] for j in kept] for i in kept])
    slope = []
    for i in kept:
        step = 1e-4 * errors[i]
        ends = [
            value({**calibration.parameters, names[i]: calibration.parameters[names[i]] + h}) for h in (step, -step)
        ]
        slope.append((ends[0] - ends[1]) / 2e-4)
    variance = sum(
        slope[a] * slope[b] * covariance[a][b] / sqrt(covariance[a][a] * covariance[b][b])
        for a in range(len(kept))
        for b in range(len(kept))
    )
    return sqrt(variance) if variance > 0.0 else nan


def _plain(one: Removal) -> dict[str, Any]:
    return {
        "groups": list(one.groups),
        "ids": list(one.ids),
        "predicted": list(one.predicted),
        "value": one.value if isfinite(one.value) else None,
        "moved": one.moved if isfinite(one.moved) else None,
    }
