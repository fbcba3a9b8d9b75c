"""The door: strike quotes out of a calibration, as if they had never been seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.issuing import FARTHEST
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import chosen
from strikeout.calibration.identifiability import INFLATION
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_choice import AUTO
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.confirming import measured, unconfirmed
from strikeout.forgetting.crossing import crossing, forget_across
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.forgetting import Forgetting
from strikeout.forgetting.panel import forget_panel
from strikeout.forgetting.panel_forgetting import PanelForgetting
from strikeout.forgetting.paper_step import paper_step
from strikeout.forgetting.recalibrate import recalibrate
from strikeout.forgetting.recompute import recompute_shards
from strikeout.forgetting.refine import refine
from strikeout.forgetting.refusal import no_step, refuse_step
from strikeout.forgetting.request import EITHER, Request, moments_for, request_of, slices_of, unstepped_forwards
from strikeout.forgetting.resolve import resolve
from strikeout.forgetting.restep import restep
from strikeout.forgetting.trust import Trust, Verdict, determined_to, known_error, outside_bounds, trust
from strikeout.forgetting.vanishing import left, refuse_vanished, why_not_stepped
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.shards import Shards
from strikeout.statistics.system import FootprintBlocks, OneStep
from strikeout.wording import Argument

Operator = Literal["downdate", "restep", "recompute", "resolve", "recalibrate", "refine", "paper"]
OPERATORS: tuple[Operator, ...] = ("downdate", "restep", "recompute", "resolve", "recalibrate", "refine", "paper")
Cuts = str | Sequence[str] | Shards


@overload
def forget(
    calibration: Calibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
    operator: Operator | None = None,
    tolerance: float | None = None,
    shards: Cuts | None = None,
) -> Forgetting: ...


@overload
def forget(
    calibration: PanelCalibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
    operator: Operator | None = None,
    tolerance: float | None = None,
    shards: Cuts | None = None,
) -> PanelForgetting: ...


def forget(
    calibration: Calibration | PanelCalibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
    operator: Operator | None = None,
    tolerance: float | None = None,
    shards: Cuts | None = None,
) -> Forgetting | PanelForgetting:
    """The calibration without these quotes, as if they had never been seen; the calibration given is not changed.

    Forwards that were derived from quotes that go are found anew from those that stay; ``path`` and ``refits`` say so.

    By default the road is that of the calibration itself: one made from quotes is solved again from the retained
    quotes, one made from moments from the subtracted moments. Parameters and state are then, bit for bit, those of a
    fresh calibration of what is retained, whatever was learnt and forgotten before. Of a panel, a group that loses all
    its quotes takes its latent parameter along, and the states of groups that lose none are taken over as they are.
    Where a panel was left open (``panel="auto"``), what is retained decides anew: a panel may become a plain
    calibration, or the reverse, and the answer is a ``Forgetting`` or a ``PanelForgetting`` accordingly.

    Args:
        ids: of the quotes to strike out.
        where: or a condition in SQL on their columns and labels; see ``quotes.selection``.
        quotes: or the quotes themselves, the only way where a calibration was made from moments.
        operator: this one and no other.
        tolerance: in standard errors. The microsecond downdate is taken where its indicator certifies that much;
            else the retained quotes are calibrated anew.
        shards: with ``operator="recompute"``: how to partition the quotes, as ``states.shard`` takes it ("date:30",
            "month", "product:30,60", ["date:30", "source"]) or its result; by expiry if not given. Only shards with a
            forgotten quote are priced again.

    Raises:
        UsageError: what to forget is said in no way or in two, or operator, tolerance and shards are not as above.
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
    if isinstance(calibration, EITHER) and calibration.settings.panel == AUTO:
        request = request_of(calibration, ids=ids, where=where, quotes=quotes)
        choice = crossing(calibration, request)
        if choice is not None:
            return forget_across(calibration, request, choice, operator=operator, tolerance=tolerance)
        if request.book is not None:
            ids, where, quotes = request.ids, None, None  # found once
    if isinstance(calibration, PanelCalibration):
        if shards is not None:
            raise UsageError(Argument("shards"), ": a panel is recomputed by its groups. Leave them out.")
        return forget_panel(calibration, ids=ids, where=where, quotes=quotes, operator=operator, tolerance=tolerance)
    request = request_of(calibration, ids=ids, where=where, quotes=quotes)
    answer = partial(Forgetting, calibration, _request=request)
    if not request.count:
        nothing = ("nothing to forget: the calibration is as it was",)
        return answer(dict(calibration.parameters), "none", _path=nothing, _calibrated=calibration)
    if request.book is None:
        return _by_moments(answer, calibration, request, operator)

    def fresh() -> Calibration:
        return recalibrate(request.retained, calibration.asked, calibration.settings)

    path: tuple[str, ...] = ("forwards refit: " + slices_of(request),) if request.refits else ()
    if tolerance is not None:
        step, judged, passed = _certified_step(calibration, request, tolerance)
        path += passed
        if step is not None and judged is not None:
            path = (f"downdate: {known_error(judged)}, and {tolerance:g} were asked for",)
            return answer(step.parameters, "downdate", step, judged, tolerance, _path=path, _calibrated=fresh)
    elif operator not in (None, "recalibrate"):
        return _forced(answer, calibration, request, operator, fresh, shards=shards)
    found = fresh()
    path = (*path, "recalibrate: the retained quotes, from cold starts")
    return answer(dict(found.parameters), "recalibrate", tolerance=tolerance, _path=path, _calibrated=found)


def unstepped(calibration: Calibration, request: Request) -> str | None:
    """Why one step from the footprints cannot stand for forgetting these quotes; None where it can."""
    return unstepped_forwards(request) or unsuited(calibration) or _vanishing(calibration, request)


def free_parameters(calibration: Calibration) -> tuple[int, ...] | None:
    """Numbers of the parameters that were not fixed; None where none was."""
    if not calibration.fixed:
        return None
    return tuple(i for i, name in enumerate(calibration.model.parameters.names) if name not in calibration.fixed)


def _vanishing(calibration: Calibration, request: Request) -> str | None:
    is_by_expiry = getattr(calibration.asked, "expiries", None) == "quoted"  # else no quote has to be copied
    return why_not_stepped(calibration, request.retained) if is_by_expiry else None


def unsuited(calibration: Calibration) -> str | None:
    """Why one step from the footprints cannot stand for this calibration's optimum; None where it can."""
    if calibration.loss != "squared":
        return "a robust loss decides its weights again, which a step does not"
    if calibration.feller == "enforce":
        return "Feller's condition is enforced, and a step knows nothing of it"
    return None


def unresolvable(calibration: Calibration) -> str | None:
    """Why moments cannot stand for this calibration's quotes; None where they can."""
    if calibration.loss != "squared" or calibration.residual != "price":
        return f"moments are of squared price residuals, and here they are {calibration.loss} {calibration.residual}"
    return None


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
    refuse_too_far(tolerance)


def refuse_too_far(tolerance: float) -> None:
    """Raise UsageError if a tolerance is more than what may still be called an optimum."""
    if tolerance > FARTHEST:
        raise UsageError(
            Argument("tolerance", tolerance),
            f": what is more than {FARTHEST:g} standard error from an optimum is not certified as one. Give less, such "
            "as 0.05, or ",
            Argument("operator", "downdate"),
            " for one step however far it leads.",
        )


def _certified_step(
    calibration: Calibration, request: Request, tolerance: float
) -> tuple[OneStep | None, Trust | None, tuple[str, ...]]:
    reason = unstepped(calibration, request)
    if reason is None:
        try:
            step = _downdated(calibration, request)
        except RefusedError:
            reason = "a quote is too large to have a footprint"
        else:
            judged = trust(step, calibration, ids=lambda: request.used)
            verdict = judged.verdict(tolerance)
            reason = known_error(judged) if verdict is Verdict.TOO_FAR else verdict
            if verdict is Verdict.TRUSTED:
                reason = unconfirmed(measured(calibration, request.used, step.parameters), tolerance)
                if reason is None:
                    return step, judged, ()
    return None, None, (f"downdate passed over: {reason}", "resolve passed over: no moments are held")


def _forced(
    answer: Callable[..., Forgetting],
    calibration: Calibration,
    request: Request,
    operator: str,
    fresh: Callable[[], Calibration],
    *,
    shards: Cuts | None,
) -> Forgetting:
    why = unresolvable(calibration) if operator == "resolve" else unstepped(calibration, request)
    if why is not None:
        raise UsageError(*no_step(operator, why))
    if operator == "resolve":
        moments = moments_for(calibration, chosen(request.retained, calibration.settings.select))
        model = left(calibration.asked, request.retained, calibration.settings)
        refuse_vanished(model, calibration.settings)
        found = resolve(moments, model, settings=calibration.settings)
        path = ("resolve: as asked, from moments of the retained quotes",)
        return answer(dict(found.parameters), operator, _path=path, _calibrated=fresh)
    if operator == "refine":
        refined, kept = refine(calibration, request.used), free_parameters(calibration)
        at, system = list(refined.parameters.values()), refined.system
        numbers = range(len(at)) if kept is None else kept
        space, inflation = calibration.model.parameters, getattr(calibration.model, "inflation", INFLATION)
        still = np.zeros(len(at))
        _, free = determined_to(system, space, at=tuple(at), kept=numbers, step=still, inflation=inflation)
        refuse_step(free, outside_bounds(refined.parameters, calibration), count=len(request.retained))
        path = (f"refine: as asked, 2 passes; what is left is about {refined.error:.2g} standard errors",)
        return answer(refined.parameters, operator, _path=path, _calibrated=fresh)
    if operator == "paper":
        return _as_published(answer, calibration, request, fresh)
    if operator == "downdate":
        step = _downdated(calibration, request)
    else:
        step = _step(calibration, request, operator, shards=shards)
    judged = trust(step, calibration, ids=lambda: request.used)
    if not judged.is_sound:
        assert request.book is not None
        refuse_step(judged.free, judged.outside, count=len(request.book) - request.count)
    return answer(
        judged.parameters if step.free is None else step.parameters,
        operator,
        step,
        judged,
        _path=lambda: (f"{operator}: as asked; {known_error(judged)}",),
        _found=lambda: measured(calibration, request.used, step.parameters),
        _calibrated=fresh,
    )


def _as_published(
    answer: Callable[..., Forgetting], calibration: Calibration, request: Request, fresh: Callable[[], Calibration]
) -> Forgetting:
    """Take the paper's step. It is claimed to be near an optimum only if the retained quotes, asked there, show it."""
    step = paper_step(calibration, request.used, free=free_parameters(calibration))
    outside = outside_bounds(step.parameters, calibration)
    refuse_step((), outside, count=len(request.retained))

    def path() -> tuple[str, ...]:
        apart = measured(calibration, request.used, step.parameters).apart
        return (
            "paper: as asked, one step from the calibrated parameters with a ridge of 1e-6; it equals the paper's "
            f"one-step retrain, not a refit: the next step from here is {apart:.2g} standard errors",
        )

    return answer(step.parameters, "paper", _path=path, _calibrated=fresh)


def _step(calibration: Calibration, request: Request, operator: str, *, shards: Cuts | None) -> OneStep:
    free, weights = free_parameters(calibration), calibration.settings.weights
    if operator == "restep":
        kept = chosen(request.retained, calibration.settings.select)
        return restep(kept, calibration.model, calibration.footprints.schema, weights=weights, free=free)
    return recompute_shards(calibration, request.used, shards=shards, free=free).step


def _downdated(calibration: Calibration, request: Request) -> OneStep:
    footprints, free = calibration.footprints, free_parameters(calibration)
    if request.counting is request.book:  # then the rows of the footprints are the book's, and were found there
        return OneStep(footprints.total().less(footprints, request.places), None, free)
    return downdate(FootprintBlocks.of(footprints), request.used, free=free)


def _by_moments(
    answer: Callable[..., Forgetting], calibration: Calibration, request: Request, operator: str | None
) -> Forgetting:
    if operator not in (None, "resolve"):
        raise UsageError(
            Argument("operator", operator),
            ' needs the quotes, and this calibration was made from moments. Use "resolve".',
        )
    moments = calibration.moments - moments_for(calibration, request.forgotten)
    found = resolve(moments, calibration.asked, settings=calibration.settings)
    path = ("resolve: the moments of the retained quotes, from cold starts",)
    return answer(dict(found.parameters), "resolve", _path=path, _calibrated=found)
