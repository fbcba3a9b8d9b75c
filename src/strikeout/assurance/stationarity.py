"""How far parameters are from the optimum of the quotes they were linearized on, in standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan, nan, sqrt

from strikeout.kernels.symmetric import inverse, length, solve
from strikeout.statistics.linearization import Linearization


def scaled_gradient(system: Linearization, *, free: Sequence[int] | None = None) -> float:
    """``sqrt(G' H^-1 G) / s``: the length of the next Gauss-Newton step in standard errors, whatever the units.

    ``s^2 = cost / (n - p)``. Zero at an optimum; infinite where the curvature is singular or no noise is left.

    Args:
        free: numbers of the parameters that may move; all if not given.

    Raises:
        IndexError: ``free`` has a number that no parameter has.
    """
    H, G = _part(system, free)
    reach = length(H, G)
    return inf if isnan(reach) else _in_units_of(reach, _noise(system, len(G)))


def next_step(
    system: Linearization, *, free: Sequence[int] | None = None, variance: float | None = None
) -> list[float]:
    """Return one more Gauss-Newton step, parameter by parameter, each in its own standard error: an error bar.

    Over all retained quotes it predicts what is left of the error of the last step (measured: worst by a sixth).
    Not-a-number if the curvature is singular, infinite if no noise is left. No parameter's move is longer than
    ``scaled_gradient``, which can be many times as long where few quotes are left.

    Args:
        free: numbers of the parameters that may move; all if not given.
        variance: of a residual, where the loss is not squared and ``cost / (n - p)`` is not it.

    Raises:
        IndexError: ``free`` has a number that no parameter has.
    """
    H, G = _part(system, free)
    noise, unscaled = _noise(system, len(G)) if variance is None else sqrt(variance), inverse(H)
    return [
        _in_units_of(x, noise * sqrt(unscaled[i][i])) if unscaled[i][i] > 0.0 else nan
        for i, x in enumerate(solve(H, G))
    ]


def _part(system: Linearization, free: Sequence[int] | None) -> tuple[list[list[float]], list[float]]:
    kept = range(system.size - 1) if free is None else free
    return [[system.rows[i][j] for j in kept] for i in kept], [system.rows[-1][i] for i in kept]


def _noise(system: Linearization, parameters: int) -> float:
    freedom = system.count - parameters
    return sqrt(system.cost / freedom) if freedom > 0 and system.cost > 0.0 else 0.0


def _in_units_of(x: float, error: float) -> float:
    return x / error if error > 0.0 else (inf if x else 0.0)
