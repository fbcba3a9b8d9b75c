"""American options under Black-Scholes dynamics with a continuous yield, by collocation of the exercise boundary.

    symbol   meaning                                                        shape
    S, K     spot and strike; a put with strike 1 and ln spot x inside      quotes
    T        years to expiry; tau is time left, s = tau - v time elapsed    quotes
    r, q     rate and dividend yield; sigma volatility                      quotes
    B(tau)   spot at and below which a put is exercised; b = ln B           n nodes
    H        (b - b(0))^2, a polynomial of sqrt(tau) by its values          n nodes
    N, D     both sides of the boundary's equation: b = ln(N / D)           n nodes

The boundary solves a fixed point of Kim's integral equation (Andersen, Lake and Offengenden, "High-performance American
option pricing", 2016): its values at Chebyshev nodes of sqrt(tau), begun at Li's QD+ approximation, and improved in
rounds. All integrals run over an angle a with s = tau sin(a)^2, v = tau cos(a)^2, which makes the square roots at both
ends smooth; the rule is Gauss-Legendre's. The points at which H is needed are then the same for every option, so
that a fixed table of Lagrange polynomials gives H there. Below 2 (r - q) / sigma^2 = 4 the fixed point is that of the
slope at the boundary (the paper's A), above that of the value (B).

A call is a put with spot and strike, rate and yield exchanged (McDonald and Schroder). For a put with q < r < 0 the
exercise region lies between two boundaries. Above the upper one the value depends on that one alone, below the lower
one on the lower one alone, so each has its own equation; they may meet, and before that time exercise is never optimal.

Every option is solved alone, on one of five fixed resolutions chosen by its own Chebyshev coefficients: its bits do not
depend on other options. Implied volatilities are searched at the lowest one, and corrected at the one that is needed.
native/american.cpp is the same, compiled, and agrees to rounding. Nothing raises; options without an answer give
not-a-number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from strikeout.kernels import black
from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.compiled import native, threads
from strikeout.kernels.elementary import cos, exp, expm1, log, log1p, sin
from strikeout.kernels.normal import CENTRE, COEFFICIENTS, cdf_twin, density_twin

GUESSES, ROUNDS, LONG_ROUNDS, TRIALS, HORIZONS = 4, 120, 400, 80, 40
STEEP = 4.0  # 2 (r - q) / sigma^2
PACE = 0.6388  # of the boundary for small times: ln B = ln B(0) - PACE sigma sqrt(tau) if r < q, and steeper if not
LOST = 1e-5  # a last step of ln B above this is not an answer
DIFFERENCE = 1e-4  # of the volatility, for vega
ROUGHLY = 1e-5  # a last step of ln B after which the boundary's Chebyshev coefficients show its resolution
NEAR = 3e-3  # a step of the implied volatility, relative to it, after which the resolution is chosen
SETTLED = 2e-5  # one after which the next is not needed: its slope is known to a thousandth or better
HIGHEST, LOWEST = 20.0, 1e-4  # implied volatilities outside are not looked for


@dataclass(frozen=True, eq=False)
class Nodes:
    """The fixed tables of one resolution: n nodes of the boundary, l points per integral, p points of the premium."""

    x: Floats  # n
    coefficients: Floats  # (n + 1, n + 1)
    angle: Floats  # (3, l): sine, cosine, weight
    basis: Floats  # (n, n, l): [i, k, j]
    price_angle: Floats  # (3, p)
    price_basis: Floats  # (n, p)

    def flat(self) -> list[Floats]:
        tables = (self.x, self.coefficients, self.angle, self.basis, self.price_angle, self.price_basis)
        return [np.ascontiguousarray(table).reshape(-1) for table in tables]


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Resolutions from coarse to fine, and what decides between them."""

    levels: tuple[Nodes, ...]
    step: float  # the last step of ln B, at most
    tail: float  # ``Boundary.tail``, at most; else more nodes
    settled: float  # what is left of an implied volatility, relative to it


@cache
def accuracy_of(fine: bool) -> Accuracy:
    """Return the nodes for 1e-8 of spot, or for 1e-10."""
    if fine:
        levels = nodes(12, 16, 128), nodes(16, 24, 128), nodes(24, 24, 192), nodes(32, 32, 256), nodes(56, 56, 256)
        return Accuracy(levels, 1e-10, 3e-8, 1e-11)
    levels = nodes(8, 8, 32), nodes(12, 16, 64), nodes(16, 16, 64), nodes(24, 24, 128), nodes(48, 48, 192)
    return Accuracy(levels, 1e-7, 4e-6, 3e-9)


@cache
def nodes(n: int, l: int, p: int) -> Nodes:  # noqa: E741
    """Return tables of a resolution; sines and cosines are the package's own, so that they have the same bits
    everywhere."""
    steps = np.arange(n + 1)
    z = cos(np.pi * steps / n)
    matrix = cos(np.pi * (np.outer(steps, steps) % (2 * n)) / n) * (2.0 / n)
    matrix[:, [0, -1]] *= 0.5
    matrix[[0, -1]] *= 0.5
    x = 0.5 * (1.0 + z[:n])
    angle, price_angle = _angles(l), _angles(p)
    basis = np.stack([_lagrange(z, 2.0 * x_i * angle[1] - 1.0)[:n] for x_i in x])
    return Nodes(x, matrix, angle, basis, price_angle, _lagrange(z, 2.0 * price_angle[1] - 1.0)[:n])


def _angles(count: int) -> Floats:
    """Sine, cosine and weight of Gauss-Legendre's rule for angles from 0 to a right angle."""
    t = cos(np.pi * (np.arange(count) + 0.75) / (count + 0.5))
    slope = np.ones(count)
    for _ in range(8):  # Newton's steps; the fourth ends at rounding
        now, before = t, np.ones(count)
        for k in range(2, count + 1):
            now, before = ((2 * k - 1) * t * now - (k - 1) * before) / k, now
        slope = count * (t * now - before) / (t * t - 1.0)
        t = t - now / slope
    angle = 0.25 * np.pi * (1.0 - t)
    return np.stack([sin(angle), cos(angle), 0.5 * np.pi / ((1.0 - t * t) * slope * slope)])


def _lagrange(z: Floats, at: Floats) -> Floats:
    """Return the Lagrange polynomials of the nodes z (Chebyshev's, ends included) at other points: (nodes, points)."""
    sign = np.where(np.arange(len(z)) % 2 == 0, 1.0, -1.0)
    sign[[0, -1]] *= 0.5
    apart = at[None, :] - z[:, None]
    hit = apart == 0.0
    share = sign[:, None] / np.where(hit, 1.0, apart)
    total = np.zeros(len(at))
    for row in share:  # one after the other: a sum's order is part of its bits
        total = total + row
    return np.where(hit.any(axis=0), hit.astype(float), share / total)


def prices(columns: list[Floats], is_call: Mask, *, fine: bool, vega: bool) -> Floats:
    """Return price, premium over the European option, and vega if asked for: one row each.

    Args:
        columns: spot, strike, expiry, rate, yield, volatility; one length, contiguous.
    """
    count = len(is_call)
    out = np.empty((3 if vega else 2, count))
    compiled = _compiled(fine)
    if compiled is not None:
        compiled.prices(columns, is_call, vega, out.reshape(-1), threads())
        return out
    accuracy = accuracy_of(fine)
    with np.errstate(all="ignore"):
        for i in range(count):
            out[:, i] = price_twin([float(column[i]) for column in columns], bool(is_call[i]), accuracy, vega=vega)
    return out


def volatilities(price: Floats, columns: list[Floats], is_call: Mask, *, fine: bool) -> Floats:
    """Return the volatility at which each American option has its price.

    Args:
        columns: as for ``prices``; the volatility there is where to begin, the European implied one or not-a-number.
    """
    out = np.empty(len(is_call))
    compiled = _compiled(fine)
    if compiled is not None:
        compiled.volatilities(price, columns, is_call, out, threads())
        return out
    accuracy = accuracy_of(fine)
    with np.errstate(all="ignore"):
        for i in range(len(out)):
            given = [float(column[i]) for column in columns]
            out[i] = volatility_twin(float(price[i]), given, bool(is_call[i]), accuracy)
    return out


@cache
def _compiled(fine: bool) -> Any:
    module = native()
    if module is None:
        return None
    of = accuracy_of(fine)
    tables = [level.flat() for level in of.levels]
    return module.American(tables, np.array(COEFFICIENTS), CENTRE, of.step, of.tail, of.settled)


@dataclass(frozen=True)
class Terms:
    """One option as a put with strike 1."""

    r: float
    q: float
    sigma: float
    T: float
    x: float  # ln(spot / strike)
    unit: float
    share: float  # spot over the unit of the price, 1 at most: errors are counted in spots

    @property
    def mu(self) -> float:
        return self.r - self.q - 0.5 * self.sigma * self.sigma

    @property
    def boundaries(self) -> int:
        if self.r > 0.0 or (self.r == 0.0 and self.q < 0.0):
            return 1
        return 2 if self.q < self.r < 0.0 else 0

    @property
    def sound(self) -> bool:
        numbers = (self.sigma, self.T, self.r, self.q, self.x)
        return self.sigma > 0.0 and self.T > 0.0 and all(map(isfinite, numbers))

    def at(self, sigma: float) -> Terms:
        return replace(self, sigma=sigma)


def terms(given: list[float], is_call: bool) -> Terms:
    S, K, T, r, q, sigma = given
    x = nan
    if 0.0 < S < inf and 0.0 < K < inf:
        away = float(log1p(abs(S - K) / min(S, K)))
        x = -away if S < K else away
    return Terms(q, r, sigma, T, -x, S, 1.0) if is_call else Terms(r, q, sigma, T, x, K, S / K if S < K else 1.0)


@dataclass(frozen=True, eq=False)
class Boundary:
    """ln B at the nodes."""

    of: Nodes
    sigma: float
    start: float  # at tau = 0
    sign: float  # -1 if it falls with tau, 1 if it rises
    b: Floats
    step: float  # of the last round
    horizon: float  # the longest time left, that of the first node

    @property
    def H(self) -> Floats:  # noqa: N802
        away: Floats = self.b - self.start
        return away * away

    @property
    def tail(self) -> float:
        """The largest of the last three Chebyshev coefficients of H, over b - b(0) at expiry."""
        return float(np.max(np.abs(self.series()[-3:]))) / abs(float(self.b[0]) - self.start)

    def series(self) -> Floats:
        found: Floats = (self.of.coefficients[:, :-1] * self.H).sum(axis=1)
        return found

    def values(self, H: Floats) -> Floats:
        return self.start + self.sign * np.sqrt(np.maximum(H, 0.0))

    def at(self, z: Floats) -> Floats:
        c = self.series()
        one, two = np.zeros_like(z), np.zeros_like(z)
        for k in range(len(c) - 1, 0, -1):
            one, two = 2.0 * z * one - two + c[k], one
        return self.values(z * one - two + c[0])


def price_twin(given: list[float], is_call: bool, accuracy: Accuracy, *, vega: bool) -> list[float]:
    """``prices`` of one option without compiled code, and their definition."""
    t = terms(given, is_call)
    if not t.sound:
        return [nan] * (3 if vega else 2)
    of, found = _resolved(t, accuracy, ())
    price, premium = _value(t, of, found)
    out = [t.unit * price, t.unit * premium]
    if vega:
        side = []
        for sigma in (t.sigma * (1.0 + DIFFERENCE), t.sigma * (1.0 - DIFFERENCE)):
            found = _solve(t.at(sigma), of, 1e-12, found)
            side.append(_value(t.at(sigma), of, found)[0])
        out.append(t.unit * (side[0] - side[1]) / (2.0 * DIFFERENCE * t.sigma))
    return out


def volatility_twin(price: float, given: list[float], is_call: bool, accuracy: Accuracy) -> float:
    """``volatilities`` of one option without compiled code: secant steps inside a bracket that only ever shrinks."""
    t = terms(given, is_call)
    start, target, now = t.sigma, price / t.unit if t.unit else nan, -float(expm1(t.x))
    t = t.at(start if 0.0 < start < HIGHEST else 0.5)
    if not t.sound or not target > 0.0 or not target > now:
        return nan
    if t.boundaries == 0:
        return start
    least = accuracy.step * t.share
    low, high, before, before_f, change, slope, apart = 0.0, inf, 0.0, 0.0, 0.1 * t.sigma, 0.0, 1.0
    of, is_chosen = accuracy.levels[0], False
    found: tuple[Boundary, ...] = ()
    for trial in range(TRIALS):
        share = abs(change) / t.sigma
        choose = not is_chosen and trial > 0 and share <= NEAR
        wanted = least if is_chosen else max(1e-3 * share, least)
        if choose:
            of, found = _resolved(t, accuracy, found)
            is_chosen, low, high = True, 0.0, inf
        else:
            found = _solve(t, of, wanted, found)
        value, premium = _value(t, of, found, max(wanted, LOST))
        f = value - target
        if f != f:
            return nan
        if f == 0.0:
            return t.sigma
        low, high = (t.sigma, high) if f < 0.0 else (low, t.sigma)
        if trial == 0:
            sd = t.sigma * np.sqrt(t.T)
            d = (t.x + (t.r - t.q) * t.T) / sd + 0.5 * sd
            slope = float(exp(t.x - t.q * t.T) * density_twin(np.asarray(d)) * np.sqrt(t.T))
            is_chosen = premium <= 0.01 * least  # every resolution gives it to a share of itself
        elif choose and of is not accuracy.levels[0]:
            apart += share  # the slope of the lowest resolution is better than one between two resolutions
        else:
            slope, apart = (f - before_f) / (t.sigma - before), share
        following = t.sigma - f / slope if slope else nan
        inside, left = low < following < high, abs(following - t.sigma) / t.sigma
        if inside and is_chosen and left <= SETTLED and left * apart <= accuracy.settled:
            return following
        if not inside:
            following = 2.0 * t.sigma if high == inf else 0.5 * (low + high)
        if not LOWEST <= following <= HIGHEST:
            return nan
        before, before_f, change = t.sigma, f, following - t.sigma
        t = t.at(following)
        if is_chosen and not high - low > 1e-15 * t.sigma:
            return t.sigma
    return nan


def _resolved(t: Terms, accuracy: Accuracy, warm: tuple[Boundary, ...]) -> tuple[Nodes, tuple[Boundary, ...]]:
    """Return the resolution that this option needs, and its boundaries there."""
    wanted, found = accuracy.step * t.share, warm
    for of in accuracy.levels[:-1]:
        if t.boundaries == 1:  # whether it is enough shows before the last rounds
            found = _solve(t, of, max(wanted, ROUGHLY), found)
            if _is_rough(t, found, accuracy):
                continue
        found = _solve(t, of, wanted, found)
        if found[0].step <= LOST if t.boundaries == 1 else not _is_rough(t, found, accuracy):
            return of, found
    return accuracy.levels[-1], _solve(t, accuracy.levels[-1], wanted, found)


def _is_rough(t: Terms, found: tuple[Boundary, ...], accuracy: Accuracy) -> bool:
    """Return whether the price needs more nodes: the tail times how much the premium depends on the boundary."""
    rates = (abs(t.r) + abs(t.q)) * np.sqrt(t.T)
    return any(not each.tail * rates <= accuracy.tail * t.share * t.sigma for each in found)


def _solve(t: Terms, of: Nodes, wanted: float, warm: tuple[Boundary, ...]) -> tuple[Boundary, ...]:
    """Return the boundaries at one resolution, upper one first; a single one is begun at ``warm`` if there is any."""
    if t.boundaries == 0:
        return ()
    if t.boundaries == 1:
        begun = _carried(t, of, warm[0]) if warm and warm[0].step <= 1e-3 else None
        if begun is None:
            start = float(log(t.r / t.q)) if 0.0 <= t.r < t.q else 0.0
            begun = Boundary(of, t.sigma, start, -1.0, _guess(t, of, start), inf, t.T)
        return (_iterate(t, begun, wanted),)
    # Past the time at which they meet the equations may have no solution: then a shorter horizon, which still has
    # the meeting.
    wanted = min(wanted, 0.1 * LOST)  # whether they meet is decided by what is found
    known, unknown = 0.0, t.T
    found = _solve_two(t, of, wanted, t.T)
    for _ in range(HORIZONS):
        is_found = all(each.step <= LOST for each in found)
        if is_found and (found[0].horizon == t.T or _meeting(found) < 1.0):
            return found
        known, unknown = (found[0].horizon, unknown) if is_found else (known, found[0].horizon)
        found = _solve_two(t, of, wanted, 0.5 * (known + unknown))
    if all(each.step <= LOST for each in found) and _meeting(found) < 1.0:
        return found
    return tuple(replace(each, step=nan) for each in found)


def _carried(t: Terms, of: Nodes, warm: Boundary) -> Boundary:
    """Return the boundary of another volatility or resolution as a beginning; itself if both are the same."""
    if warm.of is of and warm.sigma == t.sigma:
        return warm
    b = warm.b if warm.of is of else warm.at(2.0 * of.x - 1.0)
    ratio = t.sigma / warm.sigma  # ln B - ln B(0) is about proportional to the volatility
    return replace(warm, of=of, sigma=t.sigma, b=warm.start + ratio * (b - warm.start), step=inf)


def _solve_two(t: Terms, of: Nodes, wanted: float, horizon: float) -> tuple[Boundary, ...]:
    """Return two boundaries, for times left up to ``horizon``."""
    part = replace(t, T=horizon)
    found = []
    for start, sign in ((0.0, -1.0), (float(log(t.r / t.q)), 1.0)):
        begun = Boundary(of, t.sigma, start, sign, _guess_two(part, of, start, sign), inf, horizon)
        found.append(_iterate(part, begun, wanted))
    return tuple(found)


def _guess(t: Terms, of: Nodes, start: float) -> Floats:
    """Li's QD+ approximation, by Newton's steps in ln B that leave its correction term out of the slope."""
    s2, r, q = t.sigma * t.sigma, t.r, t.q
    omega, slope = 2.0 * (r - q) / s2, (-t.mu - np.sqrt(t.mu * t.mu + 2.0 * r * s2)) / s2
    lasting = slope / (slope - 1.0)
    high, higher, low = 1.0 / float(exp(start)), 1.0 / lasting, float(log(lasting))
    tau = t.T * of.x * of.x
    st = np.sqrt(tau)
    vt = t.sigma * st
    fall = np.minimum(-((q - r) * tau + 2.0 * vt) * (high / (higher - high)), 0.0)
    b = -log(high + (higher - high) * (1.0 - exp(fall)))
    rt = r * tau
    er, eq, h = exp(-rt), exp(-q * tau), -expm1(-rt)
    a = (2.0 / (s2 * tau)) * np.where(rt == 0.0, 1.0, rt / np.where(h == 0.0, 1.0, h))
    wide = np.sqrt((omega - 1.0) * (omega - 1.0) + 4.0 * a)
    lam = -0.5 * ((omega - 1.0) + wide)
    for _ in range(GUESSES):
        B, dm = exp(b), (b + t.mu * tau) / vt
        dp = dm + vt
        A, cash = eq * cdf_twin(-dp), er * cdf_twin(-dm)
        gap = np.maximum(1.0 - B - (cash - B * A), 1e-10)
        theta = r * cash - q * B * A - t.sigma * B / (2.0 * st) * eq * density_twin(dp)
        correction = er / wide * ((a - a * a / (wide * wide)) * gap - 2.0 / s2 * theta / er)
        f = (1.0 - A) * B + lam * gap + correction
        following = b - f / (B * ((1.0 - A) * (1.0 - lam) + eq * density_twin(dp) / vt))
        b = np.minimum(np.maximum(np.where(np.isnan(following), b, following), low), start - PACE * vt)
    found: Floats = b
    return found


def _guess_two(t: Terms, of: Nodes, start: float, sign: float) -> Floats:
    """Square roots of time, each at most half of the way to the other boundary."""
    pace = 1.5 if sign < 0.0 else PACE
    away = np.minimum(pace * t.sigma * np.sqrt(t.T) * of.x, 0.5 * float(log(t.q / t.r)))
    found: Floats = start + sign * away
    return found


def _iterate(t: Terms, begun: Boundary, wanted: float) -> Boundary:
    """Rounds of the fixed point until ln B moves by no more than ``wanted``."""
    of = begun.of
    is_lower, is_steep = begun.sign > 0.0, 2.0 * (t.r - t.q) > STEEP * t.sigma * t.sigma
    sine, cosine, weight = of.angle
    tau = t.T * of.x * of.x
    s, ds = tau[:, None] * sine * sine, 2.0 * tau[:, None] * sine * cosine * weight
    vt = t.sigma * np.sqrt(tau)
    sd = vt[:, None] * sine
    r_weight, q_weight, drift = t.r * exp(-t.r * s) * ds, t.q * exp(-t.q * s) * ds, t.mu * s
    er, eq = exp(-t.r * tau), exp(-t.q * tau)
    now = begun
    if is_steep and not is_lower:
        wanted *= 0.001  # it converges slowly: what is left is more than the last step
    for _ in range(LONG_ROUNDS if t.boundaries == 2 else ROUNDS):
        if not now.step > wanted:
            break
        H = np.zeros_like(s)
        for k, value in enumerate(now.H):
            H = H + of.basis[:, k, :] * value
        dm = (now.b[:, None] - now.values(H) + drift) / sd
        dp, d = dm + sd, (now.b + t.mu * tau) / vt
        if is_lower:
            N = -(r_weight * density_twin(dm) / sd).sum(axis=1)
            D = (q_weight * (cdf_twin(-dp) - density_twin(dp) / sd)).sum(axis=1)
        elif is_steep:
            N = er * cdf_twin(d) + (r_weight * cdf_twin(dm)).sum(axis=1)
            D = eq * cdf_twin(d + vt) + (q_weight * cdf_twin(dp)).sum(axis=1)
        else:
            N = er * density_twin(d) / vt + (r_weight * density_twin(dm) / sd).sum(axis=1)
            D = eq * (cdf_twin(d + vt) + density_twin(d + vt) / vt)
            D = D + (q_weight * (cdf_twin(dp) + density_twin(dp) / sd)).sum(axis=1)
        b = log(N / D)
        b = np.maximum(b, now.start) if is_lower else np.minimum(b, now.start)
        now = replace(now, b=b, step=float(np.max(np.abs(b - now.b))))
    return now


def _value(t: Terms, of: Nodes, found: tuple[Boundary, ...], most: float = LOST) -> tuple[float, float]:
    """Return price and premium of the put with strike 1."""
    forward, discount = float(exp(t.x + (t.r - t.q) * t.T)), float(exp(-t.r * t.T))
    F, K, T, sigma, D = (np.array([number]) for number in (forward, 1.0, t.T, t.sigma, discount))
    plain = float(black.price_twin(F, K, T, sigma, D, np.array([False]))[0])
    now = -float(expm1(t.x))
    if not found:
        return plain, 0.0
    if any(not each.step <= most for each in found):
        return nan, nan
    sine, cosine, weight = of.price_angle
    meet = 1.0
    if len(found) == 1:
        if t.x <= found[0].b[0]:
            return now, now - plain
        H = np.zeros(len(sine))
        for k, value in enumerate(found[0].H):
            H = H + of.price_basis[k] * value
        boundaries = [found[0].values(H)]
    else:
        meet = _meeting(found)
        if meet == 1.0 and found[1].b[0] <= t.x <= found[0].b[0]:
            return now, now - plain
        boundaries = [each.at(2.0 * meet * cosine - 1.0) for each in found]
    latest = found[0].horizon * meet * meet  # time left; with more of it exercise is never optimal
    s = (t.T - latest) + latest * sine * sine
    ds, sd = 2.0 * latest * sine * cosine * weight, t.sigma * np.sqrt(s)
    cash, stock = np.zeros_like(s), np.zeros_like(s)
    for sign, b in zip((1.0, -1.0), boundaries, strict=False):
        dm = (t.x - b + t.mu * s) / sd
        cash, stock = cash + sign * cdf_twin(-dm), stock + sign * cdf_twin(-dm - sd)
    gain = t.r * exp(-t.r * s) * cash - float(exp(t.x)) * t.q * exp(-t.q * s) * stock
    extra = max(float((ds * gain).sum()), 0.0, now - plain)
    return plain + extra, extra


def _meeting(found: tuple[Boundary, ...]) -> float:
    """Return the first sqrt(tau / horizon) at which the boundaries meet; 1 if they do not."""

    def have_met(x: Floats) -> Mask:
        return found[0].at(2.0 * x - 1.0) <= found[1].at(2.0 * x - 1.0)

    marks = np.arange(1, 257) / 256
    met = np.flatnonzero(have_met(marks))
    if not met.size:
        return 1.0
    high = float(marks[met[0]])
    low = high - 1.0 / 256
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if have_met(np.array([middle]))[0] else (middle, high)
    return low
