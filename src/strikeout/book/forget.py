"""Plan a strike-out and apply it.

A plan and its application each calibrate the retained quotes once, from cold starts: parameters and state are those of
a book that never held the others. The calibration before is not computed again; its results are in the book, and the
ledger commits to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from strikeout.assurance.certificate import Certificate
from strikeout.assurance.issue import Answer, issue
from strikeout.assurance.provenance import BOOK, with_reading
from strikeout.book import select
from strikeout.book.approvals import require_approval
from strikeout.book.commit import EntryFacts, Result, commit, follow_change
from strikeout.book.plan import FIELDS, Plan, shards_of
from strikeout.book.records import Snapshot, Why, as_reason
from strikeout.book.results import Change, moved
from strikeout.book.select import as_kept, is_encrypted, whole_slices
from strikeout.book.state_store import NO_QUOTES
from strikeout.book.step import try_step
from strikeout.book.version import Version, latent_of
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import chosen_panel, counted_groups
from strikeout.calibration.panels import latent_of as latent_parameter
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.evidence import KeptEvidence
from strikeout.forgetting.expiry_parameters import check_expiries, model_left
from strikeout.forgetting.refusal import determined, refuse_everything
from strikeout.forgetting.resolve import resolve
from strikeout.quotes.forwards import Refit, is_derived, refits
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import moments_of
from strikeout.store.entry import Reason
from strikeout.text import Argument, agreeing, many


@dataclass(frozen=True, eq=False)
class StrikeOut:
    """Quotes struck out, the results without them, and the slices whose forwards depended on them."""

    forgotten: Quotes
    result: Result
    refits: tuple[Refit, ...] = ()


def plan_forget(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    tolerance: float | None = None,
    reason: Why = None,
) -> Plan:
    """Return what striking these quotes out will do; nothing is changed."""
    done = strike_out(seen, ids=ids, where=where, tolerance=tolerance)
    return _plan(seen, done, tolerance=tolerance, reason=as_reason(reason) or Reason("other"))


def forget(
    seen: Snapshot,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    tolerance: float | None = None,
    reason: Why = None,
) -> Change:
    """Strike these quotes out; the same entry, certificate and results as a plan and its application."""
    done = strike_out(seen, ids=ids, where=where, tolerance=tolerance)
    require_approval(seen, "forget", done.forgotten.ids.tolist())
    return _commit(seen, done, as_reason(reason) or Reason("other"))


def apply(seen: Snapshot, plan: Plan) -> Change:
    """Do what a plan shows, if all of it is found again."""
    if plan.book != seen.name:
        raise RefusedError("The plan is of another book. Make one for this book with forget.")
    if (plan.position, plan.head) != (seen.position.number, seen.position.head):
        raise RefusedError(
            f"The plan was made when the book had {many(plan.position, 'entry', 'entries')}; it has "
            f"{seen.position.number:,} now. Make a new one with forget.",
            planned=plan.position,
            found=seen.position.number,
        )
    require_approval(seen, "forget", plan.ids)
    done = strike_out(seen, ids=list(plan.ids), tolerance=plan.tolerance)
    reason = Reason.from_plain(plan.reason)
    differ = _plan(seen, done, tolerance=plan.tolerance, reason=reason).differences(plan)
    if differ:
        raise RefusedError(
            f"The plan shows something else than is found here: {', '.join(FIELDS[name] for name in differ)} "
            f"{agreeing(len(differ), 'differs', 'differ')}. It was changed since forget made it, or another build "
            "made it. Make a new one with forget.",
            differ=list(differ),
            planned=plan.certificate.digest(),
            found=None if done.result.certificate is None else done.result.certificate.digest(),
        )
    return _commit(seen, done, reason)


def strike_out(
    seen: Snapshot, *, ids: ArrayLike | None = None, where: str | None = None, tolerance: float | None = None
) -> StrikeOut:
    """Return the parameters without these quotes: by one step if the tolerance allows it, else by a calibration."""
    if tolerance is not None:
        check_given_tolerance(tolerance)
    seen.check_current()
    gone = select.held(seen, ids=as_kept(seen.store, ids, seen.commit), where=where, verb="forget")
    select.refuse_nothing(len(gone), verb="forget")
    if tolerance is None:
        return recalibrate(seen, gone)
    found = try_step(seen, gone, tolerance)
    if isinstance(found, Result):
        return StrikeOut(gone, found)
    return recalibrate(seen, gone, path=(f"downdate passed over: {found.clause}",))


def check_given_tolerance(tolerance: float) -> None:
    """Raise UsageError if a tolerance is not a number of standard errors above zero."""
    if not tolerance > 0.0:
        raise UsageError(
            Argument("tolerance", tolerance), ": give a number of standard errors above zero, such as 0.05."
        )


def recalibrate(seen: Snapshot, gone: Quotes, *, path: tuple[str, ...] = ()) -> StrikeOut:
    """Return the calibration of the quotes that stay; from moments only those to be removed are read."""
    spec, version = seen.spec, seen.check_current()
    refitted: tuple[Refit, ...] = ()
    retained: Quotes = NO_QUOTES
    if seen.moments is not None:
        if len(gone) >= len(seen.moments):
            refuse_everything(len(seen.moments))
        gone = whole_slices(seen.quotes, gone) if is_derived(gone).any() else gone
        subtracted = moments_of(gone, weights=spec.settings.weights, basis=seen.moments.basis)
        after: Calibration = resolve(seen.moments - subtracted, spec.model, settings=spec.settings)
        path, operator = (*path, "resolve: the moments of the retained quotes, from cold starts"), "resolve"
        size = len(seen.moments)
    else:
        held = seen.quotes
        if len(gone) == len(held):
            refuse_everything(len(held))
        retained = held.without(gone.ids)
        gone = held.only(gone.ids)
        refitted = refits(held, retained) if "forward_from" in held.labels else ()
        after, path = _calibrated(seen, retained, path if not refitted else (*path, _refit(refitted)))
        operator = "recalibrate"
        size = version.count if spec.settings.select == "all" else len(held)
    certificate = certify(spec.settings, after, size=size, struck=len(gone), operator=operator)
    if operator == "recalibrate" and not is_encrypted(seen.store):  # from moments the retained quotes are not read
        certificate = with_reading(certificate, retained, layout=BOOK, settings={})
    return StrikeOut(gone, Result(None, after, before=version, certificate=certificate, path=path), refitted)


def certify(settings: Settings, after: Calibration, *, size: int, struck: int, operator: str) -> Certificate:
    """Return the certificate of a cold calibration of what is left of ``size`` quotes."""
    before = KeptEvidence(after.model, settings, size, after.panel, after.latent_name)
    return issue(before, Answer(after.parameters, operator, after.latent, struck=struck), after=after)


def _calibrated(seen: Snapshot, retained: Quotes, path: tuple[str, ...]) -> tuple[Calibration, tuple[str, ...]]:
    """Return the calibration of the retained quotes, which decide again whether they form a panel, and the path."""
    spec, was = seen.spec, seen.check_current().panel
    check_expiries(model_left(spec.model, retained, spec.settings), spec.settings)
    now = chosen_panel(retained, spec.model, spec.settings)
    try:
        after = determined(spec.calibrate(retained))
    except RefusedError as error:
        if was is None or was == now:
            raise
        # Perhaps only because the parameters are others now.
        raise error.extended(" With ", Argument("panel", was), " the book stays a panel.") from error
    if was != now:
        each = "one value" if now is None else f"one for each of {counted_groups(len(latent_of(after)), now)}"
        path = (*path, f"{latent_parameter(spec.model)}: {each} from here on")
    return after, (*path, "recalibrate: the retained quotes, from cold starts")


def _refit(refitted: tuple[Refit, ...]) -> str:
    return f"forwards refit: {many(len(refitted), 'slice')}"


def _plan(seen: Snapshot, done: StrikeOut, *, tolerance: float | None, reason: Reason) -> Plan:
    """Return the plan of a strike-out, sealed with the key of the book."""
    before, result = seen.check_current(), done.result
    found = result.version or result.calibration
    assert found is not None, "a strike-out ends with a calibration or one step"
    assert result.certificate is not None, "a strike-out has a certificate"
    latent = found.latent if isinstance(found, Version) else latent_of(found)
    plan = Plan(
        book=seen.name,
        position=seen.position.number,
        head=seen.position.head,
        ids=tuple(done.forgotten.ids.tolist()),
        reason=reason.to_plain(),
        before=dict(before.parameters),
        after=dict(found.parameters),
        moved=moved(before.parameters, found.parameters, found.standard_errors),
        path=result.path,
        touched=shards_of(done.forgotten),
        certificate=result.certificate,
        refit=tuple(map(str, done.refits)),
        tolerance=tolerance,
        latent=_paths(before.latent, latent),
    )
    return plan.sealed(lambda shown: seen.commit("plan", shown))


def _paths(before: Any, after: Any) -> dict[str, tuple[float | None, float | None]]:
    """Return the latent parameter of every group before and after, None for none; empty unless both are panels."""
    if not before or not after:
        return {}
    return {group: (value, after[group][0] if group in after else None) for group, (value, _) in before.items()}


def _commit(seen: Snapshot, done: StrikeOut, reason: Reason) -> Change:
    names, result = done.forgotten.ids.tolist(), done.result
    if result.calibration is not None:
        result = replace(result, follow=follow_change(seen, result.calibration, removed=done.forgotten))
    with seen.session.writing(seen.position) as book:
        book.store.strike(names, entry=book.number)
        return commit(book, seen, EntryFacts("forget", reason, names, {"forgotten": len(names)}), result)
