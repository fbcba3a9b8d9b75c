"""How well the quotes determine each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import Descent
from strikeout.kernels.symmetric import inverse

# A parameter whose standard error is its own size could as well be zero or twice as large: it is free.
FREE = 1.0
# Inflation of a variance by the other parameters: the diagonal of the inverse of the scaled curvature. Beyond this, the
# others can imitate all but 1/3000 of what the parameter does to prices, and no model is that true. Books that
# determine Heston's five have 10 to 1,000; a single expiry has 1e8 and more. A model may state another limit.
INFLATION = 1e7


@dataclass(frozen=True)
class Precision:
    """Standard errors by parameter and what they are relative to; not-a-number for fixed and held parameters."""

    standard_errors: tuple[float, ...]
    relative_errors: tuple[float, ...]
    free: tuple[int, ...]  # parameters the quotes leave undetermined
    inseparable: bool  # some of them because others can imitate them, whatever the noise


def precision_of(
    coordinates: Coordinates, descent: Descent, noise_variance: float, *, inflation: float = INFLATION
) -> Precision:
    """``sqrt(diag(s^2 H^-1))`` over the coordinates that are neither fixed nor held on a bound.

    A coordinate at an edge of the model was found there, not laid down: whether the others can imitate it counts.
    """
    u, H = descent.point, descent.system.curvature
    kept = [i for i in range(len(u)) if i not in descent.held]
    edge = coordinates.on_edge(descent.held, u)
    found = sorted({*kept, *edge})
    unscaled = inverse([[H[i][j] for j in found] for i in found])
    lost = {coordinates.free[i] for n, i in enumerate(found) if not unscaled[n][n] * H[i][i] < inflation}
    if edge:
        unscaled = inverse([[H[i][j] for j in kept] for i in kept])
    variances = coordinates.variances(unscaled, u, kept)
    errors = tuple(sqrt(noise_variance * v) if v >= 0.0 else nan for v in variances)
    theta = coordinates.theta(u)
    relative = tuple(
        error / scale if scale > 0.0 else nan
        for error, scale in zip(errors, _scales(theta, coordinates.lower, coordinates.upper), strict=True)
    )
    signed = {i for i, (lo, hi) in enumerate(zip(coordinates.lower, coordinates.upper, strict=True)) if _open(lo, hi)}
    free = lost | {i for i, share in enumerate(relative) if share > FREE and i not in signed}
    return Precision(errors, relative, tuple(sorted(free)), bool(lost))


def _scales(theta: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> list[float]:
    """The size of a positive parameter; for a signed one the room around it, which is 1 - rho^2 for a correlation."""
    return [
        abs(x) if lo >= 0.0 or _open(lo, hi) else 2.0 * (x - lo) * (hi - x) / (hi - lo)
        for x, lo, hi in zip(theta, lower, upper, strict=True)
    ]


def _open(lower: float, upper: float) -> bool:
    """A parameter of either sign and any size: to be known to be near zero is to be known."""
    return lower < 0.0 and upper - lower == inf
