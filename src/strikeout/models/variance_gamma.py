"""The variance gamma model: pure jumps, no diffusion."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from strikeout.kernels import variance_gamma as clock
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import Kernel, default_kernel
from strikeout.models.model import ParameterSpace, Theta, check_kernel, inside, linearized
from strikeout.quotes.contracts import Contracts

SPACE = ParameterSpace(
    names=("volatility", "variance_rate", "drift"),
    lower=np.array([1e-2, 1e-3, -3.0]),
    upper=np.array([2.0, 10.0, 3.0]),
    starts=np.array([[0.2, 0.3, -0.15], [0.15, 1.0, -0.1], [0.3, 0.1, -0.3], [0.2, 0.2, 0.1]]),
)
DOMAIN = {"volatility": (0.0, inf), "variance_rate": (0.0, inf)}


@dataclass(frozen=True)
class VarianceGamma:
    """European prices of Brownian motion on a gamma clock, to 1e-12 of the forward at every expiry, with sensitivities.

        ln S_T = ln(forward) + omega T + drift g + volatility W(g),    g gamma, mean T, variance variance_rate T

    A day is priced as surely as ten years: on contours that need no decay of the characteristic function, and next to
    the kink by Black's formula averaged over the clock. Madan, Carr and Chang (1998), "The variance gamma process and
    option pricing".

    Args:
        kernel: "native" (compiled) or "numpy"; by default the compiled one if it is installed. They agree to
            rounding, and which one ran is part of ``name``.

    Raises:
        UsageError: the kernel asked for is not there.

    >>> c = Contracts(forward=100.0, strike=101.0, expiry=1 / 365, discount=1.0, is_call=True)
    >>> VarianceGamma().price({"volatility": 0.12, "variance_rate": 0.2, "drift": -0.14}, c).round(6)
    array([0.015399])
    """

    kernel: Kernel = field(default_factory=default_kernel)

    def __post_init__(self) -> None:
        check_kernel(self.kernel)

    @property
    def name(self) -> str:
        return f"variance-gamma/{self.kernel}-contours-1-clock-3"

    @property
    def parameters(self) -> ParameterSpace:
        return SPACE

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if ``variance_rate (drift + volatility^2 / 2)`` reaches 1.

        There E[S_T] does not exist.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the three parameters ``(n, 3)``.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        vector, layout = inside(SPACE, theta, DOMAIN), contracts.slices
        return linearized(clock.rows(self.kernel, vector, layout.parts), layout, contracts)
