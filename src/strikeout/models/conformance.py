"""What a model promises, one function a promise: what is wrong, in a sentence, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import StrikeoutError
from strikeout.kernels import derivatives, fourier_trapezoid
from strikeout.kernels.elementary import nearest_exponent, power
from strikeout.models.characteristic import MARTINGALE, CharacteristicModel
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts, Features

Floats = NDArray[np.float64]
Wares = Any  # contracts, or rows of named columns

# What a user's code may raise; each becomes a sentence.
FAILURES = (StrikeoutError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
# A price of discount * forward may be off by this much; Fourier models promise 1e-10.
ACCURACY = 1e-9
LEVEL = 20.7  # exp(-LEVEL) = 1e-9: what a line may miss that is looked at for longer
# A right derivative and differences of fourth order agree to about 1e-8 where prices are good to 1e-13; a wrong one is
# off by a part in a thousand or more.
GRADIENT = 1e-5
SINGLE = 12  # rows that are tried alone


def shapes(model: Model, theta: Floats, wares: Wares) -> str | None:
    """Check that there is one price per row and one sensitivity per row and parameter."""
    n, p = len(wares), len(model.parameters)
    price, (again, jacobian) = np.asarray(model.price(theta, wares)), model.linearize(theta, wares)
    if price.shape == np.shape(again) == (n,) and np.shape(jacobian) == (n, p):
        return None
    return (
        f"{n} rows and {p} parameters: price gave shape {price.shape}, linearize {np.shape(again)} and "
        f"{np.shape(jacobian)}. Give ({n},) and ({n}, {p})."
    )


def one_price(model: Model, theta: Floats, wares: Wares) -> str | None:
    """Both ways to a price agree to the bit."""
    price, again = np.asarray(model.price(theta, wares)), np.asarray(model.linearize(theta, wares)[0])
    row = _differs(price, again)
    if row is None:
        return None
    return (
        f"price gives {float(price[row])!r} in row {row} and linearize {float(again[row])!r}. Let both compute it the "
        "same way."
    )


def space(model: Model) -> str | None:
    """Check that names differ, bounds are not empty, and every start lies inside them."""
    s = model.parameters
    if len(set(s.names)) != len(s.names):
        return f"the names {', '.join(s.names)} are not all different."
    starts = np.atleast_2d(s.starts)
    if starts.shape[0] < 1 or starts.shape[1:] != (len(s.names),) or np.shape(s.lower) != np.shape(s.upper):
        return f"{len(s.names)} names need bounds and starts of as many numbers; starts have shape {starts.shape}."
    for i, name in enumerate(s.names):
        if not s.lower[i] < s.upper[i]:
            return f"the bounds of {name}, {s.lower[i]:g} and {s.upper[i]:g}, are empty."
        outside = [x for x in starts[:, i].tolist() if not s.lower[i] <= x <= s.upper[i]]
        if outside:
            return f"a start of {name}, {outside[0]:g}, lies outside {s.lower[i]:g} .. {s.upper[i]:g}."
    return None


def determinism(model: Model, theta: Floats, wares: Wares) -> str | None:
    """Check that the same call gives the same bits."""
    first, second = _bits(model, theta, wares), _bits(model, theta, wares)
    at = _differs(first, second)
    if at is None:
        return None
    return (
        f"two equal calls gave {float(first.flat[at])!r} and {float(second.flat[at])!r}. No clock, no random numbers "
        "without a fixed seed, nothing remembered between calls."
    )


def row_independence(model: Model, theta: Floats, wares: Wares) -> str | None:
    """Check that a row gives the same bits alone, beside other rows, and in another order."""
    whole, rows = _bits(model, theta, wares), np.arange(len(wares))
    cuts = sorted({0, 1, len(rows) // 3, len(rows) // 2, len(rows)})
    batches = [
        *(("alone", rows[row : row + 1]) for row in range(min(len(rows), SINGLE))),
        *(("among fewer", rows[low:high]) for low, high in pairwise(cuts)),
        ("in reverse order", rows[::-1]),
        ("among twice as many", np.tile(rows, 2)),
    ]
    for company, batch in batches:
        found, expected = _bits(model, theta, wares[batch]), whole[batch]
        at = _differs(found, expected)
        if at is not None:
            return (
                f"row {batch[at // whole.shape[1]]} gives {float(expected.flat[at])!r} among all {len(rows)} rows and "
                f"{float(found.flat[at])!r} {company}. No mean, sum, sort or matrix product over rows: then no quote "
                "could be taken away from what the others left."
            )
    return None


def finite(model: Model, points: Floats, wares: Wares) -> tuple[bool, str]:
    """Return numbers at every start; inside the bounds never an error or infinity, and not-a-number only here and
    there."""
    starts, lacking = np.atleast_2d(model.parameters.starts), 0
    for number, theta in enumerate(np.concatenate([starts, points])):
        where = f"start {number + 1}" if number < len(starts) else "a point inside the bounds"
        at = f"{where}, {_named(model, theta)}"
        try:
            found = _bits(model, theta, wares)
        except FAILURES as error:
            return False, f"at {at}: {type(error).__name__}: {error}. Return not-a-number if there is no price."
        if np.isinf(found).any():
            return False, f"at {at}, row {int(np.argmax(np.isinf(found).any(axis=1)))} is infinite. Give not-a-number."
        if np.isnan(found).any():
            if number < len(starts):
                row = int(np.argmax(np.isnan(found).any(axis=1)))
                return False, f"at {at}, row {row} is not a number. A search cannot begin there: move the start."
            lacking += 1
    if 2 * lacking > len(points):
        return (
            False,
            f"{lacking} of {len(points)} points inside the bounds have rows without a price. Narrow the bounds.",
        )
    if lacking:
        return (
            True,
            f"{lacking} of {len(points)} points inside the bounds have rows without a price; a search avoids them.",
        )
    return True, f"finite at {len(starts)} starts and {len(points)} points inside the bounds."


def gradient(model: Model, theta: Floats, wares: Wares) -> str | None:
    """Check that every derivative is that of the price, against differences of fourth order."""
    s = model.parameters
    price, jacobian = model.linearize(theta, wares)
    size = _size(wares, np.asarray(price))
    scales = np.where(theta != 0.0, np.abs(theta), 1.0)
    for i, name in enumerate(s.names):
        h = ldexp(1.0, nearest_exponent(derivatives.STEP * float(scales[i])))
        h = (
            min(h, 0.25 * min(theta[i] - s.lower[i], s.upper[i] - theta[i]))
            if s.lower[i] < theta[i] < s.upper[i]
            else h
        )
        with np.errstate(all="ignore"):
            expected, apart, _ = derivatives.differences(
                lambda x: np.asarray(model.price(np.asarray(x, float), wares)), theta, i, h
            )
        doubt = derivatives.FEW * apart + GRADIENT * float(np.max(np.abs(expected))) + ACCURACY * 1e-2 * size / h
        off = np.abs(jacobian[:, i] - expected)
        if not (off <= doubt).all():
            row = int(np.argmax(np.where(off <= doubt, 0.0, off)))
            return (
                f"the derivative by {name} is {jacobian[row, i]:.6g} in row {row}; differences of prices give "
                f"{expected[row]:.6g}, at {_named(model, theta)}. Mend the derivative."
            )
    return None


def no_arbitrage(model: Model, theta: Floats, contracts: Contracts) -> str | None:
    """Return prices lie between intrinsic value and the upper bound, and calls less puts are discounted forwards."""
    c = contracts
    twin = Contracts(
        forward=c.forward, strike=c.strike, expiry=c.expiry, discount=c.discount, is_call=~np.asarray(c.is_call)
    )
    price, other = np.asarray(model.price(theta, c)), np.asarray(model.price(theta, twin))
    room = ACCURACY * c.scale
    highest = c.discount * np.where(c.is_call, c.forward, c.strike)
    for row in np.flatnonzero((price < c.intrinsic - room) | (price > highest + room))[:1].tolist():
        return f"row {row} costs {price[row]:.6g}, outside {c.intrinsic[row]:.6g} .. {highest[row]:.6g}: arbitrage."
    parity = np.where(c.is_call, price - other, other - price) - c.discount * (c.forward - c.strike)
    for row in np.flatnonzero(np.abs(parity) > room)[:1].tolist():
        return f"in row {row} call less put is off the discounted forward by {parity[row]:.3g}: parity is broken."
    return None


def inversion(model: CharacteristicModel, points: Floats, contracts: Contracts) -> str | None:
    """Check that a finer line gives the same prices, and so does one that is followed further."""
    layout = contracts.slices
    for theta in points:
        for j, T in enumerate(layout.expiries.tolist()):
            k = layout.k[layout.offsets[j] : layout.offsets[j + 1]]
            usual = fourier_trapezoid.rule(model.log_cf, T, theta)
            price = fourier_trapezoid.values(usual, k, model.kernel)[0]
            if np.isnan(price).any() or not usual.defect <= MARTINGALE:
                continue  # there is no price, and the model reports it
            where = f"at {_named(model, theta)} and T = {T:g} "
            finer = fourier_trapezoid.rule(model.log_cf, T, theta, level=1.5 * fourier_trapezoid.LEVEL)
            apart = np.abs(price - fourier_trapezoid.values(finer, k, model.kernel)[0])
            if np.nan_to_num(apart).max(initial=0.0) > ACCURACY:  # not-a-number if that takes too many nodes
                return where + f"a finer line moves a price by {apart.max():.1g} of the forward. Is log_cf analytic?"
            farther = fourier_trapezoid.rule(model.log_cf, T, theta, level=LEVEL, reach=16 * fourier_trapezoid.REACH)
            apart = np.abs(price - fourier_trapezoid.values(farther, k, model.kernel)[0])
            if not apart.max(initial=0.0) <= 10.0 * ACCURACY:  # not-a-number if it never stops coming back
                return where + (
                    "the characteristic function comes back after it has fallen to nothing, as that of many jumps of "
                    "one size does, and prices miss what it adds. Narrow the bounds, or let the sizes vary."
                )
    return None


def inside_points(model: Model, count: int) -> Floats:
    """Return points around the starts, each up to half of the way to the bounds; the same every time.

    By ratio if a bound is a thousandth of the other or less. A search does not go to the corners of a box of many
    parameters, and what is checked here is whether it can move.
    """
    s = model.parameters
    starts = np.atleast_2d(s.starts)
    start = starts[np.arange(count) % len(starts)]
    low = np.where(np.isfinite(s.lower), s.lower, start - np.maximum(np.abs(start), 1.0))
    high = np.where(np.isfinite(s.upper), s.upper, start + np.maximum(np.abs(start), 1.0))
    share = np.array(list(_spread(len(s), count))) - 0.5  # of the whole way, -1/2 .. 1/2
    to, part = np.where(share < 0.0, low, high), np.abs(share)
    with np.errstate(all="ignore"):
        by_ratio = start * power(to / start, part)
    return np.where((low > 0.0) & (high > 1e3 * low), by_ratio, start + part * (to - start))


def _spread(size: int, count: int) -> Iterator[Floats]:
    """Kronecker's sequence by the root of x^(d + 1) = x + 1: evenly spread in any dimension. M. Roberts (2018)."""
    root = 2.0
    for _ in range(60):
        root = float(power(1.0 + root, 1.0 / (size + 1)))
    steps = np.cumprod(np.full(size, 1.0 / root))
    for number in range(1, count + 1):
        yield (0.5 + number * steps) % 1.0


def _bits(model: Model, theta: Floats, wares: Wares) -> Floats:
    price, jacobian = model.linearize(theta, wares)
    return np.concatenate([np.asarray(price, float)[:, None], np.asarray(jacobian, float)], axis=1)


def _differs(a: Floats, b: Floats) -> int | None:
    """Return the first place where two arrays have different values; not-a-number equals itself."""
    different = np.flatnonzero(((a != b) & ~(np.isnan(a) & np.isnan(b))).ravel())
    return int(different[0]) if different.size else None


def _size(wares: Wares, price: Floats) -> Floats:
    return np.asarray(np.abs(price) if isinstance(wares, Features) else wares.scale)


def _named(model: Model, theta: Floats) -> str:
    shown = [f"{name}={value:.4g}" for name, value in zip(model.parameters.names, theta.tolist(), strict=True)]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
