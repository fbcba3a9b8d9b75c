"""Erased quotes computed back from parameters that were fitted to them, and from the quotes that stay.

symbol   meaning                                                                              shape
theta    parameters of a calibration with the erased quotes                                   (p,)
J, r     sensitivities and residual of a quote at theta
G        score of the quotes that stay, sum J r; with that of the erased quotes it is zero    (p,)
L        Cholesky factor of the inverse curvature: L'G is in standard errors                  (p, p)
v        L'J of a contract that may have been erased                                          (p,)
u        -L'G, which is the sum of v r over the erased quotes                                 (p,)

One erased quote: u is parallel to the v of its contract, and r is their ratio. Contracts are listed, so all of them
are tried, and the one that leaves nothing of u is it; the price is that of the model plus r. Two erased quotes: u lies
in the plane of two such vectors, and all pairs are tried. Of a panel the latent parameter of every date is found again
from the quotes of the date that stay; the date that lost a quote is the one where the equations can be solved.

A quote rebuilt from its cached statistics: forward, strike, expiry and price out of ``(u, psi)``.

symbol   meaning
psi      J'J, a 5 x 5 matrix of rank one: it gives J up to its sign, and a call's vega is above zero
u        J'r: with J it gives the residual r
F, k, T  forward, ln(strike / forward) and expiry; the discount follows from a public interest rate

J has five entries and three unknowns, so they are found by damped Gauss-Newton on J(F, k, T) / J - 1. Then
observed = model price + r.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration
from strikeout.kernels.arrays import Floats
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.moments import moments_of
from strikeout.statistics.quadrature import quadrature_of
from strikeout.store.store import PAGE_KINDS, Reading
from strikeout.synthetic.heston_quotes import RATE, SPOT

TICK = 0.01  # of strikes, where any may be listed
STEP = 1e-6  # of a central difference in a latent parameter
SETTLED = 60  # Gauss-Newton steps for one latent parameter


@dataclass(frozen=True)
class Guess:
    """A quote as it was computed back; ``miss`` is the share of the equations it leaves unexplained."""

    date: str
    strike: float
    expiry: float
    price: float
    miss: float

    def off(self, quotes: Quotes) -> float:
        """Return the distance to the price of the quote with its contract; infinite if there is none."""
        c = quotes.contracts
        same = (dates_of(quotes) == self.date) & np.isclose(c.strike, self.strike, rtol=1e-9, atol=0.0)
        same &= np.isclose(c.expiry, self.expiry, rtol=1e-9, atol=0.0)
        return float(np.min(np.abs(quotes.observed[same] - self.price), initial=np.inf))


def dates_of(quotes: Quotes) -> NDArray[np.str_]:
    """Return the date of every quote; one and the same for quotes without."""
    return quotes.labels["date"].astype(str) if "date" in quotes.labels else np.full(len(quotes), "")


def computed_back(
    model: Model, parameters: Mapping[str, float], retained: Quotes, *, count: int = 1, through: str = "quotes"
) -> tuple[Guess, ...]:
    """Return one or two erased quotes, from a plain calibration that included them.

    Args:
        count: how many were erased, 1 or 2.
        through: "moments" for the optimum of the moments of the quotes.
    """
    theta = _in_order(model, parameters)
    price, J = model.linearize(theta, retained.contracts)
    G = J.T @ (retained.observed - price)
    if through == "moments":
        G = quadrature_of(moments_of(retained)).linearize(model, theta).score
    L = _root(J)
    listed, dates = _listed(retained)
    prices, rows = model.linearize(theta, listed)
    v, u = rows @ L, -(L.T @ G)
    found = [_alone(v, u)] if count == 1 else _pair(v, u)
    scale = float(np.linalg.norm(u))
    left = float(np.linalg.norm(u - sum(r * v[at] for at, r in found)))
    return tuple(
        Guess(dates[at], float(listed.strike[at]), float(listed.expiry[at]), float(prices[at] + r), left / scale)
        for at, r in found
    )


def _root(J: Floats) -> Floats:
    """Return L with ``L L' = (J'J)^-1``.

    From a factor of J itself: an attacker tries every set of numbers that a book holds under these names, and at some
    of them, which are not a calibration's, J'J is not positive definite in floating point.
    """
    return np.asarray(np.linalg.pinv(np.linalg.qr(J, mode="r")))


def _listed(retained: Quotes) -> tuple[Contracts, list[str]]:
    """Return every listed strike on every expiry of every date, as calls; and the dates."""
    c, dates = retained.contracts, dates_of(retained)
    discount = dict(zip(c.expiry.tolist(), c.discount.tolist(), strict=True))
    forwards = sorted(set(zip(dates.tolist(), c.forward.tolist(), strict=True)))
    K, T = (grid.ravel() for grid in np.meshgrid(np.unique(c.strike), np.unique(c.expiry)))
    whole = Contracts(
        forward=np.repeat([forward for _, forward in forwards], len(K)),
        strike=np.tile(K, len(forwards)),
        expiry=np.tile(T, len(forwards)),
        discount=np.tile([discount[t] for t in T.tolist()], len(forwards)),
        is_call=True,
    )
    return whole, [date for date, _ in forwards for _ in range(len(K))]


def _alone(v: Floats, u: Floats) -> tuple[int, float]:
    """Return the row that is parallel to u, and u over it."""
    length = np.sum(v * v, axis=1)
    along = v @ u
    gain = np.divide(along * along, length, out=np.zeros_like(length), where=length > 0.0)
    at = int(np.argmax(gain))
    return at, float(along[at] / length[at])


def _pair(v: Floats, u: Floats) -> list[tuple[int, float]]:
    """Return the two rows whose plane u lies in, and how much of each."""
    best, pair = -1.0, (0, 0)
    for at, row in enumerate(v):
        square = float(row @ row)
        if not square > 0.0:
            continue
        w, rest = v - np.outer(v @ row / square, row), u - row * (row @ u / square)
        length = np.sum(w * w, axis=1)
        length[length <= 1e-18 * np.sum(v * v, axis=1)] = 0.0  # parallel to the first
        along = w @ rest
        gain = np.divide(along * along, length, out=np.zeros_like(length), where=length > 0.0)
        other = int(np.argmax(gain))
        total = float(gain[other] + (row @ u) ** 2 / square)
        if total > best:
            best, pair = total, (at, other)
    share = np.linalg.lstsq(v[list(pair)].T, u, rcond=None)[0]
    return [(at, float(r)) for at, r in zip(pair, share, strict=True)]


def computed_back_of_panel(model: Model, shared: Mapping[str, float], latent: str, retained: Quotes) -> Guess:
    """Return an erased quote, from the shared parameters of a panel by date; the latent path is not needed."""
    names = list(model.parameters.names)
    own, others = names.index(latent), [i for i, name in enumerate(names) if name != latent]

    def rows(value: float, contracts: Contracts) -> tuple[Floats, Floats]:
        return model.linearize([value if name == latent else shared[name] for name in names], contracts)

    def score(value: float, day: Quotes) -> Floats:
        """Return that of the shared parameters, then that of the latent one."""
        price, J = rows(value, day.contracts)
        return np.asarray(J[:, [*others, own]].T @ (day.observed - price))

    dates = dates_of(retained)
    days = {date: retained[dates == date] for date in sorted(set(dates.tolist()))}
    values = {date: _settled(rows, own, day) for date, day in days.items()}
    parts = {date: score(values[date], day)[:-1] for date, day in days.items()}
    total = np.sum(list(parts.values()), axis=0)
    scale = np.sqrt(np.mean(rows(next(iter(values.values())), retained.contracts)[1] ** 2, axis=0))[[*others, own]]
    guesses = []
    for date, day in days.items():
        x = values[date]
        # If it was this date: unknown are its old latent value, near x, and the residual; p equations must hold.
        b = (score(x, day) + np.append(total - parts[date], 0.0)) / scale
        slope = (score(x + STEP, day) - score(x - STEP, day)) / (2.0 * STEP) / scale
        b = b - slope * (slope @ b) / (slope @ slope)
        for T in np.unique(retained.contracts.expiry).tolist():
            listed = _strikes(day, retained, T)
            price, J = rows(x, listed)
            v = J[:, [*others, own]] / scale
            v = v - np.outer(v @ slope / (slope @ slope), slope)
            at, r = _alone(v, -b)
            miss = float(np.linalg.norm(b + r * v[at]) / np.linalg.norm(b))
            guesses.append(Guess(date, float(listed.strike[at]), T, float(price[at] + r), miss))
    return min(guesses, key=lambda guess: guess.miss)


def _settled(rows: Callable[[float, Contracts], tuple[Floats, Floats]], own: int, day: Quotes) -> float:
    """Return the latent parameter that fits a day at given shared ones."""
    x = 0.06
    for _ in range(SETTLED):
        price, J = rows(x, day.contracts)
        slope = J[:, own]
        x = max(x + float(slope @ (day.observed - price) / (slope @ slope)), 1e-7)
    return x


def _strikes(day: Quotes, retained: Quotes, T: float) -> Contracts:
    """Return every strike of a date and an expiry, to the cent."""
    c, whole = day.contracts, retained.contracts
    same = c.expiry == T
    forward = float(c.forward[same][0] if same.any() else c.forward[0])
    K = np.round(np.arange(0.65 * forward, 1.35 * forward, TICK), 2)
    return Contracts(
        forward=forward, strike=K, expiry=T, discount=float(whole.discount[whole.expiry == T][0]), is_call=True
    )


def prices_back(model: Model, parameters: Mapping[str, float], retained: Quotes, gone: Contracts) -> Floats:
    """Return prices of erased quotes with known contracts: those of least residuals that solve the p equations.

    They are the erased prices as long as there are no more quotes than parameters.
    """
    theta = _in_order(model, parameters)
    price, J = model.linearize(theta, retained.contracts)
    L = _root(J)
    known, rows = model.linearize(theta, gone)
    u = -(L.T @ (J.T @ (retained.observed - price)))
    return np.asarray(known + np.linalg.lstsq((rows @ L).T, u, rcond=None)[0])


def parameters_in(store: Reading, names: Sequence[str]) -> list[dict[str, float]]:
    """Return every set of parameters of these names on any page of a book: calibrations, certificates, references.

    No key is needed to read them.
    """
    found: dict[tuple[float, ...], dict[str, float]] = {}
    for kind in PAGE_KINDS:
        for page in store.pages(kind):
            for values in _sets(_read(store.page(kind, page) or b""), names):
                found.setdefault(tuple(values.values()), values)
    return list(found.values())


def _read(page: bytes) -> Any:
    """Return the JSON of a page, or of its first line; None for other bytes."""
    for text in (page, page.partition(b"\n")[0]):
        try:
            return json.loads(text)
        except ValueError:
            continue
    return None


def _sets(content: Any, names: Sequence[str]) -> Iterator[dict[str, float]]:
    if isinstance(content, list):
        pairs = [one for one in content if isinstance(one, list) and len(one) == 2 and isinstance(one[0], str)]
        yield from _complete(dict(pairs), names)
        for one in content:
            yield from _sets(one, names)
    elif isinstance(content, dict):
        yield from _complete(content, names)
        if isinstance(content.get("reference"), list) and isinstance(content.get("parameters"), list):
            yield from _complete(dict(zip(content["parameters"], content["reference"], strict=True)), names)
        for one in content.values():
            yield from _sets(one, names)


def _complete(texts: Mapping[str, Any], names: Sequence[str]) -> Iterator[dict[str, float]]:
    if all(name in texts for name in names):
        try:
            yield {name: float.fromhex(texts[name]) for name in names}
        except (TypeError, ValueError):  # words by the same names
            return


def _in_order(model: Model, parameters: Mapping[str, float]) -> Floats:
    return np.array([parameters[name] for name in model.parameters.names])


DIFFERENCE = 1e-6  # of a central difference in ln F, k, ln T
STARTS = tuple((k, T) for T in (0.15, 0.3, 0.08) for k in (0.0, -0.15, 0.15))
GOOD = 1e-8  # relative, of every one of the four


@dataclass(frozen=True)
class Rebuilt:
    """Relative errors of what was rebuilt of one quote."""

    forward: float
    strike: float
    expiry: float
    price: float

    @property
    def worst(self) -> float:
        """The largest of the four; infinite if none was found."""
        errors = (self.forward, self.strike, self.expiry, self.price)
        return max(error if error == error else float("inf") for error in errors)


def rebuilt(calibration: Calibration, rows: Sequence[int]) -> list[Rebuilt]:
    """Return these quotes rebuilt from the calibrated parameters, an interest rate and their ``(u, psi)`` alone."""
    quotes, model = calibration.quotes, calibration.model
    theta = np.array(list(calibration.parameters.values()))
    price, J = model.linearize(theta, quotes.contracts)
    out = []
    for row in rows:
        psi, u = np.outer(J[row], J[row]), J[row] * (quotes.observed[row] - price[row])
        found = rebuild(model, theta, psi=psi, u=u)
        true = quotes.contracts
        known = (true.forward[row], true.strike[row], true.expiry[row], quotes.observed[row])
        out.append(Rebuilt(*(abs(a / b - 1.0) for a, b in zip(found, map(float, known), strict=True))))
    return out


def rebuild(model: Model, theta: Floats, *, psi: Floats, u: Floats) -> tuple[float, float, float, float]:
    """Return forward, strike, expiry and observed price of a call from its cached statistics.

    Not-a-number if no start leads to them.
    """
    sensitivities = psi[:, -1] / sqrt(psi[-1, -1])
    residual = float(u[-1] / sensitivities[-1])

    def miss(point: Floats) -> Floats:
        return np.asarray(model.linearize(theta, _call(point))[1][0] / sensitivities - 1.0)

    best, left = np.full(3, np.nan), np.inf
    for k, T in STARTS:
        point, rest = _descend(miss, np.array([np.log(SPOT), k, np.log(T)]))
        if rest < left:
            best, left = point, rest
        if left < 1e-20:
            break
    if not np.isfinite(best).all():
        return (np.nan,) * 4
    call = _call(best)
    price = float(model.price(theta, call)[0]) + residual
    return float(call.forward[0]), float(call.strike[0]), float(call.expiry[0]), price


def _call(point: Floats) -> Contracts:
    forward, T = np.exp(point[0]), np.exp(point[2])
    return Contracts(
        forward=forward, strike=forward * np.exp(point[1]), expiry=T, discount=np.exp(-RATE * T), is_call=True
    )


def _descend(miss: Callable[[Floats], Floats], point: Floats) -> tuple[Floats, float]:
    """Search by Levenberg-Marquardt in three unknowns, kept within what any exchange lists."""
    damping, here = 1e-3, miss(point)
    cost = float(here @ here)
    for _ in range(60):
        A = np.stack([_slope(miss, point, i) for i in range(3)], axis=1)
        H, G = A.T @ A, A.T @ here
        moved = False
        for _ in range(12):
            try:
                step = np.linalg.solve(H + damping * np.diag(np.diag(H)), -G)
            except np.linalg.LinAlgError:
                return point, cost
            there = np.clip(point + step, [0.0, -2.0, np.log(1 / 365)], [12.0, 2.0, np.log(10.0)])
            ahead = miss(there)
            gained = float(ahead @ ahead)
            if gained < cost:
                point, here, cost, damping, moved = there, ahead, gained, damping * 0.1, True
                break
            damping *= 10.0
        if not moved or cost < 1e-26:
            break
    return point, cost


def _slope(miss: Callable[[Floats], Floats], point: Floats, i: int) -> Floats:
    shift = np.zeros(3)
    shift[i] = DIFFERENCE
    return (miss(point + shift) - miss(point - shift)) / (2.0 * DIFFERENCE)
