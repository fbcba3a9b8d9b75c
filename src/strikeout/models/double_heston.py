"""Two of Heston's variances at once: one slow, one fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from math import inf, isfinite

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import affine, double_heston
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import Kernel, default_kernel
from strikeout.models import heston
from strikeout.models.model import ParameterSpace, Theta, check_kernel, inside, linearized
from strikeout.quotes.contracts import Contracts

NAMES = tuple(f"{name}[{which}]" for which in ("slow", "fast") for name in heston.SPACE.names)
DOMAIN = {
    "mean_reversion": (0.0, inf),
    "long_variance": (0.0, inf),
    "vol_of_vol": (heston.SMALLEST_VOL_OF_VOL, inf),
    "correlation": (-1.0, 1.0),
    "initial_variance": (0.0, inf),
}


@dataclass(frozen=True)
class DoubleHeston:
    """European prices to 1e-10 of the forward where variance is the sum of a slow and a fast one, with sensitivities.

        dS = S sqrt(v_1) dW_1 + S sqrt(v_2) dW_2,    each v as in Heston's model, the pairs independent

    Two correlations, so that the skew of short and of long expiries can differ. Christoffersen, Heston and Jacobs
    (2009), "The shape and term structure of the index option smirk".

    Args:
        border: a year's mean reversion that separates the two; the slow one's lies below, the fast one's above.
            Without it every optimum would come twice, with the two exchanged.
        kernel: "native" (compiled) or "numpy"; by default the compiled one if it is installed. They agree to
            rounding, and which one ran is part of ``name``.

    Raises:
        UsageError: the border leaves one of the two no values, or the kernel asked for is not there.

    >>> c = Contracts(forward=100.0, strike=100.0, expiry=1.0, discount=1.0, is_call=True)
    >>> DoubleHeston().price([1.0, 0.03, 0.3, -0.6, 0.03, 6.0, 0.03, 0.6, -0.6, 0.03], c).round(6)
    array([9.36709])
    """

    border: float = 3.0
    kernel: Kernel = field(default_factory=default_kernel)

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        low, high = heston.SLOWER.lower[0], heston.SLOWER.upper[0]
        if not (isfinite(self.border) and low < self.border < high):
            raise UsageError(
                f"border={self.border:g} leaves no values on one side. Give one between {low:g} and {high:g}.",
                border=self.border,
                low=low,
            )

    @property
    def name(self) -> str:
        return f"double-heston/{self.kernel}-contours-{double_heston.VERSION}-line-{affine.VERSION}({self.border:.17g})"

    @property
    def parameters(self) -> ParameterSpace:
        return _space(self.border)

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if the characteristic function decays too slowly to give
        one.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the ten parameters ``(n, 10)``.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        vector, layout = inside(self.parameters, theta, DOMAIN), contracts.slices
        return linearized(affine.rows(self.kernel, affine.DOUBLE_HESTON, vector, layout.parts), layout, contracts)


@cache
def _space(border: float) -> ParameterSpace:
    lower, upper = np.tile(heston.SLOWER.lower, 2), np.tile(heston.SLOWER.upper, 2)
    upper[0] = lower[5] = border
    slow, fast = border / 3.0, min(border * 3.0, 0.5 * (border + upper[5]))
    starts = np.array(
        [
            [slow, 0.04, 0.4, -0.5, 0.04, fast, 0.05, 1.0, -0.5, 0.05],
            [slow, 0.05, 0.5, -0.8, 0.02, fast, 0.02, 0.6, -0.3, 0.02],
            [slow, 0.1, 0.6, -0.5, 0.02, fast, 0.03, 1.5, -0.7, 0.1],
            [slow, 0.04, 0.4, 0.2, 0.04, fast, 0.05, 1.0, -0.5, 0.05],
        ]
    )
    return ParameterSpace(NAMES, lower, upper, starts)
