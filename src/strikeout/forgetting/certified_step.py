"""Whether one step may replace a calibration of the retained quotes: one rule, for memory and for books."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from strikeout.assurance.optimality import Optimality
from strikeout.forgetting.evidence import Evidence, Unsupported
from strikeout.forgetting.step_error import StepError, Verdict, is_clear, step_error
from strikeout.statistics.system import OneStep


@dataclass(frozen=True)
class NoStep:
    """A step that is not taken: the reason, and its facts."""

    reason: Unsupported
    step_error: StepError | None = None  # the judged step (TOO_FAR)
    found: Optimality | None = None  # what the retained quotes show at its end (NOT_DETERMINED, NOT_THERE)
    cause: str = ""  # why the book keeps no footprints (NO_FOOTPRINTS), as a clause

    @property
    def clause(self) -> str:
        """The reason in words."""
        if self.step_error is not None:
            return self.step_error.sentence
        if self.found is not None and self.reason is Unsupported.NOT_THERE:
            return f"at its end, the next step is {self.found.apart:.2g} standard errors"
        if self.found is not None:
            named = ", ".join(self.found.undetermined) or "every parameter by enough"
            return f"at its end, the retained quotes do not determine {named}"
        return f"{self.reason.value}: {self.cause}" if self.cause else self.reason.value


def certify(
    step: OneStep,
    evidence: Evidence,
    tolerance: float,
    *,
    ids: Callable[[], ArrayLike],
    measure: Callable[[OneStep], Optimality] | None,
) -> StepError | NoStep:
    """Return the error of a step that is certified to be within a tolerance; otherwise why it is not.

    Args:
        tolerance: in standard errors.
        ids: returns the ids of the quotes that are struck out.
        measure: returns what the retained quotes show at the end of the step. None if they are not read: then the
            state alone must show that they determine the parameters there.
    """
    judged = step_error(step, evidence, ids=ids)
    verdict = judged.verdict(tolerance)
    if verdict is not Verdict.TRUSTED:
        return NoStep(Unsupported(verdict.value), step_error=judged if verdict is Verdict.TOO_FAR else None)
    if measure is None:
        return judged if is_clear(judged, tolerance) else NoStep(Unsupported.UNCLEAR)
    found = measure(step)
    if found.is_certain(tolerance):
        return judged
    is_undetermined = found.undetermined or found.is_within(tolerance)
    return NoStep(Unsupported.NOT_DETERMINED if is_undetermined else Unsupported.NOT_THERE, found=found)
