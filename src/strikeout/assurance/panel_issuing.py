"""Making the certificate of a strike-out from a panel. Groups are numbered in their order and never named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from strikeout.assurance.answer import Answer
from strikeout.assurance.certificate import Certificate, Claim, Obstacle
from strikeout.assurance.issuing import (
    Made,
    asked_of,
    certificate_of,
    counts_of,
    held_of,
    optimum_near,
    optimum_of,
)
from strikeout.assurance.optimality import Optimality
from strikeout.assurance.panel_optimality import panel_optimality, systems_at
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.choosing import weights_for
from strikeout.calibration.settings import STARTS
from strikeout.errors import RefusedError, UsageError
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.statistics.schur import place_of

if TYPE_CHECKING:
    from strikeout.calibration.panel_calibration import AnyCalibration, PanelCalibration
    from strikeout.statistics.system import Group, System


def issue_panel(
    before: AnyCalibration,
    answer: Answer,
    latent: Mapping[Group, float],
    *,
    after: PanelCalibration | None = None,
    state: System | None = None,
    found: Optimality | None = None,
) -> Certificate:
    """The certificate of an answer, shared parameters and ``latent`` ones, to striking some quotes of a panel out.

    Args:
        after: a calibration of the retained quotes, whose parameters are the answer. Supports STATE, NEVER_SEEN, and
            OPTIMUM where it converged.
        state: of the retained quotes at the reference of a step, which is the answer; supports STATE, and STEP
            together with OPTIMUM.
        found: what the retained quotes say of a step, measured at the answer. Not needed of one with a tolerance, if
            that is known to hold.

    Raises:
        UsageError: neither ``after`` nor ``state`` is given, so that nothing could be claimed.
    """
    if after is None and state is None:
        raise UsageError("issue_panel: give after, a calibration of the retained quotes, or state, what they leave.")
    parameters = answer.parameters
    if after is not None:
        described, retained = _state_of(after), after.count
        held = [n for n, group in enumerate(after.latent) if group in after.latent_on_bound]
        made = _made_of(after, bool(described))
    else:
        assert state is not None
        described, retained = _state_at_reference(state), state.count
        held = [n for n, group in enumerate(state.groups) if group in state.held]
        optimum = optimum_near(found, answer.tolerance)
        is_near = isinstance(optimum, float)
        made = {
            Claim.STATE: {},
            Claim.STEP: {} if is_near else Obstacle.FAR,
            Claim.OPTIMUM: {"tolerance": optimum.hex()} if isinstance(optimum, float) else optimum,
            Claim.NEVER_SEEN: Obstacle.NO_CALIBRATION,
        }
    posed = cast("PanelCalibration", before) if after is None else after  # a step begins at a panel
    objective = asked_of(before.settings, made, held=held_of(posed, parameters))
    panel = {"label": posed.panel, "latent": posed.latent_name}
    return certificate_of(
        made,
        model=posed.model,
        objective={**objective, "panel": {**panel, "held": held} if _reads_held(made, described) else panel},
        operator=answer.operator,
        parameters=parameters,
        counts=counts_of(before, retained, answer.struck),
        state=described,
        latent=latent,
    )


def _made_of(after: PanelCalibration, has_state: bool) -> Made:
    optimum, seen = optimum_of(after), {"source": "quotes"} if after.converged else Obstacle.NOT_CONVERGED
    if isinstance(optimum, float) and _has_loose_group(after):
        optimum = Obstacle.LOOSE_GROUP
    if after.converged and _is_beaten(after):
        optimum = seen = Obstacle.OTHER_VALLEY
    return {
        Claim.STATE: {} if has_state else Obstacle.TOO_LARGE,
        Claim.STEP: Obstacle.NO_STEP,
        Claim.OPTIMUM: {"tolerance": optimum.hex()} if isinstance(optimum, float) else optimum,
        Claim.NEVER_SEEN: seen,
    }


def _reads_held(made: Made, state: Mapping[str, Any]) -> bool:
    """Whether a check reads which groups are held: that of parameters, and of a state at the reference of a step."""
    return "reference" in state or any(
        not isinstance(facts, Obstacle) for claim, facts in made.items() if claim is not Claim.STATE
    )


def _state_of(after: PanelCalibration) -> dict[str, Any]:
    try:
        return _described(after.state)
    except RefusedError:  # a retained quote is too large for the grid
        return {}


def _state_at_reference(state: System) -> dict[str, Any]:
    named = zip(state.schema.parameters, state.schema.reference, strict=True)
    latent = state.latent
    assert latent is not None, "a panel has a latent parameter"
    latents = [block.schema.reference[place_of(block.schema, latent)].hex() for block in state.blocks.values()]
    return {
        **_described(state),
        "reference": {name: value.hex() for name, value in named},
        "latent_reference": latents,
    }


def _described(state: System) -> dict[str, Any]:
    return {
        "kind": "panel",
        "digest": state.digest(),
        "count": state.count,
        "groups": len(state.groups),
        "schema": state.schema.digest(),
    }


def _has_loose_group(after: PanelCalibration) -> bool:
    """Whether a group has a latent parameter that none of its quotes moves with: nothing makes it optimal."""
    how, k = after.settings, after.model.parameters.names.index(after.latent_name)
    for group, value in after.latent.items():
        if group in after.latent_on_bound or after.latent_standard_errors[group] < abs(value):
            continue
        # The search sums in another way, and may be left with rounding where a linearization has nothing.
        objective, _ = objective_of(after.quotes[after.rows[group]], residual=how.residual, weights=how.weights)
        theta = list(after.theta(group).values())
        if not linearize(objective, after.model, theta).rows[k][k] > 0.0:
            return True
    return False


def _is_beaten(after: PanelCalibration) -> bool:
    """Whether starts of one's own led to a valley far above the one that the model's own starts lead to."""
    if after.settings.starts == STARTS:
        return False
    how = {**after.settings.keywords(), "starts": STARTS, "panel": after.panel}
    own: Any = calibrate(after.book, after.asked, **how)
    weights = weights_for(after.quotes, after.book, after.settings.weights)
    here, there = (
        systems_at(
            after.quotes,
            after.rows,
            after.model,
            one.parameters,
            one.latent,
            residual=after.settings.residual,
            weights=weights,
        )
        for one in (after, own)
    )
    found = panel_optimality(
        here,
        after.model,
        after.parameters,
        after.latent,
        fixed=after.fixed,
        on_bound=after.on_bound,
        held=after.latent_on_bound,
        bounds=after.settings.bounds or {},
    )
    return found.is_above(there.cost)
