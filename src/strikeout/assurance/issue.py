"""Issue a certificate: which claims an answer supports, and why the others are not made.

Groups of a panel are numbered in their order and never named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from strikeout.assurance.build import build_of
from strikeout.assurance.certificate import Certificate, Claim, Obstacle
from strikeout.assurance.optimality import Optimality, Question, is_other_valley
from strikeout.calibration.calibrate import calibrate_as, fit
from strikeout.calibration.from_moments import COARSEST, interpolation_bound
from strikeout.calibration.settings import Settings
from strikeout.calibration.starts import STARTS
from strikeout.errors import RefusedError, UsageError
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import name_of
from strikeout.statistics.schur import place_of
from strikeout.statistics.system import Group, System

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.models.model import Model

# A converged search ends below 1e-8 standard errors; recomputed elsewhere, the gradient has other rounding.
STATIONARY = 1e-5
# Moments represent prices by polynomials; on real books that moves the optimum by some 1e-5 standard errors. If the
# moments cannot show that it is below this, what they can show is claimed.
THROUGH_MOMENTS = 1e-3
FARTHEST = 1.0  # standard errors; what is farther from the optimum is not called one

Made = dict[Claim, dict[str, Any] | Obstacle]  # what a claim's check needs, or why it is not made


@dataclass(frozen=True, eq=False)
class Answer:
    """Parameters once some quotes are struck out, and the operator that computed them.

    ``struck`` is the number of quotes struck out; it is needed if not every quote counts in the objective.
    ``tolerance`` is the number of standard errors within which the answer is claimed to be the optimum.
    """

    parameters: Mapping[str, float]
    operator: str
    latent: Mapping[Group, float] = field(default_factory=dict)
    struck: int | None = field(default=None, kw_only=True)
    tolerance: float | None = field(default=None, kw_only=True)


class Before(Protocol):
    """What a certificate contains of the calibration that quotes were struck out of."""

    @property
    def model(self) -> Model: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def size(self) -> int: ...

    @property
    def on_bound(self) -> Mapping[str, float]: ...

    @property
    def panel(self) -> str | None: ...

    @property
    def latent_name(self) -> str | None: ...


def issue(
    before: Before,
    answer: Answer,
    *,
    after: Calibration | None = None,
    system: System | None = None,
    found: Optimality | None = None,
) -> Certificate:
    """Return the certificate of an answer to striking out some of the quotes of ``before``.

    Args:
        after: a calibration of the retained quotes. Supports STATE; if its parameters are the answer, bit for bit, also
            NEVER_SEEN, and OPTIMUM if it converged.
        system: the state of the retained quotes at the reference of a step, which is the answer; supports STATE. A
            step from a chosen reference can lead anywhere, so STEP is claimed only together with OPTIMUM.
        found: what the retained quotes show of an answer that is not a calibration, measured at the answer. Not needed
            for a step with a tolerance that is proved to hold; nor together with ``after``.
    """
    if after is None and system is None:
        raise UsageError("issue: give after, a calibration of the retained quotes, or system, their state.")
    posed: Before = before if after is None else after
    parameters, latent = answer.parameters, answer.latent
    described = _state_of(after) if system is None else _state_at_reference(system)
    # An answer may have left a bound that the calibration ended on.
    held = {name: value for name, value in posed.on_bound.items() if parameters.get(name) == value}
    same = after is not None and dict(after.parameters) == dict(parameters) and dict(after.latent) == dict(latent)
    if same and after is not None:
        optimum, seen = _optimum_of(after), _never_seen(after)
        if not isinstance(seen, Obstacle) and _is_beaten(after):
            optimum = seen = Obstacle.OTHER_VALLEY
    else:
        if after is not None and found is None and after.moments is None:
            found = _measured(after, answer, held)
        optimum, seen = optimum_near(found, answer.tolerance), Obstacle.NO_CALIBRATION
        if after is not None and found is not None and after.loss == "squared" and found.is_above(after.cost):
            optimum = Obstacle.OTHER_VALLEY
    step: dict[str, Any] | Obstacle = {} if isinstance(optimum, float) else Obstacle.FAR
    made: Made = {
        Claim.STATE: {} if described else Obstacle.TOO_LARGE,
        Claim.STEP: Obstacle.NO_STEP if system is None else step,
        Claim.OPTIMUM: {"tolerance": optimum.hex()} if isinstance(optimum, float) else optimum,
        Claim.NEVER_SEEN: seen,
    }
    objective = asked_of(before.settings, made, held=held, threshold=after.threshold if same and after else None)
    if posed.panel is not None:
        panel: dict[str, Any] = {"label": posed.panel, "latent": posed.latent_name}
        if same and after is not None and after.has_prior and not isinstance(seen, Obstacle):
            panel["prior"] = after.settings.latent
        numbers = _held_groups(after, system)
        objective["panel"] = {**panel, "held": numbers} if _reads_held(made, described) else panel
    claims = {claim.name: facts for claim, facts in made.items() if not isinstance(facts, Obstacle)}
    is_of_parameters = claims.keys() - {Claim.STATE.name}
    retained = system.count if after is None and system is not None else after.count  # type: ignore[union-attr]
    return Certificate(
        software=software(),
        build=build_of(posed.model.name),
        model=posed.model.name,
        objective=objective,
        operator=answer.operator,
        parameters=_hexed(parameters) if is_of_parameters else {},
        counts=counts_of(before, retained, answer.struck),
        state=described,
        claims=claims,
        obstacles={claim.name: facts.name for claim, facts in made.items() if isinstance(facts, Obstacle)},
        latent=tuple(float(value).hex() for value in latent.values()) if is_of_parameters else (),
    )


def counts_of(before: Before, retained: int, struck: int | None) -> dict[str, int]:
    """Return how many quotes are struck out and retained: of the book, if not every quote counts."""
    if before.settings.select != "all" and struck is not None:
        retained = before.size - struck  # of the book: how many of them count may change with the forwards
    elif struck is not None:
        retained = max(retained, before.size - struck)  # a quote whose row is zero is not counted, and is retained
    return {"forgotten": before.size - retained, "retained": retained}


def optimum_near(found: Optimality | None, tolerance: float | None) -> float | Obstacle:
    """Return the tolerance claimed for an answer that is not a calibration, or why none is claimed.

    Args:
        found: as measured at the answer; None if the tolerance is proved to hold.
        tolerance: that was asked for; otherwise twice what was measured is claimed, in two digits.
    """
    if found is None:
        return tolerance if tolerance is not None and tolerance <= FARTHEST else Obstacle.FAR
    if tolerance is None:
        tolerance = max(STATIONARY, float(f"{2.12 * found.apart:.1e}")) if found.apart < FARTHEST else STATIONARY
    return tolerance if tolerance <= FARTHEST and found.is_certain(tolerance) else Obstacle.FAR


def asked_of(
    settings: Settings, made: Made, *, held: Mapping[str, float], threshold: float | None = None
) -> dict[str, Any]:
    """Return the settings a claim depends on, and the bounds an answer is ``held`` on.

    Weights given as numbers are left out, since they are listed by id.
    """
    how: dict[str, Any] = {
        "weights": name_of(settings.weights),
        "residual": settings.residual,
        "select": settings.select,
    }
    if all(isinstance(facts, Obstacle) for claim, facts in made.items() if claim is not Claim.STATE):
        return how
    limits = (settings.bounds or {}).items()
    how |= {
        "loss": settings.loss,
        "bounds": {name: [float(low).hex(), float(high).hex()] for name, (low, high) in limits},
        "fixed": _hexed(settings.fixed or {}),
        "on_bound": _hexed(held),
    }
    if isinstance(made[Claim.NEVER_SEEN], Obstacle):
        return how
    starts = settings.starts
    return how | {
        "threshold": None if threshold is None else float(threshold).hex(),
        "feller": settings.feller == "enforce",
        "starts": starts
        if isinstance(starts, int)
        else _hexed(starts)
        if isinstance(starts, Mapping)
        else [_hexed(start) for start in starts],
    }


def software() -> str:
    """Return the name and version of this program."""
    from strikeout import __version__

    return f"strikeout {__version__}"


def _reads_held(made: Made, state: Mapping[str, Any]) -> bool:
    """Return whether a check reads which groups are held: that of parameters, and of a state at a reference."""
    return "reference" in state or any(
        not isinstance(facts, Obstacle) for claim, facts in made.items() if claim is not Claim.STATE
    )


def _held_groups(after: Calibration | None, system: System | None) -> list[int]:
    """Return the numbers of the groups whose latent parameter is held."""
    if system is not None:
        return [n for n, group in enumerate(system.groups) if group in system.held]
    assert after is not None
    return [n for n, group in enumerate(after.latent) if group in after.latent_on_bound]


def _state_of(after: Calibration | None) -> dict[str, Any]:
    """Return what is certified of the state of a calibration; nothing if a quote is too large for it."""
    assert after is not None
    try:
        found = after.state
    except RefusedError:
        return {}
    if after.moments is not None:
        return {"kind": "moments", "digest": found.digest(), "count": len(found), "basis": found.basis.name}
    return _described(found)


def _state_at_reference(system: System) -> dict[str, Any]:
    named = zip(system.schema.parameters, system.schema.reference, strict=True)
    found = {**_described(system), "reference": {name: value.hex() for name, value in named}}
    if system.latent is not None:
        schemas, latent = [block.schema for block in system.blocks.values()], system.latent
        found["latent_reference"] = [schema.reference[place_of(schema, latent)].hex() for schema in schemas]
    return found


def _described(system: System) -> dict[str, Any]:
    found = {"digest": system.digest(), "count": system.count, "schema": system.schema.digest()}
    if system.latent is None:
        return {"kind": "normal equations", **found}
    return {"kind": "panel", **found, "groups": len(system.groups)}


def _never_seen(after: Calibration) -> dict[str, Any] | Obstacle:
    if not after.converged:
        return Obstacle.NOT_CONVERGED
    return {"source": "quotes" if after.moments is None else "moments"}


def _optimum_of(after: Calibration) -> float | Obstacle:
    """Return the number of standard errors within which a calibration is claimed to be the optimum, or why not."""
    if not after.converged:
        return Obstacle.NOT_CONVERGED
    if after.feller == "enforce" and after.feller_ratio is not None and after.feller_ratio < 1.0 + 1e-9:
        return Obstacle.ON_FELLER
    if after.has_prior:
        return Obstacle.PRIOR
    if _has_loose_group(after):
        return Obstacle.LOOSE_GROUP
    if after.moments is None:
        return STATIONARY
    # Bound the distance to the optimum of the quotes, from the moments only.
    bound = interpolation_bound(after)
    if bound > COARSEST:
        return Obstacle.COARSE_MOMENTS
    # In two digits, upward: an issuer on another machine, with other rounding, claims the same.
    return max(THROUGH_MOMENTS, float(f"{1.06 * bound:.1e}"))


def _measured(after: Calibration, answer: Answer, held: Mapping[str, float]) -> Optimality | None:
    """Return what the quotes of a calibration show of other parameters; None if they are not of least squares."""
    if (
        after.has_prior
        or after.feller == "enforce"
        or after.loss != "squared"
        or after.latent.keys() != answer.latent.keys()
    ):
        return None
    return Question.of(after).optimality(
        answer.parameters, answer.latent, on_bound=held, held=[g for g in after.latent_on_bound if g in answer.latent]
    )


def _has_loose_group(after: Calibration) -> bool:
    """Return whether the latent parameter of a group moves none of its prices: then nothing makes it optimal."""
    loose = [
        group
        for group, value in after.latent.items()
        if group not in after.latent_on_bound and not after.latent_standard_errors[group] < abs(value)
    ]
    if not loose:
        return False
    # The search sums in another way, and may have rounding where a linearization has zero.
    question, latent = Question.of(after, groups=loose), after.latent_name
    assert latent is not None, "only a panel has groups"
    k = after.model.parameters.names.index(latent)
    return any(
        not linearize(part, after.model, list(after.theta(group).values())).rows[k][k] > 0.0
        for group, part in question.parts.items()
    )


def _is_beaten(after: Calibration) -> bool:
    """Return whether starts of the user's own ended in a valley far above that of the model's own starts."""
    if after.settings.starts == STARTS:
        return False
    if after.moments is not None:
        how = after.settings
        own = fit(after.moments, after.asked, bounds=how.bounds, fixed=how.fixed, feller=how.feller)
        free = len(after.parameters) - len(after.fixed) - len(after.on_bound)
        return is_other_valley(after.cost, own.cost, free=free, spare=after.count - free, rounding=0.0)
    own = calibrate_as(after.book, after.asked, replace(after.settings, starts=STARTS), after.panel)
    asked = Question.of(after)
    found = asked.optimality(after.parameters, after.latent, on_bound=after.on_bound, held=after.latent_on_bound)
    return found.is_above(asked.cost(own.parameters, own.latent))


def _hexed(values: Mapping[str, float]) -> dict[str, str]:
    return {name: float(value).hex() for name, value in values.items()}
