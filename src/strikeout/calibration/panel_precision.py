"""How well a panel determines the latent parameter of every group."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.loop import Descent
from strikeout.calibration.panel_problem import PanelProblem, Settling
from strikeout.kernels.symmetric import inverse


def latent_errors(problem: PanelProblem, at: Settling, descent: Descent, noise: float) -> list[float]:
    """Standard errors of the latent parameters, in the order of the groups; not-a-number where one is held.

    The block of the inverse: ``s^2 (1 / H_ll + c' C c)`` with C the covariance of the shared parameters over s^2 and c
    how the latent one follows them. The first part is what the group's own quotes leave open, the second what is not
    known of the shared parameters.
    """
    coordinates, H = problem.coordinates, descent.system.curvature
    kept = [i for i in range(len(descent.point)) if i not in descent.held]
    C = inverse([[H[i][j] for j in kept] for i in kept])
    chain = _chain(coordinates, descent.point)
    slopes = problem.slopes(at)
    follow = []
    for i in kept:
        total = np.zeros(len(at.latents))
        for row, slope in zip(chain, slopes, strict=True):
            total = total + row[i] * slope
        follow.append(total)
    own = at.triangles[:, problem.place(problem.latent, problem.latent)]
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = 1.0 / own
        for m, a in enumerate(follow):
            for n, b in enumerate(follow):
                variance = variance + C[m][n] * (a * b)
    known = zip(variance.tolist(), at.held.tolist(), strict=True)
    return [nan if held or not v >= 0.0 else sqrt(noise * v) for v, held in known]


def _chain(coordinates: Coordinates, u: Sequence[float]) -> list[list[float]]:
    """Derivatives of the shared parameters by the free coordinates: a row a parameter."""
    place = {i: n for n, i in enumerate(coordinates.free)}
    rows = [[0.0] * len(place) for _ in coordinates.names]
    for i, n in place.items():
        rows[i][n] = 1.0
    share = coordinates.share
    if share is not None:
        slopes = share.slopes(coordinates.theta(u), u[place[share.replaced]])
        rows[share.replaced] = [slopes.get(i, 0.0) for i in coordinates.free]
    return rows
