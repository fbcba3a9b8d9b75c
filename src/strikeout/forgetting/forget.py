"""Strike quotes out of a calibration, as if they had never been seen: the choice of the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.issue import FARTHEST
from strikeout.assurance.optimality import Optimality, Question
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panels import LABEL, PanelChoice, grouped, latent_of
from strikeout.calibration.settings import chosen
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.evidence import OPERATORS, Operator, Unsupported, free_parameters
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.recalibrate import new_kind, recalibrate
from strikeout.forgetting.recompute import paper_step, recompute_shards, refine
from strikeout.forgetting.refusal import check_step, no_step
from strikeout.forgetting.request import (
    Request,
    check_expiries,
    model_left,
    moments_for,
    request_of,
    slices_of,
    unstepped,
)
from strikeout.forgetting.resolve import resolve
from strikeout.forgetting.step_error import NoStep, StepError, certify, loses_a_group, outside_bounds, step_error
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.shards import Shards
from strikeout.statistics.system import WHOLE, OneStep, System
from strikeout.text import Argument, many

Cuts = str | Sequence[str] | Shards


def forget(
    calibration: Calibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
    operator: Operator | None = None,
    tolerance: float | None = None,
    shards: Cuts | None = None,
) -> Forgetting:
    """Return the calibration without these quotes, as if they had never been seen; the one given is not changed.

    Forwards that were derived from forgotten quotes are refitted to the retained ones; ``path`` and ``refits`` list
    them.

    By default a calibration made from quotes is solved again from the retained quotes, one made from moments from the
    subtracted moments. Parameters and state are then, bit for bit, those of a fresh calibration of what is retained,
    whatever was learnt and forgotten before. In a panel, a group that loses all its quotes is removed with its latent
    parameter, and the states of groups that lose none are reused. With ``panel="auto"`` the retained quotes decide
    again: a panel may become a plain calibration, or the reverse.

    Args:
        ids: of the quotes to strike out.
        where: or a condition in SQL on their columns and labels, such as ``"date < '2024-01-10'"``.
        quotes: or the quotes themselves, the only way if a calibration was made from moments.
        operator: this one and no other.
        tolerance: in standard errors. The microsecond downdate is taken if it is certified to be within the tolerance;
            otherwise the retained quotes are calibrated again.
        shards: with ``operator="recompute"``: how to partition the quotes, as ``states.shard`` takes it ("date:30",
            "month", "product:30,60", ["date:30", "source"]) or its result; by expiry if not given, in a panel by its
            groups. Only shards with a forgotten quote are priced again.

    Raises:
        UsageError: not exactly one of ids, where and quotes is given, or operator, tolerance and shards are not as
            above.
        UnknownIdError: an id that no quote of the book has, or one given twice.
        UnidentifiedError: the retained quotes do not determine the parameters.
        RefusedError: everything is to be forgotten, the retained quotes lead out of the model's bounds, no optimum was
            found, or what is left of a slice gives no forward. Nothing is changed.

    >>> import strikeout as so
    >>> calibration = so.calibrate(so.paper.quotes("small"), so.Heston())
    >>> without = so.forget(calibration, where="date < '2024-01-10'")
    >>> without.parameters == so.calibrate(calibration.quotes.without(without.ids), so.Heston()).parameters
    True
    """
    _check(operator, tolerance, shards)
    request = request_of(calibration, ids=ids, where=where, quotes=quotes)
    if not request.count:
        nothing = ("nothing to forget: the calibration is as it was",)
        return _whole(calibration, "none", request, nothing, calibration)
    if request.book is None:
        return _by_moments(calibration, request, operator)
    choice = new_kind(calibration, request)
    if choice is not None:
        return _as_other_kind(calibration, request, choice, operator, tolerance)
    if operator is not None and operator != "recalibrate":
        return _forced(calibration, request, operator, shards)
    path: tuple[str, ...] = ("forwards refit: " + slices_of(request),) if request.refits else ()
    if tolerance is not None:
        taken = _certified_step(calibration, request, tolerance)
        if not isinstance(taken, NoStep):
            step, judged = taken
            path = (f"downdate: {judged.sentence}, and {tolerance:g} were asked for",)
            how = request, path, lambda: recalibrate(request.retained, calibration), None
            return Forgetting(
                calibration, step.parameters, "downdate", taken, latent=step.latent, tolerance=tolerance, how=how
            )
        path += (f"downdate passed over: {taken.clause}",)
    found = recalibrate(request.retained, calibration)
    path += (f"recalibrate: the retained quotes, from cold starts{_reused(found)}",)
    return _whole(calibration, "recalibrate", request, path, found, tolerance)


def _whole(
    before: Calibration,
    operator: str,
    request: Request,
    path: tuple[str, ...],
    found: Calibration,
    tolerance: float | None = None,
) -> Forgetting:
    """Return the result of an operator that calibrates."""
    values, how = dict(found.parameters), (request, path, found, None)
    return Forgetting(before, values, operator, latent=dict(found.latent), tolerance=tolerance, how=how)


def _reused(found: Calibration) -> str:
    if found.known is None:
        return ""
    return f"; the states of {len(found.known.groups):,} of {many(len(found.latent), 'group')} are those of before"


def _as_other_kind(
    calibration: Calibration,
    request: Request,
    choice: PanelChoice,
    operator: str | None,
    tolerance: float | None,
) -> Forgetting:
    """``forget`` if a panel becomes a plain calibration, or the reverse: only a calibration can do that."""
    sentence = choice.sentence(latent_of(calibration.asked))
    if operator not in (None, "recalibrate"):
        raise UsageError(
            Argument("operator", operator),
            f": {sentence}, and one step keeps the parameters it began with. Leave ",
            Argument("operator"),
            " out, or calibrate with ",
            Argument("panel"),
            " given in full.",
        )
    try:
        found = recalibrate(request.retained, calibration)
    except RefusedError as error:  # perhaps only because the parameters are others now
        remedy = (" With ", Argument("panel", LABEL), " the book stays a panel.") if calibration.is_panel else ()
        raise error.extended(f" ({sentence}.", *remedy, ")") from error
    path: tuple[str, ...] = ("forwards refit: " + slices_of(request),) if request.refits else ()
    path += (sentence,) if tolerance is None else (sentence, f"downdate passed over: {Unsupported.OTHER_KIND}")
    path += ("recalibrate: the retained quotes, from cold starts",)
    return _whole(calibration, "recalibrate", request, path, found, tolerance)


def _check(operator: Operator | None, tolerance: float | None, shards: Cuts | None) -> None:
    if operator is not None and operator not in OPERATORS:
        raise UsageError(Argument("operator", operator), f" is unknown. Use one of {', '.join(OPERATORS)}.")
    if shards is not None and operator != "recompute":
        raise UsageError(
            Argument("shards"),
            " are for one operator alone. Add ",
            Argument("operator", "recompute"),
            ", or leave them out.",
        )
    if tolerance is None:
        return
    if operator is not None:
        raise UsageError(
            "Give ",
            Argument("operator"),
            " or ",
            Argument("tolerance"),
            ", not both: a tolerance lets forget choose the operator.",
        )
    if isnan(tolerance) or tolerance <= 0.0:
        raise UsageError(
            Argument("tolerance", tolerance), ": give a number of standard errors above zero, such as 0.05."
        )
    check_tolerance(tolerance)


def check_tolerance(tolerance: float) -> None:
    """Raise UsageError if a tolerance is more than what may still be called an optimum."""
    if tolerance > FARTHEST:
        raise UsageError(
            Argument("tolerance", tolerance),
            f": what is more than {FARTHEST:g} standard error from an optimum is not certified as one. Give less, such "
            "as 0.05, or ",
            Argument("operator", "downdate"),
            " for one step however far it leads.",
        )


def try_step(calibration: Calibration, request: Request) -> OneStep | Unsupported:
    """Return one step without the quotes of a request; or why no step can be taken."""
    why = unstepped(calibration, "downdate", request)
    if why is not None:
        return why
    try:
        step = _downdated(calibration, request)
    except RefusedError:
        return Unsupported.TOO_LARGE
    if calibration.is_panel and not step.system.groups:
        return Unsupported.NO_GROUP
    return Unsupported.LOST_GROUP if _loses_a_group(step, calibration, request) else step


def _certified_step(calibration: Calibration, request: Request, tolerance: float) -> tuple[OneStep, StepError] | NoStep:
    """Return the downdate if it is certified to be near enough; otherwise the reason."""
    step = try_step(calibration, request)
    if isinstance(step, Unsupported):
        return NoStep(step)
    judged = certify(
        step,
        calibration,
        tolerance,
        ids=lambda: request.used,
        measure=lambda step: _measured(step, calibration, request),
    )
    return judged if isinstance(judged, NoStep) else (step, judged)


def _measured(step: OneStep, calibration: Calibration, request: Request) -> Optimality:
    """Return what the retained quotes show of the end of a step."""
    retained = calibration.quotes.without(request.used)
    asked = Question.of(calibration, retained, groups=step.groups)
    return asked.optimality(step.parameters, step.latent, held=step.system.held)


def _loses_a_group(step: OneStep, calibration: Calibration, request: Request) -> bool:
    lost = {group: calibration.quotes_of(group) for group in calibration.latent if group not in step.system.blocks}
    left = {group: quotes[~np.isin(quotes.ids, request.used)] for group, quotes in lost.items()}
    return loses_a_group(step, left, calibration.settings.weights)


def _forced(calibration: Calibration, request: Request, operator: Operator, shards: Cuts | None) -> Forgetting:
    why = unstepped(calibration, operator, request)
    if why is not None:
        raise UsageError(*no_step(operator, why))

    def fresh() -> Calibration:
        return recalibrate(request.retained, calibration)

    if operator == "resolve":
        moments = moments_for(calibration, chosen(request.retained, calibration.settings.select))
        model = model_left(calibration.asked, request.retained, calibration.settings)
        check_expiries(model, calibration.settings)
        found = resolve(moments, model, settings=calibration.settings)
        how = request, ("resolve: as asked, from moments of the retained quotes",), fresh, None
        return Forgetting(calibration, dict(found.parameters), operator, how=how)
    if operator == "refine":
        refined = refine(calibration, request.used)
        outside = outside_bounds(refined.parameters, calibration)
        check_step(refined.undetermined, outside, count=len(request.retained))
        path = (f"refine: as asked, 2 passes; what is left is about {refined.error:.2g} standard errors",)
        how = request, path, fresh, None
        return Forgetting(calibration, refined.parameters, operator, latent=refined.latent, how=how)
    if operator == "paper":
        return _as_published(calibration, request, fresh)
    step = _downdated(calibration, request) if operator == "downdate" else _step(calibration, request, operator, shards)
    if _loses_a_group(step, calibration, request):
        raise RefusedError(*no_step(operator, Unsupported.LOST_GROUP))
    judged = step_error(step, calibration, ids=lambda: request.used)
    if not judged.is_sound:
        assert request.book is not None
        check_step(judged.free, judged.outside, count=len(request.book) - request.count)
    values = judged.parameters if step.free is None else step.parameters
    latent = step.latent if calibration.is_panel else None
    return Forgetting(
        calibration,
        values,
        operator,
        (step, judged),
        latent=latent,
        how=_forced_how(calibration, request, operator, (step, judged), fresh),
    )


def _forced_how(
    calibration: Calibration,
    request: Request,
    operator: str,
    taken: tuple[OneStep, StepError],
    fresh: Callable[[], Calibration],
) -> tuple[Request, Callable[[], tuple[str, ...]], Callable[[], Calibration], Callable[[], Optimality]]:
    step, judged = taken
    return (
        request,
        lambda: (f"{operator}: as asked; {judged.sentence}",),
        fresh,
        lambda: _measured(step, calibration, request),
    )


def _as_published(calibration: Calibration, request: Request, fresh: Callable[[], Calibration]) -> Forgetting:
    """Take the paper's step. It is claimed to be near an optimum only if the retained quotes, asked there, show it."""
    step = paper_step(calibration, request.used, free=free_parameters(calibration))
    check_step((), outside_bounds(step.parameters, calibration), count=len(request.retained))

    def path() -> tuple[str, ...]:
        apart = _measured(step, calibration, request).apart
        return (
            "paper: as asked, one step from the calibrated parameters with a ridge of 1e-6; it equals the paper's "
            f"one-step retrain, not a refit: the next step from here is {apart:.2g} standard errors",
        )

    return Forgetting(calibration, step.parameters, "paper", how=(request, path, fresh, None))


def _step(calibration: Calibration, request: Request, operator: str, shards: Cuts | None) -> OneStep:
    if operator == "recompute":
        return recompute_shards(calibration, request.rows, shards=shards, free=free_parameters(calibration)).step
    if calibration.panel is None and request.counting is request.book:
        is_kept = np.ones(len(calibration.quotes), bool)
        is_kept[request.rows] = False
        left = np.flatnonzero(is_kept)
        after = calibration.equations_of(calibration.quotes, calibration.references[WHOLE], only=left)
        return OneStep(after, None, free_parameters(calibration))
    kept = chosen(request.retained, calibration.settings.select)
    groups = {WHOLE: kept}
    if calibration.panel is not None:
        found = grouped(kept, calibration.panel)
        groups = {group: kept[rows] for group, rows in found.items() if group in calibration.latent}
    references = calibration.references
    blocks = {group: calibration.equations_of(part, references[group]) for group, part in groups.items()}
    held = frozenset(calibration.latent_on_bound)
    return System(blocks, calibration.latent_name, held).step(free=free_parameters(calibration))


def _downdated(calibration: Calibration, request: Request) -> OneStep:
    footprints, free = calibration.footprints, free_parameters(calibration)
    if request.counting is request.book and footprints.latent is None:
        # The rows of the footprints are those of the book, in which the ids were looked up already.
        rows = footprints.blocks[WHOLE]
        return OneStep(rows.total().less(rows, request.places), None, free)
    return downdate(footprints, request.used, free=free)


def _by_moments(calibration: Calibration, request: Request, operator: str | None) -> Forgetting:
    if operator not in (None, "resolve"):
        raise UsageError(*no_step(operator, Unsupported.NO_QUOTES, instead="resolve"))
    moments = calibration.moments - moments_for(calibration, request.forgotten)
    found = resolve(moments, calibration.asked, settings=calibration.settings)
    return _whole(
        calibration, "resolve", request, ("resolve: the moments of the retained quotes, from cold starts",), found
    )
