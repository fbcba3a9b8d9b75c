"""A model whose prices are off by a last bit here and there, as those of another processor would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: the increment of splitmix64


@dataclass(frozen=True, eq=False)
class LastBits:
    """``model`` with every price moved by -1, 0 or 1 units in its last place.

    Which of the three follows from the draw, the parameters and the row, all by their bits: every evaluation is a fixed
    function of these, and a row's price does not depend on its batch.

    Args:
        draw: another number moves other prices.
        units: the largest move, in units in the last place.
    """

    model: Any
    draw: int
    units: int = 1

    @property
    def name(self) -> Any:
        return self.model.name

    @property
    def parameters(self) -> Any:
        return self.model.parameters

    @property
    def grid(self) -> Any:
        return self.model.grid

    @property
    def inflation(self) -> Any:
        return self.model.inflation

    def price(self, theta: Any, contracts: Any) -> Floats:
        return self._moved(self.model.price(theta, contracts), theta, contracts)

    def linearize(self, theta: Any, contracts: Any) -> tuple[Floats, Floats]:
        price, jacobian = self.model.linearize(theta, contracts)
        return self._moved(price, theta, contracts), jacobian

    def _moved(self, price: Floats, theta: Any, contracts: Any) -> Floats:
        if hasattr(contracts, "columns"):
            columns = [contracts.columns[name] for name in contracts.names]
        else:
            columns = [getattr(contracts, name) for name in ("forward", "strike", "expiry", "discount", "is_call")]
        with np.errstate(over="ignore"):  # 64-bit words wrap around
            word = np.full(len(price), self.draw, np.uint64)
            for number in (*self.parameters.vector(theta), *columns):
                word = _mixed(word + np.ascontiguousarray(number, float).view(np.uint64))
        moves = (word % np.uint64(2 * self.units + 1)).astype(float) - self.units
        return price + moves * np.spacing(np.abs(price))


def _mixed(word: Words) -> Words:
    """One step of splitmix64 (Steele, Lea and Flood, 2014)."""
    word = word + GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
