"""Making a certificate: which claims an answer supports, and why the others are not made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from strikeout.assurance.answer import Answer
from strikeout.assurance.build import build_of
from strikeout.assurance.certificate import NEVER_CLAIMED, Certificate, Claim
from strikeout.assurance.stationarity import scaled_gradient
from strikeout.calibration.choosing import weights_for
from strikeout.calibration.identifiability import INFLATION, undetermined
from strikeout.calibration.resolution import COARSEST, interpolation_bound, too_coarse
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.products import inner
from strikeout.statistics.linearize import linearize
from strikeout.statistics.objective import objective_of
from strikeout.statistics.weights import name_of

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration
    from strikeout.calibration.panel_calibration import PanelCalibration
    from strikeout.models.model import Model
    from strikeout.statistics.normal_equations import NormalEquations, Ridge

# A converged search ends below 1e-8 standard errors; who recomputes the gradient elsewhere meets other rounding.
STATIONARY = 1e-5
# Moments stand for prices through polynomials; on real books that moves the optimum by some 1e-5 standard errors. Where
# the moments cannot show that it is below this, what they can show is claimed.
THROUGH_MOMENTS = 1e-3
FARTHEST = 1.0  # standard errors; what is farther from the optimum is not called one

REFERENCE_LEAKS = (
    "That the reference of the step says nothing of the forgotten quotes: it was found with them in the book, and is "
    "written in this certificate."
)


class Before(Protocol):
    """What a certificate says of the calibration quotes were struck out of."""

    @property
    def model(self) -> Model: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def size(self) -> int: ...

    @property
    def threshold(self) -> float | None: ...

    @property
    def on_bound(self) -> Mapping[str, float]: ...


def issue(
    before: Before,
    answer: Answer,
    *,
    after: Calibration | None = None,
    equations: NormalEquations | None = None,
    ridge: Ridge = None,
    free: Sequence[int] | None = None,
) -> Certificate:
    """The certificate of an answer to striking some of the quotes of ``before`` out.

    Args:
        after: a calibration of the retained quotes. Supports STATE; where its parameters are the answer, bit for bit,
            also NEVER_SEEN, and OPTIMUM where it converged. Where they are not and the answer has no tolerance, twice
            the distance between them is claimed.
        equations: the state of the retained quotes at the reference of a step, which is the answer; supports STATE and
            STEP, solved with this ``ridge`` for these ``free`` parameters.

    Raises:
        UsageError: neither ``after`` nor ``equations`` is given, so that nothing could be claimed.
    """
    if after is None and equations is None:
        raise UsageError("issue: give after, a calibration of the retained quotes, or equations, their state.")
    retained = after.count if after is not None else equations.count  # type: ignore[union-attr]
    state, obstacle = _state(after, equations)
    numbers, parameters, tolerance = dict(answer.indicators), answer.parameters, answer.tolerance
    names = tuple(parameters)  # not those of before: an expiry that went as a whole took its smile's along
    same = after is not None and dict(after.parameters) == dict(parameters)
    posed = before if after is None else after
    held = held_of(posed, parameters)
    if after is not None and not same and tolerance is None and held == after.on_bound:
        tolerance = _apart(after, parameters)
    optimum, epsilon = optimum_of(after if same else None, tolerance)
    if same and after is not None and after.moments is not None and epsilon is not None:
        optimum, epsilon = _optimum_through_moments(after)
    if same and after is not None and epsilon is not None and isfinite(found := _gradient(after)):
        numbers.setdefault("scaled_gradient", found)
    claims = {
        Claim.STATE: claim_entry(bool(state), "its digest is that of the retained quotes" if state else obstacle),
        Claim.STEP: step_entry(equations is not None, ridge, free, names),
        Claim.OPTIMUM: claim_entry(
            epsilon is not None, optimum, **({} if epsilon is None else {"tolerance": epsilon.hex()})
        ),
        Claim.NEVER_SEEN: _never_seen(same, after),
    }
    return Certificate(
        software=software(),
        build=build_of(posed.model.name),
        model=posed.model.name,
        objective=asked_of(before.settings, posed if same else before, held),
        operator=answer.operator,
        path=tuple(answer.path),
        parameters={name: float(parameters[name]).hex() for name in names},
        counts=counts_of(before, retained, answer.struck),
        state=state,
        claims={claim.name: entry for claim, entry in claims.items()},
        indicators={name: float(value).hex() for name, value in sorted(numbers.items())},
        identifiability=dict(after.identifiability) if same and after is not None else {},
        not_claimed=(*NEVER_CLAIMED, *([REFERENCE_LEAKS] if "reference" in state else [])),
    )


def held_of(posed: Before | PanelCalibration, parameters: Mapping[str, float]) -> dict[str, float]:
    """The parameters of an answer that are on a bound a calibration ended on; an answer may have left it."""
    return {name: value for name, value in posed.on_bound.items() if parameters.get(name) == value}


def counts_of(before: Before | PanelCalibration, retained: int, struck: int | None) -> dict[str, int]:
    """How many quotes there were, went and stay: of the book, where not every quote counts."""
    if before.settings.select != "all" and struck is not None:
        retained = before.size - struck  # of the book: how many of them count may change with the forwards
    elif struck is not None:
        retained = max(retained, before.size - struck)  # a worthless quote may leave nothing behind, and is retained
    return {"before": before.size, "forgotten": before.size - retained, "retained": retained}


def _state(after: Calibration | None, equations: NormalEquations | None) -> tuple[dict[str, Any], str]:
    if equations is None:
        assert after is not None
        try:
            found = after.state
        except RefusedError:
            return {}, "a retained quote is too large for the grid of the state"
        if after.moments is not None:
            return {"kind": "moments", "digest": found.digest(), "count": len(found), "basis": found.basis.name}, ""
        equations = found
        reference = {}
    else:
        named = zip(equations.schema.parameters, equations.schema.reference, strict=True)
        reference = {"reference": {name: value.hex() for name, value in named}}
    schema = equations.schema.digest()
    kind = {"kind": "normal equations", "digest": equations.digest(), "count": equations.count, "schema": schema}
    return {**kind, **reference}, ""


def claim_entry(claimed: bool, support: str, **facts: Any) -> dict[str, Any]:
    """Whether a claim is made, and what supports it or stands in its way."""
    return {"claimed": claimed, "support": support, **facts}


def step_entry(claimed: bool, ridge: Ridge, free: Sequence[int] | None, names: tuple[str, ...]) -> dict[str, Any]:
    """The claim that the parameters are one step from a reference."""
    if not claimed:
        return claim_entry(False, "the parameters are not one step from a reference")
    solved = "none" if ridge is None else ridge if isinstance(ridge, str) else float(ridge).hex()
    moved = list(names) if free is None else [names[i] for i in free]
    return claim_entry(True, "solved from the state at the reference", ridge=solved, free=moved)


def optimum_of(after: Calibration | PanelCalibration | None, tolerance: float | None) -> tuple[str, float | None]:
    """Within how many standard errors of the optimum the answer is claimed to be, and why; None where it is not.

    Args:
        after: the calibration whose parameters are the answer.
        tolerance: asked of an answer that is no calibration.
    """
    if after is None:
        if tolerance is None:
            return "no tolerance was asked for, and nothing shows how near the optimum is", None
        return f"within {tolerance:.2g} standard errors of it", float(tolerance)
    if not after.converged:
        return f"the calibration did not converge: {after.termination}", None
    if after.feller == "enforce" and after.feller_ratio is not None and after.feller_ratio < 1.0 + 1e-9:
        return "the parameters lie on Feller's condition, where the gradient need not vanish", None
    return f"the next step is below {STATIONARY:g} standard errors, or below rounding", STATIONARY


def _optimum_through_moments(after: Calibration) -> tuple[str, float | None]:
    """What the moments themselves can show of the optimum of their quotes, which nobody has to have kept."""
    bound = interpolation_bound(after)
    if bound > COARSEST:
        return too_coarse(after, bound), None
    # In two digits, upward: who issues it again on another machine, with other rounding, is to claim the same.
    limit = max(THROUGH_MOMENTS, float(f"{1.06 * bound:.1e}"))
    return f"the next step is below {limit:g} standard errors, or below rounding, wherever the quotes lie", limit


def moving(after: Calibration | PanelCalibration) -> list[int]:
    """The numbers of the parameters that were neither fixed nor held on a bound."""
    return [i for i, name in enumerate(after.parameters) if name not in {*after.fixed, *after.on_bound}]


def _gradient(after: Calibration) -> float:
    return (
        scaled_gradient(after.equations, free=moving(after)) if after.loss == "squared" else after.history[-1].gradient
    )


def _apart(after: Calibration, parameters: Mapping[str, float]) -> float | None:
    """Twice the distance to the optimum that ``after`` found, in standard errors; None where that is no measure."""
    free = moving(after)
    d = np.array([parameters[name] - value for name, value in after.parameters.items()])[free]
    H, freedom = after.equations.curvature[np.ix_(free, free)], after.count - len(free)
    if not after.converged or after.feller == "enforce" or after.loss != "squared" or not after.cost > 0.0:
        return None
    apart = 2.0 * sqrt(max(float(inner(inner(H, d), d)), 0.0) / (after.cost / freedom))
    if not apart <= FARTHEST or _undetermined_at(after, parameters, free):
        return None
    return max(apart, STATIONARY)


def _undetermined_at(after: Calibration, parameters: Mapping[str, float], free: list[int]) -> list[str]:
    """The parameters that the quotes leave free at an answer, as near as that may be to where they do not."""
    weights = weights_for(after.used, after.book, after.settings.weights)
    objective, _ = objective_of(after.used, residual=after.settings.residual, weights=weights)
    theta = [parameters[name] for name in after.parameters]
    system = linearize(objective, after.model, theta)
    return undetermined(
        after.model.parameters,
        theta,
        [[system.rows[i][j] for j in free] for i in free],
        kept=free,
        noise_variance=system.cost / (system.count - len(free)),
        inflation=getattr(after.model, "inflation", INFLATION),
    )


def _never_seen(same: bool, after: Calibration | None) -> dict[str, Any]:
    if not same or after is None:
        return claim_entry(False, "the parameters are not those of a calibration of the retained quotes")
    if not after.converged:
        return claim_entry(False, "the calibration of the retained quotes did not converge")
    source = "quotes" if after.moments is None else "moments"
    return claim_entry(True, f"solved from the {source} alone, from cold starts", source=source)


def asked_of(settings: Settings, posed: Before | PanelCalibration, held: Mapping[str, float]) -> dict[str, Any]:
    """What ``calibrate`` was asked, and the bounds an answer is ``held`` on.

    Weights given as numbers stay out, since they are listed by id.
    """
    starts = settings.starts
    return {
        "weights": name_of(settings.weights),
        "residual": settings.residual,
        "loss": settings.loss,
        "select": settings.select,
        "threshold": None if posed.threshold is None else float(posed.threshold).hex(),
        "bounds": None
        if settings.bounds is None
        else {name: [float(low).hex(), float(high).hex()] for name, (low, high) in settings.bounds.items()},
        "fixed": None if settings.fixed is None else _hexed(settings.fixed),
        "feller": settings.feller,
        "starts": starts
        if isinstance(starts, int)
        else _hexed(starts)
        if isinstance(starts, Mapping)
        else [_hexed(start) for start in starts],
        "on_bound": _hexed(held),
    }


def _hexed(values: Mapping[str, float]) -> dict[str, str]:
    return {name: float(value).hex() for name, value in values.items()}


def software() -> str:
    """The name and version of this program."""
    from strikeout import __version__

    return f"strikeout {__version__}"
