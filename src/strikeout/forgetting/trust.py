"""Whether one step may stand for the optimum: identified, inside the bounds, and known to be near enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf, sqrt
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.indicator import Indicator, indicator
from strikeout.assurance.optimality import room_for
from strikeout.calibration.identifiability import FREE, INFLATION, free_beyond, slack
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.settings import Settings
from strikeout.errors import ParameterError
from strikeout.forgetting.step import OneStep
from strikeout.kernels.symmetric import dot, inverse
from strikeout.models.model import Model, ParameterSpace
from strikeout.statistics.bending import Bending
from strikeout.statistics.linearization import Linearization

Verdict = Literal["trusted", "unidentified", "out of bounds", "too far"]

# What a step leaves out is predicted to second order. Over real markets and 290 corrupt and clean synthetic cases the
# prediction was within a fifth of the truth wherever no parameter moved by more than FAR of its size; twice the
# prediction is what is certified.
SHARE = 0.5
FAR = 0.3


@dataclass(frozen=True)
class Trust:
    """What can be said of a step without calibrating anew.

    ``missed`` is the predicted error of the step, the worst parameter's, in standard errors, and infinite where the
    step leads out of the bounds, goes too far, or is not determined; ``indicator`` the one that
    needs curvature and score alone, for comparison. ``free`` are the parameters that the retained quotes leave
    undetermined, ``outside`` those the step takes out of the bounds. ``slack`` is by what factor standard errors could
    grow before one were free where the step ends, told from below without the quotes; they can be asked themselves.
    """

    missed: float
    indicator: Indicator
    standard_errors: dict[str, float]
    free: tuple[str, ...]
    outside: tuple[str, ...]
    slack: float = inf

    @property
    def error(self) -> float:
        """The smallest tolerance, in standard errors, that is certified; infinite where none is."""
        return self.missed / SHARE

    def verdict(self, tolerance: float) -> Verdict:
        """Why the step may, or may not, stand for the optimum at this tolerance."""
        if self.free:
            return "unidentified"
        if self.outside:
            return "out of bounds"
        return "trusted" if self.error <= tolerance else "too far"


def is_clear(judged: Trust, tolerance: float) -> bool:
    """Whether the parameters are determined where a step ends, known without asking the retained quotes."""
    return judged.slack >= room_for(tolerance)


def known_error(judged: Trust) -> str:
    """What is known of a step's error, as a sentence without its stop."""
    if isinf(judged.error):
        return "one step goes too far to say how good it is"
    return f"one step misses the optimum by at most {judged.error:.2g} standard errors"


class Posed(Protocol):
    """What a step is judged by: the model and how it was calibrated, and how prices bend around the reference."""

    @property
    def model(self) -> Model: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def fixed(self) -> Mapping[str, float]: ...

    @property
    def bending(self) -> Bending: ...

    def bending_of(self, ids: ArrayLike) -> Bending: ...


def trust(step: OneStep, calibration: Posed, *, ids: ArrayLike) -> Trust:
    """Judges the step of a calibration's footprints once these quotes are struck out.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
    """
    schema = step.equations.schema
    kept = tuple(range(len(schema.parameters))) if step.free is None else step.free
    system = step.equations.system()
    change = [float(step.change[i]) for i in kept]
    judged = indicator(system, calibration.model.parameters, reference=schema.reference, step=change, free=kept)
    near = judged.relative <= FAR
    rest = system.cost - dot([system.rows[-1][i] for i in kept], change)
    errors, free = determined_to(
        system,
        calibration.model.parameters,
        at=schema.reference,
        kept=kept,
        cost=rest if near else None,
        inflation=getattr(calibration.model, "inflation", INFLATION),
    )
    outside = outside_bounds(step.parameters, calibration)
    missed = room = inf
    if near and not free and not outside:
        missed, room = _missed(step, calibration, ids, kept, list(errors.values()), rest)
    return Trust(missed, judged, errors, free, outside, room)


def determined_to(
    system: Linearization,
    space: ParameterSpace,
    *,
    at: Sequence[float],
    kept: Sequence[int],
    cost: float | None,
    inflation: float = INFLATION,
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Standard errors by name, and the parameters that the quotes behind a system leave free.

    Args:
        at: where the parameters' sizes are taken.
        kept: numbers of the parameters that may move.
        cost: at the optimum, to measure the noise by. None where it is not known, as after a step that goes too far:
            then only what no noise could hide counts, parameters that others can imitate.
        inflation: of a variance by the other parameters, beyond which they cannot be told apart.
    """
    names = space.names
    H = [[system.rows[i][j] for j in kept] for i in kept]
    unscaled = inverse(H)
    freedom = system.count - len(kept)
    noise = inf if freedom <= 0 else max(system.cost if cost is None else cost, 0.0) / freedom
    beyond = free_beyond(space, at)
    errors, free = {}, []
    for n, i in enumerate(kept):
        variance = unscaled[n][n] * noise
        errors[names[i]] = sqrt(variance) if variance >= 0.0 else inf
        # As many quotes as parameters, or fewer, are met whatever the parameters are worth: nothing is known of them.
        is_lost = freedom <= 0 or not unscaled[n][n] * H[n][n] < inflation
        if is_lost or (cost is not None and not errors[names[i]] <= FREE * beyond[i]):
            free.append(names[i])
    return errors, tuple(free)


def outside_bounds(parameters: Mapping[str, float], calibration: Posed | PanelCalibration) -> tuple[str, ...]:
    """The parameters that were estimated and are not inside the model's bounds and those that were asked for."""
    space, asked = calibration.model.parameters, calibration.settings.bounds or {}
    limits = dict(zip(space.names, zip(space.lower.tolist(), space.upper.tolist(), strict=True), strict=True))
    return tuple(
        name
        for name, value in parameters.items()
        if name not in calibration.fixed and not _inside(value, asked.get(name, limits[name]))
    )


def _inside(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] < value < limits[1]


def _missed(
    step: OneStep, calibration: Posed, ids: ArrayLike, kept: tuple[int, ...], errors: list[float], rest: float
) -> tuple[float, float]:
    """The worst parameter's predicted error over its standard error, infinite where nothing can be predicted; and the
    slack where the step ends, told from below by the curvature there to first order."""
    try:
        bending = (calibration.bending - calibration.bending_of(ids)).only(kept)
    except ParameterError:  # the reference is where the model ends
        return inf, 0.0
    system, change = step.equations.system(), step.change[list(kept)]
    H = system.curvature[np.ix_(kept, kept)]
    left_out = np.abs(bending.left_out(H, change))
    shares = [x / e if e > 0.0 else 0.0 if x == 0.0 else inf for x, e in zip(left_out.tolist(), errors, strict=True)]
    space, at = calibration.model.parameters, list(step.parameters.values())
    noise, there = max(rest, 0.0) / (system.count - len(kept)), bending.bent(H, change).tolist()
    room = slack(space, at, there, kept=kept, noise_variance=noise)
    return max(share if share == share else inf for share in shares), room
