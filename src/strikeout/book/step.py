"""Strike quotes out, and learn others, by one step from the stored states of a book.

In a plain book only the quotes to strike out are read. In a panel the retained quotes are read too, and priced once:
the states alone do not show whether they determine every latent parameter at the end of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import nan, sqrt

from numpy.typing import ArrayLike

from strikeout.assurance.build import build_of
from strikeout.assurance.issue import Answer, issue
from strikeout.assurance.optimality import Optimality, question
from strikeout.book.commit import Result, with_imports
from strikeout.book.linearization import BookLinearization
from strikeout.book.records import Snapshot
from strikeout.book.state_store import NO_QUOTES, StateUpdate, in_objective
from strikeout.book.version import Version, errors_of
from strikeout.calibration.panels import AUTO, chosen_panel
from strikeout.calibration.settings import Settings, chosen
from strikeout.calibration.standard_errors import StandardErrors
from strikeout.calibration.step_errors import step_errors
from strikeout.errors import ParameterError, RefusedError
from strikeout.forgetting.evidence import KeptEvidence, Unsupported, free_parameters, unsupported
from strikeout.forgetting.online import latent_of_least_cost
from strikeout.forgetting.step_error import NoStep, StepError, certify, latent_errors, loses_a_group
from strikeout.quotes.forwards import is_derived
from strikeout.quotes.quotes import Quotes, join
from strikeout.statistics.losses import Squared
from strikeout.statistics.objective import objective_of
from strikeout.statistics.second_order import SecondOrder
from strikeout.statistics.system import Group, OneStep


def evidence_of(linearization: BookLinearization, how: Settings, size: int) -> KeptEvidence:
    """Return ``Evidence`` from the stored states of a book without the quotes that a step strikes out."""

    def without(_: ArrayLike) -> Mapping[Group, SecondOrder]:
        if any(group not in linearization.second_order for group in linearization.system.blocks):
            raise ParameterError("The reference of a group is too close to the boundary of the model to judge a step.")
        return linearization.second_order

    return KeptEvidence(linearization.model, how, size, linearization.panel, linearization.latent, without=without)


def try_step(
    records: Snapshot,
    removed: Quotes,
    tolerance: float,
    *,
    added: Quotes = NO_QUOTES,
    reading: Mapping[str, str] | None = None,
) -> Result | NoStep:
    """Strike quotes out by one step from the footprints of a book; or return why that cannot replace the optimum.

    The certificate claims STATE and STEP to the bit and OPTIMUM to the tolerance, in standard errors.

    Args:
        added: quotes that are learnt in the same step.
        reading: how their file was read.
    """
    linearization, last = records.linearization, records.version
    if linearization is None or last is None:
        missing = records.no_footprints
        return NoStep(Unsupported.NO_FOOTPRINTS, cause="" if missing is None else missing.clause)
    how, used, more = records.settings, *(in_objective(some, records.settings) for some in (removed, added))
    reason = (
        unsupported("downdate", how, is_panel=linearization.panel is not None)
        or _unsupported_in_book(linearization, last, removed, added)
        or (None if len(used) or len(more) else Unsupported.NOT_COUNTED)
    )
    if reason is not None:
        return NoStep(reason)
    grown = _with_new_groups(linearization, more, how)
    if grown is None:
        return NoStep(Unsupported.OUT_OF_BOUNDS)
    try:
        after = grown.exchange(used, more, how)
    except ParameterError:
        return NoStep(Unsupported.OUT_OF_BOUNDS)
    except RefusedError:
        return NoStep(Unsupported.TOO_LARGE)
    if linearization.panel is not None and not after.system.groups:
        return NoStep(Unsupported.NO_GROUP)
    size = linearization.system.count if how.select == "all" else records.store.counts().retained
    evidence = evidence_of(after, how, size + len(added))
    step, measure = after.system.step(free=free_parameters(evidence)), None
    if linearization.panel is not None:
        left = records.quotes.without(removed.ids)
        left = join(left, added) if len(added) else left
        if chosen_panel(left, records.spec.model, how) != linearization.panel:
            return NoStep(Unsupported.OTHER_KIND)
        retained = chosen(left, how.select)
        rows = linearization.groups_of(retained)
        if loses_a_group(step, {g: retained[own] for g, own in rows.items() if g not in step.groups}, how.weights):
            return NoStep(Unsupported.LOST_GROUP)

        def measure(step: OneStep) -> Optimality:
            asked = question(
                retained,
                evidence.model,
                {group: rows[group] for group in step.groups},
                residual=how.residual,
                weights=how.weights,
                loss=Squared(),
                latent=evidence.latent_name,
                rest={"fixed": evidence.fixed, "bounds": how.bounds or {}},
            )
            return asked.optimality(step.parameters, step.latent, held=step.system.held)

    judged = certify(step, evidence, tolerance, ids=lambda: used.ids, measure=measure)
    if isinstance(judged, NoStep):
        return judged
    operator = "update" if len(added) else "downdate"
    answer = Answer(step.parameters, operator, step.latent, struck=len(removed), tolerance=tolerance)
    return Result(
        StateUpdate(None, grown, how, removed=removed, added=added, start=after.start),
        version=replace(
            _version(last, step, judged, after, tolerance=tolerance),
            entry=records.next,
            state=None if after.start is None else after.start.digest(),
        ),
        before=last,
        certificate=with_imports(records, issue(evidence, answer, system=step.system), reading=reading),
        path=(f"{operator}: {judged.sentence}, and {tolerance:g} were asked for",),
    )


def errors_of_step(linearization: BookLinearization, step: OneStep, independent: Mapping[str, float]) -> StandardErrors:
    """Return the standard errors after a step from stored states, given those of independent quotes."""
    states = linearization.clusters if linearization.panel is None else None
    return step_errors(linearization.unit, step, independent, states)


def _version(
    last: Version, step: OneStep, judged: StepError, linearization: BookLinearization, *, tolerance: float
) -> Version:
    """Return the results of a step as a book stores them, from the reference of an entry.

    The RMSE is predicted by the state after the step, with weights.
    """
    system, change = step.equations.system(), step.change.tolist()
    rest = system.cost - sum(g * d for g, d in zip(system.rows[-1], change, strict=False))
    latents = latent_errors(step) if step.latent else {}
    independent = {name: judged.standard_errors.get(name, nan) for name in step.parameters}
    entry, kind = linearization.entry, last.kind
    if kind is not None and step.latent:  # the test of one value for all groups was of the quotes before
        kind = {"label": kind["label"], "latent": kind["latent"], "groups": len(step.latent)}
    return replace(
        last,
        parameters=step.parameters,
        standard_errors=independent,
        errors=errors_of(errors_of_step(linearization, step, independent)),
        rmse=sqrt(max(rest, 0.0) / system.count),
        count=system.count,
        converged=True,
        termination=f"One step from the reference of entry {entry}: {judged.sentence}.",
        build=build_of(last.model),
        latent={str(group): (value, latents[group]) for group, value in step.latent.items()},
        kind=kind,
        step={"reference": entry, "tolerance": tolerance.hex()},
    )


def _with_new_groups(linearization: BookLinearization, added: Quotes, how: Settings) -> BookLinearization | None:
    """Return it with references for groups that are new; None if the latent parameter of one is on a bound."""
    name, latent = linearization.latent, {}
    if name is None or not len(added):
        return linearization
    shared, last = dict(zip(linearization.schema.parameters, linearization.schema.reference, strict=True)), None
    for group, rows in linearization.groups_of(added).items():
        if group in linearization.schemas:
            continue
        last = last if last is not None else list(linearization.references.values())[-1][name]
        posed, _ = objective_of(added[rows], residual=how.residual, weights=how.weights)
        found = latent_of_least_cost(posed, linearization.model, name, shared, how.bounds, start=last)
        if found is None:
            return None
        latent[group] = last = found
    return linearization.with_latent(latent, how)


def _unsupported_in_book(
    linearization: BookLinearization, last: Version, removed: Quotes, added: Quotes
) -> Unsupported | None:
    """Return why stored footprints do not support a step with these quotes removed and added; None if they do."""
    if is_derived(removed).any() or is_derived(added).any():
        return Unsupported.FORWARDS
    if linearization.noise:
        return Unsupported.NOISE
    # Fewer quotes on fewer dates may form a panel although all of them did not.
    is_open = linearization.panel is None and last.options.get("panel") == AUTO and last.kind is not None
    return Unsupported.UNDECIDED if is_open else None
