"""The SSVI surface: one smile's shape for all expiries, and a term structure at the money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf, sqrt

import numpy as np

from strikeout.kernels import black
from strikeout.kernels import svi as kernel
from strikeout.kernels.arrays import Floats
from strikeout.kernels.elementary import power
from strikeout.models.expiries import Expiries, called, label, ladder, quoted, settled, years_of
from strikeout.models.model import ParameterSpace, Theta, inside
from strikeout.quotes.contracts import Contracts

SHAPE = ("correlation", "curvature", "fading")
STARTS = ((-0.5, 1.0, 0.5, 0.04), (-0.8, 0.5, 0.3, 0.09), (0.2, 1.0, 0.4, 0.04), (-0.3, 2.0, 0.5, 0.02))
DOMAIN = {"correlation": (-1.0, 1.0), "curvature": (0.0, inf), "variance": (0.0, inf)}


@dataclass(frozen=True)
class SSVI:
    """European prices from one surface of total variance, with analytic sensitivities.

        w(k, T) = theta / 2 (1 + correlation phi k + sqrt((phi k + correlation)^2 + 1 - correlation^2))
        phi     = curvature theta^-fading (1 + theta)^(fading - 1),    theta = variance[T] T at the money

    In the literature's letters rho, eta, gamma and theta_T. Between expiries theta is linear. Gatheral and Jacquier
    (2014), "Arbitrage-free SVI volatility surfaces", whose conditions ``arbitrage`` looks at; a calibration names those
    that do not hold among its warnings.

    Args:
        expiries: the knots of theta: "quoted", the default, lets ``calibrate`` take those of its quotes; or years.

    Raises:
        UsageError: expiries that cannot be.

    >>> c = Contracts(forward=100.0, strike=100.0, expiry=[0.5, 1.0], discount=1.0, is_call=True)
    >>> SSVI((0.5, 1.0)).price([-0.5, 1.0, 0.5, 0.04, 0.04], c).round(6)
    array([5.637198, 7.965567])
    """

    expiries: Expiries = "quoted"

    def __post_init__(self) -> None:
        object.__setattr__(self, "expiries", settled(self.expiries, "SSVI"))

    @property
    def name(self) -> str:
        years = "one" if self.expiries == "quoted" else ",".join(f"{T:.17g}" for T in self.expiries)
        return f"ssvi/1({years})"

    @cached_property
    def parameters(self) -> ParameterSpace:
        names = ("variance",) if self.expiries == "quoted" else tuple(f"variance{label(T)}" for T in self.expiries)
        n = len(names)
        starts = np.array([[rho, eta, gamma, *(variance,) * n] for rho, eta, gamma, variance in STARTS])
        lower, upper = [-0.999, 1e-3, 0.0, *(1e-5,) * n], [0.999, 20.0, 1.0, *(4.0,) * n]
        return ParameterSpace((*SHAPE, *names), np.array(lower), np.array(upper), starts)

    def suited(self, contracts: Contracts) -> SSVI:
        """Return this model with a knot at each expiry of these contracts, unless its expiries were given."""
        years = quoted(contracts)
        return replace(self, expiries=years) if self.expiries == "quoted" and len(years) > 1 else self

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
            UsageError: the model has one variance, and the contracts have several expiries.
        """
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the parameters ``(n, p)``.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
            UsageError: the model has one variance, and the contracts have several expiries.
        """
        vector, c = inside(self.parameters, theta, DOMAIN), contracts
        knots = years_of(self.expiries, c, "SSVI")
        found = ladder(knots, c.expiry)
        with np.errstate(all="ignore"):
            at_the_money = found.total(vector[3:])
            shape = tuple(np.full(len(c), x) for x in vector[:3])
            total, by = kernel.surface(c.log_moneyness, (at_the_money, *shape))
            vol = np.sqrt(total / c.expiry)
            price = black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)
            slope = black.vega(c.forward, c.strike, c.expiry, vol, c.discount) * 0.5 / (vol * c.expiry)
        by_shape = np.stack([slope * column for column in by[1:]], axis=1)
        return price, np.concatenate([by_shape, found.by_rate(slope * by[0], len(knots))], axis=1)

    def arbitrage(
        self, theta: Theta, contracts: Contracts | None = None, *, dates: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Return one sentence for each condition against money for nothing that does not hold; empty where all do.

        Butterflies: ``theta phi (1 + |rho|) < 4`` and ``theta phi^2 (1 + |rho|) <= 4``, sufficient at every strike.
        Calendars: theta must not fall, and ``0 <= d(theta phi)/dtheta <= phi (1 + sqrt(1 - rho^2)) / rho^2``.

        Args:
            contracts: give the expiry if the model has one variance; a year without them.
            dates: of expiries, by their labels in names of parameters, such as "[0.25]"; for the sentences.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        rho, eta, gamma, *rates = inside(self.parameters, theta, DOMAIN).tolist()
        years = years_of(self.expiries, contracts, "SSVI")
        totals, found = [T * rate for T, rate in zip(years, rates, strict=True)], []
        for T, total in zip(years, totals, strict=True):
            phi = eta * float(power(total, -gamma) * power(1.0 + total, gamma - 1.0))
            for what, size in (("theta phi", total * phi), ("theta phi^2", total * phi * phi)):
                if size * (1.0 + abs(rho)) > 4.0:
                    found.append(
                        f"At {called(T, dates)} {what} (1 + |correlation|) is {size * (1.0 + abs(rho)):.3g}, above 4: "
                        "butterfly arbitrage cannot be ruled out."
                    )
            growth = phi * (1.0 - gamma - (1.0 - gamma) * total / (1.0 + total))  # d(theta phi)/dtheta
            most = inf if rho == 0.0 else phi * (1.0 + sqrt(1.0 - rho * rho)) / (rho * rho)
            if not 0.0 <= growth <= most:
                found.append(
                    f"At {called(T, dates)} theta phi grows at {growth:.3g}, outside 0 .. {most:.3g}: calendars."
                )
        found += [
            f"theta falls from {before:.4g} at {called(earlier, dates)} to {after:.4g} at {called(later, dates)}: "
            "calendar arbitrage."
            for (earlier, before), (later, after) in pairwise(zip(years, totals, strict=True))
            if after < before
        ]
        return tuple(found)
