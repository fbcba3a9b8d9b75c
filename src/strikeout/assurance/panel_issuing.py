"""Making the certificate of a strike-out from a panel. Groups are numbered in their order and never named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from strikeout.assurance.answer import Answer
from strikeout.assurance.build import build_of
from strikeout.assurance.certificate import NEVER_CLAIMED, Certificate, Claim
from strikeout.assurance.issuing import (
    REFERENCE_LEAKS,
    asked_of,
    claim_entry,
    counts_of,
    held_of,
    moving,
    optimum_of,
    software,
    step_entry,
)
from strikeout.assurance.stationarity import scaled_gradient
from strikeout.errors import RefusedError, UsageError
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.wording import many

if TYPE_CHECKING:
    from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
    from strikeout.statistics.panel_state import Group, PanelState


def issue_panel(
    before: AnyCalibration,
    answer: Answer,
    latent: Mapping[Group, float],
    *,
    after: PanelCalibration | None = None,
    state: PanelState | None = None,
    free: Sequence[int] | None = None,
) -> Certificate:
    """The certificate of an answer, shared parameters and ``latent`` ones, to striking some quotes of a panel out.

    Args:
        after: a calibration of the retained quotes, whose parameters are the answer. Supports STATE, NEVER_SEEN, and
            OPTIMUM where it converged.
        state: of the retained quotes at the reference of a step, which is the answer; supports STATE and STEP.
        free: numbers of the shared parameters that the step moved; all where not given.

    Raises:
        UsageError: neither ``after`` nor ``state`` is given, so that nothing could be claimed.
    """
    if after is None and state is None:
        raise UsageError("issue_panel: give after, a calibration of the retained quotes, or state, what they leave.")
    numbers, parameters = dict(answer.indicators), answer.parameters
    if after is not None:
        found, obstacle, retained = *_state_of(after), after.count
        held = [n for n, group in enumerate(after.latent) if group in after.latent_on_bound]
    else:
        assert state is not None
        found, obstacle, retained = _state_at_reference(state), "", state.count
        held = [n for n, group in enumerate(state.groups) if group in state.held]
    support, epsilon = optimum_of(after, answer.tolerance)
    if after is not None and epsilon is not None and (loose := _loose(after)):
        support, epsilon = f"the quotes of {many(loose, 'group')} do not determine {after.latent_name} there", None
    if after is not None and epsilon is not None and isfinite(gradient := _gradient(after)):
        numbers.setdefault("scaled_gradient", gradient)
    is_calibrated = after is not None and after.converged
    source = "solved from the quotes alone, from cold starts"
    claims = {
        Claim.STATE: claim_entry(bool(found), "its digest is that of the retained quotes" if found else obstacle),
        Claim.STEP: step_entry(after is None, None, free, tuple(parameters)),
        Claim.OPTIMUM: claim_entry(
            epsilon is not None, support, **({} if epsilon is None else {"tolerance": epsilon.hex()})
        ),
        Claim.NEVER_SEEN: claim_entry(True, source, source="quotes")
        if is_calibrated
        else claim_entry(False, "the parameters are not those of a calibration of the retained quotes"),
    }
    posed = cast("PanelCalibration", before) if after is None else after  # a step begins at a panel
    panel = {"label": posed.panel, "latent": posed.latent_name, "held": held}
    return Certificate(
        software=software(),
        build=build_of(posed.model.name),
        model=posed.model.name,
        objective={**asked_of(before.settings, posed, held_of(posed, parameters)), "panel": panel},
        operator=answer.operator,
        path=tuple(answer.path),
        parameters={name: float(value).hex() for name, value in parameters.items()},
        counts=counts_of(before, retained, answer.struck),
        state=found,
        claims={claim.name: entry for claim, entry in claims.items()},
        indicators={name: float(value).hex() for name, value in sorted(numbers.items())},
        identifiability={} if after is None else dict(after.identifiability),
        not_claimed=(*NEVER_CLAIMED, *([REFERENCE_LEAKS] if "reference" in found else [])),
        latent=tuple(float(value).hex() for value in latent.values()),
    )


def _state_of(after: PanelCalibration) -> tuple[dict[str, Any], str]:
    try:
        return _described(after.state), ""
    except RefusedError:
        return {}, "a retained quote is too large for the grid of the state"


def _state_at_reference(state: PanelState) -> dict[str, Any]:
    named = zip(state.schema.parameters, state.schema.reference, strict=True)
    places = (part.schema.parameters.index(state.latent) for part in state.parts.values())
    latents = [part.schema.reference[k].hex() for k, part in zip(places, state.parts.values(), strict=True)]
    return {
        **_described(state),
        "reference": {name: value.hex() for name, value in named},
        "latent_reference": latents,
    }


def _described(state: PanelState) -> dict[str, Any]:
    return {
        "kind": "panel",
        "digest": state.digest(),
        "count": state.count,
        "groups": len(state.groups),
        "schema": state.schema.digest(),
    }


def _loose(after: PanelCalibration) -> int:
    """How many groups have a latent parameter that none of their quotes moves with: nothing makes it optimal."""
    how, k = after.settings, after.model.parameters.names.index(after.latent_name)
    loose = 0
    for group, value in after.latent.items():
        if group in after.latent_on_bound or after.latent_standard_errors[group] < abs(value):
            continue
        # The search sums in another way, and may be left with rounding where a linearization has nothing.
        objective, _ = objective_of(after.quotes[after.rows[group]], residual=how.residual, weights=how.weights)
        theta = list(after.theta(group).values())
        loose += not linearize(objective, after.model, theta).rows[k][k] > 0.0
    return loose


def _gradient(after: PanelCalibration) -> float:
    latents = len(after.latent) - len(after.latent_on_bound)
    return scaled_gradient(Linearization(after.equations.triangle, after.count - latents), free=moving(after))
