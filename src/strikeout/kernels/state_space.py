"""Filters and smoothers over a chain of dates: a linear Gaussian state, and a Markov chain of regimes.

The first is Kalman's filter in information form with the smoother of Rauch, Tung and Striebel (1965), for a state of
one number. The second is Hamilton's filter (1989) with Kim's smoother (1994).

    symbol  meaning                                                                             shape
    x_t     the state of date t
    y_t     what date t observes of it; columns after the first are derivatives of it by other   n x m
            parameters, which pass through the same gains
    J_t     the information of y_t: one over the variance of its error; positive                n
    a, c    x_(t+1) is a x_t + c on average; derivatives have no c                              n - 1
    u, w    the variance around it is u + w x_t, with x_t at its filtered mean                  n - 1
    M, P    mean (and derivatives) and variance of the state
    F       variance of y_t before date t is seen: 1 / J + P

    l_tr    log density of date t in regime r, up to a constant of the date                     n x R
    A_ij    probability of regime j tomorrow if it is i today                                   R x R

Before the first date nothing is known: the state has no information, and every regime the same probability. Sums are
in a fixed order. Nothing raises: what does not exist is not-a-number.

Symmetric positive definite systems with three diagonals, in time linear in their size and in a fixed order.

    symbol  meaning                                             shape
    a       the diagonal                                        n
    b       beside it: b_i couples i and i + 1                  n - 1
    R       right-hand sides, a row an unknown                  n x m
    d       pivots from the top, d_i = a_i - b_(i-1)^2 / d_(i-1)
    e       pivots from the bottom

Nothing is raised: what is not positive definite comes back as not-a-number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats

LOG_TWO_PI = 1.8378770664093453


class Belief(NamedTuple):
    """What is known of the state of one date."""

    M: Floats  # the mean, then derivatives
    P: float


class Transition(NamedTuple):
    """How the state moves from one date to the next."""

    a: float
    c: float
    u: float
    w: float


class Filtered(NamedTuple):
    """Beliefs after each date, before each date, and the log density of each date given those before it."""

    after: list[Belief]
    before: list[Belief]  # of the second date on
    log_density: list[float]  # of the second date on


def predict(belief: Belief, step: Transition) -> Belief:
    """Return what is known of the next date before it is seen."""
    M = step.a * belief.M
    M[0] += step.c
    return Belief(M, step.a * step.a * belief.P + (step.u + step.w * max(float(belief.M[0]), 0.0)))


def update(before: Belief, y: Floats, J: float) -> Belief:
    """Return what is known of a date once it is seen; without information before it, exactly the observation."""
    known = 1.0 / before.P
    total = known + J
    return Belief(y + (known / total) * (before.M - y), 1.0 / total)


def log_density(before: Belief, y: float, J: float) -> float:
    """Return the log density of an observation before it is seen."""
    F, e = 1.0 / J + before.P, y - float(before.M[0])
    return -0.5 * (LOG_TWO_PI + float(elementary.log(F)) + e * e / F)


def filter_states(y: Floats, J: Floats, steps: list[Transition], known: Filtered | None = None) -> Filtered:
    """Return the filter over all dates; ``known`` is that of the first of them, which is continued."""
    after = [Belief(y[0].copy(), 1.0 / float(J[0]))] if known is None else list(known.after)
    before, densities = ([], []) if known is None else (list(known.before), list(known.log_density))
    for t in range(len(after), len(y)):
        before.append(predict(after[-1], steps[t - 1]))
        densities.append(log_density(before[-1], float(y[t, 0]), float(J[t])))
        after.append(update(before[-1], y[t], float(J[t])))
    return Filtered(after, before, densities)


def look_back(now: Belief, a: float, next_before: Belief, next_smoothed: Belief) -> Belief:
    """Return what is known of a date once the next one is smoothed; a is the slope of the step between them."""
    if np.isinf(next_before.P):
        return now
    gain = a * now.P / next_before.P
    return Belief(
        now.M + gain * (next_smoothed.M - next_before.M), now.P + gain * gain * (next_smoothed.P - next_before.P)
    )


def smooth_states(found: Filtered, steps: list[Transition]) -> list[Belief]:
    """Return what is known of each date from all of them."""
    smoothed = found.after[-1:]
    for now, step, before in zip(found.after[-2::-1], steps[::-1], found.before[::-1], strict=True):
        smoothed.append(look_back(now, step.a, before, smoothed[-1]))
    return smoothed[::-1]


class Regimes(NamedTuple):
    """Probabilities of regimes by date; the log density of all dates, and the expected number of each change."""

    filtered: Floats  # given the dates up to each, n x R
    smoothed: Floats  # given all dates, n x R
    log_likelihood: float
    changes: Floats  # R x R


def filter_regimes(log_densities: Floats, A: Floats) -> Regimes:
    """Return Hamilton's filter and Kim's smoother."""
    n, R = log_densities.shape
    largest = log_densities.max(axis=1)
    density = elementary.exp(log_densities - largest[:, None])
    filtered, predicted, total = np.empty((n, R)), np.full((n, R), 1.0 / R), 0.0
    for t in range(n):
        if t:
            predicted[t] = _ahead(filtered[t - 1], A)
        joint = predicted[t] * density[t]
        share = _summed(joint)
        filtered[t] = joint / share
        total += float(elementary.log(share)) + float(largest[t])
    smoothed, changes = filtered.copy(), np.zeros((R, R))
    for t in range(n - 2, -1, -1):
        ratio = np.divide(smoothed[t + 1], predicted[t + 1], out=np.zeros(R), where=predicted[t + 1] > 0.0)
        pairs = filtered[t][:, None] * A * ratio[None, :]
        changes += pairs
        smoothed[t] = [_summed(row) for row in pairs]
    return Regimes(filtered, smoothed, total, changes)


def _ahead(now: Floats, A: Floats) -> list[float]:
    return [_summed(now * A[:, j]) for j in range(len(now))]


def _summed(values: Floats) -> float:
    total = 0.0
    for value in values.tolist():
        total += value
    return total


def solve(a: Floats, b: Floats, R: Floats) -> Floats:
    """X with ``A X = R``."""
    d = _pivots(a, b)
    X = np.array(R, float)
    for i in range(1, len(a)):
        X[i] = X[i] - (b[i - 1] / d[i - 1]) * X[i - 1]
    X[-1:] = X[-1:] / d[-1:, None]
    for i in range(len(a) - 2, -1, -1):
        X[i] = (X[i] - b[i] * X[i + 1]) / d[i]
    return X


def inverse_diagonal(a: Floats, b: Floats) -> Floats:
    """Return the diagonal of the inverse: ``1 / (d_i + e_i - a_i)``, each from the pivots above and below it."""
    d, e = _pivots(a, b), _pivots(a[::-1], b[::-1])[::-1]
    out: Floats = 1.0 / (d + e - a)
    return out


def _pivots(a: Floats, b: Floats) -> Floats:
    d = np.empty(len(a))
    last = np.inf
    for i, x in enumerate(a.tolist()):
        pivot = x - (b[i - 1] * b[i - 1] / last if i else 0.0)
        d[i] = last = pivot if pivot > 0.0 else np.nan
    return d
