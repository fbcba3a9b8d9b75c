"""One small book for every model that comes along, with parameters behind it that the book determines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import strikeout as so

STRIKES = np.array([60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 100.0, 105.0, 110.0, 115.0, 120.0, 130.0, 150.0])
YEARS = np.array([0.1, 0.5, 1.0, 2.0])
T = np.repeat(YEARS, len(STRIKES))
CONTRACTS = so.Contracts(
    forward=100.0 * np.exp(0.01 * T),
    strike=np.tile(STRIKES, len(YEARS)),
    expiry=T,
    discount=np.exp(-0.02 * T),
    is_call=np.tile(STRIKES > 100.0, len(YEARS)),
)
NOISE = 0.002


@dataclass(frozen=True)
class Case:
    """A model, and parameters in the order of those it has for ``CONTRACTS``."""

    model: Any
    truth: tuple[float, ...]

    @property
    def suited(self) -> Any:
        return self.model.suited(CONTRACTS) if hasattr(self.model, "suited") else self.model

    def quotes(self, noise: float = NOISE) -> so.Quotes:
        prices = self.suited.price(self.truth, CONTRACTS)
        observed = prices + noise * np.random.default_rng(1).standard_normal(len(prices))
        return so.Quotes(ids=[f"q{i}" for i in range(len(prices))], contracts=CONTRACTS, observed=observed)


CASES = {
    "heston": Case(so.Heston(), (3.0, 0.05, 0.5, -0.6, 0.06)),
    "bates": Case(so.Bates(), (3.0, 0.05, 0.5, -0.6, 0.06, 0.6, -0.12, 0.12)),
    "double-heston": Case(so.DoubleHeston(), (1.0, 0.03, 0.3, -0.7, 0.03, 6.0, 0.03, 0.8, -0.4, 0.04)),
    "variance-gamma": Case(so.VarianceGamma(), (0.15, 0.3, -0.2)),
    "flat": Case(so.BlackScholes(), (0.2,)),
    "term-structure": Case(so.BlackScholes("quoted"), (0.2, 0.22, 0.25, 0.24)),
    "sabr": Case(so.SABR(), (0.2, -0.4, 0.9, 0.21, -0.5, 0.6, 0.22, -0.4, 0.5, 0.2, -0.4, 0.4)),
    "normal-sabr": Case(
        so.SABR(beta=0.0, volatility="normal"),
        (20.0, -0.4, 0.9, 21.0, -0.5, 0.6, 22.0, -0.4, 0.5, 20.0, -0.4, 0.4),
    ),
    "svi": Case(so.SVI("natural"), (0.04, -0.5, 9.0, 0.05, -0.5, 5.0, 0.05, -0.5, 4.0, 0.05, -0.5, 3.0)),
    "raw-svi": Case(
        so.SVI("raw"),
        (
            *(0.00214, 0.065, 0.035, 0.0, 0.06),
            *(0.016, 0.14, 0.06, 0.05, 0.12),
            *(0.04, 0.168, 0.072, 0.1, 0.15),
            *(0.07, 0.21, 0.09, 0.1, 0.2),
        ),
    ),
    "ssvi": Case(so.SSVI(), (-0.5, 1.0, 0.4, 0.04, 0.05, 0.05, 0.05)),
}
