"""Striking quotes out by one step from what a book keeps of its shards: no quote is read but those that go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import nan, sqrt

from numpy.typing import ArrayLike

from strikeout.assurance.build import build_of
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issue import Answer, issue
from strikeout.book.linearization import Standing
from strikeout.book.records import Snapshot
from strikeout.book.state_store import MissingFootprints, counting
from strikeout.book.state_update import Following, touched
from strikeout.book.version import Version
from strikeout.calibration.panels import AUTO
from strikeout.calibration.settings import Settings
from strikeout.forgetting.step_error import StepError, Verdict, is_clear, step_error
from strikeout.models.model import Model
from strikeout.quotes.forwards import Refit, is_derived
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.second_order import SecondOrder
from strikeout.statistics.system import WHOLE, Group, OneStep


@dataclass(frozen=True, eq=False)
class Posed:
    """What a step is judged and certified by, from what the book keeps: the calibration itself is not made again."""

    standing: Standing
    settings: Settings
    gone: Quotes  # those that count
    size: int  # how many quotes there were
    on_bound: Mapping[str, float] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.standing.model

    @property
    def fixed(self) -> Mapping[str, float]:
        return self.settings.fixed or {}

    @property
    def second_order(self) -> Mapping[Group, SecondOrder]:
        return {WHOLE: self.standing.second_order}

    def second_order_of(self, ids: ArrayLike) -> Mapping[Group, SecondOrder]:
        return {WHOLE: self.standing.bent(self.gone.only(ids), self.settings)}

    @property
    def panel(self) -> None:
        return None

    @property
    def latent_name(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Stepped:
    """A strike-out by one step: certified to be within ``tolerance`` standard errors of the optimum of what is left."""

    ids: Names
    forgotten: Quotes
    last: Version
    posed: Posed
    step: OneStep
    step_error: StepError
    tolerance: float
    healed: int  # shards of which a footprint was missing
    start: NormalEquations | None
    refits: tuple[Refit, ...] = ()  # a step is taken only where there are none

    @property
    def operator(self) -> str:
        return "downdate"

    @property
    def count(self) -> int:
        return len(self.forgotten)

    @property
    def latent(self) -> dict[Group, float]:
        return {}

    @property
    def latent_before(self) -> dict[Group, float]:
        return {}

    @property
    def parameters(self) -> dict[str, float]:
        return self.step.parameters

    @property
    def path(self) -> tuple[str, ...]:
        healed = f"; {self.healed:,} of the shards were built again, for want of footprints" if self.healed else ""
        return (f"downdate: {self.step_error.sentence}, and {self.tolerance:g} were asked for{healed}",)

    @property
    def follow(self) -> Following:
        """What becomes of what the book keeps."""
        return Following(None, self.posed.standing, self.posed.settings, gone=self.forgotten, start=self.start)

    @cached_property
    def certificate(self) -> Certificate:
        """What is claimed of it: STATE and STEP to the bit, OPTIMUM to the tolerance."""
        answer = Answer(self.parameters, self.operator, struck=self.count, tolerance=self.tolerance)
        return issue(self.posed, answer, system=self.step.system)

    def version(self, *, entry: int) -> Version:
        """The results as a book keeps them. The RMSE is the one its state predicts after the step, weights included."""
        system, change = self.step.equations.system(), self.step.change.tolist()
        rest = system.cost - sum(g * d for g, d in zip(system.rows[-1], change, strict=False))
        errors = self.step_error.standard_errors
        return replace(
            self.last,
            entry=entry,
            parameters=self.parameters,
            standard_errors={name: errors.get(name, nan) for name in self.parameters},
            rmse=sqrt(max(rest, 0.0) / system.count),
            count=system.count,
            converged=True,
            termination=f"One step from the reference of entry {self.posed.standing.entry}: "
            f"{self.step_error.sentence}.",
            state=None if self.start is None else self.start.digest(),
            build=build_of(self.last.model),
            step={"reference": self.posed.standing.entry, "tolerance": self.tolerance.hex()},
        )


class StepRefused(StrEnum):
    """Why one step from the footprints of a book cannot replace the optimum."""

    PANEL = "a panel keeps the states of its groups, and no footprints to step from"
    NO_FOOTPRINTS = "the book keeps no footprints"
    LOSS = "a robust loss changes its weights, which a step does not"
    FELLER = "Feller's condition is enforced, which a step ignores"
    FORWARDS = "forwards are derived from these quotes, and footprints of retained quotes depend on them"
    NOISE = "the footprints are perturbed, and nothing can be certified from them"
    SEVERAL_DATES = "the book has several dates, and the retained quotes may form a panel"
    NOT_COUNTED = "none of these quotes counts in the objective"
    LOST_FOOTPRINTS = "footprints of these quotes are missing, and their shards cannot be rebuilt"
    UNIDENTIFIED = "unidentified"
    OUT_OF_BOUNDS = "out of bounds"
    TOO_FAR = "too far"
    UNCLEAR = "only the retained quotes can tell whether they determine the parameters at the end of the step"


@dataclass(frozen=True)
class NoStep:
    """A step that is not taken: the reason, and its facts."""

    reason: StepRefused
    missing: MissingFootprints | None = None  # why there are no footprints (NO_FOOTPRINTS)
    step_error: StepError | None = None  # the judged step (TOO_FAR)

    @property
    def clause(self) -> str:
        """The reason in words."""
        if self.step_error is not None:
            return self.step_error.sentence
        return self.reason.value if self.missing is None else f"{self.reason.value}: {self.missing.clause}"


VERDICTS = {
    Verdict.UNIDENTIFIED: StepRefused.UNIDENTIFIED,
    Verdict.OUT_OF_BOUNDS: StepRefused.OUT_OF_BOUNDS,
    Verdict.TOO_FAR: StepRefused.TOO_FAR,
}


def stepped(records: Snapshot, gone: Quotes, tolerance: float) -> Stepped | NoStep:
    """Strike quotes out by one step from the footprints of a book; or return why that cannot replace the optimum.

    Reads the quotes given and what is kept of their shards, and nothing else of the book.

    Raises:
        RefusedError: what is kept cannot be read.
    """
    standing, last = records.linearization, records.version
    if last is not None and last.panel is not None:
        return NoStep(StepRefused.PANEL)
    if standing is None or last is None:
        return NoStep(StepRefused.NO_FOOTPRINTS, records.no_footprints)
    how = records.settings
    why = _unsuited(standing, how, gone) or _undecided(last, how)
    if why is not None:
        return NoStep(why)
    used = counting(gone, how)
    changes = touched(records.store, standing, how, gone=gone, come=gone[:0])
    if not len(used):
        return NoStep(StepRefused.NOT_COUNTED)
    if changes is None:
        return NoStep(StepRefused.LOST_FOOTPRINTS)
    equations = standing.equations + NormalEquations.total(one.after - one.before for one in changes.values())
    step = OneStep(equations, None, free_numbers(standing.model, how))
    size = standing.equations.count if how.select == "all" else records.store.counts().retained
    posed = Posed(standing, how, used, size)
    judged = step_error(step, posed, ids=lambda: used.ids)
    verdict = judged.verdict(tolerance)
    if verdict is not Verdict.TRUSTED:
        return NoStep(VERDICTS[verdict], step_error=judged if verdict is Verdict.TOO_FAR else None)
    if not is_clear(judged, tolerance):
        return NoStep(StepRefused.UNCLEAR)
    start = None if standing.start is None else standing.start - standing.started(used, how)
    healed = sum(one.is_healed for one in changes.values())
    return Stepped(gone.ids, gone, last, posed, step, judged, tolerance, healed, start)


def free_numbers(model: Model, how: Settings) -> tuple[int, ...] | None:
    """Numbers of the parameters that are not fixed; None where none is."""
    if not how.fixed:
        return None
    return tuple(i for i, name in enumerate(model.parameters.names) if name not in how.fixed)


def _unsuited(standing: Standing, how: Settings, gone: Quotes) -> StepRefused | None:
    if how.loss != "squared":
        return StepRefused.LOSS
    if how.feller == "enforce":
        return StepRefused.FELLER
    if is_derived(gone).any():
        return StepRefused.FORWARDS
    return StepRefused.NOISE if standing.noise else None


def _undecided(last: Version, how: Settings) -> StepRefused | None:
    """Fewer quotes on fewer dates may form a panel although all of them did not; only a calibration decides that."""
    return StepRefused.SEVERAL_DATES if how.panel == AUTO and last.kind is not None else None
