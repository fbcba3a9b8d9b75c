"""A model of three parameters whose every derivative is known: Black with a volatility quadratic in log-moneyness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strikeout.kernels import black
from strikeout.models.model import ParameterSpace, Theta
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes

TRUTH = {"level": 0.2, "skew": -0.1, "smile": 0.3}


@dataclass(frozen=True)
class Smile:
    """``volatility = level + skew k + smile k^2``."""

    name: str = "smile"

    @property
    def parameters(self) -> ParameterSpace:
        return ParameterSpace(
            names=("level", "skew", "smile"),
            lower=np.array([0.01, -1.0, 0.0]),
            upper=np.array([2.0, 1.0, 5.0]),
            starts=np.array([[0.4, 0.0, 0.5], [0.1, -0.2, 0.1]]),
        )

    def price(self, theta: Theta, contracts: Contracts) -> np.ndarray:
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[np.ndarray, np.ndarray]:
        c, k = contracts, contracts.log_moneyness
        powers = np.stack([np.ones_like(k), k, k * k], axis=1)
        vol = (powers * self.parameters.vector(theta)).sum(axis=1)
        price = black.price(c.forward, c.strike, c.expiry, vol, c.discount, c.is_call)
        vega = black.vega(c.forward, c.strike, c.expiry, vol, c.discount)
        return price, vega[:, None] * powers


def contracts(expiries: tuple[float, ...] = (0.25, 1.0), strikes: int = 9) -> Contracts:
    expiry = np.repeat(expiries, strikes)
    strike = 100.0 * np.exp(np.tile(np.linspace(-0.3, 0.3, strikes), len(expiries)))
    return Contracts(
        forward=100.0, strike=strike, expiry=expiry, discount=np.exp(-0.02 * expiry), is_call=strike > 95.0
    )


def book(noise: float = 0.0, seed: int = 0, spread: float | None = None) -> Quotes:
    """A book of the smile at TRUTH, with normal noise."""
    c = contracts()
    observed = Smile().price(TRUTH, c) + noise * np.random.default_rng(seed).standard_normal(len(c))
    ids = [f"q{row}" for row in range(len(c))]
    return Quotes(ids=ids, contracts=c, observed=observed, spread=None if spread is None else np.full(len(c), spread))
