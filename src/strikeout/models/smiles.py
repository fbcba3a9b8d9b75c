"""What models of one smile an expiry share: each contract takes the parameters of its own smile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strikeout.models.domain import Domain, inside
from strikeout.models.expiries import Expiries, Rows, smile_of
from strikeout.models.model import ParameterSpace, Theta
from strikeout.quotes.contracts import Contracts

Floats = NDArray[np.float64]


class Smiles(ABC):
    """Prices contracts smile by smile. A contract whose expiry has no smile has no price: not-a-number."""

    expiries: Expiries
    domain: ClassVar[Domain]

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def parameters(self) -> ParameterSpace: ...

    @abstractmethod
    def _smile(self, contracts: Contracts, theta: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        """Return prices and derivatives by the parameters of a smile ``(n, q)``, from one value a contract and
        parameter."""

    @abstractmethod
    def only(self, T: float) -> Smiles:
        """Return the model of one of its smiles alone."""

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if the formula has no volatility, or the expiry no smile.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
            UsageError: the parameters are of one smile, and the contracts have several expiries.
        """
        return self._rows(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the parameters ``(n, p)``; zero by those of other smiles.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
            UsageError: the parameters are of one smile, and the contracts have several expiries.
        """
        price, own, place = self._rows(theta, contracts)
        count, width = self._smiles, own.shape[1]
        jacobian = np.zeros((len(price), count, width))
        jacobian[np.arange(len(price)), np.maximum(place, 0)] = own
        return price, jacobian.reshape(len(price), count * width)

    def accumulate_scaled(self, theta: Theta, contracts: Contracts, scale: Floats, target: Floats) -> Floats:
        """Return a whole Gauss-Newton pass, smile by smile: what smiles do not share is zero and need not be summed.

        As ``Heston.accumulate_scaled``: the upper triangle of the sums of ``a a'``, row by row, with
        ``a = sqrt(w) (J_1 .. J_p, observed - price)``.
        """
        price, own, place = self._rows(theta, contracts)
        root = scale / contracts.scale
        columns = [np.ascontiguousarray(column) * root for column in own.T]
        columns.append(target - root * (price - contracts.intrinsic))
        width, count = own.shape[1], self._smiles
        sums = np.zeros((count * width + 1, count * width + 1))
        for number in range(count):
            rows = np.flatnonzero(place == number)
            mine = [column[rows] for column in columns]
            at = [*range(number * width, (number + 1) * width), count * width]
            for i, a in enumerate(mine):
                for j in range(i, width + 1):
                    sums[at[i], at[j]] += np.add.reduce(a * mine[j])
        if (place < 0).any():
            sums[:] = np.nan
        return sums[np.triu_indices(len(sums))]

    @property
    def _smiles(self) -> int:
        return 1 if self.expiries == "quoted" else len(self.expiries)

    def _rows(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats, Rows]:
        table = inside(self.parameters, theta, self.domain).reshape(self._smiles, -1)
        place = smile_of(self.expiries, contracts, type(self).__name__)
        theta_rows = table[np.maximum(place, 0)]
        with np.errstate(all="ignore"):
            price, own = self._smile(contracts, tuple(np.ascontiguousarray(column) for column in theta_rows.T))
        absent = place < 0
        price[absent], own[absent] = np.nan, np.nan
        return price, own, place
