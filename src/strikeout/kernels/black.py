"""Black's formula for European options on a forward, its vega, and its inverse, to machine precision.

    F, K, T, D   forward, strike, years to expiry, discount factor; all above zero
    sigma, s     volatility per square root of a year; total volatility s = sigma sqrt(T)
    x            -|ln(F / K)|: every option is priced through its out-of-the-money twin (put-call parity), so x <= 0
    h, t         x / s and s / 2
    b            normalised price of that twin: its price / (D sqrt(F K)), from 0 (s = 0) to b_max = exp(x / 2)
    b_bar        b_max - b, computed without that subtraction where it would cancel
    e            exp(-(h^2 + t^2) / 2); the normalised vega db/ds is e / sqrt(2 pi)
    E            erfcx(z) = exp(z^2) erfc(z)

Black (1976). The normalised function, the inflection at s = sqrt(2 |x|) as the place to start from, and Householder
steps on an objective chosen by the size of the price are ideas of P. Jaeckel, "Let's be rational" (Wilmott, 2015); the
evaluation of b, the starting values and the objectives are our own (docs/explanation/implied-volatility.md).

Elementwise throughout: a row never depends on its neighbours, to the last bit. Nothing raises: the result is
not-a-number if there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.compiled import native
from strikeout.kernels.normal import CENTRE, COEFFICIENTS, INVERSE_SQRT_TWO_PI, SQRT_HALF, erfcx_right

SQRT_HALF_PI = 1.2533141373155003
_ERFCX = np.array(COEFFICIENTS)
SMALLEST_NORMAL = 2.2250738585072014e-308  # a price below this share of D sqrt(F K) has too few bits left to invert
BLOCK = 8192  # rows worked on at a time: the two dozen arrays in play then stay in the cache
STEPS = 3  # Householder steps; the worst start is 6e-9 away after two of fourth order, so the third ends at rounding


def price(
    forward: ArrayLike,
    strike: ArrayLike,
    expiry: ArrayLike,
    volatility: ArrayLike,
    discount: ArrayLike,
    is_call: ArrayLike,
) -> Floats:
    """Return the Black-76 price of each option, with all its digits however far out of the money.

    D (F N(d1) - K N(d2)) for a call. Relative error about 3 (1 + h^2) eps: what rounding x and s must cost.
    Volatility or expiry 0 gives the intrinsic value, an infinite volatility the upper bound.

    Args:
        is_call: true for a call, false for a put.

    >>> price([100.0], [120.0], [0.02], [0.07], [1.0], [True])
    array([2.79581914e-77])
    """
    return _by_blocks(_price, (forward, strike, expiry, volatility, discount), is_call)


def vega(
    forward: ArrayLike, strike: ArrayLike, expiry: ArrayLike, volatility: ArrayLike, discount: ArrayLike
) -> Floats:
    """Return how much the price rises per unit of volatility (1.0, not a percentage point); the same for call and put.

    D F n(d1) sqrt(T).

    >>> vega([100.0], [100.0], [1.0], [0.2], [1.0])
    array([39.69525475])
    """
    return _by_blocks(_vega, (forward, strike, expiry, volatility, discount), True)


def implied_volatility(
    price: ArrayLike, forward: ArrayLike, strike: ArrayLike, expiry: ArrayLike, discount: ArrayLike, is_call: ArrayLike
) -> Floats:
    """Return the volatility at which Black's formula gives each price, to the last few bits that the price determines.

    An out-of-the-money price determines it to a few eps, down to prices of 1e-300 of the forward. An in-the-money price
    holds it in its time value only: the error is eps * price / (volatility * vega) relative, in any implementation.

    Returns:
        0 if the price is the intrinsic value exactly, infinity if it is the upper bound exactly
        (discount * forward for a call, discount * strike for a put).

    >>> implied_volatility([2.79581913993661788732249e-77], [100.0], [120.0], [0.02], [1.0], [True])
    array([0.07])
    """
    return _by_blocks(_implied_volatility, (price, forward, strike, expiry, discount), is_call)


def _by_blocks(kernel: Callable[..., Floats], columns: tuple[ArrayLike, ...], is_call: ArrayLike) -> Floats:
    """Return the kernel over broadcast columns, a cacheful of rows at a time."""
    numbers = [np.asarray(column, np.float64) for column in columns]
    calls = np.asarray(is_call, bool)
    if any(column.shape != calls.shape for column in numbers):
        *numbers, calls = np.broadcast_arrays(*numbers, calls)
    # Contiguous copies: for strided input NumPy may take another code path, with other last bits.
    flat = [np.ascontiguousarray(column).reshape(-1) for column in (*numbers, calls)]
    with np.errstate(all="ignore"):
        if calls.size <= BLOCK:
            return kernel(*flat).reshape(calls.shape)
        out = np.empty(calls.size)
        for start in range(0, calls.size, BLOCK):
            rows = slice(start, start + BLOCK)
            out[rows] = kernel(*(column[rows] for column in flat))
    return out.reshape(calls.shape)


def _price(F: Floats, K: Floats, T: Floats, sigma: Floats, D: Floats, is_call: Mask) -> Floats:
    module = native()
    if module is None:
        return price_twin(F, K, T, sigma, D, is_call)
    found = np.empty(len(F))
    module.black_price(F, K, T, sigma, D, is_call, _ERFCX, CENTRE, found)
    return found


def price_twin(F: Floats, K: Floats, T: Floats, sigma: Floats, D: Floats, is_call: Mask) -> Floats:
    """Return prices without compiled code, and their definition: what is compiled has these bits."""
    s = _total_volatility(F, K, T, sigma, D)
    x, b_max = _log_moneyness(F, K), _upper_bound(F, K)
    b, _, _ = _normalised_price(x, s, b_max)
    # The bound is not left to rounding: a price above it would have no implied volatility.
    return np.minimum(D * (_intrinsic(F, K, is_call) + np.sqrt(F) * np.sqrt(K) * b), D * np.where(is_call, F, K))


def _vega(F: Floats, K: Floats, T: Floats, sigma: Floats, D: Floats, is_call: Mask) -> Floats:  # noqa: ARG001
    s = _total_volatility(F, K, T, sigma, D)
    h, t = _h_and_t(_log_moneyness(F, K), s)
    e: Floats = elementary.exp(-0.5 * (h * h + t * t))
    return D * np.sqrt(F) * np.sqrt(K) * np.sqrt(T) * (e * INVERSE_SQRT_TWO_PI)


def _implied_volatility(price: Floats, F: Floats, K: Floats, T: Floats, D: Floats, is_call: Mask) -> Floats:
    module = native()
    if module is None:
        return implied_volatility_twin(price, F, K, T, D, is_call)
    found = np.empty(len(F))
    module.black_volatilities(price, F, K, T, D, is_call, _ERFCX, CENTRE, found)
    return found


def implied_volatility_twin(price: Floats, F: Floats, K: Floats, T: Floats, D: Floats, is_call: Mask) -> Floats:
    """Return implied volatilities without compiled code, and their definition: what is compiled has these bits."""
    time_value = price - D * _intrinsic(F, K, is_call)
    room = D * np.where(is_call, F, K) - price  # up to the upper bound; the same for the out-of-the-money twin
    answerable = (time_value >= 0) & (room >= 0) & _all_positive(F, K, T, D)
    s = np.where(answerable, np.where(time_value == 0, 0.0, np.inf), np.nan)
    rows = np.flatnonzero(answerable & (time_value > 0) & (room > 0))
    F, K, unit = F[rows], K[rows], D[rows] * (np.sqrt(F[rows]) * np.sqrt(K[rows]))
    b = time_value[rows] / unit
    b[b < SMALLEST_NORMAL] = np.nan
    s[rows] = _total_implied(_log_moneyness(F, K), b, room[rows] / unit, _upper_bound(F, K))
    return s / np.sqrt(T)


def _log_moneyness(F: Floats, K: Floats) -> Floats:
    """x = -|ln(F / K)|, to two units in the last place of x itself also where F and K nearly agree."""
    away: Floats = elementary.log1p(np.abs(F - K) / np.minimum(F, K))
    return -away


def _upper_bound(F: Floats, K: Floats) -> Floats:
    """b_max = exp(x / 2)."""
    return np.sqrt(np.minimum(F, K) / np.maximum(F, K))


def _intrinsic(F: Floats, K: Floats, is_call: Mask) -> Floats:
    return np.maximum(np.where(is_call, F - K, K - F), 0.0)


def _total_volatility(F: Floats, K: Floats, T: Floats, sigma: Floats, D: Floats) -> Floats:
    """s = sigma sqrt(T), or NaN if the row has no price."""
    return np.where(_all_positive(F, K, D) & (sigma >= 0), sigma * np.sqrt(T), np.nan)


def _all_positive(*columns: Floats) -> Mask:
    """Return whether, row by row, every column is finite and above zero."""
    every = np.ones(columns[0].shape, bool)
    for column in columns:
        every &= (column > 0) & (column < np.inf)
    return every


def _h_and_t(x: Floats, s: Floats) -> tuple[Floats, Floats]:
    # At |h| = 1000 the price is 0 in any double; the floor keeps infinities out. At the money 0 / 0 means 0.
    h = np.where((x == 0) & (s >= 0), 0.0, np.maximum(x / s, -1000.0))
    return h, 0.5 * s


def _normalised_price(x: Floats, s: Floats, b_max: Floats) -> tuple[Floats, Floats, Floats]:
    """Return b, b_bar and e at total volatility s."""
    h, t = _h_and_t(x, s)
    e = elementary.exp(-0.5 * (h * h + t * t))
    b, b_bar = np.empty_like(x), np.empty_like(x)
    is_near = (x >= -2.0) & (t < 0.5)
    near, far = np.flatnonzero(is_near), np.flatnonzero(~is_near)
    if near.size:
        b[near] = (2.0 * INVERSE_SQRT_TWO_PI) * e[near] * t[near] * _series(h[near], t[near])
        b_bar[near] = b_max[near] - b[near]
    if far.size:
        b[far], b_bar[far] = _difference(h[far], t[far], e[far], b_max[far])
    return b, b_bar, e


def _series(h: Floats, t: Floats) -> Floats:
    """(Y(h + t) - Y(h - t)) / 2t by its Taylor series in t, where Y is N / n: no subtraction of near-equals.

    Term k is t^2k / (2k+1)! times the moment of u^(2k+1) under exp(h u - u^2 / 2) on u > 0. The moments obey a
    three-term recurrence whose errors grow like (h t)^2k / (2k+1)!, and |h t| = |x| / 2 is at most 1 here.
    """
    t2 = t * t
    t4 = t2 * t2
    q = h * h * t2
    term = 1.0 + SQRT_HALF_PI * h * erfcx_right(-SQRT_HALF * h)
    total, before = term.copy(), t2
    for n in range(1, 20, 2):  # ten terms more: at t = 1/2 the next is below 1e-17 of the sum
        after = (2 * n + 1) * t2
        after += q
        after *= term
        after -= before
        after *= 1.0 / ((n + 1) * (n + 2))
        before = t4 * term
        term = after
        total += term
    return total


def _difference(h: Floats, t: Floats, e: Floats, b_max: Floats) -> tuple[Floats, Floats]:
    """b and b_bar as e / 2 times a difference or a sum of two E, whichever of b, b_bar is then free of cancellation."""
    outer = erfcx_right(SQRT_HALF * (t - h))
    inner = erfcx_right(SQRT_HALF * np.abs(h + t))
    is_high = h + t > 0  # past the inflection: what is small is b_bar
    part = 0.5 * e * np.where(is_high, inner + outer, inner - outer)
    rest = b_max - part
    return np.where(is_high, rest, part), np.where(is_high, part, rest)


def _total_implied(x: Floats, b: Floats, b_bar: Floats, b_max: Floats) -> Floats:
    """Return the s whose normalised price is b, of which b_max - b = b_bar is known too; 0 < b < b_max.

    Start on the tangent at the inflection, where b(s) is straightest, or on the asymptote of the wing; then step.
    """
    z = np.sqrt(-x)
    b_c = 0.5 * b_max * (1.0 - erfcx_right(z))
    # At the inflection s = sqrt(2) z, b = b_c, the slope is b_max / sqrt(2 pi); the tangent there meets b = 0 at s_l.
    # The two terms of s_l cancel when z is small; then the next order is all there is.
    s_l = np.where(z < 1e-5, SQRT_HALF_PI * -x, z / SQRT_HALF - b_c / (b_max * INVERSE_SQRT_TWO_PI))
    s = s_l + b / (b_max * INVERSE_SQRT_TWO_PI)

    is_low = b < np.minimum(0.3 * b_c, -0.2 * x)
    is_high = (b_bar < 0.2 * b_max) & (b > b_c)
    parts = ((is_low, _solve_low, b), (is_high, _solve_high, b_bar), (~is_low & ~is_high, _solve_middle, b))
    for belongs, solve, target in parts:
        rows = np.flatnonzero(belongs)
        if rows.size:  # a few hundred NumPy calls saved where a wing is empty; no bit depends on it
            s[rows] = solve(s[rows], x[rows], target[rows], b_max[rows])
    return s


def _solve_middle(s: Floats, x: Floats, target: Floats, b_max: Floats) -> Floats:
    """Return steps on b itself, nearly straight here."""
    for _ in range(STEPS):
        b, _, e = _normalised_price(x, s, b_max)
        r2, r3 = _curvatures(x, s)
        s = s + _householder((target - b) / (e * INVERSE_SQRT_TWO_PI), r2, r3)
    return s


def _solve_low(s: Floats, x: Floats, b: Floats, b_max: Floats) -> Floats:
    """Return steps on (-ln(b / |x|))^(-1/2), which tends to sqrt(2) s / |x|, a straight line, as the price vanishes."""
    target = elementary.log(b / -x)
    s = np.fmin(s, _low_asymptote(x, -2.0 * target))
    for _ in range(STEPS):
        b, _, e = _normalised_price(x, s, b_max)
        s = s + _step_on_log(x, s, elementary.log(b / -x), target, slope=e * INVERSE_SQRT_TWO_PI / b, power=-0.5)
    return s


def _solve_high(s: Floats, x: Floats, b_bar: Floats, b_max: Floats) -> Floats:
    """Return steps on (-ln(b_bar / b_max))^(1/2), which tends to s / sqrt(8), a straight line, as the price nears
    b_max."""
    target = elementary.log(b_bar / b_max)
    # b_bar tends to exp(-s^2 / 8) 4 / (sqrt(2 pi) s); solved for s^2, with the first guess inside the logarithm.
    guess = np.sqrt(-8.0 * elementary.log(b_bar))
    guess = np.sqrt(-8.0 * elementary.log(b_bar * guess / (4.0 * INVERSE_SQRT_TWO_PI)))
    s = np.fmax(s, guess)  # fmax and fmin ignore NaN: without an asymptote the tangent is kept
    for _ in range(STEPS):
        _, b_bar, e = _normalised_price(x, s, b_max)
        s = s + _step_on_log(
            x, s, elementary.log(b_bar / b_max), target, slope=-e * INVERSE_SQRT_TWO_PI / b_bar, power=0.5
        )
    return s


def _low_asymptote(x: Floats, a: Floats) -> Floats:
    """s from a = -2 ln(b / |x|) as the price vanishes.

    There a = H + t^2 + ln(2 pi H (H - t^2)^2) with H = h^2 and t^2 = x^2 / 4H; solved for H, then once more with the
    logarithm at the first H.
    """
    H = 0.5 * (a + np.sqrt(a * a - x * x))
    t2 = x * x / (4.0 * H)
    a = a - elementary.log(
        2.0 * np.pi * H * np.square(H - t2 + 2.0)
    )  # the 2 represents the next order; it helps if H is small
    return -x / np.sqrt(0.5 * (a + np.sqrt(a * a - x * x)))


def _curvatures(x: Floats, s: Floats) -> tuple[Floats, Floats]:
    """b'' / b' and b''' / b' with respect to s."""
    h_over_s = np.where(x == 0, 0.0, x / (s * s))
    r2 = h_over_s * h_over_s * s - 0.25 * s
    return r2, r2 * r2 - 3.0 * h_over_s * h_over_s - 0.25


def _step_on_log(x: Floats, s: Floats, log: Floats, target: Floats, *, slope: Floats, power: float) -> Floats:
    """Return the step towards y(s) = (-target)^power of the objective y = (-log)^power, where slope = d log / ds."""
    r2, r3 = _curvatures(x, s)
    l2 = r2 - slope  # the second and third derivative of log over its first
    l3 = r3 - 3.0 * r2 * slope + 2.0 * slope * slope
    g = slope / log
    newton = (np.sqrt(log / target if power < 0 else target / log) - 1.0) / (power * g)
    y2 = l2 + (power - 1.0) * g
    y3 = l3 + 3.0 * (power - 1.0) * g * l2 + (power - 1.0) * (power - 2.0) * g * g
    return _householder(newton, y2, y3)


def _householder(newton: Floats, y2: Floats, y3: Floats) -> Floats:
    """Return the step of fourth order from the Newton step and the objective's y'' / y' and y''' / y'."""
    return newton * (1.0 + 0.5 * newton * y2) / (1.0 + newton * (y2 + newton * y3 / 6.0))
