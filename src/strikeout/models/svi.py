"""Raw SVI smiles, one an expiry, and what arbitrage they leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import black
from strikeout.kernels import svi as kernel
from strikeout.models.domain import Domain, inside
from strikeout.models.expiries import Expiries, quoted, settled, spread_over
from strikeout.models.model import ParameterSpace, Theta
from strikeout.models.smiles import Smiles
from strikeout.quotes.contracts import Contracts

Floats = NDArray[np.float64]

# At a year: level, slope, tilt, centre, width.
STARTS = (
    (0.02, 0.1, -0.5, 0.0, 0.1),
    (0.04, 0.2, -0.3, 0.1, 0.3),
    (0.01, 0.1, 0.2, 0.0, 0.2),
    (0.02, 0.05, -0.8, 0.05, 0.05),
)
LOOKED_AT = np.linspace(-1.5, 1.5, 601)  # log-strikes where g(k) and the order of smiles are looked at
ROUNDING = -1e-12


@dataclass(frozen=True)
class SVI(Smiles):
    """European prices from a raw SVI curve of total variance, one an expiry, with analytic sensitivities.

        w(k) = level + slope (tilt (k - centre) + sqrt((k - centre)^2 + width^2)),    k = ln(strike / forward)

    In the literature's letters a, b, rho, m, sigma. Gatheral (2004); the conditions that ``arbitrage`` looks at are
    those of Gatheral and Jacquier (2014). A calibration names those that do not hold among its warnings.

    Args:
        expiries: "quoted", the default, lets ``calibrate`` take those of its quotes; or years, one smile each.

    Raises:
        UsageError: expiries that cannot be.

    >>> c = Contracts(forward=100.0, strike=[90.0, 100.0], expiry=1.0, discount=1.0, is_call=True)
    >>> SVI().price({"level": 0.02, "slope": 0.1, "tilt": -0.5, "centre": 0.0, "width": 0.2}, c).round(6)
    array([14.212463,  7.965567])
    """

    expiries: Expiries = "quoted"

    domain: ClassVar[Domain] = {"slope": (0.0, inf), "tilt": (-1.0, 1.0), "width": (0.0, inf)}

    def __post_init__(self) -> None:
        object.__setattr__(self, "expiries", settled(self.expiries, "SVI"))

    @property
    def name(self) -> str:
        years = "one" if self.expiries == "quoted" else ",".join(f"{T:.17g}" for T in self.expiries)
        return f"svi/raw-1({years})"

    @cached_property
    def parameters(self) -> ParameterSpace:
        return _space(1.0) if self.expiries == "quoted" else spread_over(self.expiries, _space)

    def suited(self, contracts: Contracts) -> SVI:
        """This model with one smile for each expiry of these contracts, unless its expiries were given."""
        years = quoted(contracts)
        return replace(self, expiries=years) if self.expiries == "quoted" and len(years) > 1 else self

    def arbitrage(self, theta: Theta) -> tuple[str, ...]:
        """One sentence for each way to money for nothing between log-strikes -1.5 and 1.5; empty where there is none.

        Butterflies: g(k) below zero, where the density would be negative; wings steeper than Lee's bound
        ``slope (1 + |tilt|) <= 2``. Calendars: a smile below an earlier one.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        smiles = inside(self.parameters, theta, self.domain).reshape(-1, 5)
        one = self.expiries == "quoted"
        where = ["The smile"] if one else [f"The smile at {T} years" for T in map("{:.6g}".format, self.expiries)]
        with np.errstate(all="ignore"):
            curves = [kernel.raw(LOOKED_AT, tuple(np.full(len(LOOKED_AT), x) for x in smile))[0] for smile in smiles]
            bent = [kernel.durrleman(LOOKED_AT, smile) for smile in smiles]
        found: list[str] = []
        for which, smile, curve, g in zip(where, smiles, curves, bent, strict=True):
            found += [f"{which} {what}" for what in _butterflies(smile, curve, g)]
        for (_, before), (which, after) in pairwise(zip(where, curves, strict=True)):
            worst = int(np.argmin(after - before))
            if after[worst] - before[worst] < ROUNDING:
                found.append(
                    f"{which} lies {before[worst] - after[worst]:.3g} in total variance below the one before at "
                    f"log-strike {LOOKED_AT[worst]:.3g}: calendar arbitrage."
                )
        return tuple(found)

    def _smile(self, contracts: Contracts, theta: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        c = contracts
        total, by = kernel.raw(c.log_moneyness, theta)
        vol = np.sqrt(total / c.expiry)
        price = black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)
        slope = black.vega(c.forward, c.strike, c.expiry, vol, c.discount) * 0.5 / (vol * c.expiry)
        return price, np.stack([slope * column for column in by], axis=1)


def _butterflies(smile: Floats, curve: Floats, g: Floats) -> list[str]:
    found, worst, wing = [], int(np.argmin(g)), float(smile[1] * (1.0 + abs(smile[2])))
    if curve.min() <= 0.0:
        found.append(f"has total variance {curve.min():.3g}, not above zero.")
    elif g[worst] < ROUNDING:
        found.append(
            f"has butterfly arbitrage: g = {g[worst]:.3g} at log-strike {LOOKED_AT[worst]:.3g}, a negative density."
        )
    if wing > 2.0:
        found.append(f"has a wing of slope {wing:.3g}, steeper than Lee's bound 2.")
    return found


def _space(T: float) -> ParameterSpace:
    """Of one smile: total variance grows like T, the distances in log-strike about like its root."""
    root = sqrt(T)
    size = np.array([T, root, 1.0, root, root])
    lower, upper = np.array([-2.0, 1e-4, -0.999, -2.0, 1e-3]), np.array([4.0, 4.0, 0.999, 2.0, 4.0])
    return ParameterSpace(
        ("level", "slope", "tilt", "centre", "width"), lower * size, upper * size, np.array(STARTS) * size
    )
