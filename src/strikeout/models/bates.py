"""Bates' model: Heston's stochastic volatility and Merton's jumps."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from strikeout.kernels import affine, jump_split
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import Kernel, default_kernel
from strikeout.models import heston
from strikeout.models.model import ParameterSpace, Theta, check_kernel, inside, linearized
from strikeout.quotes.contracts import Contracts

JUMPS = ("jump_intensity", "jump_mean", "jump_deviation")
# Real days have up to five optima: frequent small jumps, medium ones every few years, or rare crashes. From Heston's
# optimum the two kinds below lead to the best one known on each of 46 real dates; four starts afar missed it on 18.
STAGES = ((1e-3, 0.0, 1e-3), (4.0, -0.05, 0.07), (0.05, -0.6, 0.6))

# Heston's bounds and starts; a jump moves the index by up to a factor e, and up to twenty come a year.
SPACE = ParameterSpace(
    names=(*heston.SPACE.names, *JUMPS),
    lower=np.array([*heston.SLOWER.lower, 1e-3, -1.0, 1e-3]),
    upper=np.array([*heston.SLOWER.upper, 20.0, 1.0, 1.0]),
    starts=np.array(
        [
            [4.0, 0.09, 0.8, -0.5, 0.09, 0.5, -0.1, 0.15],
            [2.0, 0.05, 0.5, -0.5, 0.05, 1.0, -0.15, 0.15],
            [10.0, 0.06, 2.0, -0.5, 0.2, 0.3, -0.25, 0.2],
            [4.0, 0.1, 0.9, 0.3, 0.1, 0.5, 0.05, 0.1],
        ]
    ),
    stages=tuple(dict(zip(JUMPS, values, strict=True)) for values in STAGES),
)
DOMAIN = {
    "mean_reversion": (0.0, inf),
    "long_variance": (0.0, inf),
    "vol_of_vol": (heston.SMALLEST_VOL_OF_VOL, inf),
    "correlation": (-1.0, 1.0),
    "initial_variance": (0.0, inf),
    "jump_intensity": (0.0, inf),
    "jump_deviation": (0.0, inf),
}


@dataclass(frozen=True)
class Bates:
    """European prices to 1e-10 of the forward under Heston's variance and lognormal jumps, with sensitivities.

        dS = S sqrt(v) dW + S (e^J - 1) dN - drift,    J normal (jump_mean, jump_deviation^2),    N Poisson

    v is Heston's. Jumps give short expiries the skew that a diffusion cannot, and leave long ones to the variance.
    Bates (1996), "Jumps and stochastic volatility".

    Args:
        kernel: "native" (compiled) or "numpy"; by default the compiled one if it is installed. They agree to
            rounding, and which one ran is part of ``name``.

    Raises:
        UsageError: the kernel asked for is not there.

    >>> c = Contracts(forward=100.0, strike=100.0, expiry=1.0, discount=1.0, is_call=True)
    >>> Bates().price([2.0, 0.06, 0.3, -0.6, 0.06, 0.5, -0.1, 0.15], c).round(6)
    array([10.5588])
    """

    kernel: Kernel = field(default_factory=default_kernel)

    def __post_init__(self) -> None:
        check_kernel(self.kernel)

    @property
    def name(self) -> str:
        return f"bates/{self.kernel}-line-{affine.VERSION}-split-{jump_split.VERSION}"

    @property
    def parameters(self) -> ParameterSpace:
        return SPACE

    @property
    def latent(self) -> str:
        """The parameter that changes from day to day; the others are the model's own. See ``calibrate(panel=)``."""
        return "initial_variance"

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if the characteristic function decays too slowly to give
        one.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the eight parameters ``(n, 8)``.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        vector, layout = inside(SPACE, theta, DOMAIN), contracts.slices
        return linearized(affine.rows(self.kernel, affine.BATES, vector, layout.parts), layout, contracts)
