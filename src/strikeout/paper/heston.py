"""Heston priced the way the paper prices it, so that its figures can be repeated and compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.models.heston import SLOWER
from strikeout.models.model import ParameterSpace, Theta
from strikeout.paper import scheme
from strikeout.quotes.contracts import Contracts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Heston:
    """Heston by P1 and P2, Simpson's rule and central differences: the paper's scheme, for comparison only.

    The paper's large experiments use ``U_max=120, N_u=800`` (the default), its small ones ``U_max=50, N_u=180``,
    which errs by about 1e-3 on a spot of 100. For work, use ``strikeout.Heston``.

    Args:
        U_max: where the Fourier integral is cut off.
        N_u: sub-intervals of Simpson's rule, even.
        step: of the central differences, relative to each parameter.

    Raises:
        UsageError: `N_u` is odd or below 2, `U_max` or `step` not above zero.

    >>> at_the_money = Contracts(forward=100.0, strike=100.0, expiry=0.25, discount=1.0, is_call=True)
    >>> Heston().price([2.0, 0.06, 0.3, -0.6, 0.06], at_the_money).round(6)
    array([4.808056])
    """

    U_max: float = 120.0
    N_u: int = 800
    step: float = 1e-4

    def __post_init__(self) -> None:
        if self.N_u < 2 or self.N_u % 2:
            raise UsageError(f"paper.Heston: N_u is {self.N_u}; Simpson's rule needs an even number, at least 2.")
        for name, value in (("U_max", self.U_max), ("step", self.step)):
            if not (np.isfinite(value) and value > 0):
                raise UsageError(f"paper.Heston: {name} is {value}; it must be finite and above zero.")

    @property
    def name(self) -> str:
        return f"paper-heston(U_max={self.U_max:.17g}, N_u={self.N_u}, step={self.step:.17g})"

    @property
    def parameters(self) -> ParameterSpace:
        """Those of ``strikeout.Heston``: one model, two ways to compute it."""
        return SLOWER

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract, in the currency of the forward.

        Raises:
            ParameterError: theta is not a point of the parameter space.
        """
        return scheme.price(
            self.parameters.vector(theta),
            contracts.forward,
            contracts.strike,
            contracts.expiry,
            contracts.discount,
            contracts.is_call,
            u_max=self.U_max,
            nodes=self.N_u,
        )

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices and their central differences: ``(n,)`` and ``(n, 5)``.

        Raises:
            ParameterError: theta is not a point of the parameter space.
        """
        return scheme.linearize(
            self.parameters.vector(theta),
            contracts.forward,
            contracts.strike,
            contracts.expiry,
            contracts.discount,
            contracts.is_call,
            u_max=self.U_max,
            nodes=self.N_u,
            step=self.step,
        )
