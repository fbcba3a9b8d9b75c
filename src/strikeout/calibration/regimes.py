"""Regimes of a panel: chosen shared parameters switch between a few values, and a Markov chain decides on each date.

    symbol  meaning
    q_tr    the cost of date t in regime r, its latent parameter at its best
    d_tr    by how much q_tr falls to first order if date t has switching parameters of its own: G' H^-1 G
    e_tr    q_tr less the lowest cost of date t, which is q - d in the regime of least cost
    nu      the noise between dates: the mean of e_tr / k over dates, k the number of switching parameters
    s^2     the noise of a weighted residual within dates
    A       the transition matrix
    p_tr    the probability of regime r on date t, given all dates

The log density of a date in a regime is ``-(k log(2 pi nu) + e_tr / nu) / 2``: that of the switching parameters the
date would have on its own, around those of its regime. With s^2 in place of nu it would take all quotes of a date to be
independent, and a small common error of a date would decide on its regime with certainty. nu is at least s^2.

Fitted by expectation and maximisation (Dempster, Laird and Rubin, 1977). The maximisation is the search of a panel in
which each date is in every regime with weight p_tr. Every start is a division of the dates that follows from the panel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from strikeout.calibration.coordinates import Coordinates, coordinates_of
from strikeout.calibration.latent_prior import refuse_prior
from strikeout.calibration.latent_problem import PanelProblem, Settling, problem_again
from strikeout.calibration.loop import TOLERANCE, Convergence, Descent, Evaluation, descend
from strikeout.calibration.panels import shared_space
from strikeout.calibration.regime_path import RegimePath, RegimeStart
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.kernels.arrow import eliminate_each
from strikeout.kernels.state_space import LOG_TWO_PI, Regimes, filter_regimes
from strikeout.kernels.symmetric import inverse, solve
from strikeout.models.model import ParameterSpace
from strikeout.statistics.linearization import Linearization, places
from strikeout.text import Argument, many

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Progress = Callable[[int, int], None]  # the number of the start, and of the round

MOST = 3  # regimes
STAY = 0.9  # probability of staying in a regime, before the first round
ROUGH = 1e-3  # standard errors to which the maximisation of a round is solved; the last one is solved to all digits
# Regimes that differ take ten rounds. If dates show no regimes, the likelihood is flat and rounds gain little: a
# relative change of the log-likelihood below this is the end.
ROUNDS = 1000
SETTLED = 1e-7
EMPTY = 1e-3  # dates: a regime with fewer in expectation has no parameters


def regimes_of(
    panel: Calibration, *, count: int = 2, switching: Sequence[str] = ("vol_of_vol",), progress: Progress | None = None
) -> RegimePath:
    """Return the regimes of a panel; see ``Calibration.regimes``."""
    names = _checked(panel, count, switching)
    search = RegimeSearch.of(panel, count, names)
    ends = [search.follow(start, number, progress) for number, start in enumerate(search.divisions())]
    whole = [end for end in ends if end is not None]
    if not whole:
        raise RefusedError(
            f"regimes: the {many(len(panel.latent), 'group')} show no {count} regimes of {', '.join(names)}: a regime "
            "lost all of them from every start. Ask for fewer."
        )
    best = max(whole, key=lambda end: end.chain.log_likelihood)  # the first among equals
    starts = tuple(
        RegimeStart(nan, 0, converged=False)
        if end is None
        else RegimeStart(end.chain.log_likelihood, end.rounds, end.converged)
        for end in ends
    )
    return search.result(panel, best, starts)


def _checked(panel: Calibration, count: int, switching: Sequence[str]) -> tuple[str, ...]:
    if panel.panel is None:
        raise UsageError(
            "regimes: only a panel has dates to switch on. Calibrate with ", Argument("panel", "date"), "."
        )
    if not 1 <= count <= MOST:
        raise UsageError(Argument("count", count), f": give 1 to {MOST} regimes.")
    refuse_prior(panel, "regimes")
    if panel.loss != "squared" or panel.feller == "enforce":
        raise UsageError(
            "regimes: the costs of dates are those of squared loss without Feller's condition. Use ",
            Argument("loss", "squared"),
            " and ",
            Argument("feller", "warn"),
            ".",
        )
    names = (switching,) if isinstance(switching, str) else tuple(switching)
    estimated = [name for name in panel.parameters if name not in panel.fixed]
    unknown = [name for name in names if name not in estimated]
    if not names or unknown or len(set(names)) < len(names):
        raise UsageError(
            Argument("switching", ", ".join(names)), f": give some of {', '.join(estimated)}, each of them once."
        )
    needed = 2 * count * len(names) + 1
    if count > 1 and len(panel.latent) < needed:
        raise RefusedError(
            f"regimes: {many(len(panel.latent), 'group')} cannot show {count} regimes of "
            f"{many(len(names), 'parameter')}; at least {needed} are needed.",
            count=count,
            needed=needed,
        )
    return tuple(name for name in panel.parameters if name in names)


class Point(NamedTuple):
    """The costs of every date in every regime at one point, and what follows from them."""

    settlings: list[Settling]  # by regime
    S: Floats  # reduced normal equations, (regimes, dates, q, q)


class End(NamedTuple):
    """The end of one start."""

    theta: list[float]
    at: Point
    chain: Regimes
    A: Floats
    nu: float
    noise: float
    descent: Descent
    rounds: int
    converged: bool


@dataclass(frozen=True, eq=False)
class RegimeSearch:
    """A panel, its regimes, and the coordinates of all their parameters."""

    problem: PanelProblem
    count: int
    shared: tuple[str, ...]
    switching: tuple[int, ...]  # places among the shared parameters
    where: tuple[tuple[int, ...], ...]  # by regime: the place of every shared parameter in theta
    coordinates: Coordinates
    begin: tuple[float, ...]  # the shared parameters of the panel
    freedom: int

    @staticmethod
    def of(panel: Calibration, count: int, names: tuple[str, ...]) -> RegimeSearch:
        """Return the search for these regimes of a panel."""
        assert panel.latent_name is not None
        how = panel.settings
        space = shared_space(panel.model, panel.latent_name)
        switching = tuple(space.names.index(name) for name in names)
        pairs = [
            (i, r) for i, name in enumerate(space.names) for r in range(count if name in names else 1)
        ]  # every parameter of theta, and the regime it is of
        of = [i for i, _ in pairs]
        called = tuple(space.names[i] + (f"[{r + 1}]" if count > 1 and i in switching else "") for i, r in pairs)
        edges = tuple(name for name, i in zip(called, of, strict=True) if space.names[i] in space.edges)
        whole = ParameterSpace(called, space.lower[of], space.upper[of], space.starts[:, of], edges)
        limits = how.bounds or {}
        asked = {called[at]: limits[space.names[i]] for at, i in enumerate(of) if space.names[i] in limits}
        fixed = {name: value for name, value in panel.fixed.items() if name in called}
        coordinates = coordinates_of(whole, bounds=asked, fixed=fixed, enforce_feller=False)
        where = tuple(
            tuple(pairs.index((i, r if i in switching else 0)) for i in range(len(space.names))) for r in range(count)
        )
        estimated = len(coordinates.free)
        return RegimeSearch(
            problem=problem_again(panel.used, panel.rows, panel.model, panel.latent_name, how),
            count=count,
            shared=space.names,
            switching=switching,
            where=where,
            coordinates=coordinates,
            begin=tuple(panel.parameters.values()),
            freedom=max(panel.count - len(panel.latent) - estimated, 1),
        )

    @property
    def start(self) -> list[float]:
        """Theta with the panel's parameters in every regime."""
        theta = [0.0] * len(self.coordinates.names)
        for places_of_regime in self.where:
            for i, at in enumerate(places_of_regime):
                theta[at] = self.begin[i]
        return theta

    def point(self, theta: Sequence[float], near: Point | None = None) -> Point:
        """Return the costs of every date in every regime."""
        size, k = len(self.problem.model.parameters) + 1, self.problem.latent
        settlings, S = [], []
        for r, where in enumerate(self.where):
            close = None if near is None else near.settlings[r]
            found = self.problem.settle([theta[at] for at in where], close, negligible=0.0)
            settlings.append(found)
            S.append(eliminate_each(found.triangles[:, np.array(places(size))], k, found.held))
        return Point(settlings, np.array(S))

    def evaluation(self, u: Sequence[float], theta: Sequence[float], at: Point, p: Floats) -> Evaluation:
        """Return the normal equations of all regimes, each date in each of them with its probability."""
        size = len(theta) + 1
        terms: list[list[list[float]]] = [[[] for _ in range(size)] for _ in range(size)]
        for r, where in enumerate(self.where):
            place = (*where, size - 1)
            weighted = p[:, r, None, None] * at.S[r]
            for i, row in enumerate(place):
                for j, column in enumerate(place[i:], i):
                    low, high = min(row, column), max(row, column)
                    terms[low][high] += weighted[:, i, j].tolist()
        # Sums are correctly rounded, so the order of dates and regimes does not affect them.
        triangle = tuple(fsum(terms[i][j]) for i in range(size) for j in range(i, size))
        return self.coordinates.system(Linearization(triangle, self.problem.objective.count), u, theta)

    def maximise(
        self, theta: Sequence[float], p: Floats, near: Point | None, tolerance: float
    ) -> tuple[Descent, Point]:
        """Return where the expected cost is lowest given the probabilities of regimes, and the costs there."""
        u = [theta[i] for i in self.coordinates.free]
        best: Point | None = near
        lowest = inf

        def evaluate(u: Sequence[float]) -> Evaluation:
            nonlocal best, lowest
            to = self.coordinates.theta(u)
            found = self.point(to, best)
            system = self.evaluation(u, to, found, p)
            if isfinite(system.cost) and system.cost <= lowest:
                best, lowest = found, system.cost
            return system

        limits = self.problem.limits
        convergence = Convergence(self.freedom, self.problem.objective.rounding, None, tolerance)
        end = descend(evaluate, u, box=self.coordinates.box, convergence=convergence, limits=limits)
        # The last costs begin at the start of the latent parameters, so that no way there is in their bits.
        return end, self.point(self.coordinates.theta(end.point), best if tolerance == ROUGH else None)

    def divisions(self) -> list[Floats]:
        """Return canonical divisions of the dates into regimes, as probabilities.

        By the step that each date alone would take in each switching parameter, low to high; and by time.
        """
        if self.count == 1:
            return [np.ones((len(self.problem.objective.parts), 1))]
        at = self.point(self.start)
        orders = []
        for i in self.switching:
            H, G = at.S[0][:, i, i], at.S[0][:, i, -1]
            orders.append(np.argsort(np.where(H > 0.0, G / np.where(H > 0.0, H, 1.0), 0.0), kind="stable"))
        orders.append(np.arange(len(at.S[0])))
        found = []
        for order in orders:
            p = np.zeros((len(order), self.count))
            for r, members in enumerate(np.array_split(order, self.count)):
                p[members, r] = 1.0
            found.append(p)
        return found

    def follow(self, p: Floats, number: int, progress: Progress | None) -> End | None:
        """Return the end of one start; None if a regime loses all its dates."""
        A = np.full((self.count, self.count), (1.0 - STAY) / max(self.count - 1, 1))
        np.fill_diagonal(A, STAY if self.count > 1 else 1.0)
        theta, at, before, settled = self.start, None, -inf, False
        for n in range(ROUNDS + 1):
            if progress is not None:
                progress(number, n)
            if not (np.add.reduce(p, axis=0) > EMPTY).all():
                return None
            last = settled or n == ROUNDS
            # One regime is the panel itself: no step is taken, and its parameters keep their bits.
            tolerance = inf if self.count == 1 else TOLERANCE if last else ROUGH
            descent, at = self.maximise(theta, p, at, tolerance)
            theta = self.coordinates.theta(descent.point)
            nu, noise, e = self.noise(at, p)
            chain = filter_regimes(-0.5 * (len(self.switching) * (LOG_TWO_PI + float(elementary.log(nu))) + e / nu), A)
            if last or self.count == 1:
                return End(theta, at, chain, A, nu, noise, descent, n + 1, settled or self.count == 1)
            settled = abs(chain.log_likelihood - before) <= SETTLED * (1.0 + abs(chain.log_likelihood))
            p, before = chain.smoothed, chain.log_likelihood
            A = _transitions(chain.changes, A)
        raise AssertionError("unreachable")

    def noise(self, at: Point, p: Floats) -> tuple[float, float, Floats]:
        """Return nu, s^2 and e_tr."""
        q, d = at.S[:, :, -1, -1].T, np.array([[self._fall(S) for S in regime] for regime in at.S]).T
        lowest = np.argmin(q, axis=1)
        rows = np.arange(len(q))
        e = q - (q[rows, lowest] - d[rows, lowest])[:, None]
        within = fsum((p * q).ravel().tolist()) / self.freedom
        between = fsum((p * e).ravel().tolist()) / (len(q) * len(self.switching))
        return max(between, within), within, e

    def _fall(self, S: Floats) -> float:
        H = [[float(S[i, j]) for j in self.switching] for i in self.switching]
        G = [float(S[i, -1]) for i in self.switching]
        fall = fsum(g * x for g, x in zip(G, solve(H, G), strict=True))
        return fall if fall > 0.0 else 0.0  # a date that does not determine them: not-a-number

    def result(self, panel: Calibration, end: End, starts: tuple[RegimeStart, ...]) -> RegimePath:
        """Return the regimes in the order of their first switching parameter."""
        assert panel.panel is not None
        assert panel.latent_name is not None
        order = sorted(range(self.count), key=lambda r: end.theta[self.where[r][self.switching[0]]])
        errors = self._errors(end)
        named = [{name: end.theta[at] for name, at in zip(self.shared, self.where[r], strict=True)} for r in order]
        groups = tuple(self.problem.objective.parts)
        most = np.argmax(end.chain.smoothed, axis=1).tolist()
        return RegimePath(
            groups=groups,
            label=panel.panel,
            latent_name=panel.latent_name,
            switching=tuple(self.shared[i] for i in self.switching),
            parameters=tuple(named),
            standard_errors=tuple(
                {name: errors[at] for name, at in zip(self.shared, self.where[r], strict=True)} for r in order
            ),
            smoothed=_frozen(end.chain.smoothed[:, order]),
            filtered=_frozen(end.chain.filtered[:, order]),
            transitions=_frozen(end.A[np.ix_(order, order)]),
            latent={g: float(end.at.settlings[most[t]].latents[t]) for t, g in enumerate(groups)},
            noise=end.nu,
            noise_within=end.noise,
            log_likelihood=end.chain.log_likelihood,
            estimated=len(self.coordinates.free) + self.count * (self.count - 1) + 1,
            # Regimes may determine what a single one does not, so the panel's own end counts for one regime only.
            converged=end.converged and (end.descent.termination.converged if self.count > 1 else panel.converged),
            starts=starts,
            model=panel.model.name,
        )

    def _errors(self, end: End) -> list[float]:
        """Return standard errors of theta given the regimes, with the noise between dates; not-a-number if held."""
        H, held = end.descent.system.curvature, end.descent.held
        kept = [i for i in range(len(end.descent.point)) if i not in held]
        C = inverse([[H[i][j] for j in kept] for i in kept])
        out = [nan] * len(end.theta)
        for n, i in enumerate(kept):
            out[self.coordinates.free[i]] = sqrt(end.nu * C[n][n]) if C[n][n] >= 0.0 else nan
        return out


def _transitions(changes: Floats, A: Floats) -> Floats:
    """Return transition probabilities from the expected numbers of changes; unchanged for a regime without any."""
    found = A.copy()
    for i, row in enumerate(changes.tolist()):
        total = fsum(row)
        if total > 0.0:
            found[i] = [x / total for x in row]
    return found


def _frozen(values: Floats) -> Floats:
    out = np.ascontiguousarray(values)
    out.flags.writeable = False
    return out
