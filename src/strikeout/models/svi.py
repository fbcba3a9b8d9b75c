"""SVI smiles, one per expiry, and the arbitrage they leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels import black
from strikeout.kernels import svi as kernel
from strikeout.models.domain import Domain, inside
from strikeout.models.expiries import Expiries, label, quoted, settled, spread_over, years_of
from strikeout.models.model import ParameterSpace, Theta
from strikeout.models.smiles import Smiles
from strikeout.quotes.contracts import Contracts

Floats = NDArray[np.float64]

NATURAL = ("variance", "correlation", "curvature")
RAW = ("lowest", "slope", "tilt", "centre", "width")
# Starts at a year. Total variance grows like T, distances in log-strike like its root: see _space.
NATURAL_STARTS = ((0.04, -0.5, 5.0), (0.09, -0.8, 3.0), (0.04, 0.2, 5.0), (0.02, -0.3, 12.0))
RAW_STARTS = (
    (0.03, 0.1, -0.5, 0.0, 0.1),
    (0.06, 0.2, -0.3, 0.1, 0.3),
    (0.03, 0.1, 0.2, 0.0, 0.2),
    (0.02, 0.05, -0.8, 0.05, 0.05),
)
LOOKED_AT = np.linspace(-1.5, 1.5, 601)  # log-strikes where g(k) and the order of smiles are looked at
ROUNDING = -1e-12


@dataclass(frozen=True)
class SVI(Smiles):
    """European prices from an SVI curve of total variance, one per expiry, with analytic sensitivities.

        natural:  w(k) = v T / 2 (1 + rho phi k + sqrt((phi k + rho)^2 + 1 - rho^2)),    k = ln(strike / forward)
                  v, rho, phi = variance, correlation, curvature
        raw:      w(k) = a + slope (tilt (k - centre) + sqrt((k - centre)^2 + width^2)),
                  a = lowest - slope width sqrt(1 - tilt^2), so that lowest is the lowest total variance of the smile

    Gatheral (2004), Gatheral and Jacquier (2014); ``arbitrage`` looks at the conditions of the latter, and a
    calibration names those that do not hold among its warnings.

    Args:
        form: "natural", a slice of an SSVI surface, has three parameters that a smile determines. "raw" has
            Gatheral's five, of which few real smiles determine all: a calibration then reports it.
        expiries: "quoted", the default, lets ``calibrate`` take those of its quotes; or years, one smile each.

    Raises:
        UsageError: an unknown form, or expiries that cannot be.

    >>> c = Contracts(forward=100.0, strike=[90.0, 100.0], expiry=1.0, discount=1.0, is_call=True)
    >>> SVI().price({"variance": 0.04, "correlation": -0.5, "curvature": 5.0}, c).round(6)
    array([14.533089,  7.965567])
    """

    form: Literal["natural", "raw"] = "natural"
    expiries: Expiries = "quoted"

    domain: ClassVar[Domain] = {
        "variance": (0.0, inf),
        "correlation": (-1.0, 1.0),
        "curvature": (0.0, inf),
        "lowest": (0.0, inf),
        "slope": (0.0, inf),
        "tilt": (-1.0, 1.0),
        "width": (0.0, inf),
    }

    def __post_init__(self) -> None:
        if self.form not in ("natural", "raw"):
            raise UsageError(f'SVI: form={self.form!r} is unknown. Use "natural" or "raw".')
        object.__setattr__(self, "expiries", settled(self.expiries, "SVI"))

    @property
    def name(self) -> str:
        years = "one" if self.expiries == "quoted" else ",".join(f"{T:.17g}" for T in self.expiries)
        return f"svi/{self.form}-1({years})"

    @cached_property
    def parameters(self) -> ParameterSpace:
        return self._space(1.0) if self.expiries == "quoted" else spread_over(self.expiries, self._space)

    def suited(self, contracts: Contracts) -> SVI:
        """Return this model with one smile for each expiry of these contracts, unless its expiries were given."""
        years = quoted(contracts)
        return replace(self, expiries=years) if self.expiries == "quoted" and len(years) > 1 else self

    def raw(self, theta: Theta, contracts: Contracts | None = None) -> dict[str, dict[str, float]]:
        """Return every smile in the literature's letters: a, b, rho, m, sigma, by its expiry as names carry it.

        Args:
            contracts: give the expiry if the model is one smile for any; a year without them.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        years = years_of(self.expiries, contracts, "SVI")
        letters = ("a", "b", "rho", "m", "sigma")
        return {
            label(T): dict(zip(letters, smile, strict=True))
            for T, smile in zip(years, self._raw(theta, years).tolist(), strict=True)
        }

    def arbitrage(self, theta: Theta, contracts: Contracts | None = None) -> tuple[str, ...]:
        """Return one sentence for each arbitrage between log-strikes -1.5 and 1.5; empty if there is none.

        Butterflies: g(k) below zero, where the density would be negative; wings steeper than Lee's bound
        ``b (1 + |rho|) <= 2``. Calendars: a smile below an earlier one, at log-strikes that both expiries quote.

        Args:
            contracts: the quoted ones, for the range of log-strikes of each expiry, and for the expiry of a model that
                is one smile of any; without them all log-strikes count, and the expiry is a year.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        years = years_of(self.expiries, contracts, "SVI")
        where = ["The smile"] if self.expiries == "quoted" else [f"The smile at {T:.6g} years" for T in years]
        smiles, found, before, seen = self._raw(theta, years), [], None, np.ones(len(LOOKED_AT), bool)
        for which, smile, T in zip(where, smiles, years, strict=True):
            quoted_here = _quoted_range(contracts, T)
            a, b, rho, m, sigma = smile.tolist()
            curve = a + b * (rho * (LOOKED_AT - m) + np.sqrt(np.square(LOOKED_AT - m) + sigma * sigma))
            found += [f"{which} {what}" for what in _butterflies(smile)]
            if before is not None:
                apart = np.where(quoted_here & seen, curve - before, np.inf)
                worst = int(np.argmin(apart))
                if apart[worst] < ROUNDING:
                    found.append(
                        f"{which} lies {before[worst] - curve[worst]:.3g} in total variance below the one before, at "
                        f"log-strike {LOOKED_AT[worst]:.3g}: calendar arbitrage."
                    )
            before, seen = curve, quoted_here
        return tuple(found)

    def _smile(self, contracts: Contracts, theta: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        c = contracts
        if self.form == "raw":
            total, by = kernel.raw(c.log_moneyness, theta)
        else:
            total, by = kernel.natural(c.log_moneyness, (theta[0] * c.expiry, *theta[1:]))
            by = (by[0] * c.expiry, *by[1:])
        vol = np.sqrt(total / c.expiry)
        price = black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)
        slope = black.vega(c.forward, c.strike, c.expiry, vol, c.discount) * 0.5 / (vol * c.expiry)
        return price, np.stack([slope * column for column in by], axis=1)

    def _raw(self, theta: Theta, years: tuple[float, ...]) -> Floats:
        table = inside(self.parameters, theta, self.domain).reshape(len(years), -1)
        if self.form == "raw":
            low, b, rho, m, sigma = table.T
            return np.stack([low - b * sigma * np.sqrt(1.0 - rho * rho), b, rho, m, sigma], axis=1)
        variance, rho, phi = table.T
        total = variance * np.array(years)
        flat = 1.0 - rho * rho
        return np.stack([0.5 * total * flat, 0.5 * total * phi, rho, -rho / phi, np.sqrt(flat) / phi], axis=1)

    def _space(self, T: float) -> ParameterSpace:
        root = sqrt(T)
        if self.form == "raw":
            size = np.array([T, root, 1.0, root, root])
            lower, upper = np.array([1e-6, 1e-4, -0.999, -2.0, 1e-3]), np.array([4.0, 4.0, 0.999, 2.0, 4.0])
            # Equity smiles often end at tilt -1, a straight left wing, or at width 0, a kink: the model ends there.
            ends = ("tilt", "width")
            return ParameterSpace(RAW, lower * size, upper * size, np.array(RAW_STARTS) * size, edges=ends)
        size = np.array([1.0, 1.0, 1.0 / root])
        lower, upper = np.array([1e-5, -0.999, 1e-2]), np.array([4.0, 0.999, 200.0])
        return ParameterSpace(NATURAL, lower * size, upper * size, np.array(NATURAL_STARTS) * size)


def _quoted_range(contracts: Contracts | None, T: float) -> NDArray[np.bool_]:
    """Return which of the log-strikes looked at lie between the quotes of an expiry; all of them without quotes."""
    k = np.empty(0) if contracts is None or not len(contracts) else contracts.log_moneyness[contracts.expiry == T]
    return np.ones(len(LOOKED_AT), bool) if not k.size else (k.min() <= LOOKED_AT) & (k.max() >= LOOKED_AT)


def _butterflies(smile: Floats) -> list[str]:
    g, wing = kernel.durrleman(LOOKED_AT, smile), float(smile[1] * (1.0 + abs(smile[2])))
    found, worst = [], int(np.argmin(g))
    if g[worst] < ROUNDING:
        found.append(
            f"has butterfly arbitrage: g = {g[worst]:.3g} at log-strike {LOOKED_AT[worst]:.3g}, a negative density."
        )
    if wing > 2.0:
        found.append(f"has a wing of slope {wing:.3g}, steeper than Lee's bound 2.")
    return found
