"""How well the quotes determine each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, nan, sqrt

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import Descent
from strikeout.kernels.symmetric import inverse
from strikeout.models.model import ParameterSpace

# A parameter whose standard error is its own size could as well be zero or twice as large: it is free.
FREE = 1.0
# Inflation of a variance by the other parameters: the diagonal of the inverse of the scaled curvature. Beyond this, the
# others can imitate all but 1/3000 of what the parameter does to prices, and no model is that true. Books that
# determine Heston's five have 10 to 1,000; a single expiry has 1e8 and more. A model may state another limit.
INFLATION = 1e7
# What a parameter that may be zero (``ParameterSpace.edges``) would else be like. Where the model has nothing like it,
# to be known to be near zero is to be known.
LEVELS = {"initial_variance": "long_variance"}


@dataclass(frozen=True)
class Precision:
    """Standard errors by parameter and what they are relative to; not-a-number for fixed and held parameters."""

    standard_errors: tuple[float, ...]
    relative_errors: tuple[float, ...]
    free: tuple[int, ...]  # parameters the quotes leave undetermined
    inseparable: bool  # some of them because others can imitate them, whatever the noise


def precision_of(
    space: ParameterSpace,
    coordinates: Coordinates,
    descent: Descent,
    *,
    noise_variance: float,
    inflation: float = INFLATION,
    freed: list[list[float]] | None = None,
) -> Precision:
    """``sqrt(diag(s^2 H^-1))`` over the coordinates that are neither fixed nor held on a bound.

    A coordinate at an edge of the model was found there, not laid down: whether the others can imitate it counts.
    ``freed`` is the curvature for that question, if latent parameters of a panel are at an edge: with these free.
    """
    u, H = descent.point, descent.system.curvature
    theta = coordinates.theta(u)
    beyond = free_beyond(space, tuple(theta))
    kept = [i for i in range(len(u)) if i not in descent.held]
    edge = set() if space.is_curve else coordinates.on_edge(descent.held, u)
    found = sorted({*kept, *edge})
    F = H if freed is None else freed
    invert = inverse_by_block if space.is_curve else inverse
    unscaled = invert([[F[i][j] for j in found] for i in found])
    lost = {coordinates.free[i] for n, i in enumerate(found) if not unscaled[n][n] * H[i][i] < inflation}
    free = set(lost)
    if edge or freed is not None:
        unscaled = invert([[H[i][j] for j in kept] for i in kept])
    variances = coordinates.variances(unscaled, u, kept)
    errors = tuple(sqrt(noise_variance * v) if v >= 0.0 else nan for v in variances)
    relative = relative_errors(space, theta, errors)
    free |= {i for i, error in enumerate(errors) if error > FREE * beyond[i]}
    return Precision(errors, relative, tuple(sorted(free)), bool(lost))


def relative_errors(space: ParameterSpace, theta: Sequence[float], errors: Sequence[float]) -> tuple[float, ...]:
    """Return standard errors over the size of each parameter; of a correlation over ``1 - rho^2``."""
    scales = map(_scale, theta, space.lower.tolist(), space.upper.tolist())
    return tuple(error / scale if scale > 0.0 else nan for error, scale in zip(errors, scales, strict=True))


def inverse_by_block(H: list[list[float]]) -> list[list[float]]:
    """Return the inverse of a curvature whose smiles share nothing; not-a-number in the blocks that have none."""
    size, blocks = len(H), _blocks(H)
    out = [[0.0] * size for _ in range(size)]
    for block in blocks:
        part = inverse([[H[i][j] for j in block] for i in block])
        for n, i in enumerate(block):
            for m, j in enumerate(block):
                out[i][j] = part[n][m]
    return out


def _blocks(H: list[list[float]]) -> list[list[int]]:
    """Return the coordinates that are connected by entries other than zero, in their order."""
    left, blocks = list(range(len(H))), []
    while left:
        block, reached = [], [left[0]]
        while reached:
            i = reached.pop()
            if i in left:
                left.remove(i)
                block.append(i)
                reached += [j for j in left if H[i][j] != 0.0]
        blocks.append(sorted(block))
    return blocks


@lru_cache(maxsize=64)
def free_beyond(space: ParameterSpace, theta: tuple[float, ...]) -> list[float]:
    """Return the standard error beyond which each parameter could as well be something else altogether: it is free.

    That is its value, for a positive parameter; for one between two bounds of the model the distance to them, which is
    1 - rho^2 for a correlation. To be known to be near zero is to be known, too: of a parameter without bounds no error
    is too large, and one that may be zero is measured by what it would else be like, an initial variance by the long
    one. Bounds that were asked for change nothing of it.
    """
    limits = zip(theta, space.lower.tolist(), space.upper.tolist(), strict=True)
    out = [inf if _open(low, high) else _scale(x, low, high) for x, low, high in limits]
    for name in space.edges:
        i, (word, *rest) = space.names.index(name), name.partition("[")
        level = "".join((LEVELS.get(word, ""), *rest))
        out[i] = max(out[i], theta[space.names.index(level)]) if level in space.names else inf
    return out


def undetermined(
    space: ParameterSpace,
    theta: Sequence[float],
    H: list[list[float]],
    *,
    kept: Sequence[int],
    noise_variance: float,
    inflation: float = INFLATION,
) -> list[str]:
    """Return the names of the parameters that quotes with this curvature leave free, or cannot distinguish from the
    others.

    Args:
        theta: all the parameters.
        H: the curvature of those that may move, ``kept`` their numbers.

    None of a curve, whose open parameters are an answer.
    """
    if space.is_curve:
        return []
    unscaled, beyond = inverse(H), free_beyond(space, tuple(theta))
    return [
        space.names[i]
        for n, i in enumerate(kept)
        if not unscaled[n][n] * H[n][n] < inflation or not sqrt(noise_variance * unscaled[n][n]) <= FREE * beyond[i]
    ]


def slack(
    space: ParameterSpace, theta: Sequence[float], H: list[list[float]], *, kept: Sequence[int], noise_variance: float
) -> float:
    """Return by what factor every standard error could grow before a parameter is free; below one if one is already.

    Args:
        theta, H, kept: as for ``undetermined``.
    """
    if space.is_curve:
        return inf
    unscaled, beyond = inverse(H), free_beyond(space, tuple(theta))
    errors = [noise_variance * unscaled[n][n] for n in range(len(kept))]
    if not all(variance >= 0.0 for variance in errors):
        return 0.0
    return min((FREE * beyond[i] / sqrt(x) if x > 0.0 else inf for i, x in zip(kept, errors, strict=True)), default=inf)


def _scale(x: float, lower: float, upper: float) -> float:
    """Return the size of a positive parameter; of a signed one the distance to its bounds (1 - rho^2)."""
    if lower >= 0.0 or _open(lower, upper):
        return abs(x)
    return 2.0 * (x - lower) * (upper - x) / (upper - lower)


def _open(lower: float, upper: float) -> bool:
    """Return a parameter of either sign and any size: to be known to be near zero is to be known."""
    return lower < 0.0 and upper - lower == inf
