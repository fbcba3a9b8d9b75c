"""What striking quotes out came to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Protocol

from strikeout.assurance.answer import Answer
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issuing import issue
from strikeout.assurance.optimality import Optimality
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.notebook import html_table
from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
from strikeout.forgetting.request import Request
from strikeout.forgetting.trust import Trust
from strikeout.quotes.forwards import Refit
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.system import OneStep
from strikeout.wording import as_lines, many

MOVED = ("parameter", "before", "after", "moved by (SE)")


def moves(before: Calibration | PanelCalibration, parameters: dict[str, float]) -> dict[str, float]:
    """By how many standard errors of ``before`` each parameter differs from it; not-a-number where it has none.

    ``before`` may lack a parameter: a model of smiles has some for every expiry that is quoted.
    """
    apart = {name: value - before.parameters.get(name, nan) for name, value in parameters.items()}
    errors = before.standard_errors
    return {name: change / errors[name] if errors.get(name, nan) > 0.0 else nan for name, change in apart.items()}


def move_rows(before: Calibration | PanelCalibration, parameters: dict[str, float]) -> list[tuple[str, str, str, str]]:
    """Name, before, after and the move of every parameter, in words."""
    moved = moves(before, parameters)
    return [
        (name, f"{before.parameters[name]:.6g}", f"{value:.6g}", f"{moved[name]:.3g}")
        if name in before.parameters
        else (name, "-", f"{value:.6g}", "-")
        for name, value in parameters.items()
    ]


def move_table(before: Calibration | PanelCalibration, parameters: dict[str, float]) -> list[str]:
    """The same, one parameter a line."""
    return aligned([MOVED, *move_rows(before, parameters)])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines: the first column to the left, the others to the right.

    >>> aligned([("a", "1"), ("bc", "10")])
    ['a    1', 'bc  10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([head.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]) for head, *cells in rows]


class Answered(Protocol):
    """What a strike-out of a plain calibration and one of a panel have in common."""

    @property
    def parameters(self) -> dict[str, float]: ...
    @property
    def operator(self) -> str: ...
    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def step(self) -> object | None: ...
    @property
    def trust(self) -> Trust | None: ...
    @property
    def tolerance(self) -> float | None: ...
    @property
    def count(self) -> int: ...


def answer_of(done: Answered) -> Answer:
    """What was found, as a certificate is issued for it: a tolerance is claimed of one step alone."""
    return Answer(
        done.parameters,
        done.operator,
        struck=done.count,
        tolerance=None if done.step is None else done.tolerance,
    )


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Forgetting:
    """The parameters without the quotes that were struck out, how they were found, and what was there before.

    ``before`` may be a panel, where it was left open (``panel="auto"``) and what is left is not one.

    What the parameters do not need (the quotes, how far a step can be trusted, the path in words, a certificate) is
    computed when it is first asked for, and is then what it would have been at once.
    """

    before: AnyCalibration
    parameters: dict[str, float]
    operator: str
    step: OneStep | None
    trust: Trust | None
    tolerance: float | None
    _request: Request
    _path: tuple[str, ...] | Callable[[], tuple[str, ...]]
    _found: Callable[[], Optimality] | None  # of one step, by the retained quotes
    _calibrated: Calibration | Callable[[], Calibration]

    def __init__(
        self,
        before: AnyCalibration,
        parameters: dict[str, float],
        operator: str,
        step: OneStep | None = None,
        trust: Trust | None = None,
        tolerance: float | None = None,
        *,
        _request: Request,
        _path: tuple[str, ...] | Callable[[], tuple[str, ...]],
        _found: Callable[[], Optimality] | None = None,
        _calibrated: Calibration | Callable[[], Calibration],
    ) -> None:
        # The __init__ that dataclass writes for a frozen class takes twice as long: 2 of a downdate's 25 microseconds.
        fields = self.__dict__
        fields["before"], fields["parameters"], fields["operator"] = before, parameters, operator
        fields["step"], fields["trust"], fields["tolerance"] = step, trust, tolerance
        fields["_request"], fields["_path"], fields["_found"] = _request, _path, _found
        fields["_calibrated"] = _calibrated

    @property
    def ids(self) -> Names:
        """Of the quotes that were struck out, in the order of the book."""
        return self._request.ids

    @property
    def forgotten(self) -> Quotes | Moments:
        """The quotes themselves, or their moments: ``restore`` needs them, and so they are data to guard."""
        return self._request.forgotten

    @property
    def refits(self) -> tuple[Refit, ...]:
        """The slices whose forwards rested on the forgotten quotes and were found anew."""
        return self._request.refits

    @cached_property
    def path(self) -> tuple[str, ...]:
        """In the order they were considered, which operators were passed over, why, and which one answered."""
        return self._path if isinstance(self._path, tuple) else self._path()

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of what is retained, as if nothing else had ever been seen.

        An operator that answers with one step leaves it to be made when it is first asked for; errors of single steps
        therefore never add up, however many requests follow each other.

        Raises:
            RefusedError: the retained quotes give no calibration.
        """
        return self._calibrated if isinstance(self._calibrated, Calibration) else self._calibrated()

    @cached_property
    def certificate(self) -> Certificate:
        """What is claimed of this, for others to check: ``verify(certificate, retained)``.

        Raises:
            RefusedError: the retained quotes give no calibration.
        """
        step = self.step
        made = isinstance(self._calibrated, Calibration)
        return issue(
            self.before,
            answer_of(self),
            after=self.calibration if made or step is None else None,
            equations=None if step is None else step.equations,
            found=None if self._found is None else self._found(),
        )

    @property
    def count(self) -> int:
        """How many quotes were struck out."""
        return self._request.count

    @property
    def moved(self) -> dict[str, float]:
        """By how many standard errors (of before) each parameter moved; not-a-number for one that was held."""
        return moves(self.before, self.parameters)

    def summary(self) -> str:
        """Before, after and the move of every parameter, then the path, one fact a line."""
        lines = move_table(self.before, self.parameters)
        lines += ["", f"forgotten  {self.count:,} of {many(self.before.size, 'quote')}"]
        return as_lines([*lines, *(f"path       {sentence}" for sentence in self.path)])

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return f"Forgetting({values}; {many(self.count, 'quote')} struck out by {self.operator})"

    def _repr_html_(self) -> str:
        struck = f"forgotten: {self.count:,} of {many(self.before.size, 'quote')}, by {self.operator}"
        facts = [struck, *(f"path: {sentence}" for sentence in self.path)]
        return html_table(MOVED, move_rows(self.before, self.parameters), facts)
