"""American options with cash dividends under Black-Scholes dynamics, on a grid of log-spots.

    symbol     meaning
    S, K, T    spot, strike, years to expiry; sign is 1 for puts, -1 for calls
    r, b       rate and borrow: the yield that is left beside the cash dividends
    d, t       cash dividends and their times; y, from: a proportional yield that begins at a time (the tail)
    G, D       growth exp(integral of r - b - y) and discount between two times
    pv         value of the dividends to come, sum d / G
    x          ln of the grid's asset, times sign: early exercise is at its low end for calls and puts alike

Two models of the asset:

    escrowed    S - pv is lognormal. The forward is (S - pv) G, and European prices are Black's.
    piecewise   S is lognormal between ex-dates and drops by d (to zero at most) at each.

Backward in time by Crank-Nicolson steps, the first of every interval between dividends in two implicit halves; early
exercise by Brennan and Schwartz' elimination from the other end of the grid. The European value is computed on the same
grid, so that what the grid is off by cancels in the premium. Each option is alone in its lane or column: its bits do
not depend on other options. native/dividends.cpp is the same, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, nan

import numpy as np

from strikeout.kernels import black
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import native, threads
from strikeout.kernels.elementary import exp, log

NODES, WIDTH = 200, 5.0  # as in native/dividends.hpp
STEPS, FEWEST = 100, 6  # of the life of an option, and of an interval between dividends
TRIALS, SETTLED = 14, 1e-7  # of an implied volatility; a step of it, relative, after which the next is not needed
BORROW_STEPS = 12  # Newton's; the fifth ends at rounding


@dataclass(frozen=True)
class CashFlows:
    """Cash dividends in the life of an option, and the tail."""

    times: tuple[float, ...] = ()  # years, ascending
    amounts: tuple[float, ...] = ()
    tail_from: float = inf
    tail: float = 0.0  # per year, continuously
    drops: bool = False  # the piecewise model

    def growth(self, since: float, until: float, cost: float) -> float:
        """Return ln G between two times, ``cost`` being r - b."""
        return cost * (until - since) - self.tail * max(0.0, until - max(since, self.tail_from))

    def forward(self, spot: Floats, T: float, cost: Floats) -> Floats:
        """Return the forward at expiry for each r - b."""
        whole = exp(cost * T - self.tail * max(0.0, T - self.tail_from))
        found: Floats = spot * whole
        for t, d in zip(self.times, self.amounts, strict=True):
            found = found - d * exp(cost * (T - t) - self.tail * max(0.0, T - max(t, self.tail_from)))
        return found

    def cost(self, spot: Floats, forward: Floats, T: float) -> Floats:
        """Return the r - b at which the forward is this one; not-a-number if there is none."""
        guess: Floats = log((forward + sum(self.amounts)) / spot) / T
        for _ in range(BORROW_STEPS):
            slope = spot * T * exp(guess * T - self.tail * max(0.0, T - self.tail_from))
            for t, d in zip(self.times, self.amounts, strict=True):
                grown = exp(guess * (T - t) - self.tail * max(0.0, T - max(t, self.tail_from)))
                slope = slope - d * (T - t) * grown
            guess = guess - (self.forward(spot, T, guess) - forward) / slope
        return guess


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a slice from expiry to now; native/dividends.hpp has the same fields."""

    T: float
    rate: float
    drops: bool
    half: Floats  # half the length of a Crank-Nicolson step, the length of an implicit one
    whole: Floats  # 1 for Crank-Nicolson
    fresh: Floats  # 1 if the matrix is another than that of the step before
    drift: Floats  # r - b - y
    discount: Floats  # D(t, T) at the end of the step
    carry: Floats  # D(t, T) G(t, T)
    cash: Floats  # what dividends after t take from the stock at expiry, discounted; 0 if escrowed
    amount: Floats  # the dividend at the end of the step, 0 if there is none
    pv: Floats  # now; then at the end of every step, without a dividend then; 0 if piecewise


def steps_of(flows: CashFlows, T: float, rate: float, cost: float) -> Steps:
    """Return the steps of a slice; dividends at expiry count, as the stock is then without them."""
    paid = dict(zip(flows.times, flows.amounts, strict=True))
    marks = sorted({0.0, T, *paid, *([flows.tail_from] if 0.0 < flows.tail_from < T else [])}, reverse=True)
    rows: list[tuple[float, float, float, float, float, float]] = []  # half, whole, fresh, drift, time, dividend
    if T in paid:
        rows.append((0.0, 0.0, 1.0, 0.0, T, paid[T]))
    for end, begin in pairwise(marks):
        count = max(FEWEST, round(STEPS * (end - begin) / T))
        half = 0.5 * (end - begin) / count
        drift = cost - (flows.tail if begin >= flows.tail_from else 0.0)
        rows += [(half, 0.0, 1.0, drift, end - half, 0.0), (half, 0.0, 0.0, drift, end - 2.0 * half, 0.0)]
        rows += [(half, 1.0, 0.0, drift, end - 2.0 * half * (n + 2), 0.0) for n in range(count - 1)]
        rows[-1] = (*rows[-1][:4], begin, paid.get(begin, 0.0) if begin > 0.0 else 0.0)
    table = np.array(rows)
    times = table[:, 4]

    def later(t: float) -> list[tuple[float, float]]:
        return [(u, d) for u, d in paid.items() if u > t]

    def worth(t: float) -> float:
        return float(sum(d * float(exp(-flows.growth(t, u, cost))) for u, d in later(t)))

    def taken(t: float) -> float:
        D = float(exp(-rate * (T - t)))
        return float(sum(D * d * float(exp(flows.growth(u, T, cost))) for u, d in later(t)))

    nothing = np.zeros(len(rows))
    return Steps(
        T=T, rate=rate, drops=flows.drops, half=table[:, 0].copy(), whole=table[:, 1].copy(), fresh=table[:, 2].copy(),
        drift=table[:, 3].copy(), discount=exp(-rate * (T - times)),
        carry=np.array([float(exp(flows.growth(t, T, cost) - rate * (T - t))) for t in times]),
        cash=np.array([taken(t) for t in times]) if flows.drops else nothing,
        amount=table[:, 5].copy(),
        pv=np.zeros(len(rows) + 1) if flows.drops else np.array([worth(0.0), *(worth(t) for t in times)]),
    )  # fmt: skip


def values(steps: Steps, spot: Floats, strike: Floats, sigma: Floats, *, is_call: bool) -> Floats:
    """Return American and European values, one row each, of calls or puts of one slice."""
    module, out = native(), np.empty((2, len(spot)))
    if module is None:
        with np.errstate(all="ignore"):
            return values_twin(steps, spot, strike, sigma, sign=-1.0 if is_call else 1.0)
    columns = (steps.half, steps.whole, steps.fresh, steps.drift, steps.discount, steps.carry, steps.cash, steps.amount)
    module.dividend_values(
        [steps.T, steps.rate, float(steps.drops)], [*columns, steps.pv], [spot, strike, sigma],
        -1.0 if is_call else 1.0, out.reshape(-1), threads(),
    )  # fmt: skip
    return out


def values_twin(steps: Steps, spot: Floats, strike: Floats, sigma: Floats, *, sign: float) -> Floats:
    """Compute ``values`` without compiled code: their definition; columns are options."""
    x0, xk = sign * log(spot - steps.pv[0]), sign * log(strike)
    wide = WIDTH * sigma * np.sqrt(steps.T)
    lowest, highest = np.minimum(x0, xk) - wide, np.maximum(x0, xk) + wide
    h = (highest - lowest) / (NODES - 1)
    place = np.rint((x0 - lowest) / h)
    low, edge = x0 - place * h, exp(sign * (0.5 * h))
    x = low + np.arange(NODES)[:, None] * h
    S = exp(sign * x)
    part = np.maximum(np.minimum(x + 0.5 * h, xk) - (x - 0.5 * h), 0.0) / h
    end, begin = np.where(x + 0.5 * h <= xk, S * edge, strike), S / edge
    mean = np.maximum(sign * (strike * (part * h) - sign * (end - begin)) / h, 0.0)
    both = np.stack([np.where(part > 0.0, mean, 0.0)] * 2)
    alpha = 0.5 * sigma * sigma / (h * h)
    weight, inverse = np.zeros_like(x), np.zeros_like(x)
    for n, k in enumerate(steps.half.tolist()):
        beta = sign * (steps.drift[n] - 0.5 * sigma * sigma) / (2.0 * h)
        below, above = alpha - beta, alpha + beta
        lower, upper, centre = -k * below, -k * above, 1.0 + k * (2.0 * alpha + steps.rate)
        if steps.fresh[n]:
            inverse[-2], weight[-2] = 1.0 / centre, 0.0
            for j in range(NODES - 3, 0, -1):
                weight[j] = upper * inverse[j + 1]
                inverse[j] = 1.0 / (centre - weight[j] * lower)
        stock = np.maximum(S[0] * steps.carry[n] - steps.cash[n], 0.0)
        held = np.maximum(sign * (strike * steps.discount[n] - stock), 0.0)
        now = sign * (strike - S - steps.pv[n + 1])
        for side, value in enumerate(both):
            right = value.copy()
            if steps.whole[n]:
                right[1:-1] = (2.0 - centre) * value[1:-1] + k * below * value[:-2] + k * above * value[2:]
            for j in range(NODES - 3, 0, -1):
                right[j] -= weight[j] * right[j + 1]
            value[0], value[-1] = (np.maximum(held, now[0]) if side == 0 else held), 0.0
            for j in range(1, NODES - 1):
                found = (right[j] - lower * value[j - 1]) * inverse[j]
                value[j] = np.maximum(found, now[j]) if side == 0 else found
        amount = float(steps.amount[n])
        if amount == 0.0:
            continue
        if steps.drops:
            both = _dropped(both, steps, n, (S, strike, low, h, sign))
        gone = 0.0 if steps.drops else float(steps.pv[n + 1]) + amount
        both[0] = np.maximum(both[0], sign * (strike - S - gone))
    column = np.clip(np.nan_to_num(place), 0, NODES - 1).astype(np.intp)
    found = both[:, column, np.arange(len(spot))]
    return np.where(np.isfinite(place), found, nan)


def _dropped(both: Floats, steps: Steps, n: int, grid: tuple[Floats, Floats, Floats, Floats, float]) -> Floats:
    """Return the values before a dividend of the piecewise model: those at the spot less the dividend."""
    S, strike, low, h, sign = grid
    left = S - float(steps.amount[n])
    at = (sign * log(np.maximum(left, 1e-300)) - low) / h
    inside = (left > 0.0) & (at >= 0.0) & (at <= NODES - 1)
    base = np.clip(np.floor(np.where(inside, at, 0.0)) - 1.0, 0, NODES - 4)
    u, j, column = at - base, base.astype(np.intp), np.arange(S.shape[1])
    one, two, three = u - 1.0, u - 2.0, u - 3.0
    rest = np.maximum(left, 0.0)
    stock = np.maximum(rest * steps.carry[n] - steps.cash[n], 0.0)
    hold = np.maximum(sign * (strike * steps.discount[n] - stock), 0.0)
    moved = []
    for side, value in enumerate(both):
        a, b, c, d = (value[j + m, column] for m in range(4))
        first = (a * (one * two * three)) * (-1.0 / 6.0) + (b * (u * two * three)) * 0.5
        second = (c * (u * one * three)) * -0.5 + (d * (u * one * two)) * (1.0 / 6.0)
        beyond = np.maximum(hold, sign * (strike - rest)) if side == 0 else hold
        moved.append(np.maximum(np.where(inside, first + second, beyond), 0.0))
    return np.stack(moved)


def conversions(
    mid: Floats, spot: Floats, strike: Floats, *, forward: Floats, discount: float, steps: Steps, is_call: bool
) -> tuple[Floats, Floats]:
    """Return the implied volatility of each American mid of a slice, and the European price; not-a-number if none.

    A secant inside a bracket that only ever shrinks; how many steps an option takes depends on that option alone.
    """
    T, count = np.full(len(mid), steps.T), len(mid)
    D, calls = np.full(count, discount), np.full(count, is_call)
    sigma = black.implied_volatility(mid, forward, strike, T, D, calls)
    sigma = np.where(np.isfinite(sigma) & (sigma > 0.0), sigma, 0.3)
    now = np.where(is_call, spot - strike, strike - spot)
    done = ~((mid > now) & (mid > 0.0) & np.isfinite(spot) & np.isfinite(strike) & (spot > steps.pv[0]))
    answer, price = np.full(count, nan), np.full(count, nan)
    low, high, before, before_f = np.zeros(count), np.full(count, inf), np.full(count, nan), np.full(count, nan)
    for _ in range(TRIALS):
        at = np.flatnonzero(~done)
        if not at.size:
            break
        s = sigma[at]
        american, european = values(steps, spot[at], strike[at], s, is_call=is_call)
        plain = black.price(forward[at], strike[at], T[at], s, D[at], calls[at])
        f = (american if steps.drops else plain + american - european) - mid[at]
        with np.errstate(all="ignore"):
            slope = (f - before_f[at]) / (s - before[at])
            vega = (black.price(forward[at], strike[at], T[at], 1.001 * s, D[at], calls[at]) - plain) / (0.001 * s)
            slope = np.where(np.isfinite(slope) & (slope > 0.0), slope, vega)
            following = s - f / slope
        low[at], high[at] = np.where(f < 0.0, s, low[at]), np.where(f < 0.0, high[at], s)
        inside = (following > low[at]) & (following < high[at])
        ended = np.abs(following - s) <= SETTLED * s
        middle = np.where(np.isinf(high[at]), 2.0 * s, 0.5 * (low[at] + high[at]))
        before[at], before_f[at] = s, f
        sigma[at] = np.where(inside | ended, following, middle)
        finished = at[ended]
        answer[finished] = sigma[finished]
        done[finished] = True
        # The premium at the last volatility: the step that is left changes it by far less than the grid is off by.
        price[finished] = (mid[at] - (american - european))[ended]
        done[at[~(f == f)]] = True
    return answer, price
