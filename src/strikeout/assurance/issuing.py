"""Making a certificate: which claims an answer supports, and why the others are not made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from strikeout.assurance.answer import Answer
from strikeout.assurance.build import build_of
from strikeout.assurance.certificate import Certificate, Claim, Obstacle
from strikeout.assurance.optimality import Optimality, is_other_valley, optimality
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.choosing import weights_for
from strikeout.calibration.resolution import COARSEST, interpolation_bound
from strikeout.calibration.settings import STARTS, Settings
from strikeout.errors import RefusedError, UsageError
from strikeout.statistics.linearize import linearize
from strikeout.statistics.losses import Huber
from strikeout.statistics.objective import Objective, objective_of
from strikeout.statistics.weights import name_of

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.models.model import Model
    from strikeout.statistics.normal_equations import NormalEquations

# A converged search ends below 1e-8 standard errors; who recomputes the gradient elsewhere meets other rounding.
STATIONARY = 1e-5
# Moments stand for prices through polynomials; on real books that moves the optimum by some 1e-5 standard errors. Where
# the moments cannot show that it is below this, what they can show is claimed.
THROUGH_MOMENTS = 1e-3
FARTHEST = 1.0  # standard errors; what is farther from the optimum is not called one

Made = dict[Claim, dict[str, Any] | Obstacle]  # what a claim's check needs, or why it is not made


class Before(Protocol):
    """What a certificate says of the calibration quotes were struck out of."""

    @property
    def model(self) -> Model: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def size(self) -> int: ...

    @property
    def on_bound(self) -> Mapping[str, float]: ...


def issue(
    before: Before,
    answer: Answer,
    *,
    after: Calibration | None = None,
    equations: NormalEquations | None = None,
    found: Optimality | None = None,
) -> Certificate:
    """The certificate of an answer to striking some of the quotes of ``before`` out.

    Args:
        after: a calibration of the retained quotes. Supports STATE; where its parameters are the answer, bit for bit,
            also NEVER_SEEN, and OPTIMUM where it converged.
        equations: the state of the retained quotes at the reference of a step, which is the answer; supports STATE. A
            step from a reference of one's choice leads anywhere, so STEP is claimed only together with OPTIMUM.
        found: what the retained quotes say of an answer that is no calibration, measured at the answer. Not needed of
            a step with a tolerance, if that is known to hold; nor together with ``after``.

    Raises:
        UsageError: neither ``after`` nor ``equations`` is given, so that nothing could be claimed.
    """
    if after is None and equations is None:
        raise UsageError("issue: give after, a calibration of the retained quotes, or equations, their state.")
    retained = after.count if after is not None else equations.count  # type: ignore[union-attr]
    state = _state(after, equations)
    parameters = answer.parameters
    same = after is not None and dict(after.parameters) == dict(parameters)
    posed = before if after is None else after
    held = held_of(posed, parameters)
    if same and after is not None:
        optimum, seen = optimum_of(after), _never_seen(after)
        if isinstance(optimum, float) and after.moments is not None:
            optimum = _optimum_through_moments(after)
        if not isinstance(seen, Obstacle) and _is_beaten(after):
            optimum = seen = Obstacle.OTHER_VALLEY
    else:
        if after is not None and found is None and after.moments is None:
            found = _measured(after, parameters, held)
        optimum, seen = optimum_near(found, answer.tolerance), Obstacle.NO_CALIBRATION
        if after is not None and found is not None and after.loss == "squared" and found.is_above(after.cost):
            optimum = Obstacle.OTHER_VALLEY
    step: dict[str, Any] | Obstacle = {} if isinstance(optimum, float) else Obstacle.FAR
    made: Made = {
        Claim.STATE: {} if state else Obstacle.TOO_LARGE,
        Claim.STEP: Obstacle.NO_STEP if equations is None else step,
        Claim.OPTIMUM: {"tolerance": optimum.hex()} if isinstance(optimum, float) else optimum,
        Claim.NEVER_SEEN: seen,
    }
    return certificate_of(
        made,
        model=posed.model,
        objective=asked_of(before.settings, made, held=held, threshold=after.threshold if same and after else None),
        operator=answer.operator,
        parameters=parameters,
        counts=counts_of(before, retained, answer.struck),
        state=state,
    )


def certificate_of(
    made: Made,
    *,
    model: Model,
    objective: dict[str, Any],
    operator: str,
    parameters: Mapping[str, float],
    counts: dict[str, int],
    state: dict[str, Any],
    latent: Mapping[Any, float] | None = None,
) -> Certificate:
    """Return the certificate of these claims. Without a claim about them it has no parameters."""
    claims = {claim.name: facts for claim, facts in made.items() if not isinstance(facts, Obstacle)}
    is_of_parameters = claims.keys() - {Claim.STATE.name}
    return Certificate(
        software=software(),
        build=build_of(model.name),
        model=model.name,
        objective=objective,
        operator=operator,
        parameters={name: float(value).hex() for name, value in parameters.items()} if is_of_parameters else {},
        counts=counts,
        state=state,
        claims=claims,
        obstacles={claim.name: facts.name for claim, facts in made.items() if isinstance(facts, Obstacle)},
        latent=tuple(float(value).hex() for value in (latent or {}).values()) if is_of_parameters else (),
    )


def held_of(posed: Before | PanelCalibration, parameters: Mapping[str, float]) -> dict[str, float]:
    """The parameters of an answer that are on a bound a calibration ended on; an answer may have left it."""
    return {name: value for name, value in posed.on_bound.items() if parameters.get(name) == value}


def counts_of(before: Before | PanelCalibration, retained: int, struck: int | None) -> dict[str, int]:
    """How many quotes went and stay: of the book, where not every quote counts."""
    if before.settings.select != "all" and struck is not None:
        retained = before.size - struck  # of the book: how many of them count may change with the forwards
    elif struck is not None:
        retained = max(retained, before.size - struck)  # a worthless quote may leave nothing behind, and is retained
    return {"forgotten": before.size - retained, "retained": retained}


def optimum_of(after: Calibration | PanelCalibration) -> float | Obstacle:
    """Within how many standard errors of the optimum a calibration is claimed to be, or why it is not."""
    if not after.converged:
        return Obstacle.NOT_CONVERGED
    if after.feller == "enforce" and after.feller_ratio is not None and after.feller_ratio < 1.0 + 1e-9:
        return Obstacle.ON_FELLER
    return STATIONARY


def optimum_near(found: Optimality | None, tolerance: float | None) -> float | Obstacle:
    """The same of an answer that is no calibration.

    Args:
        found: as it was measured at the answer; None where the tolerance is known to hold without.
        tolerance: that was asked for; else twice what was measured is claimed, in two digits.
    """
    if found is None:
        return tolerance if tolerance is not None and tolerance <= FARTHEST else Obstacle.FAR
    if tolerance is None:
        tolerance = max(STATIONARY, float(f"{2.12 * found.apart:.1e}")) if found.apart < FARTHEST else STATIONARY
    return tolerance if tolerance <= FARTHEST and found.is_certain(tolerance) else Obstacle.FAR


def asked_of(
    settings: Settings, made: Made, *, held: Mapping[str, float], threshold: float | None = None
) -> dict[str, Any]:
    """What ``calibrate`` was asked, as far as a claim depends on it, and the bounds an answer is ``held`` on.

    Weights given as numbers stay out, since they are listed by id.
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


def objective_posed(after: Calibration) -> Objective:
    """The objective of a calibration's quotes, with the loss it ended with."""
    weights = weights_for(after.used, after.book, after.settings.weights)
    objective, _ = objective_of(after.used, residual=after.settings.residual, weights=weights)
    return objective if after.threshold is None else objective.with_loss(Huber(after.threshold))


def software() -> str:
    """The name and version of this program."""
    from strikeout import __version__

    return f"strikeout {__version__}"


def _state(after: Calibration | None, equations: NormalEquations | None) -> dict[str, Any]:
    """What is certified of the state; nothing where a quote is too large for it."""
    if equations is None:
        assert after is not None
        try:
            found = after.state
        except RefusedError:
            return {}
        if after.moments is not None:
            return {"kind": "moments", "digest": found.digest(), "count": len(found), "basis": found.basis.name}
        equations = found
        reference = {}
    else:
        named = zip(equations.schema.parameters, equations.schema.reference, strict=True)
        reference = {"reference": {name: value.hex() for name, value in named}}
    schema = equations.schema.digest()
    kind = {"kind": "normal equations", "digest": equations.digest(), "count": equations.count, "schema": schema}
    return {**kind, **reference}


def _never_seen(after: Calibration) -> dict[str, Any] | Obstacle:
    if not after.converged:
        return Obstacle.NOT_CONVERGED
    return {"source": "quotes" if after.moments is None else "moments"}


def _optimum_through_moments(after: Calibration) -> float | Obstacle:
    """What the moments themselves can show of the optimum of their quotes, which nobody has to have kept."""
    bound = interpolation_bound(after)
    if bound > COARSEST:
        return Obstacle.COARSE_MOMENTS
    # In two digits, upward: who issues it again on another machine, with other rounding, is to claim the same.
    return max(THROUGH_MOMENTS, float(f"{1.06 * bound:.1e}"))


def _measured(after: Calibration, parameters: Mapping[str, float], held: Mapping[str, float]) -> Optimality | None:
    """What the quotes of a calibration say of other parameters; None where they were not found by least squares."""
    if after.feller == "enforce" or after.loss != "squared":
        return None
    theta = [parameters[name] for name in after.parameters]
    bounds = after.settings.bounds or {}
    return optimality(objective_posed(after), after.model, theta, fixed=after.fixed, on_bound=held, bounds=bounds)


def _is_beaten(after: Calibration) -> bool:
    """Whether starts of one's own led to a valley far above the one that the model's own starts lead to."""
    if after.settings.starts == STARTS:
        return False
    if after.moments is not None:
        how = after.settings
        own = calibrate(after.moments, after.asked, bounds=how.bounds, fixed=how.fixed, feller=how.feller)
        free = len(after.parameters) - len(after.fixed) - len(after.on_bound)
        return is_other_valley(after.cost, own.cost, free=free, spare=after.count - free, rounding=0.0)
    own = calibrate(after.book, after.asked, **{**after.settings.keywords(), "starts": STARTS, "panel": None})
    objective, names = objective_posed(after), list(after.parameters)
    bounds = after.settings.bounds or {}
    here, there = ([one.parameters[name] for name in names] for one in (after, own))
    found = optimality(objective, after.model, here, fixed=after.fixed, on_bound=after.on_bound, bounds=bounds)
    return found.is_above(linearize(objective, after.model, there).cost)


def _hexed(values: Mapping[str, float]) -> dict[str, str]:
    return {name: float(value).hex() for name, value in values.items()}
