"""The result of striking quotes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np

from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issue import Answer, issue
from strikeout.assurance.optimality import Optimality
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import latent_moves
from strikeout.calibration.standard_errors import StandardErrors
from strikeout.calibration.step_errors import StepUnit, cluster_states, exchanged, step_errors
from strikeout.calibration.summary import html_table
from strikeout.forgetting.request import Request
from strikeout.forgetting.step_error import StepError
from strikeout.quotes.forwards import Refit
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.system import Group, OneStep
from strikeout.text import as_lines, many

MOVED = ("parameter", "before", "after", "moved (independent SE)")


def moves(before: Mapping[str, float], after: Mapping[str, float], errors: Mapping[str, float]) -> dict[str, float]:
    """Return by how many standard errors (of ``after``) each parameter differs; not-a-number if it has none.

    ``before`` may lack a parameter: a model of smiles has some for every expiry that is quoted.
    """
    apart = {name: value - before.get(name, nan) for name, value in after.items()}
    return {name: change / errors[name] if errors.get(name, nan) > 0.0 else nan for name, change in apart.items()}


def move_rows(
    before: Mapping[str, float], after: Mapping[str, float], moved: Mapping[str, float]
) -> list[tuple[str, str, str, str]]:
    """Return name, before, after and the move of every parameter, as text."""
    return [
        (name, f"{before[name]:.6g}", f"{value:.6g}", f"{moved[name]:.3g}")
        if name in before
        else (name, "-", f"{value:.6g}", "-")
        for name, value in after.items()
    ]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text as lines: the first column to the left, the others to the right.

    >>> aligned([("a", "1"), ("bc", "10")])
    ['a    1', 'bc  10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([head.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]) for head, *cells in rows]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Forgetting:
    """The parameters without the quotes that were struck out, how they were computed, and the calibration before.

    In a panel ``parameters`` are the shared ones and ``latent`` the others by group. A group that lost all its quotes
    is in ``dropped`` and has no latent parameter any more. With ``panel="auto"`` a panel may become a plain
    calibration, or the reverse.

    The quotes, the error of a step, the path and the certificate are computed when first used; they do not depend on
    when that is.
    """

    before: Calibration
    parameters: dict[str, float]
    operator: str
    step: OneStep | None
    step_error: StepError | None
    tolerance: float | None
    latent: dict[Group, float]
    _request: Request
    _path: tuple[str, ...] | Callable[[], tuple[str, ...]]
    _found: Callable[[], Optimality] | None  # what the retained quotes show of one step
    _calibrated: Calibration | Callable[[], Calibration]

    def __init__(
        self,
        before: Calibration,
        parameters: dict[str, float],
        operator: str,
        taken: tuple[OneStep, StepError] | None = None,
        *,
        latent: dict[Group, float] | None = None,
        tolerance: float | None = None,
        how: Provenance,
    ) -> None:
        # The __init__ that dataclass writes for a frozen class takes twice as long: 2 of a downdate's 25 microseconds.
        fields = self.__dict__
        fields["before"], fields["parameters"], fields["operator"] = before, parameters, operator
        fields["step"], fields["step_error"] = (None, None) if taken is None else taken
        fields["tolerance"], fields["latent"] = tolerance, {} if latent is None else latent
        fields["_request"], fields["_path"], fields["_calibrated"], fields["_found"] = how

    @property
    def ids(self) -> Names:
        """The ids of the quotes that were struck out, in the order of the book."""
        return self._request.ids

    @property
    def forgotten(self) -> Quotes | Moments:
        """The quotes themselves, or their moments: ``restore`` needs them, so they are data to protect."""
        return self._request.forgotten

    @property
    def refits(self) -> tuple[Refit, ...]:
        """The slices whose forwards depended on the forgotten quotes and were refitted."""
        return self._request.refits

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The operators that were considered, in order: why each was passed over, and which one was used."""
        return self._path() if callable(self._path) else self._path

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of the retained quotes, as if no others had ever been seen.

        After one step it is computed when first used; errors of single steps therefore never add up, however many
        requests follow each other.

        Raises:
            RefusedError: the retained quotes give no calibration.
        """
        return self._calibrated() if callable(self._calibrated) else self._calibrated

    @cached_property
    def certificate(self) -> Certificate:
        """The claims about this result, for others to check: ``verify(certificate, retained)``.

        Raises:
            RefusedError: the retained quotes give no calibration.
        """
        step = self.step
        return issue(
            self.before,
            # A tolerance is claimed of one step alone.
            Answer(
                self.parameters,
                self.operator,
                self.latent,
                struck=self.count,
                tolerance=None if step is None else self.tolerance,
            ),
            after=self.calibration if step is None else None,
            system=None if step is None else step.system,
            found=None if self._found is None else self._found(),
        )

    @property
    def count(self) -> int:
        """How many quotes were struck out."""
        return self._request.count

    @property
    def dropped(self) -> tuple[Group, ...]:
        """The groups that lost all their quotes, with their latent parameters; none if the result is not a panel."""
        return tuple(group for group in self.before.latent if group not in self.latent) if self.latent else ()

    @property
    def latent_moves(self) -> list[str]:
        """The changes of the latent path, in sentences; empty if before or after is not a panel."""
        before = self.before
        if before.panel is None or before.latent_name is None:
            return []
        return latent_moves(before.latent, self.latent, name=before.latent_name, label=before.panel, is_done=True)

    @property
    def standard_errors(self) -> Mapping[str, float]:
        """The standard errors of the (shared) parameters, once the quotes are struck out."""
        return self.calibration.standard_errors if self.step_error is None else self.step_error.standard_errors

    @cached_property
    def errors(self) -> StandardErrors:
        """Standard errors in the unit of the settings, once the quotes are struck out.

        After one step they follow from the exact states of the clusters, of which only those change that lost quotes.
        """
        if self.step is None or self.operator != "downdate":
            return self.calibration.errors
        before, unit, states = self.before, StepUnit.of(self.before), None
        if before.panel is None and unit.label is not None:
            used, rows = before.used, before.footprints.whole
            gone = self.ids[np.isin(self.ids, used.ids)]
            lost = cluster_states(used[rows.places(gone)], rows.only(gone), unit.label)
            states = exchanged(cluster_states(used, rows, unit.label), lost, {})
        return step_errors(unit, self.step, self.standard_errors, states)

    @property
    def moved(self) -> dict[str, float]:
        """By how many standard errors (after) each (shared) parameter moved; not-a-number for one that was held."""
        return moves(self.before.parameters, self.parameters, self.standard_errors)

    @property
    def _groups_left(self) -> str:
        return f"{len(self.latent):,} of {len(self.latent) + len(self.dropped):,} left"

    def summary(self) -> str:
        """Return before, after and the move of every parameter, then the groups and the path, one fact per line."""
        lines = aligned([MOVED, *move_rows(self.before.parameters, self.parameters, self.moved)])
        lines += ["", f"forgotten  {self.count:,} of {many(self.before.size, 'quote')}"]
        if self.latent:
            names = f"; {', '.join(map(str, self.dropped[:3]))}{', ...' if len(self.dropped) > 3 else ''} removed whole"
            lines += [f"groups     {self._groups_left}{names if self.dropped else ''}"]
        lines += [f"latent     {sentence}" for sentence in self.latent_moves]
        return as_lines([*lines, *(f"path       {sentence}" for sentence in self.path)])

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        groups = f"; groups: {self._groups_left}" if self.latent else ""
        return f"Forgetting({values}; {many(self.count, 'quote')} struck out by {self.operator}{groups})"

    def _repr_html_(self) -> str:
        facts = [f"forgotten: {self.count:,} of {many(self.before.size, 'quote')}, by {self.operator}"]
        facts += [f"groups: {self._groups_left}"] if self.latent else []
        facts += [f"path: {sentence}" for sentence in self.path]
        return html_table(MOVED, move_rows(self.before.parameters, self.parameters, self.moved), facts)


# The request, the path, the calibration of the retained quotes, and what the quotes show of a step.
Provenance = tuple[
    Request,
    tuple[str, ...] | Callable[[], tuple[str, ...]],
    Calibration | Callable[[], Calibration],
    Callable[[], Optimality] | None,
]
