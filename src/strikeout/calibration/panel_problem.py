"""A panel as a search for its shared parameters alone: at every point each group's latent one is found first.

    symbol  meaning
    theta   the shared parameters
    x_g     the latent parameter of group g: the one of least cost, given theta, inside its bounds
    T_g     normal equations of group g at (theta, x_g): upper triangle of (H, G; G', cost)
    k       the column of the latent parameter
    S       the sum over groups of T_ij - T_ik T_jk / T_kk: the normal equations of theta, all x_g following it

The cost with every x_g at its best is a function of theta alone, and S are its Gauss-Newton equations (variable
projection; Golub and Pereyra, 1973). So the loop of a plain calibration does for panels, with as many numbers as there
are shared parameters, and one evaluation takes a few passes over the quotes, however many groups there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, isfinite, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.descents import End
from strikeout.calibration.loop import Evaluation, Watch, descend
from strikeout.calibration.pace import BRISK, PATIENT, Pace
from strikeout.calibration.panel_groups import Rows
from strikeout.calibration.panel_settling import FACTOR, NEGLIGIBLE, Line, settled
from strikeout.calibration.yardstick import Yardstick
from strikeout.kernels.symmetric import length
from strikeout.models.model import Model
from strikeout.quotes.features import Features
from strikeout.statistics.linearization import Linearization, places
from strikeout.statistics.linearize import linearize_each
from strikeout.statistics.losses import Loss, Squared
from strikeout.statistics.objective import Objective, canonical_order
from strikeout.statistics.schur import eliminate_each
from strikeout.statistics.system import Group

Floats = NDArray[np.float64]

NEAR = 10.0  # standard errors from the optimum, within which every digit counts


@dataclass(frozen=True, eq=False)
class PanelObjective:
    """What a panel minimises, by group; every group has a quote that counts."""

    parts: dict[Group, Objective]
    loss: Loss = field(default_factory=Squared)

    def __len__(self) -> int:
        """Quotes less groups: what the latent parameters leave for the shared ones."""
        return self.count - len(self.parts)

    @cached_property
    def count(self) -> int:
        return sum(len(part) for part in self.parts.values())

    @cached_property
    def rounding(self) -> float:
        """As ``Objective.rounding``, of all quotes; in no order."""
        return sqrt(fsum(part.rounding * part.rounding for part in self.parts.values()))


def parts_of(whole: Objective, groups: Mapping[Group, Rows]) -> dict[Group, Objective]:
    """The objective by group, without the groups of which no quote counts. Targets and weights are each quote's own."""
    parts = {}
    for group, rows in groups.items():
        book, prices, weights = whole.book[rows], whole.prices[rows], whole.weights[rows]
        order, places = canonical_order(book, prices, weights)
        if len(order):
            parts[group] = Objective(book, prices, whole.targets[rows], weights, whole.residual, order, places)
    return parts


@dataclass(frozen=True, eq=False)
class Settling:
    """Every group's latent parameter at its best for one theta, and the normal equations there."""

    theta: tuple[float, ...]
    latents: Floats  # in the order of the groups
    triangles: Floats  # T_g, a row a group
    held: NDArray[np.bool_]  # on a bound that the cost pushes against, or moving no price of its group
    system: Linearization  # S

    @property
    def cost(self) -> float:
        return self.system.cost


@dataclass(frozen=True, eq=False)
class PanelProblem:
    """A panel, the model that is to meet it, and the coordinates in which to search for the shared parameters."""

    objective: PanelObjective
    model: Model
    coordinates: Coordinates
    latent: int  # its place among the model's parameters
    lower: float  # bounds of the latent parameter
    upper: float
    start: float

    def follow(self, start: Sequence[float], watch: Watch | None = None) -> End[PanelObjective]:
        """The end of one start."""
        freedom = max(len(self.objective) - len(start), 1)
        yardstick = Yardstick(freedom, self.objective.rounding, tolerance=self.pace.tolerance)
        best: Settling | None = None
        negligible = NEGLIGIBLE

        def evaluate(u: Sequence[float]) -> Evaluation:
            # Latent parameters begin where those of the best point so far would follow to.
            nonlocal best, negligible
            found = self.settle(self.coordinates.theta(u), best, negligible=negligible)
            system = self.coordinates.system(found.system, u, found.theta)
            if isfinite(found.cost) and (best is None or found.cost <= best.cost):
                best = found
                if yardstick.standard_errors(length(system.curvature, system.score), found.cost) < NEAR:
                    negligible = 0.0
            return system

        box, pace = self.coordinates.box, self.pace
        descent = descend(evaluate, start, box=box, yardstick=yardstick, watch=watch, pace=pace)
        return End(descent, self.objective, descent.system.cost)

    @property
    def pace(self) -> Pace:
        """As for a plain calibration: patient where the functions, the bounds and the starts are somebody's own."""
        books = (part.book for part in self.objective.parts.values())
        return PATIENT if any(isinstance(book, Features) for book in books) else BRISK

    def settle(
        self, theta: Sequence[float], near: Settling | None = None, *, negligible: float = NEGLIGIBLE
    ) -> Settling:
        """Every latent parameter at its best for this theta; begins at the start, or where ``near`` would follow to."""
        if theta[0] != theta[0]:
            return self._nothing(theta)
        begin = np.full(len(self.objective.parts), self.start) if near is None else self._following(near, theta)
        parts = list(self.objective.parts.values())

        def evaluate(groups: Rows, x: Floats) -> Floats:
            posed = [(parts[g], self._whole(theta, at)) for g, at in zip(groups.tolist(), x.tolist(), strict=True)]
            return np.array([equations.triangle for equations in linearize_each(posed, self.model)])

        found = settled(evaluate, begin, self.line, rounding=self._rounding, negligible=negligible)
        if found is None:
            return self._nothing(theta)
        x, T = found
        return self._reduced(tuple(theta), x, T, self.line.held(x, T))

    @cached_property
    def line(self) -> Line:
        """Where a latent parameter may go."""
        k, space = self.latent, self.model.parameters
        is_edge = space.names[k] in space.edges and self.lower == space.lower[k]
        return Line(self.lower, self.upper, self.place(k, k), self.place(k, len(space)), is_edge)

    @cached_property
    def _rounding(self) -> Floats:
        return np.array([part.rounding for part in self.objective.parts.values()])

    def _reduced(self, theta: tuple[float, ...], x: Floats, T: Floats, held: NDArray[np.bool_]) -> Settling:
        size, k = len(self.model.parameters) + 1, self.latent
        S = eliminate_each(T[:, np.array(places(size))], k, held)
        # Sums are correctly rounded, so the order of the groups cannot show.
        sums = tuple(fsum(S[:, i, j].tolist()) for i in range(size - 1) for j in range(i, size - 1))
        system = Linearization(sums, self.objective.count)
        pivot = np.where(held, np.inf, T[:, self.place(k, k)])
        moved = np.clip(x + T[:, self.place(k, size - 1)] / pivot, self.lower, self.upper)
        return Settling(theta, moved, T, held, system)

    def slopes(self, at: Settling) -> Floats:
        """How each latent parameter follows the shared ones, ``-T_ik / T_kk``: a row a shared parameter."""
        k = self.latent
        pivot = np.where(at.held, np.inf, at.triangles[:, self.place(k, k)])
        shared = [i for i in range(len(self.model.parameters)) if i != k]
        return np.array([-at.triangles[:, self.place(i, k)] / pivot for i in shared])

    def _following(self, near: Settling, theta: Sequence[float]) -> Floats:
        x = near.latents
        for slope, a, b in zip(self.slopes(near), theta, near.theta, strict=True):
            x = x + slope * (a - b)
        if self.lower >= 0.0:
            x = np.clip(x, near.latents / FACTOR, near.latents * FACTOR)
        # Inside the bounds: one that sits on a bound and is not pushed there would be slow to leave it.
        room = 1e-3 * (self.upper - self.lower) if isfinite(self.upper - self.lower) else 0.0
        inside: Floats = np.clip(x, self.lower + min(room, 0.5 * abs(self.lower)), self.upper - room)
        return np.where(near.held, near.latents, inside)

    def _whole(self, theta: Sequence[float], x: float) -> list[float]:
        return [*theta[: self.latent], x, *theta[self.latent :]]

    def place(self, i: int, j: int) -> int:
        """Where the triangle has the product of columns i and j."""
        i, j = (i, j) if i <= j else (j, i)
        size = len(self.model.parameters) + 1
        return i * size - i * (i - 1) // 2 + j - i

    def _nothing(self, theta: Sequence[float]) -> Settling:
        size, groups = len(self.model.parameters), len(self.objective.parts)
        system = Linearization((nan,) * (size * (size + 1) // 2), self.objective.count)
        whole = np.full((groups, (size + 1) * (size + 2) // 2), nan)
        return Settling(tuple(theta), np.full(groups, nan), whole, np.zeros(groups, bool), system)
