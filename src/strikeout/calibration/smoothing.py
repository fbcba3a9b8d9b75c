"""The latent path of a panel with a prior: the variance moves from day to day by the model's own dynamics.

    symbol  meaning
    x_t     the variance of date t
    a, c    x_(t+1) is a x_t + c on average (variance_steps.py)
    V       its variance, u + w x_t
    w_t     s^2 / V_t with s^2 the noise of a weighted residual: the prior in the units of the cost

The transition density of Cox, Ingersoll and Ross (1985) is replaced by the normal density of the same mean and
variance, and V is taken at the path itself, again after every descent, until neither moves. The latent parameters of
neighbours are then coupled, their block of the normal equations has three diagonals, and a step is linear in dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.convergence import Convergence
from strikeout.calibration.latent_filter import freedom_of
from strikeout.calibration.latent_problem import PanelObjective, parts_of
from strikeout.calibration.variance_steps import VarianceSteps, dates_of
from strikeout.errors import UsageError
from strikeout.kernels import tridiagonal
from strikeout.kernels.state_space import Transition
from strikeout.kernels.symmetric import inverse, solve
from strikeout.models.model import Model
from strikeout.statistics.linearize import linearize_each
from strikeout.statistics.objective import Objective, objective_of
from strikeout.statistics.system import Group
from strikeout.text import Argument, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Floats = NDArray[np.float64]

SETTLED = 1e-7  # standard errors
DESCENTS, STEPS, HALVINGS = 40, 40, 30


@dataclass(frozen=True, eq=False)
class SmoothedPanel:
    """Shared parameters and latent path of most posterior density; standard errors are those of the posterior.

    A standard error is not-a-number if the parameter was fixed or is held on a bound.
    """

    parameters: dict[str, float]
    standard_errors: dict[str, float]
    latent: dict[Group, float]
    latent_standard_errors: dict[Group, float]
    converged: bool

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return f"SmoothedPanel({values}; {many(len(self.latent), 'latent value')}, converged={self.converged})"


def smoothed(panel: Calibration, *, strength: float = 1.0) -> SmoothedPanel:
    """Return the panel once its path is held to be one of the model's own; see ``Calibration.smoothed``.

    Raises:
        UsageError: the groups are not dates, the model has no mean_reversion, long_variance and vol_of_vol, Feller's
            condition is enforced, the loss is not squared, or the strength is below zero or infinite.
    """
    if panel.settings.feller == "enforce" or panel.loss != "squared":
        raise UsageError(
            "smoothed: the prior goes with squared loss and without Feller's condition. Use ",
            Argument("loss", "squared"),
            " and ",
            Argument("feller", "warn"),
            ".",
        )
    if isinf(strength):
        raise UsageError(
            Argument("strength", strength),
            ": one variance for all dates is a plain calibration. Use ",
            Argument("panel", None),
            ".",
        )
    smoothing, names = _smoothing(panel, strength), list(panel.parameters)
    theta, x = np.array(list(panel.parameters.values())), np.array(list(panel.latent.values()))
    weights, converged = smoothing.weights(np.full(len(x), panel.parameters["long_variance"])), False
    for _ in range(DESCENTS):
        before = x
        theta, x, at, settled = smoothing.descended(theta, x, weights)
        converged = settled and at.is_nothing(x - before, smoothing.noise)
        if converged:
            break
        weights = smoothing.weights(x)
    return SmoothedPanel(
        parameters=dict(zip(names, theta.tolist(), strict=True)),
        standard_errors=dict(zip(names, _errors(at.shared_variances, smoothing.noise), strict=True)),
        latent=dict(zip(panel.groups, x.tolist(), strict=True)),
        latent_standard_errors=dict(
            zip(panel.groups, _errors(at.latent_variances.tolist(), smoothing.noise), strict=True)
        ),
        converged=converged,
    )


@dataclass(frozen=True, eq=False)
class Chain:
    """The transitions of the prior, one fewer than dates."""

    a: Floats
    c: Floats
    u: Floats
    w: Floats

    @staticmethod
    def of(steps: Sequence[Transition]) -> Chain:
        """Return the same steps column by column."""
        return Chain(*np.array(steps, float).reshape(-1, 4).T)

    def variances(self, x: Floats) -> Floats:
        """V_t, at this path."""
        V: Floats = self.u + self.w * x[:-1]
        return V

    def surprises(self, x: Floats) -> Floats:
        """``x_(t+1) - a x_t - c``."""
        return x[1:] - self.a * x[:-1] - self.c


@dataclass(frozen=True, eq=False)
class Joint:
    """One Gauss-Newton step of everything at one point, and the variances there in units of the noise."""

    cost: float
    shared: Floats
    latent: Floats
    shared_variances: list[float]
    latent_variances: Floats  # not-a-number if one is held on a bound

    def is_nothing(self, move: Floats, noise: float) -> bool:
        """Return whether no latent parameter moves by more than a tiny share of its standard error."""
        return bool(np.all(~(np.abs(move) > SETTLED * np.sqrt(noise * self.latent_variances))))


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The quotes of a panel and the prior on its path, as one least-squares problem."""

    parts: Sequence[Objective]
    model: Model
    latent: int  # its place among the model's parameters
    bounds: tuple[float, float]
    moving: list[int]  # shared parameters that are neither fixed nor on a bound, by place
    chain: Chain
    noise: float
    convergence: Convergence

    def weights(self, x: Floats) -> Floats:
        """w_t, at this path."""
        return self.noise / self.chain.variances(x)

    def descended(self, theta: Floats, x: Floats, weights: Floats) -> tuple[Floats, Floats, Joint, bool]:
        """Gauss-Newton, halved where the cost does not fall, until the next step is nothing; and whether it is."""
        at = self.joint(theta, x, weights)
        for _ in range(STEPS):
            if at.is_nothing(at.latent, self.noise):
                return theta, x, at, True
            share = 1.0
            for _ in range(HALVINGS):
                to, there = theta + share * at.shared, np.clip(x + share * at.latent, *self.bounds)
                if self.is_inside(to):
                    trial = self.joint(to, there, weights)
                    if trial.cost <= at.cost + self.convergence.blur(at.cost):
                        break
                share *= 0.5
            else:
                return theta, x, at, False
            theta, x, at = to, there, trial
        return theta, x, at, False

    def is_inside(self, theta: Floats) -> bool:
        """Return whether the model has prices at these shared parameters."""
        space = self.model.parameters
        lower, upper = np.delete(space.lower, self.latent), np.delete(space.upper, self.latent)
        return bool(((lower <= theta) & (theta <= upper)).all())

    def joint(self, theta: Floats, x: Floats, weights: Floats) -> Joint:
        """Return curvature, score and cost of quotes and prior together, the path eliminated as one block."""
        k, p = self.latent, len(theta)
        kept = [i for i in range(p + 1) if i != k]
        H, G, cost = np.zeros((p, p)), np.zeros(p), 0.0
        across, own, pull = np.zeros((len(x), p)), np.zeros(len(x)), np.zeros(len(x))
        ahead, behind = theta[:k].tolist(), theta[k:].tolist()
        posed = [(part, [*ahead, at, *behind]) for part, at in zip(self.parts, x.tolist(), strict=True)]
        for n, equations in enumerate(linearize_each(posed, self.model)):
            rows = equations.rows
            H += [[rows[i][j] for j in kept] for i in kept]
            G += [rows[-1][i] for i in kept]
            across[n], own[n], pull[n] = [rows[k][i] for i in kept], rows[k][k], rows[-1][k]
            cost += rows[-1][-1]
        e, a = self.chain.surprises(x), self.chain.a
        cost += float(np.add.reduce(weights * e * e))
        own[1:] += weights
        own[:-1] += weights * a * a
        pull[1:] -= weights * e
        pull[:-1] += weights * a * e
        held = ((x <= self.bounds[0]) & (pull < 0.0)) | ((x >= self.bounds[1]) & (pull > 0.0))
        beside = np.where(held[1:] | held[:-1], 0.0, -weights * a)
        own[held], pull[held], across[held] = 1.0, 0.0, 0.0
        return _step(Blocks(H, G, across, own, beside, pull), cost, held, self.moving)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The normal equations of everything: shared, across, and the three diagonals of the latent ones."""

    H: Floats
    G: Floats
    across: Floats  # one row per date, one column per shared parameter
    own: Floats
    beside: Floats
    pull: Floats  # the score of the latent parameters


def _step(blocks: Blocks, cost: float, held: NDArray[np.bool_], free: list[int]) -> Joint:
    H, G, across = blocks.H, blocks.G, blocks.across
    solved = tridiagonal.solve(blocks.own, blocks.beside, np.column_stack([across, blocks.pull]))
    follow, latent = solved[:, :-1], solved[:, -1]
    S = [[float(H[i, j] - np.add.reduce(across[:, i] * follow[:, j])) for j in free] for i in free]
    step, covariance = np.zeros(len(G)), inverse(S)
    step[free] = solve(S, [float(G[i] - np.add.reduce(across[:, i] * latent)) for i in free])
    variances, shared = tridiagonal.inverse_diagonal(blocks.own, blocks.beside), [nan] * len(G)
    for m, i in enumerate(free):
        latent = latent - follow[:, i] * step[i]
        shared[i] = covariance[m][m]
        for n, j in enumerate(free):
            variances = variances + covariance[m][n] * (follow[:, i] * follow[:, j])
    return Joint(cost, step, latent, shared, np.where(held, nan, variances))


def _smoothing(panel: Calibration, strength: float = 1.0) -> Smoothing:
    dates, freedom = dates_of(panel), freedom_of(panel)
    assert panel.latent_name is not None
    space, latent, how = panel.model.parameters, panel.latent_name, panel.settings
    k = space.names.index(latent)
    whole, _ = objective_of(panel.quotes, residual=how.residual, weights=how.weights)
    still = {*panel.fixed, *panel.on_bound}
    objective = PanelObjective(parts_of(whole, panel.rows))
    return Smoothing(
        parts=list(objective.parts.values()),
        model=panel.model,
        latent=k,
        bounds=(how.bounds or {}).get(latent, (float(space.lower[k]), float(space.upper[k]))),
        moving=[i for i, name in enumerate(panel.parameters) if name not in still],
        chain=Chain.of(VarianceSteps.of(panel, strength).chain(dates)),
        noise=panel.cost / freedom,
        convergence=Convergence(freedom, objective.rounding),
    )


def _errors(variances: Sequence[float], noise: float) -> list[float]:
    return [sqrt(noise * v) if v >= 0.0 else nan for v in variances]
