"""SABR smiles, one per expiry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, ldexp, sqrt
from typing import ClassVar, Literal

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import bachelier, black
from strikeout.kernels import sabr as kernel
from strikeout.kernels.arrays import Floats
from strikeout.kernels.elementary import nearest_exponent, power
from strikeout.models.expiries import Expiries, Smiles, quoted, settled, spread_over
from strikeout.models.model import Domain, ParameterSpace
from strikeout.quotes.contracts import Contracts

STARTS = ((0.2, -0.3, 0.6), (0.3, -0.7, 1.2), (0.15, 0.3, 0.8), (0.2, -0.8, 2.0))  # at a year: vol, correlation, nu
MIDDLE = 0.5  # where a free beta begins


@dataclass(frozen=True)
class SABR(Smiles):
    """European prices from Hagan's SABR volatilities, one set of parameters per expiry, with analytic sensitivities.

        dF = alpha F^beta dW,    dalpha = vol_of_vol alpha dZ,    dW dZ = correlation dt

    Hagan, Kumar, Lesniewski and Woodward (2002). Their formula is an expansion: far from the money at long expiries it
    is not free of arbitrage.

    Args:
        beta: the exponent, fixed; None calibrates it too, though one smile hardly separates it from the correlation.
        volatility: "lognormal" goes through Black's formula, "normal" through Bachelier's.
        expiries: "quoted", the default, lets ``calibrate`` take those of its quotes; or years, one smile each.
        unit: what the forward is measured in. Only the starts and bounds of alpha depend on it. "quoted"
            expiries come with the power of two nearest to the largest forward.

    Raises:
        UsageError: beta outside [0, 1], an unknown volatility, or expiries that cannot be.

    >>> c = Contracts(forward=100.0, strike=[90.0, 100.0], expiry=1.0, discount=1.0, is_call=True)
    >>> SABR(beta=1.0).price({"alpha": 0.2, "correlation": -0.3, "vol_of_vol": 0.4}, c).round(6)
    array([13.873906,  8.009496])
    """

    beta: float | None = 1.0
    volatility: Literal["lognormal", "normal"] = "lognormal"
    expiries: Expiries = "quoted"
    unit: float = 1.0

    domain: ClassVar[Domain] = {
        "alpha": (0.0, inf),
        "correlation": (-1.0, 1.0),
        "vol_of_vol": (0.0, inf),
        "beta": (-1e-12, 1.0 + 1e-12),
    }

    def __post_init__(self) -> None:
        if self.beta is not None and not 0.0 <= self.beta <= 1.0:
            raise UsageError(
                f"SABR: beta={self.beta:g} must lie between 0 (normal) and 1 (lognormal), or be None.", beta=self.beta
            )
        if self.volatility not in ("lognormal", "normal"):
            raise UsageError(
                f'SABR: volatility={self.volatility!r} is unknown. Use "lognormal" or "normal".',
                volatility=self.volatility,
            )
        if not (isfinite(self.unit) and self.unit > 0.0):
            raise UsageError(f"SABR: unit={self.unit!r} must be finite and above zero, the size of a forward.")
        object.__setattr__(self, "expiries", settled(self.expiries, "SABR"))

    @property
    def name(self) -> str:
        beta = "free" if self.beta is None else f"{self.beta:.17g}"
        years = "one" if self.expiries == "quoted" else ",".join(f"{T:.17g}" for T in self.expiries)
        return f"sabr-{self.volatility}/hagan-1(beta={beta}, unit={self.unit:g}, {years})"

    @cached_property
    def parameters(self) -> ParameterSpace:
        return self._space(1.0) if self.expiries == "quoted" else spread_over(self.expiries, self._space)

    def only(self, T: float) -> SABR:
        """Return the model of one of its smiles alone."""
        return replace(self, expiries=(T,))

    def suited(self, contracts: Contracts) -> SABR:
        """Return this model with one smile for each expiry of these contracts, unless its expiries were given."""
        if self.expiries != "quoted" or not len(contracts):
            return self
        unit = ldexp(1.0, nearest_exponent(float(np.max(contracts.forward))))
        years = quoted(contracts)
        return replace(self, unit=unit, expiries=years if len(years) > 1 else "quoted")

    def _smile(self, contracts: Contracts, theta: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        c, (alpha, rho, nu) = contracts, theta[:3]
        beta = theta[3] if self.beta is None else np.full(len(c), self.beta)
        formula = kernel.lognormal if self.volatility == "lognormal" else kernel.normal
        vol, by = formula(c.forward, c.strike, c.expiry, (alpha, beta, rho, nu))
        if self.volatility == "lognormal":
            price = black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)
            vega = black.vega(c.forward, c.strike, c.expiry, vol, c.discount)
        else:
            price = bachelier.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)
            vega = bachelier.vega(c.forward, c.strike, c.expiry, vol, c.discount)
        order = (0, 2, 3) if self.beta is not None else (0, 2, 3, 1)
        return price, np.stack([vega * by[i] for i in order], axis=1)

    def _space(self, T: float) -> ParameterSpace:
        """Return the space of one smile: vol of vol falls about like 1 / sqrt(T) in real markets, so its starts do."""
        free = self.beta is None
        size = float(power(self.unit, 1.0 - (MIDDLE if self.beta is None else self.beta)))
        least, most = (min(size, 1.0, self.unit), max(size, 1.0, self.unit)) if free else (size, size)
        nu = min(1.0 / sqrt(T), 4.0)
        starts = [[vol * size, rho, share * nu, MIDDLE][: 4 if free else 3] for vol, rho, share in STARTS]
        names = ("alpha", "correlation", "vol_of_vol", "beta")[: 4 if free else 3]
        lower, upper = [1e-4 * least, -0.999, 1e-3, 0.0], [10.0 * most, 0.999, 40.0, 1.0]
        return ParameterSpace(names, np.array(lower[: len(names)]), np.array(upper[: len(names)]), np.array(starts))
