"""Learn and forget by one step from kept footprints: every answer is certified to be near the exact one, or is it.

All steps begin at the same reference, the parameters of the last exact calibration (the base), and not where the step
before ended. So errors do not add up over any number of updates. If the certified error of a step exceeds the
tolerance, the quotes are calibrated from cold starts, and the result is the new base.

A group of a panel that is new has no latent reference yet. It takes the latent parameter of least cost, given the
shared reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issue import Answer, issue
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.coordinates import Bounds
from strikeout.calibration.latent_solve import Line, settled
from strikeout.calibration.panels import AUTO, LABEL, grouped, panel_choice
from strikeout.calibration.settings import chosen
from strikeout.calibration.standard_errors import StandardErrors
from strikeout.calibration.step_errors import StepUnit, cluster_states, step_errors
from strikeout.calibration.summary import html_table
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.evidence import KeptEvidence, Unsupported, free_parameters, unsupported
from strikeout.forgetting.forgetting import MOVED, aligned, move_rows, moves
from strikeout.forgetting.recalibrate import calibrate_again
from strikeout.forgetting.refusal import determined
from strikeout.forgetting.step_error import NoStep, StepError, certify
from strikeout.kernels.arrays import Floats, Rows
from strikeout.models.model import Model
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes, stacked
from strikeout.statistics.linearize import linearizer
from strikeout.statistics.objective import Objective, objective_of
from strikeout.statistics.second_order import GroupSums, SecondOrder, second_order_of
from strikeout.statistics.system import WHOLE, Group, OneStep, System
from strikeout.text import as_lines, many

OPERATOR = "update"


@dataclass(frozen=True, eq=False, repr=False)
class Update:
    """Parameters once quotes were learnt and forgotten: by one certified step, or exact.

    In a panel ``parameters`` are the shared ones and ``latent`` the others by group. ``operator`` is "update" for a
    step and "recalibrate" for an exact answer; ``path`` has the reason. ``learn`` and ``roll`` continue from an update
    as from a calibration. The exact calibration of the same quotes is computed when first used.
    """

    base: Calibration  # whose parameters are the reference of the footprints
    parts: Mapping[Group, Quotes]  # the quotes of now, by group
    system: System  # their exact state at the reference
    sums: Mapping[Group, SecondOrder]
    parameters: Mapping[str, float]
    latent: Mapping[Group, float]
    before: Mapping[str, float]  # the (shared) parameters before this update
    learnt: int
    forgotten: int
    tolerance: float
    path: tuple[str, ...]
    names: AbstractSet[str]  # the ids of all quotes
    taken: tuple[OneStep, StepError] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the answer is a calibration, and not one step."""
        return self.taken is None

    @property
    def operator(self) -> str:
        return "recalibrate" if self.taken is None else OPERATOR

    @property
    def error(self) -> float:
        """The certified distance from the exact answer, in standard errors of independent quotes; zero if exact."""
        return 0.0 if self.taken is None else self.taken[1].error

    @property
    def count(self) -> int:
        """The number of quotes."""
        return len(self.names)

    @cached_property
    def quotes(self) -> Quotes:
        """All quotes of now, by group and in the order in which they were learnt."""
        return _joined(list(self.parts.values()))

    @cached_property
    def calibration(self) -> Calibration:
        """The exact calibration of these quotes, from cold starts: the same bits as if nothing had ever been rolled.

        Raises:
            RefusedError: the quotes give no calibration.
        """
        return self.base if self.taken is None else determined(calibrate_again(self.quotes, self.base))

    @property
    def standard_errors(self) -> Mapping[str, float]:
        """The standard errors of independent quotes."""
        return self.base.standard_errors if self.taken is None else self.taken[1].standard_errors

    @cached_property
    def errors(self) -> StandardErrors:
        """Standard errors in the unit of the settings; after one step they follow from the exact states of clusters."""
        if self.taken is None:
            return self.base.errors
        unit, states = StepUnit.of(self.base), None
        if self.base.panel is None and unit.label is not None:
            used = chosen(self.quotes, self.base.settings.select)
            states = cluster_states(used, self.base.footprints_of(used, self.base.references[WHOLE]), unit.label)
        return step_errors(unit, self.taken[0], self.standard_errors, states)

    @property
    def moved(self) -> dict[str, float]:
        """By how many standard errors of independent quotes each (shared) parameter moved."""
        return moves(self.before, self.parameters, self.standard_errors)

    @cached_property
    def certificate(self) -> Certificate:
        """The claims about this answer: ``verify(certificate, update.quotes)``."""
        before = _evidence(self.base, self.count + self.forgotten, self.sums)
        if self.taken is None:
            answer = Answer(self.parameters, self.operator, self.latent, struck=self.forgotten)
            return issue(before, answer, after=self.base)
        step, _ = self.taken
        answer = Answer(self.parameters, OPERATOR, self.latent, struck=self.forgotten, tolerance=self.tolerance)
        return issue(before, answer, system=step.system)

    def summary(self) -> str:
        """Return before, after and the move of every parameter, then what was learnt and forgotten, and the path."""
        lines = aligned([MOVED, *move_rows(self.before, self.parameters, self.moved)])
        return as_lines([*lines, "", *(f"{name:<9}  {value}" for name, value in self._facts())])

    def _facts(self) -> list[tuple[str, str]]:
        groups = f", in {many(len(self.latent), 'group')}" if self.latent else ""
        return [
            ("quotes", f"{self.count:,}{groups}; {self.learnt:,} learnt, {self.forgotten:,} forgotten"),
            *(("path", sentence) for sentence in self.path),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None."""
        return {
            "operator": self.operator,
            "parameters": dict(self.parameters),
            "latent": {str(group): value for group, value in self.latent.items()},
            "error": self.error,
            "tolerance": self.tolerance,
            "count": self.count,
            "learnt": self.learnt,
            "forgotten": self.forgotten,
            "path": list(self.path),
        }

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return f"<Update by {self.operator}: {values}; {many(self.count, 'quote')}>"

    def _repr_html_(self) -> str:
        rows = move_rows(self.before, self.parameters, self.moved)
        return html_table(MOVED, rows, [f"{name}: {value}" for name, value in self._facts()])


def _evidence(base: Calibration, size: int, sums: Mapping[Group, SecondOrder]) -> KeptEvidence:
    """Return the evidence of a calibration with as many quotes and the second-order sums of now."""
    return KeptEvidence(
        base.model, base.settings, size, base.panel, base.latent_name, base.on_bound, without=lambda _: sums
    )


def begin(calibration: Calibration, tolerance: float) -> Update:
    """Return a calibration as an update in which nothing has changed yet, with footprints, states and sums at hand."""
    parts = {WHOLE: calibration.book} if calibration.panel is None else _by_group(calibration.book, calibration.panel)
    return Update(
        base=calibration,
        parts=parts,
        system=calibration.system,
        sums=calibration.second_order if calibration.panel is None else GroupSums.of(calibration.second_order),
        parameters=dict(calibration.parameters),
        latent=dict(calibration.latent),
        before=dict(calibration.parameters),
        learnt=0,
        forgotten=0,
        tolerance=tolerance,
        path=("nothing changed yet",),
        names=set(calibration.book.ids.tolist()),
    )


def update(last: Update, new: Quotes, names: NDArray[Any], tolerance: float) -> Update:
    """Return the update in which these quotes are learnt and those of these ids are forgotten."""
    gone, more = set(names.tolist()), new.ids.tolist()
    if len(gone) < len(names) or not gone <= last.names:
        last.quotes.only(names)  # raises for the unknown one, or the one given twice
    present = set(last.names)  # one copy: a book has many names
    present -= gone
    both = sorted(present.intersection(more))
    if both:
        raise UsageError(
            f"{len(both):,} of the {len(new):,} quotes have ids that are in the book already: {both[0]!r}. Forget the "
            "old ones first, or give the new ones other ids.",
            ids=both,
        )
    parts, removed, added = _changed_parts(last, new, names)
    present.update(more)
    found = _step(last, parts, removed, added, tolerance, count=len(present))
    learnt, forgotten = len(new), len(names)
    if isinstance(found, NoStep):
        path = (f"step passed over: {found.clause}", "recalibrate: all quotes, from cold starts")
        exact = determined(calibrate_again(_joined(list(parts.values())), last.base))
        fresh = begin(exact, tolerance)
        return replace(fresh, before=dict(last.parameters), learnt=learnt, forgotten=forgotten, path=path)
    system, sums, step, judged = found
    return Update(
        base=last.base,
        parts=parts,
        system=system,
        sums=sums,
        parameters=step.parameters,
        latent=step.latent,
        before=last.parameters,
        learnt=learnt,
        forgotten=forgotten,
        tolerance=tolerance,
        path=(f"update: {judged.sentence}, and {tolerance:g} were asked for",),
        names=present,
        taken=(step, judged),
    )


def _changed_parts(
    last: Update, new: Quotes, names: NDArray[Any]
) -> tuple[dict[Group, Quotes], dict[Group, Quotes], dict[Group, Quotes]]:
    """Return the quotes of now by group, and those of them that are removed and added."""
    panel, parts = last.base.panel, dict(last.parts)
    removed: dict[Group, Quotes] = {}
    if len(names):
        asked, left = set(names.tolist()), len(names)
        for group, part in last.parts.items():
            gone = np.array([name in asked for name in part.ids.tolist()])
            count = int(np.count_nonzero(gone))
            if count == len(part) and panel is not None:
                removed[group] = parts.pop(group)
            elif count:
                removed[group], parts[group] = part[gone], part[~gone]
            left -= count
            if not left:
                break
    added = {} if not len(new) else {WHOLE: new} if panel is None else _by_group(new, panel)
    for group, some in added.items():
        parts[group] = _joined([parts[group], some]) if group in parts else some
    return parts, removed, added


def _step(
    last: Update,
    parts: Mapping[Group, Quotes],
    removed: Mapping[Group, Quotes],
    added: Mapping[Group, Quotes],
    tolerance: float,
    *,
    count: int,
) -> tuple[System, Mapping[Group, SecondOrder], OneStep, StepError] | NoStep:
    """Return the state, the sums and the step of the quotes of now; or why no step can replace the optimum."""
    base, how = last.base, last.base.settings
    reason = unsupported("downdate", how, is_panel=base.is_panel) or _unsupported_here(last, parts, removed, added)
    if reason is not None:
        return NoStep(reason)
    whole_groups = [group for group in removed if group not in parts]
    blocks: dict[Group, Any] = {}
    sums: dict[Group, SecondOrder] = {}
    try:
        for group in {**removed, **added}:
            if group in whole_groups:
                continue
            posed = None
            if group not in last.parts:  # one objective for its latent parameter and for what a step leaves out
                posed, _ = objective_of(chosen(parts[group], how.select), residual=how.residual, weights=how.weights)
            reference = _reference_of(last, group, parts[group], posed)
            if reference is None:
                return NoStep(Unsupported.OUT_OF_BOUNDS)
            for sign, some in ((1, added.get(group)), (-1, removed.get(group))):
                used = None if some is None else chosen(some, how.select)
                if used is None or not len(used):
                    continue
                block = base.equations_of(used, reference)
                more = second_order_of(
                    used, base.model, reference, residual=how.residual, weights=how.weights, objective=posed
                )
                old = blocks.get(group, last.system.blocks.get(group))
                blocks[group] = block if old is None else old + block if sign > 0 else old - block
                so_far = sums.get(group, last.sums.get(group))
                sums[group] = more if so_far is None else so_far + more if sign > 0 else so_far - more
    except RefusedError:
        return NoStep(Unsupported.TOO_LARGE)
    system = last.system.exchanged(whole_groups, blocks)
    if base.is_panel and len(system.groups) != len(parts):
        return NoStep(Unsupported.LOST_GROUP if system.groups else Unsupported.NO_GROUP)
    now: Mapping[Group, SecondOrder] = sums
    if base.is_panel:
        now = GroupSums.of(last.sums).exchanged(whole_groups, sums)
    evidence = _evidence(base, count, now)
    step = system.step(free=free_parameters(evidence))
    judged = certify(step, evidence, tolerance, ids=lambda: np.empty(0, "U1"), measure=None)
    return judged if isinstance(judged, NoStep) else (system, now, step, judged)


def _unsupported_here(
    last: Update, parts: Mapping[Group, Quotes], removed: Mapping[Group, Quotes], added: Mapping[Group, Quotes]
) -> Unsupported | None:
    base = last.base
    if base.on_bound or not base.converged:
        return Unsupported.OUT_OF_BOUNDS
    if not any(len(chosen(some, base.settings.select)) for some in (*removed.values(), *added.values())):
        return Unsupported.NOT_COUNTED
    if getattr(base.asked, "expiries", None) == "quoted":
        return Unsupported.EXPIRY
    changed = [*removed.values(), *added.values()]
    if any(is_derived(some).any() for some in changed):
        # The forwards of a date depend on its own quotes: whole dates can be exchanged, parts of them not.
        is_part = any(group in last.parts and group in parts for group in (*removed, *added))
        if base.panel != LABEL or is_part:
            return Unsupported.FORWARDS
    suited = getattr(base.asked, "suited", None)
    if suited is not None and parts and suited(max(parts.values(), key=len).contracts).name != base.model.name:
        return Unsupported.OTHER_KIND  # another form of the model suits the largest group now
    if base.settings.panel == AUTO:
        dates = np.concatenate([part.labels[LABEL] for part in parts.values() if LABEL in part.labels])
        if panel_choice(dates, base.asked, base.settings).label != base.panel:
            return Unsupported.OTHER_KIND
    return None


def _reference_of(last: Update, group: Group, quotes: Quotes, posed: Objective | None) -> Mapping[str, float] | None:
    """Return the reference of a group; of a new one, with the latent parameter of least cost. None if on a bound."""
    base, how = last.base, last.base.settings
    if group in last.system.blocks:
        schema = last.system.blocks[group].schema
        return dict(zip(schema.parameters, schema.reference, strict=True))
    if posed is None:
        posed, _ = objective_of(chosen(quotes, how.select), residual=how.residual, weights=how.weights)
    name, start = str(base.latent_name), list(last.latent.values())[-1]  # tomorrow is like today
    found = latent_of_least_cost(posed, base.model, name, base.parameters, how.bounds, start=start)
    return None if found is None else {n: base.parameters.get(n, found) for n in base.model.parameters.names}


def latent_of_least_cost(
    objective: Objective, model: Model, name: str, shared: Mapping[str, float], bounds: Bounds | None, *, start: float
) -> float | None:
    """Return the latent parameter that fits the quotes of one group best, given the shared ones; None if on a bound."""
    space = model.parameters
    k, size = space.names.index(name), len(space) + 1
    low, high = (bounds or {}).get(name, (float(space.lower[k]), float(space.upper[k])))
    evaluate, values = linearizer(objective, model), [shared.get(n, start) for n in space.names]
    place = k * size - k * (k - 1) // 2  # of the latent parameter's own curvature in the triangle
    line = Line(low, high, place, place + size - 1 - k)

    def equations(_: Rows, x: Floats) -> Floats:
        return np.array([evaluate([*values[:k], float(x[0]), *values[k + 1 :]]).triangle])

    found = settled(equations, np.array([start]), line, rounding=np.array([objective.rounding]), negligible=1e-12)
    value = None if found is None else float(found[0][0])
    return value if value is not None and low < value < high else None


def _by_group(quotes: Quotes, panel: str) -> dict[Group, Quotes]:
    groups = grouped(quotes, panel)
    return {group: quotes if len(rows) == len(quotes) else quotes[rows] for group, rows in groups.items()}


def _joined(parts: Iterable[Quotes]) -> Quotes:
    """Return all quotes in one, with the forwards they have."""
    some = list(parts)
    while len(some) > 1:  # in pairs: a book of many groups is copied a few times, not once per group
        some = [stacked(*some[n : n + 2]) if n + 1 < len(some) else some[n] for n in range(0, len(some), 2)]
    return some[0]
