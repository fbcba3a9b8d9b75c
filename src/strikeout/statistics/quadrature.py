"""Moments as a weighted sum over nodes: curvature, score and cost of a model at any theta, without a quote.

    symbol      meaning                                                                     shape
    d           model less reference less centre, at the nodes, per unit of discount * forward   (n,)
    J           its derivatives by theta                                                    (p, n)
    quadratic   weights of a sum of w s^2 f(x) over the quotes                              (n,)
    linear      weights of a sum of w s y f(x)                                              (n,)

    H = sum quadratic J J',    G = sum (linear - quadratic d) J,    cost = constant - 2 sum linear d + sum quadratic d^2

for every f the basis resolves. The cost is a small difference of large numbers, unless d is small: a quadrature is
centred on the surface of a calibration, and only what differs from that is still summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import fsum, sqrt

import numpy as np

from strikeout.kernels import chebyshev, int192
from strikeout.kernels.arrays import Floats
from strikeout.kernels.products import weighed
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.losses import Loss, Squared
from strikeout.statistics.moments import PLAIN_EXPONENT, Basis, Moments, reference_price
from strikeout.statistics.objective import JITTER

# A cost below this share of that of the reference surface is rounding, and may come out negative. It is taken as this
# share: a residual of about 1e-9 of the forward, far below any tick.
RESOLUTION = 2.0**-44
ROUNDING = 2.0**-50  # of one evaluation of the cost, as a share of that of the centre


@dataclass(frozen=True, eq=False)
class Quadrature:
    """What a calibration minimises, from moments alone."""

    nodes: Contracts
    quadratic: Floats
    linear: Floats
    centre: Floats  # the surface that has been subtracted, at the nodes
    constant: float  # the cost of the centre
    smallest: float  # cost that can be distinguished from rounding
    rounding: float  # as ``Objective.rounding``
    count: int
    total_weight: float
    deficit: float = 0.0  # how far below zero the cost of the centre came out
    loss: Loss = field(default_factory=Squared)

    def __len__(self) -> int:
        return self.count

    @property
    def jitter(self) -> float:
        """How much of the cost rounding makes up."""
        return ROUNDING * self.constant

    def linearize(self, model: Model, theta: Floats) -> Linearization:
        """Return curvature, score and cost at theta, in a fixed order without BLAS: the same bits for the same
        moments."""
        return self.linearizer(model)(theta)

    def linearizer(self, model: Model) -> Callable[[Floats], Linearization]:
        """``linearize`` of one model: what a search calls again and again, with theta alone.

        In one go where the model can (``weigher``), else from its rows.
        """
        ready = getattr(model, "weigher", None)
        weighed_at: Callable[[Floats], Floats] = self._by_rows(model) if ready is None else ready(*self._weighed)
        constant, least, count = self.constant, 2.0**-10 * self.smallest, self.count

        def at(theta: Floats) -> Linearization:
            *triangle, pull, stiffness = weighed_at(theta).tolist()
            cost = constant - 2.0 * pull + stiffness
            return Linearization((*triangle, cost if not cost < least else least), count)

        return at

    @property
    def _weighed(self) -> tuple[Contracts, Floats, Floats, Floats]:
        return self.nodes, self.quadratic, self.linear, self.centre

    def _by_rows(self, model: Model) -> Callable[[Floats], Floats]:
        nodes, quadratic, linear, centre = self._weighed

        def at(theta: Floats) -> Floats:
            price, jacobian = model.linearize(theta, nodes)
            return weighed(price - centre, jacobian.T, quadratic, linear)

        return at

    def centred(self, model: Model, theta: Floats) -> Quadrature:
        """Return the same problem around the surface at theta: costs near it then have all their digits."""
        surface = model.price(theta, self.nodes)
        if not np.isfinite(surface).all():
            return self
        moved = surface - self.centre
        product, lost = _product(self.quadratic, moved)
        linear = (self.linear - product) - lost
        # cost(d) = cost(0) - d (linear_before + linear_after), summed without a rounding error.
        pairs = (*_product(moved, self.linear), *_product(moved, linear))
        constant = -fsum([-self.constant, *np.concatenate(pairs).tolist()])
        return replace(
            self,
            linear=linear,
            centre=surface,
            constant=max(constant, self.smallest),
            deficit=max(-constant, 0.0),
        )


def quadrature_of(moments: Moments) -> Quadrature:
    """Return the sums over nodes that these moments amount to, around Black's reference surface."""
    size = moments.basis.size
    nodes, reference = _nodes(moments.basis, moments.cells.tobytes())
    # The last two columns, on another grid, are read apart from the others: their sums are.
    resolved = int192.read(moments.words, chebyshev.EXPONENT)[:, :-2]
    plain = int192.read(int192.sums(moments.words[:, 2 * size :], np.zeros(1, np.intp))[0], PLAIN_EXPONENT)
    constant, total_weight = plain.tolist()
    weights = moments.basis.weights(resolved.reshape(-1, size)).reshape(-1, 2, size)
    return Quadrature(
        nodes=nodes,
        quadratic=weights[:, 0].ravel(),
        linear=weights[:, 1].ravel(),
        centre=reference,
        constant=constant,
        smallest=RESOLUTION * constant,
        rounding=JITTER * sqrt(fsum(resolved[:, 0].tolist())),
        count=len(moments),
        total_weight=total_weight,
    )


@lru_cache(maxsize=16)
def _nodes(basis: Basis, cells: bytes) -> tuple[Contracts, Floats]:
    """Return the nodes and the reference there: they follow from the cells alone, and forgetting rarely empties one."""
    contracts = basis.contracts(np.frombuffer(cells).reshape(-1, 2))
    return contracts, reference_price(contracts)


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """``a * b`` rounded, and exactly what rounding took (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: Floats) -> tuple[Floats, Floats]:
    shifted = 134217729.0 * a  # 2^27 + 1
    high = shifted - (shifted - a)
    return high, a - high
