"""Black and Scholes' model, flat or with a term structure of volatility."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf

import numpy as np

from strikeout.kernels import black
from strikeout.kernels.arrays import Floats
from strikeout.models.expiries import Expiries, called, label, ladder, quoted, settled, years_of
from strikeout.models.model import ParameterSpace, Theta, inside
from strikeout.quotes.contracts import Contracts

STARTS = (0.2, 0.5, 0.1)
DOMAIN = {"volatility": (0.0, inf)}


@dataclass(frozen=True)
class BlackScholes:
    """European prices from Black's formula: one volatility, or one for each knot of a term structure.

    Between knots the total variance is linear in time; before the first and beyond the last the volatility is theirs.

    Args:
        expiries: None, the default, for one volatility; the years of the knots; or "quoted", and ``calibrate`` takes
            those of its quotes.

    Raises:
        UsageError: knots that cannot be.

    >>> c = Contracts(forward=100.0, strike=100.0, expiry=[0.5, 1.0], discount=1.0, is_call=True)
    >>> BlackScholes(expiries=(0.5, 1.0)).price({"volatility[0.5]": 0.2, "volatility[1]": 0.3}, c).round(6)
    array([ 5.637198, 11.923538])
    """

    expiries: Expiries | None = None

    def __post_init__(self) -> None:
        if self.expiries is not None:
            object.__setattr__(self, "expiries", settled(self.expiries, "BlackScholes"))

    @property
    def name(self) -> str:
        flat = "one" if self.expiries == "quoted" else "flat"
        knots = flat if self._knots is None else ",".join(f"{T:.17g}" for T in self._knots)
        return f"black-scholes/1({knots})"

    @cached_property
    def parameters(self) -> ParameterSpace:
        names = ("volatility",) if self._knots is None else tuple(f"volatility{label(T)}" for T in self._knots)
        n = len(names)
        starts = np.repeat(np.array(STARTS)[:, None], n, axis=1)
        return ParameterSpace(names, np.full(n, 1e-3), np.full(n, 10.0), starts)

    def suited(self, contracts: Contracts) -> BlackScholes:
        """Return this model with a knot at each expiry of these contracts, where "quoted" was asked for."""
        return replace(self, expiries=quoted(contracts)) if self.expiries == "quoted" and len(contracts) else self

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract.

        Raises:
            ParameterError: a parameter is missing, unknown or not above zero.
            UsageError: the knots are to be those of quotes, and the contracts have several expiries.
        """
        vol, c = self._volatility(inside(self.parameters, theta, DOMAIN), contracts)[0], contracts
        return black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the volatilities ``(n, p)``.

        Raises:
            ParameterError: a parameter is missing, unknown or not above zero.
        """
        vector, c = inside(self.parameters, theta, DOMAIN), contracts
        vol, jacobian = self._volatility(vector, c)
        vega = black.vega(c.forward, c.strike, c.expiry, vol, c.discount)
        return black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call), jacobian * vega[:, None]

    def arbitrage(
        self,
        theta: Theta,
        contracts: Contracts | None = None,  # noqa: ARG002
        *,
        dates: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Return sentences on total variances that fall with time, so that a calendar spread would be free.

        Args:
            dates: of expiries, by their labels in names of parameters, such as "[0.25]"; for the sentences.
        """
        vector, knots = inside(self.parameters, theta, DOMAIN), self._knots or (1.0,)
        total = [T * vol * vol for T, vol in zip(knots, vector.tolist(), strict=True)]
        return tuple(
            f"Total variance falls from {before:.4g} at {called(earlier, dates)} to {after:.4g} at "
            f"{called(later, dates)}: calendar arbitrage."
            for (earlier, before), (later, after) in pairwise(zip(knots, total, strict=True))
            if after < before
        )

    @property
    def _knots(self) -> tuple[float, ...] | None:
        return self.expiries if isinstance(self.expiries, tuple) else None

    def _volatility(self, vector: Floats, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return each contract's volatility and its derivatives by the parameters."""
        if self.expiries == "quoted":
            years_of(self.expiries, contracts, "BlackScholes")
        if self._knots is None:
            return np.full(len(contracts), vector[0]), np.ones((len(contracts), 1))
        T = contracts.expiry
        found = ladder(self._knots, T)
        vol = np.sqrt(found.total(vector * vector) / T)
        return vol, found.by_rate(0.5 / (vol * T), len(vector)) * (2.0 * vector)
