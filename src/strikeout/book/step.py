"""Strike quotes out by one step from the stored states of a book; only the quotes to strike out are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan, sqrt

from numpy.typing import ArrayLike

from strikeout.assurance.build import build_of
from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issue import Answer, issue
from strikeout.book.linearization import BookLinearization
from strikeout.book.records import Snapshot
from strikeout.book.state_store import MissingFootprints, StateUpdate, in_objective, shard_updates
from strikeout.book.version import Version
from strikeout.calibration.panels import AUTO
from strikeout.calibration.settings import Settings
from strikeout.forgetting.evidence import Unsupported, free_parameters, unsupported
from strikeout.forgetting.step_error import StepError, Verdict, is_clear, step_error
from strikeout.models.model import Model
from strikeout.quotes.forwards import Refit, is_derived
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.normal_equations import NormalEquations
from strikeout.statistics.second_order import SecondOrder
from strikeout.statistics.system import WHOLE, Group, OneStep


@dataclass(frozen=True, eq=False)
class BookEvidence:
    """``Evidence`` from the stored states of a book: the calibration itself is not computed again."""

    linearization: BookLinearization
    settings: Settings
    removed: Quotes  # those of them that count in the objective
    size: int  # how many quotes there were
    on_bound: Mapping[str, float] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.linearization.model

    @property
    def fixed(self) -> Mapping[str, float]:
        return self.settings.fixed or {}

    @property
    def second_order(self) -> Mapping[Group, SecondOrder]:
        return {WHOLE: self.linearization.second_order}

    def second_order_of(self, ids: ArrayLike) -> Mapping[Group, SecondOrder]:
        return {WHOLE: self.linearization.second_order_of(self.removed.only(ids), self.settings)}

    @property
    def panel(self) -> None:
        return None

    @property
    def latent_name(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Stepped:
    """A strike-out by one step, certified to be within ``tolerance`` standard errors of the optimum."""

    ids: Names
    forgotten: Quotes
    last: Version
    evidence: BookEvidence
    step: OneStep
    step_error: StepError
    tolerance: float
    rebuilt: int  # shards with a missing footprint
    start: NormalEquations | None
    refits: tuple[Refit, ...] = ()  # always empty: a step is taken only if no forward is refitted

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
        rebuilt = (
            f"; {self.rebuilt:,} of the shards were rebuilt, because footprints were missing" if self.rebuilt else ""
        )
        return (f"downdate: {self.step_error.sentence}, and {self.tolerance:g} were asked for{rebuilt}",)

    @property
    def follow(self) -> StateUpdate:
        """How the stored states change."""
        return StateUpdate(
            None, self.evidence.linearization, self.evidence.settings, removed=self.forgotten, start=self.start
        )

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate, which claims STATE and STEP to the bit and OPTIMUM to the tolerance."""
        answer = Answer(self.parameters, self.operator, struck=self.count, tolerance=self.tolerance)
        return issue(self.evidence, answer, system=self.step.system)

    def version(self, *, entry: int) -> Version:
        """Return the results as a book stores them. The RMSE is predicted by the state after the step, with weights."""
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
            termination=f"One step from the reference of entry {self.evidence.linearization.entry}: "
            f"{self.step_error.sentence}.",
            state=None if self.start is None else self.start.digest(),
            build=build_of(self.last.model),
            step={"reference": self.evidence.linearization.entry, "tolerance": self.tolerance.hex()},
        )


@dataclass(frozen=True)
class NoStep:
    """A step that is not taken: the reason, and its facts."""

    reason: Unsupported
    missing: MissingFootprints | None = None  # why there are no footprints (NO_FOOTPRINTS)
    step_error: StepError | None = None  # the judged step (TOO_FAR)

    @property
    def clause(self) -> str:
        """The reason in words."""
        if self.step_error is not None:
            return self.step_error.sentence
        return self.reason.value if self.missing is None else f"{self.reason.value}: {self.missing.clause}"


def try_step(records: Snapshot, removed: Quotes, tolerance: float) -> Stepped | NoStep:
    """Strike quotes out by one step from the footprints of a book; or return why that cannot replace the optimum.

    Reads the quotes given and the data of their shards, and no other quotes.

    Raises:
        RefusedError: stored data cannot be read.
    """
    linearization, last = records.linearization, records.version
    if linearization is None or last is None:
        return NoStep(Unsupported.NO_FOOTPRINTS, records.no_footprints)
    how = records.settings
    reason = unsupported("downdate", how, is_panel=False) or _unsupported_in_book(linearization, last, removed)
    if reason is not None:
        return NoStep(reason)
    used = in_objective(removed, how)
    if not len(used):
        return NoStep(Unsupported.NOT_COUNTED)
    updates = shard_updates(records.store, linearization, how, removed=removed, added=removed[:0])
    if updates is None:
        return NoStep(Unsupported.LOST_FOOTPRINTS)
    equations = linearization.equations + NormalEquations.total(one.after - one.before for one in updates.values())
    size = linearization.equations.count if how.select == "all" else records.store.counts().retained
    evidence = BookEvidence(linearization, how, used, size)
    step = OneStep(equations, None, free_parameters(evidence))
    judged = step_error(step, evidence, ids=lambda: used.ids)
    verdict = judged.verdict(tolerance)
    if verdict is not Verdict.TRUSTED:
        return NoStep(Unsupported(verdict.value), step_error=judged if verdict is Verdict.TOO_FAR else None)
    if not is_clear(judged, tolerance):
        return NoStep(Unsupported.UNCLEAR)
    start = None if linearization.start is None else linearization.start - linearization.state_at_start(used, how)
    rebuilt = sum(update.is_rebuilt for update in updates.values())
    return Stepped(removed.ids, removed, last, evidence, step, judged, tolerance, rebuilt, start)


def _unsupported_in_book(linearization: BookLinearization, last: Version, removed: Quotes) -> Unsupported | None:
    """Return why stored footprints do not support a step without these quotes; None if they do."""
    if is_derived(removed).any():
        return Unsupported.FORWARDS
    if linearization.noise:
        return Unsupported.NOISE
    # Fewer quotes on fewer dates may form a panel although all of them did not.
    return Unsupported.UNDECIDED if last.options.get("panel") == AUTO and last.kind is not None else None
