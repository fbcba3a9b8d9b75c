"""Check that a model satisfies the `Model` protocol, and report what to correct.

One function per property; each returns what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ldexp
from typing import Any

import numpy as np

from strikeout.errors import StrikeoutError, UsageError
from strikeout.kernels import derivatives, elementary, fourier_trapezoid
from strikeout.kernels.arrays import Floats
from strikeout.kernels.elementary import nearest_exponent, power
from strikeout.models.characteristic import MARTINGALE, CharacteristicModel
from strikeout.models.model import Model, ParameterSpace
from strikeout.quotes.contracts import Contracts, Features
from strikeout.text import as_lines

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


POINTS = 12  # inside the bounds, beside the starts


@dataclass(frozen=True)
class Finding:
    """One promise, whether it is kept, and a sentence with the evidence."""

    promise: str
    holds: bool
    sentence: str

    def __str__(self) -> str:
        return f"{'kept  ' if self.holds else 'BROKEN'}  {self.promise}: {self.sentence}"


@dataclass(frozen=True)
class ModelCheck:
    """What ``check_model`` found. ``holds`` where every promise is kept."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The promises that are not kept."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def summary(self) -> str:
        """Return the verdict, then one line a promise."""
        verdict = "keeps every promise" if self.holds else f"breaks {len(self.broken)} of {len(self.findings)} promises"
        return as_lines([f"{self.model} {verdict}.", *map(str, self.findings)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        findings = [{"promise": f.promise, "holds": f.holds, "sentence": f.sentence} for f in self.findings]
        return {"model": self.model, "holds": self.holds, "findings": findings}

    def __str__(self) -> str:
        return self.summary()


def check_model(model: Model, contracts: Contracts | Features | None = None, *, points: int = POINTS) -> ModelCheck:
    """Holds a model to what calibration and forgetting rely on; raises nothing for what the model does.

    Shapes, bounds and starts, the same bits from the same call, rows that do not look at each other, numbers inside the
    bounds, derivatives against differences, for option contracts the bounds of no arbitrage and put-call parity, for a
    characteristic function whether a finer and longer line gives the same prices.

    Args:
        contracts: to price; 36 calls and puts from a week to three years where not given. A model of named columns
            needs rows of its own, as ``quotes.contracts`` of a book has them.
        points: how many places inside the bounds are tried, beside the starts.

    Raises:
        UsageError: what is given is not a model, or a model of named columns comes without rows.

    >>> from strikeout.models.heston import Heston
    >>> check_model(Heston()).holds
    True
    """
    if isinstance(model, type) or not isinstance(getattr(model, "parameters", None), ParameterSpace):
        raise UsageError(f"check_model takes a model, such as Heston(); got {model!r}.")
    if contracts is None:
        if hasattr(model, "features"):
            raise UsageError(
                f"{model.name} takes named columns: give rows to check it on, as quotes.contracts.", model=model.name
            )
        contracts = _usual()
    if not len(contracts):
        raise UsageError("check_model: no rows to check the model on. Give at least one.")
    found = [_asked("bounds and starts", lambda: space(model))]
    if not found[0].holds:
        return ModelCheck(model.name, tuple(found))
    try:
        suited = getattr(model, "suited", None)
        model = model if suited is None else suited(contracts)
    except FAILURES as error:  # a user's model may refuse rows that it would mix
        return ModelCheck(model.name, (*found, Finding("suited to these rows", False, str(error))))
    theta, rows = np.array(model.parameters.starts[0], float), contracts
    tests: list[tuple[str, Callable[[], str | None]]] = [
        ("shapes", lambda: shapes(model, theta, rows)),
        ("determinism", lambda: determinism(model, theta, rows)),
        ("one price", lambda: one_price(model, theta, rows)),
        ("row independence", lambda: row_independence(model, theta, rows)),
        ("gradient", lambda: _every_start(model, lambda start: gradient(model, start, rows))),
    ]
    if isinstance(contracts, Contracts):
        options = contracts
        tests.append(("no arbitrage", lambda: _every_start(model, lambda start: no_arbitrage(model, start, options))))
        if isinstance(model, CharacteristicModel):
            of_function, places = model, np.vstack([model.parameters.starts, inside_points(model, points)])
            tests.append(("inversion", lambda: inversion(of_function, places, options)))
    shape = _asked(*tests[0])
    found.append(shape)
    if shape.holds:
        found += [_asked(name, test) for name, test in tests[1:]]
        found.append(Finding("finite", *finite(model, inside_points(model, points), rows)))
    return ModelCheck(model.name, tuple(found))


KEPT = {
    "bounds and starts": "every start lies inside the bounds.",
    "shapes": "one price per row, one derivative per row and parameter.",
    "determinism": "the same call gives the same bits.",
    "one price": "price and linearize agree to the bit.",
    "row independence": "a row gives the same bits alone, among others and in any order.",
    "gradient": "derivatives agree with differences of prices at every start.",
    "no arbitrage": "prices keep to their bounds, calls and puts to parity.",
    "inversion": "a finer and longer line gives the same prices.",
}


def _asked(promise: str, test: Callable[[], str | None]) -> Finding:
    try:
        wrong = test()
    except FAILURES as error:
        wrong = f"it cannot be checked: {type(error).__name__}: {error}"
    return Finding(promise, wrong is None, KEPT[promise] if wrong is None else wrong)


def _every_start(model: Model, test: Callable[[Any], str | None]) -> str | None:
    found = (test(np.array(start, float)) for start in model.parameters.starts)
    return next((wrong for wrong in found if wrong is not None), None)


def _usual() -> Contracts:
    strikes = np.array([60.0, 80.0, 90.0, 97.0, 100.0, 103.0, 110.0, 125.0, 150.0])
    years = np.array([1.0 / 52.0, 0.25, 1.0, 3.0])
    expiry = np.repeat(years, len(strikes))
    return Contracts(
        forward=100.0 * elementary.exp(0.01 * expiry),
        strike=np.tile(strikes, len(years)),
        expiry=expiry,
        discount=elementary.exp(-0.02 * expiry),
        is_call=np.arange(len(expiry)) % 2 == 0,
    )
