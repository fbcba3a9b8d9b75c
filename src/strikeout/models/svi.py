"""SVI smiles, one per expiry, and the arbitrage they leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import black
from strikeout.kernels import svi as kernel
from strikeout.kernels.arrays import Floats, Mask
from strikeout.models.expiries import Expiries, Smiles, called, label, quoted, settled, spread_over, years_of
from strikeout.models.model import Domain, ParameterSpace, Theta, inside
from strikeout.quotes.contracts import Contracts

NATURAL = ("variance", "correlation", "curvature")
RAW = ("level", "left", "right", "centre", "width")
# Starts at a year. Total variance grows like T, distances in log-strike like its root: see _space.
NATURAL_STARTS = ((0.04, -0.5, 5.0), (0.09, -0.8, 3.0), (0.04, 0.2, 5.0), (0.02, -0.3, 12.0))
RAW_STARTS = (
    (0.04, 0.15, 0.05, 0.0, 0.1),
    (0.09, 0.26, 0.14, 0.1, 0.3),
    (0.04, 0.08, 0.12, 0.0, 0.2),
    (0.03, 0.09, 0.01, 0.05, 0.05),
)
ENDS = ("left", "right", "width")  # zero is where the curves end: a flat wing, a kink
LEAST = 1e-14  # total variance
LEE = 2.0  # the steepest wing of total variance by log-strike that moments allow: Lee (2004)
LOOKED_AT = np.linspace(-1.5, 1.5, 601)  # log-strikes where g(k) and the order of smiles are looked at
ROUNDING = -1e-12


@dataclass(frozen=True)
class SVI(Smiles):
    """European prices from an SVI curve of total variance, one per expiry, with analytic sensitivities.

        raw:      w(k) = a + b (rho (k - centre) + R(k)),    R(k) = sqrt((k - centre)^2 + width^2),    k = ln(K / F)
                  level = w(0), left = b (1 - rho), right = b (1 + rho): the level at the forward, and slopes of wings
        natural:  w(k) = v T / 2 (1 + rho phi k + sqrt((phi k + rho)^2 + 1 - rho^2))
                  v, rho, phi = variance, correlation, curvature

    Gatheral (2004), Gatheral and Jacquier (2014); ``arbitrage`` looks at the conditions of the latter, and a
    calibration names those that do not hold among its warnings. ``raw`` and ``of_letters`` convert to and from
    Gatheral's letters.

    Args:
        form: "raw", five parameters per smile, which ``calibrate`` fits smile by smile. Quotes that end before a wing
            leave its slope open: it then ends on a bound or is reported as open, and the curve between the quotes is
            an answer all the same. "natural", a slice of an SSVI surface, has three that a smile determines.
        expiries: "quoted", the default, lets ``calibrate`` take those of its quotes; or years, one smile each.

    Raises:
        UsageError: an unknown form, or expiries that cannot be.

    >>> c = Contracts(forward=100.0, strike=[90.0, 100.0], expiry=1.0, discount=1.0, is_call=True)
    >>> SVI("natural").price({"variance": 0.04, "correlation": -0.5, "curvature": 5.0}, c).round(6)
    array([14.533089,  7.965567])
    """

    form: Literal["raw", "natural"] = "raw"
    expiries: Expiries = "quoted"

    domain: ClassVar[Domain] = {
        "variance": (0.0, inf),
        "correlation": (-1.0, 1.0),
        "curvature": (0.0, inf),
        "level": (0.0, inf),
        "left": (0.0, inf),
        "right": (0.0, inf),
        "width": (0.0, inf),
    }

    def __post_init__(self) -> None:
        if self.form not in ("natural", "raw"):
            raise UsageError(f'SVI: form={self.form!r} is unknown. Use "raw" or "natural".', form=self.form)
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
        return replace(self, expiries=quoted(contracts)) if self.expiries == "quoted" else self

    def only(self, T: float) -> SVI:
        """Return the model of one of its smiles alone."""
        return replace(self, expiries=(T,))

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

    @staticmethod
    def of_letters(a: float, b: float, rho: float, m: float, sigma: float) -> dict[str, float]:
        """Return the parameters of a raw smile from Gatheral's letters.

        >>> {name: round(x, 4) for name, x in SVI.of_letters(a=0.01, b=0.1, rho=-0.4, m=0.0, sigma=0.1).items()}
        {'level': 0.02, 'left': 0.14, 'right': 0.06, 'centre': 0.0, 'width': 0.1}
        """
        level = a + b * (sqrt(m * m + sigma * sigma) - rho * m)
        return dict(zip(RAW, (level, b * (1.0 - rho), b * (1.0 + rho), m, sigma), strict=True))

    def arbitrage(
        self, theta: Theta, contracts: Contracts | None = None, *, dates: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Return one sentence for each arbitrage between log-strikes -1.5 and 1.5; empty if there is none.

        Butterflies: g(k) below zero, where the density would be negative; wings steeper than Lee's bound
        ``b (1 + |rho|) <= 2``. Calendars: a smile below an earlier one, at log-strikes that both expiries quote.

        Args:
            contracts: the quoted ones, for the range of log-strikes of each expiry, and for the expiry of a model that
                is one smile of any; without them all log-strikes count, and the expiry is a year.
            dates: of expiries, by their labels in names of parameters, such as "[0.25]"; for the sentences.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        years = years_of(self.expiries, contracts, "SVI")
        where = ["The smile"] if self.expiries == "quoted" else [f"The smile at {called(T, dates)}" for T in years]
        smiles, found, before, seen = self._raw(theta, years), [], None, np.ones(len(LOOKED_AT), bool)
        for which, smile, T in zip(where, smiles, years, strict=True):
            quoted_here = _quoted_range(contracts, T)
            a, b, rho, m, sigma = smile.tolist()
            curve = a + b * (rho * (LOOKED_AT - m) + np.sqrt(np.square(LOOKED_AT - m) + sigma * sigma))
            found += [f"{which} {what}" for what in _butterflies(smile)]
            lowest = int(np.argmin(curve))
            if curve[lowest] < 0.0:
                found.append(f"{which} has a negative total variance at log-strike {LOOKED_AT[lowest]:.3g}.")
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
            # A raw curve may fall below zero far from the quotes that resist: no variance, no time value.
            is_above = total > LEAST
            total, by = np.where(is_above, total, LEAST), tuple(np.where(is_above, column, 0.0) for column in by)
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
            level, left, right, m, sigma = table.T
            b = 0.5 * (left + right)
            rho = np.where(b > 0.0, (right - left) / np.where(b > 0.0, 2.0 * b, 1.0), 0.0)
            return np.stack([level + b * (rho * m - np.sqrt(m * m + sigma * sigma)), b, rho, m, sigma], axis=1)
        variance, rho, phi = table.T
        total = variance * np.array(years)
        flat = 1.0 - rho * rho
        return np.stack([0.5 * total * flat, 0.5 * total * phi, rho, -rho / phi, np.sqrt(flat) / phi], axis=1)

    def _space(self, T: float) -> ParameterSpace:
        root = sqrt(T)
        if self.form == "raw":
            size = np.array([T, root, root, root, root])
            lower = np.array([1e-6, 1e-5, 1e-5, -2.0, 1e-3]) * size
            upper = np.array([4.0 * T, LEE, LEE, 2.0 * root, 4.0 * root])
            return ParameterSpace(RAW, lower, upper, np.array(RAW_STARTS) * size, edges=ENDS, is_curve=True)
        size = np.array([1.0, 1.0, 1.0 / root])
        lower, upper = np.array([1e-5, -0.999, 1e-2]), np.array([4.0, 0.999, 200.0])
        return ParameterSpace(NATURAL, lower * size, upper * size, np.array(NATURAL_STARTS) * size)


def _quoted_range(contracts: Contracts | None, T: float) -> Mask:
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
