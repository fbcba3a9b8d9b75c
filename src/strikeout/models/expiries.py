"""Parameters that belong to an expiry: one set per smile, or one number per knot of the term structure.

A model of smiles has ``expiries="quoted"``: ``calibrate`` then replaces it by those of its quotes, so that a book
without an expiry has no parameters for it. Their names carry the expiry in years, as in ``alpha[0.25]``.

What models of one smile an expiry share: each contract takes the parameters of its own smile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import ClassVar, Literal

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Rows
from strikeout.models.model import Domain, ParameterSpace, Theta, inside
from strikeout.quotes.contracts import Contracts

Expiries = tuple[float, ...] | Literal["quoted"]


def label(T: float) -> str:
    """Return how an expiry is written in a parameter's name."""
    return f"[{T:.6g}]"


def called(T: float, dates: Mapping[str, str] | None) -> str:
    """Return how a sentence names an expiry: its date, if one is given for its label, or its years.

    >>> called(0.25, {"[0.25]": "2024-06-21"}), called(0.5, None)
    ('2024-06-21', '0.5 years')
    """
    return (dates or {}).get(label(T), f"{T:.6g} years")


def is_of_expiry(name: str) -> bool:
    """Return whether a parameter of this name belongs to an expiry."""
    return name.endswith("]")


def settled(given: Sequence[float] | str, model: str) -> Expiries:
    """Expiries as a model keeps them: "quoted", or years in ascending order."""
    if isinstance(given, str):
        if given != "quoted":
            raise UsageError(
                f'{model}: expiries={given!r} is unknown. Use "quoted", or years such as (0.25, 0.5).', given=given
            )
        return "quoted"
    years = tuple(sorted({float(T) for T in given}))
    bad = [T for T in years if not 0.0 < T < inf]
    if not years or bad:
        raise UsageError(f"{model}: expiries are years above zero, at least one; got {bad or 'none'}.")
    for low, high in pairwise(years):
        if label(low) == label(high):
            raise UsageError(
                f"{model}: the expiries {low!r} and {high!r} are too close to be distinguished, and each must have "
                "parameters of its own. Round the expiries, or take a model without parameters for each, as Heston.",
                low=low,
                high=high,
            )
    return years


def quoted(contracts: Contracts) -> tuple[float, ...]:
    """Return the different expiries of contracts, ascending."""
    return tuple(contracts.slices.expiries.tolist())


def years_of(expiries: Expiries, contracts: Contracts | None, model: str) -> tuple[float, ...]:
    """Return the years of every smile; of a model that is one smile of any expiry those of the contracts, a year
    without any.
    """
    if expiries != "quoted":
        return expiries
    years = (1.0,) if contracts is None or not len(contracts) else quoted(contracts)
    if len(years) > 1:
        raise UsageError(
            f"{model}: one set of parameters is of one expiry, and these contracts have {len(years)} expiries. Name "
            f"them: expiries=({', '.join(f'{T:.6g}' for T in years[:3])}, ...).",
            count=len(years),
        )
    return years


def spread_over(expiries: Sequence[float], smile: Callable[[float], ParameterSpace]) -> ParameterSpace:
    """Return the space of one smile an expiry: every smile's names with its expiry, one after the other."""
    parts = [smile(T) for T in expiries]
    return ParameterSpace(
        names=tuple(f"{name}{label(T)}" for T, part in zip(expiries, parts, strict=True) for name in part.names),
        lower=np.concatenate([part.lower for part in parts]),
        upper=np.concatenate([part.upper for part in parts]),
        starts=np.concatenate([part.starts for part in parts], axis=1),
        edges=tuple(f"{name}{label(T)}" for T, part in zip(expiries, parts, strict=True) for name in part.edges),
        is_curve=all(part.is_curve for part in parts),
    )


def smile_of(expiries: Expiries, contracts: Contracts, model: str) -> Rows:
    """Return the number of each contract's smile; -1 where the model has none for its expiry."""
    if expiries == "quoted":
        years_of(expiries, contracts, model)
        return np.zeros(len(contracts), np.intp)
    years = np.array(expiries)
    at = np.minimum(np.searchsorted(years, contracts.expiry), len(years) - 1)
    return np.where(years[at] == contracts.expiry, at, -1)


@dataclass(frozen=True, eq=False)
class Ladder:
    """Total variance between knots: linear in T, from nothing at T = 0, and at the last knot's rate beyond it."""

    below: Rows  # the knot on each side of a contract
    above: Rows
    years_below: Floats  # what one unit of that knot's variance rate adds to the total variance
    years_above: Floats

    def total(self, rate: Floats) -> Floats:
        """Total variance of every contract, from the variance rate at every knot."""
        return self.years_below * rate[self.below] + self.years_above * rate[self.above]

    def by_rate(self, slope: Floats, count: int) -> Floats:
        """Derivatives by every knot's rate ``(n, count)``, from those by the total variance."""
        out, rows = np.zeros((len(slope), count)), np.arange(len(slope))
        out[rows, self.below] += slope * self.years_below
        out[rows, self.above] += slope * self.years_above
        return out


def ladder(years: Sequence[float], T: Floats) -> Ladder:
    """Return where each T lies among the knots."""
    knots = np.array(years)
    above = np.minimum(np.searchsorted(knots, T), len(knots) - 1)
    between = (knots[above] > T) & (above > 0)
    below = np.where(between, above - 1, above)
    width = np.where(between, knots[above] - knots[below], 1.0)
    share = np.where(between, (T - knots[below]) / width, 0.0)
    # On or outside the knots the rate is that of the nearest, and all of it is counted with the knot "above".
    return Ladder(
        below, above, np.where(between, (1.0 - share) * knots[below], 0.0), np.where(between, share * knots[above], T)
    )


class Smiles(ABC):
    """Prices contracts smile by smile. A contract whose expiry has no smile has no price: not-a-number."""

    expiries: Expiries
    domain: ClassVar[Domain]

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def parameters(self) -> ParameterSpace: ...

    @abstractmethod
    def _smile(self, contracts: Contracts, theta: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        """Return prices and derivatives by the parameters of a smile ``(n, q)``, from one value a contract and
        parameter."""

    @abstractmethod
    def only(self, T: float) -> Smiles:
        """Return the model of one of its smiles alone."""

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if the formula has no volatility, or the expiry no smile."""
        return self._rows(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the parameters ``(n, p)``; zero by those of other smiles."""
        price, own, place = self._rows(theta, contracts)
        count, width = self._smiles, own.shape[1]
        jacobian = np.zeros((len(price), count, width))
        jacobian[np.arange(len(price)), np.maximum(place, 0)] = own
        return price, jacobian.reshape(len(price), count * width)

    def accumulate_scaled(self, theta: Theta, contracts: Contracts, scale: Floats, target: Floats) -> Floats:
        """Return a whole Gauss-Newton pass, smile by smile: what smiles do not share is zero and need not be summed.

        As ``Heston.accumulate_scaled``: the upper triangle of the sums of ``a a'``, row by row, with
        ``a = sqrt(w) (J_1 .. J_p, observed - price)``.
        """
        price, own, place = self._rows(theta, contracts)
        root = scale / contracts.scale
        columns = [np.ascontiguousarray(column) * root for column in own.T]
        columns.append(target - root * (price - contracts.intrinsic))
        width, count = own.shape[1], self._smiles
        sums = np.zeros((count * width + 1, count * width + 1))
        for number in range(count):
            rows = np.flatnonzero(place == number)
            mine = [column[rows] for column in columns]
            at = [*range(number * width, (number + 1) * width), count * width]
            for i, a in enumerate(mine):
                for j in range(i, width + 1):
                    sums[at[i], at[j]] += np.add.reduce(a * mine[j])
        if (place < 0).any():
            sums[:] = np.nan
        return sums[np.triu_indices(len(sums))]

    @property
    def _smiles(self) -> int:
        return 1 if self.expiries == "quoted" else len(self.expiries)

    def _rows(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats, Rows]:
        table = inside(self.parameters, theta, self.domain).reshape(self._smiles, -1)
        place = smile_of(self.expiries, contracts, type(self).__name__)
        theta_rows = table[np.maximum(place, 0)]
        with np.errstate(all="ignore"):
            price, own = self._smile(contracts, tuple(np.ascontiguousarray(column) for column in theta_rows.T))
        absent = place < 0
        price[absent], own[absent] = np.nan, np.nan
        return price, own, place
