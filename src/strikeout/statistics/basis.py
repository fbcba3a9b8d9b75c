"""The grid on which moments are taken: fixed panels of log-moneyness and of the expiry, never set by a quote.

symbol  meaning
k       ln(strike / forward)
z       k / sqrt(T): log-moneyness in units in which smiles of all expiries are about equally wide
x       z across its panel, -1 to 1
t       ln T across its panel, -1 to 1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels import black, chebyshev, elementary
from strikeout.quotes.contracts import Contracts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Edges of the panels of |z|: one panel of -0.125 .. 0.125, then one of 0.25, and each further twice as wide. Prices
# bend over a few volatilities around the money and are smooth far from it. The last edge holds strikes of 44 % to 229 %
# of the forward at one day, and more at every longer expiry.
EDGES = np.array([0.125, 0.375, 0.875, 1.875, 3.875, 7.875, 15.875])
# Centre and half-width of the panels of z, the lowest first; the middle one is number zero.
_INNER, _LAST = np.r_[-EDGES[0], EDGES[:-1]], len(EDGES) - 1
_NUMBERS = np.arange(-_LAST, _LAST + 1)
_CENTRES = np.sign(_NUMBERS) * 0.5 * (EDGES + _INNER)[np.abs(_NUMBERS)]
_HALVES = 0.5 * (EDGES - _INNER)[np.abs(_NUMBERS)]
# Width of a panel of ln T: prices in (z, ln T) change over about a factor of e in T.
EXPIRY_PANEL = 0.5
# Black's prices at this volatility are subtracted from quotes and model alike. What is left is small, and smooth at
# the money, where the out-of-the-money price has a corner.
VOLATILITY = 0.25


@dataclass(frozen=True)
class Basis:
    """Chebyshev polynomials on fixed panels: what a quote is resolved into.

    Args:
        expiries: "shared" keeps every expiry apart, exactly as it is; "scattered" takes panels of ln T, for books in
            which hardly two quotes share an expiry.
        nodes: how many polynomials in log-moneyness a panel has.
        expiry_nodes: how many in ln T; for scattered expiries only.

    Raises:
        UsageError: another kind of expiries, or fewer than 4 or more than 256 nodes.
    """

    expiries: Literal["shared", "scattered"] = "shared"
    nodes: int = 32
    expiry_nodes: int = 12

    def __post_init__(self) -> None:
        if self.expiries not in ("shared", "scattered"):
            raise UsageError(f'expiries={self.expiries!r} is unknown. Use "shared" or "scattered".')
        for name, count in (("nodes", self.nodes), ("expiry_nodes", self.expiry_nodes)):
            if not 4 <= count <= 256:
                raise UsageError(f"Basis: {name}={count} is out of range. Use 4 to 256; 32 resolve ordinary smiles.")

    @property
    def name(self) -> str:
        """Everything that affects the moments."""
        size = f"{self.nodes}" if self.expiries == "shared" else f"{self.nodes}x{self.expiry_nodes}"
        return f"chebyshev/{self.expiries}-{size}-1"

    @property
    def size(self) -> int:
        """Polynomials, and so nodes, a cell."""
        return self.nodes * self.across

    @property
    def across(self) -> int:
        """Polynomials in ln T."""
        return 1 if self.expiries == "shared" else self.expiry_nodes

    def cells(self, contracts: Contracts) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the cell of every contract, ``(n, 2)``: its expiry or the number of its panel of ln T, and its panel
        of z.

        The second array is true for contracts off the grid.
        """
        z = contracts.log_moneyness / np.sqrt(contracts.expiry)
        panel = np.searchsorted(EDGES, np.abs(z), side="right")
        first = (
            contracts.expiry if self.expiries == "shared" else np.floor(elementary.log(contracts.expiry) / EXPIRY_PANEL)
        )
        cells = np.empty((len(z), 2))
        cells[:, 0], cells[:, 1] = first, np.where(z < 0.0, -panel, panel)
        return cells, panel >= len(EDGES)

    def values(self, contracts: Contracts, cells: Floats) -> Floats:
        """Return the polynomials of its cell at every contract, ``(size, n)``."""
        places = self.places(contracts, cells)
        along = chebyshev.polynomials(places[0], self.nodes)
        if self.expiries == "shared":
            return along
        across = chebyshev.polynomials(places[1], self.expiry_nodes)
        return (across[:, None, :] * along[None, :, :]).reshape(self.size, -1)

    def places(self, contracts: Contracts, cells: Floats) -> Floats:
        """Return where in its cell every contract lies, -1 to 1: x, and t where expiries are scattered; ``(1 or 2,
        n)``."""
        centre, half = _panels(cells[:, 1])
        x = (contracts.log_moneyness / np.sqrt(contracts.expiry) - centre) / half
        if self.expiries == "shared":
            return x[None]
        return np.stack(
            [x, np.clip(2.0 * (elementary.log(contracts.expiry) / EXPIRY_PANEL - cells[:, 0]) - 1.0, -1.0, 1.0)]
        )

    def contracts(self, cells: Floats, *, between: bool = False) -> Contracts:
        """Return the nodes of these cells as contracts of forward and discount one, out of the money; cell after cell.

        Args:
            between: not the nodes but the points between and beside them; see ``between``.
        """
        points = _between if between else chebyshev.nodes
        centre, half = _panels(cells[:, 1])
        z = centre[:, None] + half[:, None] * points(self.nodes)
        if self.expiries == "shared":
            expiry = np.repeat(cells[:, 0], z.shape[1])
            k = z.ravel() * np.sqrt(expiry)
        else:
            log_expiry = (cells[:, :1] + 0.5 * (points(self.expiry_nodes) + 1.0)) * EXPIRY_PANEL
            years = elementary.exp(log_expiry)[:, :, None]
            k = (z[:, None, :] * np.sqrt(years)).ravel()
            expiry = np.broadcast_to(years, (*log_expiry.shape, z.shape[1])).ravel()
        return Contracts(forward=1.0, strike=elementary.exp(k), expiry=expiry, discount=1.0, is_call=k >= 0.0)

    def between(self, values: Floats) -> Floats:
        """Return the polynomials through values at the nodes, ``(cells, size, columns)``, at the points farthest from a
        function that has these values: between and beside the nodes. No BLAS: a fixed order.
        """
        cells, _, columns = values.shape
        shape = (cells, self.across, self.nodes, columns)
        tensor = chebyshev.transform(_interpolation(self.nodes), values.reshape(shape), 2)
        if self.expiries == "scattered":
            tensor = chebyshev.transform(_interpolation(self.expiry_nodes), tensor, 1)
        return tensor.reshape(cells, -1, columns)

    def weights(self, moments: Floats) -> Floats:
        """Return weights at the nodes, ``(cells, size)``, from moments ``(cells, size)``. No BLAS: a fixed order."""
        if self.expiries == "shared":
            return chebyshev.transform(chebyshev.quadrature(self.nodes), moments, 1)
        tensor = moments.reshape(-1, self.expiry_nodes, self.nodes)
        half = chebyshev.transform(chebyshev.quadrature(self.nodes), tensor, 2)
        whole = chebyshev.transform(chebyshev.quadrature(self.expiry_nodes), half, 1)
        return whole.reshape(len(moments), -1)


@cache
def _between(count: int) -> Floats:
    """Return where ``T_count`` is 1 or -1. What interpolation misses is ``T_count`` times something that changes
    slowly."""
    points: Floats = elementary.sin(np.pi * (np.arange(count + 1) - 0.5 * count) / count)
    return points


@cache
def _interpolation(count: int) -> Floats:
    """From values at the nodes to the polynomial through them at the points between, ``(count + 1, count)``."""
    values = chebyshev.polynomials(_between(count), count)
    return chebyshev.transform(values.T, chebyshev.quadrature(count), 1).T


def reference_price(contracts: Contracts) -> Floats:
    """Return Black's out-of-the-money price at the one fixed volatility."""
    c = contracts
    volatility = np.full(len(c), VOLATILITY)
    return black.price(c.forward, c.strike, c.expiry, volatility, c.discount, c.log_moneyness >= 0.0)


def _panels(panel: Floats) -> tuple[Floats, Floats]:
    """Centre and half-width of panels of z by number."""
    number = panel.astype(np.intp) + _LAST
    return _CENTRES[number], _HALVES[number]
