"""The door for panels: strike quotes, or whole days, out of a panel as if they had never been seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.assurance.optimality import Optimality
from strikeout.calibration.choosing import chosen
from strikeout.calibration.panel import calibrate_panel
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_groups import grouped
from strikeout.errors import RefusedError, UsageError
from strikeout.forgetting.confirming import measured_panel, unconfirmed
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.panel_forgetting import PanelForgetting
from strikeout.forgetting.panel_trust import panel_trust
from strikeout.forgetting.recalibrate import settings_for
from strikeout.forgetting.refusal import determined, no_step, refuse_step
from strikeout.forgetting.request import Request, request_of, slices_of, unstepped_forwards
from strikeout.forgetting.trust import Trust, Verdict, known_error
from strikeout.quotes.features import Features
from strikeout.quotes.names import Names
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import Moments
from strikeout.statistics.system import Group, OneStep, System
from strikeout.statistics.weights import weights_of
from strikeout.wording import Argument, many

OPERATORS = ("downdate", "restep", "recalibrate")
UNSAID = "the quotes left in a group are worthless and move with no parameter, so that a step would lose the group"


def forget_panel(
    calibration: PanelCalibration,
    *,
    ids: ArrayLike | None = None,
    where: str | None = None,
    quotes: Quotes | Moments | None = None,
    operator: str | None = None,
    tolerance: float | None = None,
) -> PanelForgetting:
    """``forget`` for a panel. A day that loses all its quotes takes its latent parameter along; no other is touched.

    Raises:
        As ``forget``.
    """
    if operator is not None and operator not in OPERATORS:
        raise UsageError(
            Argument("operator", operator),
            f": a panel supports {', '.join(OPERATORS)}. Leave ",
            Argument("operator"),
            " out.",
        )
    request = request_of(calibration, ids=ids, where=where, quotes=quotes)
    assert isinstance(request.forgotten, Quotes)
    answer = partial(PanelForgetting, request.ids, calibration, request.forgotten, refits=request.refits)
    if not len(request.forgotten):
        nothing = ("nothing to forget: the calibration is as it was",)
        same = dict(calibration.parameters), dict(calibration.latent)
        return answer(*same, "none", nothing, _calibrated=calibration)
    gone = gone_by_group(calibration, request)

    def fresh() -> PanelCalibration:
        return determined(panel_recalibrate(request.retained, calibration))

    path: tuple[str, ...] = ("forwards refit: " + slices_of(request),) if request.refits else ()
    if tolerance is not None:
        step, judged, reason = certified_step(calibration, request, gone, tolerance)
        if step is not None and judged is not None:
            path = (f"downdate: {known_error(judged)}, and {tolerance:g} were asked for",)
            return answer(step.parameters, step.latent, "downdate", path, step, judged, tolerance, _calibrated=fresh)
        path = (*path, f"downdate passed over: {reason}")
    elif operator not in (None, "recalibrate"):
        return _forced(answer, calibration, request, gone, operator, fresh)
    found = fresh()
    path = (*path, f"recalibrate: the retained quotes, from cold starts{_taken_over(found)}")
    values = dict(found.parameters), dict(found.latent)
    return answer(*values, "recalibrate", path, tolerance=tolerance, _calibrated=found)


def panel_recalibrate(retained: Quotes, before: PanelCalibration) -> PanelCalibration:
    """A cold calibration of these quotes, asked for as ``before`` was; the states of untouched groups are taken over.

    A group's state follows from its own quotes at a reference that no quote can move, so that of before is the state a
    fresh calibration would build, bit for bit.

    Raises:
        UnidentifiedError: there are too few quotes for the shared and the latent parameters.
        RefusedError: a quote lacks what is needed.
    """
    how = settings_for(retained, before.settings)
    after = calibrate_panel(retained, before.asked, label=before.panel, settings=how)
    if after.model.name != before.model.name:  # what is left is priced in another form, so every state is another
        return after
    try:
        known = before.state
    except RefusedError:  # a quote too large for its grid, perhaps the very one that goes
        return after
    touched = changed_groups(before.book, retained, before.panel)
    return replace(after, known=known.only(g for g in known.groups if g in after.latent and g not in touched))


def changed_groups(before: Quotes, after: Quotes, panel: str) -> set[Group]:
    """The groups in which a quote came, went, or is not what it was to the bit: corrected, with a forward found anew,
    or moved to another group, which is a change of both."""
    _, at, to = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    gone, new = np.ones(len(before), bool), np.ones(len(after), bool)
    gone[at] = new[to] = False
    was, now = _group_of(before, panel), _group_of(after, panel)
    changed = was[at] != now[to]
    for old, other in zip(_columns(before), _columns(after), strict=True):
        changed |= old[at] != other[to]
    gone[at], new[to] = changed, changed
    return {*was[gone].tolist(), *now[new].tolist()}


def _group_of(quotes: Quotes, panel: str) -> NDArray[Any]:
    names = np.empty(len(quotes), object)
    for group, rows in grouped(quotes, panel).items():
        names[rows] = group
    return names


def _columns(quotes: Quotes) -> list[NDArray[Any]]:
    c = quotes.contracts
    described = list(c.columns.values()) if isinstance(c, Features) else [getattr(c, f.name) for f in fields(c)]
    columns = [quotes.observed, quotes.weight, quotes.spread, *described]
    return [column.view(np.int64) if column.dtype == np.float64 else column for column in columns]  # bits


def gone_by_group(calibration: PanelCalibration, request: Request) -> dict[Group, Names]:
    """The ids to strike out by group, those that count; groups none of whose quotes count are left out."""
    forgotten = calibration.quotes.only(request.used)
    return {
        group: forgotten.ids[rows]
        for group, rows in grouped(forgotten, calibration.panel).items()
        if group in calibration.latent
    }


def certified_step(
    calibration: PanelCalibration, request: Request, gone: dict[Group, Names], tolerance: float
) -> tuple[OneStep | None, Trust | None, str]:
    """The downdate where it is known to be near enough; else the reason why not."""
    reason = unstepped(calibration, request)
    if reason is None:
        try:
            step = downdated(calibration, gone)
        except RefusedError:
            return None, None, "a quote is too large to have a footprint"
        if not step.system.groups:
            return None, None, "no group is left"
        if is_losing_a_group(step, calibration, gone):
            return None, None, UNSAID
        judged = panel_trust(step, calibration, gone)
        verdict = judged.verdict(tolerance)
        reason = known_error(judged) if verdict is Verdict.TOO_FAR else verdict
        if verdict is Verdict.TRUSTED:
            reason = unconfirmed(_measured(step, calibration, request), tolerance)
            if reason is None:
                return step, judged, ""
    return None, None, reason


def _measured(step: OneStep, calibration: PanelCalibration, request: Request) -> Optimality:
    retained = calibration.quotes.without(request.used)
    return measured_panel(calibration, retained, step.parameters, step.latent, frozenset(step.system.held))


def look_at(calibration: PanelCalibration, request: Request) -> tuple[OneStep, Trust] | None:
    """One step without the quotes asked for, and how good it is; None where no step can be taken."""
    gone = gone_by_group(calibration, request)
    try:
        if unstepped(calibration, request) is not None:
            return None
        step = downdated(calibration, gone)
    except RefusedError:  # a quote too large to have a footprint, or a slice left without a forward
        return None
    if not step.system.groups or is_losing_a_group(step, calibration, gone):
        return None
    return step, panel_trust(step, calibration, gone)


def downdated(calibration: PanelCalibration, gone: dict[Group, Names]) -> OneStep:
    """One step at the parameters of a calibration once these quotes are struck out.

    Raises:
        RefusedError: a quote is too large to have a footprint.
    """
    ids = np.concatenate([np.empty(0, "U1"), *gone.values()])
    return downdate(calibration.blocks, ids, free=free_parameters(calibration))


def is_losing_a_group(step: OneStep, calibration: PanelCalibration, gone: Mapping[Group, Names]) -> bool:
    """Whether a group with quotes that count is not in the state of a step, because their rows are all zeros.

    Such a group is retained, and its latent parameter with it, but a step has nothing to solve it from.
    """
    quotes, rule = calibration.quotes, calibration.settings.weights
    for group in calibration.latent:
        if group not in step.system.blocks:
            rows = calibration.rows[group]
            left = quotes[rows[~np.isin(quotes.ids[rows], gone[group])] if group in gone else rows]
            if len(left) and weights_of(left, rule)[0].any():
                return True
    return False


def free_parameters(calibration: PanelCalibration) -> tuple[int, ...] | None:
    """Numbers of the shared parameters that were not fixed; None where none was."""
    if not calibration.fixed:
        return None
    return tuple(i for i, name in enumerate(calibration.parameters) if name not in calibration.fixed)


def unstepped(calibration: PanelCalibration, request: Request) -> str | None:
    """Why one step cannot stand for this panel without these quotes; None where it can."""
    reason = unstepped_forwards(request)
    if reason is not None:
        return reason
    if calibration.feller == "enforce":
        return "Feller's condition is enforced, and a step knows nothing of it"
    return None


def _forced(
    answer: Callable[..., PanelForgetting],
    calibration: PanelCalibration,
    request: Request,
    gone: dict[Group, Names],
    operator: str | None,
    fresh: Callable[[], PanelCalibration],
) -> PanelForgetting:
    why = unstepped(calibration, request)
    if why is not None:
        raise UsageError(*no_step(operator, why))
    if operator == "downdate":
        step = downdated(calibration, gone)
    else:
        kept = chosen(request.retained, calibration.settings.select)
        parts = {
            group: calibration.footprints_of(kept[rows], calibration.theta(group)).total()
            for group, rows in grouped(kept, calibration.panel).items()
            if group in calibration.latent
        }
        held = frozenset(calibration.latent_on_bound)
        step = System(parts, calibration.latent_name, held).step(free=free_parameters(calibration))
    if is_losing_a_group(step, calibration, gone):
        raise RefusedError(*no_step(operator, UNSAID))
    judged = panel_trust(step, calibration, gone)
    refuse_step(judged.free, judged.outside, count=len(request.retained))
    path = (f"{operator}: as asked; {known_error(judged)}",)

    asked = partial(_measured, step, calibration, request)
    return answer(step.parameters, step.latent, operator, path, step, judged, _found=asked, _calibrated=fresh)


def _taken_over(found: PanelCalibration) -> str:
    if found.known is None:
        return ""
    return f"; the states of {len(found.known.groups):,} of {many(len(found.latent), 'group')} are those of before"
