"""A panel with a prior on its latent path: the variance moves from day to day by the model's own dynamics.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite, isinf, isnan, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from strikeout.calibration.identifiability import relative_errors
from strikeout.calibration.latent_filter import filter_panel, freedom_of
from strikeout.calibration.latent_prior import SMOOTHED, Prior
from strikeout.calibration.latent_problem import PanelObjective, panel_rmse, parts_of
from strikeout.calibration.loop import Convergence
from strikeout.calibration.panels import shared_space
from strikeout.calibration.result import panel_termination
from strikeout.calibration.termination import Termination
from strikeout.calibration.variance_steps import VarianceSteps, dates_of
from strikeout.errors import UsageError
from strikeout.kernels import state_space
from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.state_space import Transition
from strikeout.kernels.symmetric import inverse, solve
from strikeout.models.model import Model
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize_each
from strikeout.statistics.losses import SQUARED
from strikeout.statistics.objective import Objective, objective_of
from strikeout.statistics.system import Group
from strikeout.text import Argument

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration


SETTLED = 1e-7  # standard errors
DESCENTS, STEPS, HALVINGS = 40, 40, 30


def with_prior(panel: Calibration, prior: Prior) -> Calibration:
    """Return a panel with this prior on its path; see ``latent`` of ``calibrate``."""
    return _smoothed(panel, prior.strength) if prior.kind == SMOOTHED else _filtered(panel, prior.strength)


def _smoothed(panel: Calibration, strength: float) -> Calibration:
    """Return shared parameters and path of most posterior density; standard errors are those of the posterior."""
    if panel.feller == "enforce" or panel.loss != SQUARED:
        raise UsageError(
            Argument("latent", SMOOTHED),
            " goes with squared loss and without Feller's condition. Use ",
            Argument("loss", SQUARED),
            " and ",
            Argument("feller", "warn"),
            ".",
        )
    if isinf(strength):
        raise UsageError(
            Argument("latent", f"{SMOOTHED}:{strength:g}"),
            ": one variance for all dates is a plain calibration. Use ",
            Argument("panel", None),
            ".",
        )
    smoothing = _smoothing(panel, strength)
    theta, x = np.array(list(panel.parameters.values())), np.array(list(panel.latent.values()))
    weights, ended = smoothing.weights(np.full(len(x), panel.parameters["long_variance"])), Termination.CAP
    for _ in range(DESCENTS):
        before = x
        theta, x, at, ended = smoothing.descended(theta, x, weights)
        if ended.converged and at.is_nothing(x - before, smoothing.noise):
            break
        ended = ended if ended is Termination.STALLED else Termination.CAP
        weights = smoothing.weights(x)
    names, errors = list(panel.parameters), _errors(at.shared_variances, smoothing.noise)
    assert panel.latent_name is not None, "a panel has a latent parameter"
    shares = relative_errors(shared_space(panel.model, panel.latent_name), theta.tolist(), errors)
    found = _on_path(panel, smoothing, theta, x, at.held)
    on_bound = {name: float(theta[i]) for i, name in enumerate(names) if i in smoothing.moving and isnan(errors[i])}
    return replace(
        found,
        on_bound=on_bound,
        standard_errors=dict(zip(names, errors, strict=True)),
        relative_errors=dict(zip(names, shares, strict=True)),
        latent_standard_errors=dict(
            zip(panel.groups, _errors(at.latent_variances.tolist(), smoothing.noise), strict=True)
        ),
        termination=_termination(panel, ended, on_bound, found.latent_on_bound),
        equations=Linearization(at.triangle, panel.count),
    )


def _filtered(panel: Calibration, strength: float) -> Calibration:
    """Return the panel at its filtered path; the shared parameters stay as they are."""
    path, smoothing = filter_panel(panel, strength=strength), _smoothing(panel, 0.0)
    values, errors = path.filtered, path.filtered_errors
    # A date before the first one that determines its variance has no filtered value, and keeps its own.
    x = np.array([v if isfinite(v := values[str(g)]) else own for g, own in panel.latent.items()])
    x = np.clip(x, *smoothing.bounds)
    held = np.array([group in panel.latent_on_bound for group in panel.groups]) & np.isin(x, smoothing.bounds)
    return replace(
        _on_path(panel, smoothing, np.array(list(panel.parameters.values())), x, held),
        latent_standard_errors={
            group: nan if on else errors[str(group)] for group, on in zip(panel.groups, held.tolist(), strict=True)
        },
    )


def _on_path(panel: Calibration, smoothing: Smoothing, theta: Floats, x: Floats, held: Mask) -> Calibration:
    """Return the panel at these parameters: their cost and their fit, not yet their errors."""
    cost, shared, values = smoothing.cost(theta, x), theta.tolist(), x.tolist()
    return replace(
        panel,
        parameters=dict(zip(panel.parameters, shared, strict=True)),
        latent=dict(zip(panel.groups, values, strict=True)),
        latent_on_bound={g: v for g, v, on in zip(panel.groups, values, held.tolist(), strict=True) if on},
        cost=cost,
        rmse=panel_rmse(smoothing.parts, panel.model, smoothing.latent, shared, x),
    )


def _termination(
    panel: Calibration, ended: Termination, on_bound: Mapping[str, float], latent_on_bound: Mapping[Group, float]
) -> Termination:
    """Return how a smoothed panel ended; if the search without the prior gave no answer, as that did."""
    was, bounds = panel.termination, panel.settings.bounds or {}
    if not (was.converged or was is Termination.AT_BOUND):
        return was
    if ended.converged and on_bound:
        ended = Termination.CONVERGED_ON_BOUND if on_bound.keys() <= bounds.keys() else Termination.AT_BOUND
    assert panel.latent_name is not None, "a panel has a latent parameter"
    return panel_termination(ended, latent_on_bound, bounds, panel.latent_name, panel.model.parameters)


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
    held: Mask
    triangle: tuple[float, ...]  # the normal equations of the shared parameters, the path eliminated

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
    moving: list[int]  # shared parameters that are not fixed, by place
    box: tuple[Floats, Floats]  # bounds of the shared parameters
    chain: Chain
    noise: float
    convergence: Convergence

    def weights(self, x: Floats) -> Floats:
        """w_t, at this path."""
        return self.noise / self.chain.variances(x)

    def cost(self, theta: Floats, x: Floats) -> float:
        """Return the cost of the quotes alone."""
        return fsum(equations.cost for equations in linearize_each(self.posed(theta, x), self.model))

    def posed(self, theta: Floats, x: Floats) -> list[tuple[Objective, list[float]]]:
        """Return the objective of every date with all its parameters."""
        ahead, behind = theta[: self.latent].tolist(), theta[self.latent :].tolist()
        return [(part, [*ahead, at, *behind]) for part, at in zip(self.parts, x.tolist(), strict=True)]

    def descended(self, theta: Floats, x: Floats, weights: Floats) -> tuple[Floats, Floats, Joint, Termination]:
        """Gauss-Newton, halved where the cost does not fall, until the next step is nothing; and how it ended."""
        at = self.joint(theta, x, weights)
        for _ in range(STEPS):
            if at.is_nothing(at.latent, self.noise):
                return theta, x, at, Termination.CONVERGED_WITH_PRIOR
            share = 1.0
            for _ in range(HALVINGS):
                to = np.clip(theta + share * at.shared, *self.box)
                there = np.clip(x + share * at.latent, *self.bounds)
                trial = self.joint(to, there, weights)
                if trial.cost <= at.cost + self.convergence.blur(at.cost):
                    break
                share *= 0.5
            else:
                return theta, x, at, Termination.STALLED
            theta, x, at = to, there, trial
        return theta, x, at, Termination.CAP

    def joint(self, theta: Floats, x: Floats, weights: Floats) -> Joint:
        """Return curvature, score and cost of quotes and prior together, the path eliminated as one block."""
        k, p = self.latent, len(theta)
        kept = [i for i in range(p + 1) if i != k]
        H, G, cost = np.zeros((p, p)), np.zeros(p), 0.0
        across, own, pull = np.zeros((len(x), p)), np.zeros(len(x)), np.zeros(len(x))
        for n, equations in enumerate(linearize_each(self.posed(theta, x), self.model)):
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
        sides = np.where(theta <= self.box[0], -1.0, np.where(theta >= self.box[1], 1.0, 0.0))
        return _step(Blocks(H, G, across, own, beside, pull), cost, held, (self.moving, sides))


@dataclass(frozen=True, eq=False)
class Blocks:
    """The normal equations of everything: shared, across, and the three diagonals of the latent ones."""

    H: Floats
    G: Floats
    across: Floats  # one row per date, one column per shared parameter
    own: Floats
    beside: Floats
    pull: Floats  # the score of the latent parameters


def _step(blocks: Blocks, cost: float, held: Mask, shared: tuple[list[int], Floats]) -> Joint:
    """Return a step; shared parameters on a bound (``sides``) that are pulled out of it are held."""
    moving, sides = shared
    H, G, across = blocks.H, blocks.G, blocks.across
    solved = state_space.solve(blocks.own, blocks.beside, np.column_stack([across, blocks.pull]))
    follow, latent = solved[:, :-1], solved[:, -1]
    reduced = [
        [
            *(float(H[i, j] - np.add.reduce(across[:, i] * follow[:, j])) for j in range(len(G))),
            float(G[i] - np.add.reduce(across[:, i] * latent)),
        ]
        for i in range(len(G))
    ]
    free = [i for i in moving if not sides[i] * reduced[i][-1] > 0.0]
    S = [[reduced[i][j] for j in free] for i in free]
    step, covariance = np.zeros(len(G)), inverse(S)
    step[free] = solve(S, [reduced[i][-1] for i in free])
    variances, own = state_space.inverse_diagonal(blocks.own, blocks.beside), [nan] * len(G)
    for m, i in enumerate(free):
        latent = latent - follow[:, i] * step[i]
        own[i] = covariance[m][m]
        for n, j in enumerate(free):
            variances = variances + covariance[m][n] * (follow[:, i] * follow[:, j])
    triangle = (*(value for i, row in enumerate(reduced) for value in row[i:]), cost)
    return Joint(cost, step, latent, own, np.where(held, nan, variances), held, triangle)


def _smoothing(panel: Calibration, strength: float = 1.0) -> Smoothing:
    dates, freedom = dates_of(panel), freedom_of(panel)
    assert panel.latent_name is not None
    space, latent, how = panel.model.parameters, panel.latent_name, panel.settings
    k = space.names.index(latent)
    whole, _ = objective_of(panel.quotes, residual=how.residual, weights=how.weights)
    limits = [
        (how.bounds or {}).get(name, (low, high))
        for name, low, high in zip(space.names, space.lower, space.upper, strict=True)
    ]
    objective = PanelObjective(parts_of(whole, panel.rows))
    return Smoothing(
        parts=list(objective.parts.values()),
        model=panel.model,
        latent=k,
        bounds=(float(limits[k][0]), float(limits[k][1])),
        moving=[i for i, name in enumerate(panel.parameters) if name not in panel.fixed],
        box=(np.delete([low for low, _ in limits], k), np.delete([high for _, high in limits], k)),
        chain=Chain.of(VarianceSteps.of(panel, strength).chain(dates)),
        noise=panel.cost / freedom,
        convergence=Convergence(freedom, objective.rounding),
    )


def _errors(variances: Sequence[float], noise: float) -> list[float]:
    return [sqrt(noise * v) if v >= 0.0 else nan for v in variances]
