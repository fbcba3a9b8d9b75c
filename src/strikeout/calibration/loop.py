"""Levenberg-Marquardt in a box: from one start to an optimum, the same bits every time.

symbol  meaning
u       the point, in the free coordinates
H, G    curvature and score there
S       second-order part of the curvature, learnt once the steps are small
reach   length of the next Gauss-Newton step in the metric of H (see convergence.py)

How far a step may be trusted: a state machine with two moves, and nothing else in it.

When a step is negligible: in standard errors, or against rounding.

symbol  meaning
reach   sqrt(G' H^-1 G): the length of the Gauss-Newton step in the metric of the curvature. Over the standard
        deviation of a weighted residual it is that step in standard errors, whatever the parameters' units

What Gauss-Newton leaves out of the curvature, learnt from the steps themselves.

    symbol  meaning
    H       Gauss-Newton's curvature, without the second derivatives of the prices
    S       what is added to it
    s, y    the last step, and the score before it less the score after: y is the true curvature times s

Where a model cannot meet the quotes, residuals stay large and the neglected part slows Gauss-Newton to a crawl: 34
evaluations on the DAX of 2002, vega-weighted. The symmetric rank-one update makes ``(H + S) s = y`` after every step,
and the last steps fast again: 12.

Damped steps that stay in a box and follow the valleys of the model.

    symbol  meaning
    u       the point; lower <= u <= upper
    H, G    curvature and score at u
    s       the step, tangent at u; the cost falls by 2 G's - s'Hs to second order
    (i, j)  a pair: coordinate i acts through the product u_i u_j, so steps and damping are those of the product

In Heston's model prices depend on mean_reversion * long_variance and on correlation * vol_of_vol far more than on
either factor alone: in the plain coordinates the cost has valleys curved like hyperbolas, which a search in straight
lines is slow to follow. Along the products they are straight.

The limits of a search are shorter for models whose bounds and starts are known to be good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, sqrt
from operator import lt
from typing import NamedTuple

from strikeout.calibration.termination import Termination
from strikeout.kernels.compiled import native
from strikeout.kernels.symmetric import dot, length, solve
from strikeout.statistics.linearization import Linearization

Matrix = Sequence[Sequence[float]]
Rows = list[list[float]]

SMALLEST = 1e-15
FIRST_GROWTH = 4.0


@dataclass(frozen=True)
class Damping:
    """The damping of Levenberg-Marquardt, ``H + value * D``, and how fast it grows when steps fail.

    A step that lowers the cost about as promised divides the damping by up to 50, so that the last steps are
    Gauss-Newton's; one that delivers less keeps or raises it; one that fails multiplies it, twice as fast each time
    in a row. The first success after a failure divides it by 3 at most: what just failed is not tried again at once.

    >>> Damping().after_success(gain=1.0).value < Damping().value < Damping().after_failure().value
    True
    """

    value: float = 1e-3
    growth: float = FIRST_GROWTH

    def after_success(self, gain: float) -> Damping:
        """``gain`` is the fall of the cost over the fall that was promised."""
        if gain > 0.9:
            factor = 0.02
        elif gain > 0.5:
            factor = 0.2
        elif gain > 0.2:
            factor = 1.0
        else:
            factor = 4.0
        if self.growth > FIRST_GROWTH:
            factor = max(factor, 0.3)
        return Damping(max(self.value * factor, SMALLEST))

    def after_failure(self) -> Damping:
        return Damping(max(self.value, 1e-6) * self.growth, self.growth * 2.0)


@dataclass(frozen=True)
class WaryDamping:
    """Damping for starts from afar: begins as large as the curvature, and no success divides it by more than 3.

    Nielsen (1999), "Damping parameter in Marquardt's method": the factor follows the gain smoothly, so that a step
    which delivers half of what it promised changes nothing.

    >>> WaryDamping().after_success(gain=0.5).value == WaryDamping().value
    True
    """

    value: float = 1.0
    growth: float = 2.0

    def after_success(self, gain: float) -> WaryDamping:
        """``gain`` is the fall of the cost over the fall that was promised."""
        beyond = 2.0 * gain - 1.0
        return WaryDamping(max(self.value * max(1.0 / 3.0, 1.0 - beyond * beyond * beyond), SMALLEST))

    def after_failure(self) -> WaryDamping:
        return WaryDamping(self.value * self.growth, self.growth * 2.0)


TOLERANCE = 1e-8  # standard errors

# A reach below this share of the rounding of the residuals is as good as zero: residuals that vanish end here.
NOTHING = 2e-3
# If no step helps any more, a reach below this many standard errors is taken for rounding.
SMALL = 1e-5


@dataclass(frozen=True)
class Convergence:
    """What the cost of a problem can resolve.

    Args:
        freedom: quotes less free parameters.
        rounding: the length of the rounding errors of all weighted residuals (``Objective.rounding``).
        noise: standard deviation of a weighted residual, if the cost does not estimate it.
        tolerance: in standard errors.
    """

    freedom: int
    rounding: float
    noise: float | None = None
    tolerance: float = TOLERANCE

    def standard_errors(self, reach: float, cost: float) -> float:
        """Return a reach in standard errors; zero if both are zero."""
        noise = self._noise(cost)
        return reach / noise if noise > 0.0 else (0.0 if reach == 0.0 else float("inf"))

    def blur(self, cost: float) -> float:
        """Return a fall of the cost that rounding could have made."""
        return 1e-14 * cost + 2.0 * self.rounding * sqrt(cost if cost > 0.0 else 0.0) + self.rounding * self.rounding

    def ended(self, reach: float, cost: float) -> Termination | None:
        """Converged, not finite, or None: go on."""
        if not isfinite(cost):
            return Termination.NOT_FINITE
        if reach <= self.tolerance * self._noise(cost):
            return Termination.CONVERGED
        return Termination.CONVERGED_TO_ROUNDING if reach <= NOTHING * self.rounding else None

    def resolved(self, reach: float, cost: float) -> Termination:
        """No step helps any more: converged if what is left is rounding, else stalled."""
        # A reach is the length of the residuals along their sensitivities: rounding errors of the residuals add at most
        # their own length to it.
        is_rounding = reach <= SMALL * self._noise(cost) or reach <= self.rounding
        return Termination.CONVERGED_TO_ROUNDING if is_rounding else Termination.STALLED

    def _noise(self, cost: float) -> float:
        # A cost read out of subtracted moments may lie below zero by its rounding.
        return self.noise if self.noise is not None else sqrt((cost if cost > 0.0 else 0.0) / self.freedom)


# The update divides by v's, which may vanish: then the step contains nothing new.
SMALLEST_COSINE = 1e-6


def updated(S: Rows | None, H: Rows, s: Sequence[float], y: Sequence[float]) -> Rows | None:
    """Return S updated by the last step; unchanged if the step contains nothing new."""
    p = len(s)
    known = S or [[0.0] * p for _ in range(p)]
    v = [yi - dot(row, s) for yi, row in zip(y, corrected(H, known), strict=True)]
    # Lengths in the metric of the diagonal: parameters have different units.
    d = [H[i][i] for i in range(p)]
    along = dot(v, s)
    own, new = 0.0, 0.0
    for di, vi, si in zip(d, v, s, strict=True):
        own += di * si * si
        new += vi * vi / di if di > 0.0 else 0.0
    lengths = new * own
    if not along * along > SMALLEST_COSINE * SMALLEST_COSINE * lengths:
        return S
    return [[known[i][j] + v[i] * v[j] / along for j in range(p)] for i in range(p)]


def corrected(H: Rows, S: Rows | None) -> Rows:
    """``H + S``."""
    return H if S is None else [[h + S[i][j] for j, h in enumerate(row)] for i, row in enumerate(H)]


# One step moves a positive coordinate by this factor at most, any other by this share of the way to its wall (and all
# the way once it is this near): the first steps from afar are wild, and one that lands on a wall is slow to leave it.
FACTOR = 3.0
SHARE = 0.7
NEAR = 0.02
# A coordinate on its way to zero would take these steps for ever smaller gains, until none exceeds rounding:
# once a step is cut short of an edge by less than this many times its bound, it is moved to the edge.
EDGE = 1000.0


@dataclass(frozen=True)
class Box:
    """Bounds of the coordinates, which of them act through products, and whose lower bounds represent zero."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    edges: tuple[int, ...] = ()

    def pushed(self, u: Sequence[float], G: Sequence[float]) -> tuple[int, ...]:
        """Return the coordinates on a wall that the cost pushes against; they are held there."""
        lower, upper = self.lower, self.upper
        if all(map(lt, lower, u)) and all(map(lt, u, upper)):  # nearly always
            return ()
        walls = [i for i, x in enumerate(u) if x <= lower[i] or x >= upper[i]]
        return tuple(i for i in walls if (G[i] < 0.0 and u[i] <= lower[i]) or (G[i] > 0.0 and u[i] >= upper[i]))

    def straight(self, u: Sequence[float], to: Sequence[float]) -> list[float]:
        """Return the step s at u that leads to ``to`` if nothing stops it: straight in the products."""
        s = [b - a for a, b in zip(u, to, strict=True)]
        for i, j in self.pairs:
            s[i] *= to[j] / u[j]
        return s

    def step(
        self, u: Sequence[float], H: Matrix, G: Sequence[float], damping: float, *, scale: Sequence[float] | None = None
    ) -> tuple[list[float], float]:
        """Return where the damped Gauss-Newton step leads, and the fall of the cost it promises.

        Damping is relative to ``scale``, one number per coordinate; to the diagonal of H by default.
        Coordinates that would go too far stop, the one that overshoots most first, and the others are solved again
        given that.
        """
        module = native()
        if module is None:
            return self.step_twin(u, H, G, damping, scale=scale)
        size = None if scale is None else list(scale)
        lower, upper, pairs, _, (factor, share, near, _) = self.given
        found: tuple[list[float], float] = module.box_step(
            list(u), H, list(G), damping, size, lower, upper, pairs, factor, share, near
        )
        return self._to_edges(u, *found)

    @cached_property
    def given(self) -> tuple[list[float], list[float], tuple[tuple[int, int], ...], tuple[int, ...], tuple[float, ...]]:
        """What the compiled code is given."""
        return list(self.lower), list(self.upper), self.pairs, self.edges, (FACTOR, SHARE, NEAR, EDGE)

    def step_twin(
        self, u: Sequence[float], H: Matrix, G: Sequence[float], damping: float, *, scale: Sequence[float] | None = None
    ) -> tuple[list[float], float]:
        """``step`` without compiled code, and its definition."""
        A = self._damped(u, H, damping) if scale is None else _added(H, damping, scale)
        lower, upper = self._stride(u)
        s, stops = _strides(u, A, G, lower, upper, self.pushed(u, G))
        to = [stops.get(i, min(max(a + s[i], lower[i]), upper[i])) for i, a in enumerate(u)]
        for i, j in self.pairs:  # straight in the product is curved in u
            if i not in stops:
                to[i] = min(max(u[i] + s[i] * (u[j] / to[j]), lower[i]), upper[i])
        return self._to_edges(u, to, _promised(H, G, s))

    def _to_edges(self, u: Sequence[float], to: list[float], promised: float) -> tuple[list[float], float]:
        """Return the step, with coordinates that were stopped next to an edge taken there."""
        for i in self.edges:
            if to[i] <= u[i] / FACTOR and to[i] < EDGE * self.lower[i]:
                to[i] = self.lower[i]
        return to, promised

    def _damped(self, u: Sequence[float], H: Matrix, damping: float) -> list[list[float]]:
        """``H + damping * D``, with D the diagonal of the curvature in the products, carried back to u."""
        A = [list(row) for row in H]
        extra = [row[i] for i, row in enumerate(H)]
        for i, j in self.pairs:
            r, h = u[i] / u[j], damping * H[i][i]
            extra[i] = 0.0
            extra[j] = max(extra[j] + r * (r * H[i][i] - 2.0 * H[i][j]), 0.0)
            A[i][i] += h
            A[i][j] += h * r
            A[j][i] += h * r
            A[j][j] += h * r * r
        for k, d in enumerate(extra):
            A[k][k] += damping * d
        return A

    def _stride(self, u: Sequence[float]) -> tuple[list[float], list[float]]:
        lower, upper = [], []
        for i, x in enumerate(u):
            lo, hi = self.lower[i], self.upper[i]
            if lo > 0.0:
                lower.append(max(lo, x / FACTOR))
                upper.append(min(hi, x * FACTOR))
            else:
                near = NEAR * (hi - lo)
                lower.append(lo if x - lo < near else x + SHARE * (lo - x))
                upper.append(hi if hi - x < near else x + SHARE * (hi - x))
        return lower, upper


def _strides(
    u: Sequence[float],
    A: Matrix,
    G: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    held: Iterable[int],
) -> tuple[list[float], dict[int, float]]:
    """Return steps that solve ``A s = G`` within their strides, and where the coordinates stand that were stopped by
    them."""
    s = [0.0] * len(u)
    stops = {i: u[i] for i in held}
    free = [i for i in range(len(u)) if i not in stops]
    while free:
        x = solve([[A[i][j] for j in free] for i in free], [G[i] - _moved(A[i], s, stops) for i in free])
        over, worst = 1.0, -1
        for n, i in enumerate(free):
            s[i] = xi = x[n]
            room = upper[i] - u[i] if xi > 0.0 else lower[i] - u[i]
            if abs(xi) > over * abs(room):
                over, worst = (xi / room if room != 0.0 else inf), i
        if worst < 0:
            break
        stops[worst] = upper[worst] if s[worst] > 0.0 else lower[worst]
        s[worst] = stops[worst] - u[worst]
        free.remove(worst)
    return s, stops


def _moved(row: Sequence[float], s: Sequence[float], stops: Iterable[int]) -> float:
    total = 0.0  # not sum(), which adds with a correction from Python 3.12 on
    for j in stops:
        total += row[j] * s[j]
    return total


def _added(H: Matrix, damping: float, scale: Sequence[float]) -> list[list[float]]:
    A = [list(row) for row in H]
    for i, d in enumerate(scale):
        A[i][i] += damping * d
    return A


def _promised(H: Matrix, G: Sequence[float], s: Sequence[float]) -> float:
    total = 0.0
    for i, row in enumerate(H):
        inner = 2.0 * G[i]
        for j, x in enumerate(s):
            inner -= row[j] * x
        total += s[i] * inner
    return total


@dataclass(frozen=True)
class Limits:
    """What a search may spend, and how wary it is.

    Args:
        cap: evaluations of the model.
        damping: of the first step.
        keeps_scale: damping is relative to the largest curvature met so far in each coordinate (More, 1978), not to the
            one at hand: a coordinate that does not matter for the moment does not run away.
        tolerance: in standard errors.
    """

    cap: int
    damping: Damping | WaryDamping
    keeps_scale: bool
    tolerance: float


# Runs from canonical starts inside bounds take 6 to 60 evaluations.
BUILTIN = Limits(cap=200, damping=Damping(), keeps_scale=False, tolerance=TOLERANCE)
# Curves with flat valleys, of one expiry each: cheap evaluations, of which some take many.
CURVE = Limits(cap=2000, damping=Damping(), keeps_scale=False, tolerance=TOLERANCE)
# An author's start may be anywhere, and nothing holds a step back: NIST's hardest takes 1,040 evaluations.
CUSTOM = Limits(cap=3000, damping=WaryDamping(), keeps_scale=True, tolerance=1e-10)


PATIENCE = 25  # failed steps in a row
# Information below this share of a coordinate's own is none: it keeps the reach finite where a direction is lost.
RIDGE = 1e-14
# The second-order part is learnt from steps below this many standard errors (longer ones mix in the third) and used
# for such alone: kept for longer ones, it can hold a search on NIST's MGH17 to ever smaller steps, if the last bits are
# so. It is learnt only if Gauss-Newton shortens the next step by less than this factor: otherwise there is nothing
# to learn.
LOCAL = 1.0
SLOW = 0.01


class Evaluation(NamedTuple):
    """The normal equations in the free coordinates, and those of the parameters they came from."""

    curvature: Rows
    score: list[float]
    cost: float
    equations: Linearization


class Visit(NamedTuple):
    """One accepted point on the way."""

    cost: float
    gradient: float  # the next Gauss-Newton step in standard errors
    damping: float
    point: tuple[float, ...]
    evaluations: int  # so far


@dataclass(frozen=True)
class Descent:
    """Where one start ended."""

    point: list[float]
    system: Evaluation
    termination: Termination
    visits: tuple[Visit, ...]
    evaluations: int
    held: tuple[int, ...]  # coordinates on a bound that the cost pushes against


Evaluate = Callable[[Sequence[float]], Evaluation]
Watch = Callable[[Sequence[float], Evaluation, Visit], Termination | None]


def descend(
    evaluate: Evaluate,
    start: Sequence[float],
    *,
    box: Box,
    convergence: Convergence,
    watch: Watch | None = None,
    limits: Limits = BUILTIN,
) -> Descent:
    """Follow the cost down from ``start`` until the next step is negligible.

    ``watch`` looks at every accepted point and may end the search with a reason.
    """
    u, at = list(start), evaluate(start)
    damping, evaluations, refused = limits.damping, 1, 0
    scale = _grown(None, at.curvature) if limits.keeps_scale else None
    S: Rows | None = None
    reach = _reach(at, box.pushed(u, at.score))
    visits = [Visit(at.cost, convergence.standard_errors(reach, at.cost), damping.value, tuple(u), 1)]
    while True:
        ended = convergence.ended(reach, at.cost)
        if watch is not None and not refused:
            ended = watch(u, at, visits[-1]) or ended
        if ended is None and evaluations >= limits.cap:
            ended = Termination.CAP
        if ended is not None:
            break
        trial, promised = box.step(u, corrected(at.curvature, S), at.score, damping.value, scale=scale)
        if S is not None and not promised > 0.0:  # the correction made the curvature indefinite: forget it
            S = None
            continue
        blur, accepted, gain = convergence.blur(at.cost), False, 1.0
        if promised > 0.0 and trial != u:
            new = evaluate(trial)
            evaluations += 1
            fall = at.cost - new.cost
            if promised > blur:
                accepted, gain = fall > 1e-3 * promised, fall / promised
            elif fall > -2.0 * blur:  # the cost no longer resolves the difference; the score does
                accepted = _reach(new, box.pushed(trial, new.score)) < 0.9 * reach
        if accepted:
            before, reach = reach, _reach(new, box.pushed(trial, new.score))
            gradient = convergence.standard_errors(reach, new.cost)
            if not gradient < LOCAL:
                S = None
            elif visits[-1].gradient < LOCAL and reach > SLOW * before:
                s = [b - a for a, b in zip(u, trial, strict=True)]
                y = [a - b for a, b in zip(at.score, new.score, strict=True)]
                S = updated(S, new.curvature, s, y)
            u, at, refused = trial, new, 0
            scale = scale and _grown(scale, at.curvature)
            damping = damping.after_success(gain)
            visits.append(Visit(at.cost, gradient, damping.value, tuple(u), evaluations))
            continue
        refused += 1
        damping = damping.after_failure()
        if S is not None:
            S = None
        elif trial == u or promised <= blur or refused > PATIENCE:
            ended = convergence.resolved(reach, at.cost)
            # Huber's score bends where a residual crosses the threshold: a shorter step may still lower it.
            if ended.converged or trial == u or refused > PATIENCE:
                break
    return Descent(u, at, ended, tuple(visits), evaluations, box.pushed(u, at.score))


def _grown(scale: list[float] | None, H: Rows) -> list[float]:
    """Return the largest curvature met so far, a coordinate."""
    return [max(row[i], scale[i] if scale else 0.0) for i, row in enumerate(H)]


def _reach(at: Evaluation, held: tuple[int, ...]) -> float:
    H, G = at.curvature, at.score
    if held:
        free = [i for i in range(len(G)) if i not in held]
        H, G = [[H[i][j] for j in free] for i in free], [G[i] for i in free]
    return length(H, G, RIDGE)
