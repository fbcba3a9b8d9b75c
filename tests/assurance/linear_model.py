"""A model that is linear in its parameters, so that one Gauss-Newton step is exact: features stand in for contracts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strikeout.models.model import ParameterSpace, Theta
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes


@dataclass(frozen=True, eq=False)
class Linear:
    """``price = features[row] . theta``, where the strike of a contract is one more than its row number."""

    features: np.ndarray
    reach: float = 1e4
    name: str = "linear"

    @property
    def parameters(self) -> ParameterSpace:
        size = self.features.shape[1]
        return ParameterSpace(
            names=tuple(f"b{i}" for i in range(size)),
            lower=np.full(size, -self.reach),
            upper=np.full(size, self.reach),
            starts=np.ones((1, size)),
        )

    def price(self, theta: Theta, contracts: Contracts) -> np.ndarray:
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[np.ndarray, np.ndarray]:
        rows = self.features[np.rint(contracts.strike).astype(int) - 1]
        return (rows * self.parameters.vector(theta)).sum(axis=1), rows


def book(y: np.ndarray, **labels: np.ndarray) -> Quotes:
    """One quote a row, named r0, r1, ..."""
    strike = np.arange(1.0, len(y) + 1.0)
    contracts = Contracts(forward=100.0, strike=strike, expiry=1.0, discount=1.0, is_call=True)
    return Quotes(ids=[f"r{row}" for row in range(len(y))], contracts=contracts, observed=y, labels=labels)
