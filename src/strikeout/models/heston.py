"""Heston's stochastic volatility model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import ParameterError, UsageError
from strikeout.kernels import heston as kernel_of
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import Kernel, default_kernel
from strikeout.models.model import ParameterSpace, Theta, check_kernel, linearized
from strikeout.quotes.contracts import Contracts, Layout

# The bounds of a calibration contain every published one we found (DAX 2002: mean_reversion 15.7, vol_of_vol 3.4), days
# of bitcoin options (2020-09-12, by implied volatility: 23.7 and 16.2) and days of index options whose variance is so
# fast that the model is all but a Levy process (S&P 500, 2023-12-08, vega-weighted: 760 and 33). At 2,000 a year
# variance returns within hours. The starts are brisk and volatile on purpose: a search that begins with small
# mean_reversion or vol_of_vol sees flat costs and takes up to five times as long.
#
# A variance may begin at zero: 1e-8, a volatility of 0.01 %, represents that. Some days have their optimum there.
SPACE = ParameterSpace(
    names=("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance"),
    lower=np.array([1e-3, 1e-4, 1e-2, -0.999, 1e-8]),
    upper=np.array([2000.0, 3.0, 200.0, 0.999, 3.0]),
    starts=np.array(
        [
            [4.0, 0.09, 0.8, -0.5, 0.09],
            [10.0, 0.06, 2.0, -0.5, 0.2],
            [2.0, 0.2, 1.0, -0.7, 0.1],
            [4.0, 0.1, 0.9, 0.3, 0.1],
        ]
    ),
    edges=("initial_variance",),
    # Slow and gentle ones, for what the brisk ones miss, and one brisker than all of them.
    more_starts=np.array([[0.5, 0.05, 0.3, -0.5, 0.1], [0.2, 0.1, 0.2, 0.0, 0.1], [30.0, 0.05, 5.0, -0.5, 0.1]]),
)
STARTS = frozenset(row.tobytes() for row in SPACE.starts)
# For models with something else to bend short smiles, jumps or a second variance, and for the paper's scheme, which
# does not resolve such densities: without the far end at which variance acts like jumps.
SLOWER = replace(
    SPACE,
    lower=np.array([1e-3, 1e-4, 1e-2, -0.999, 1e-5]),
    upper=np.array([60.0, 3.0, 20.0, 0.999, 3.0]),
    edges=(),
    more_starts=np.empty((0, 0)),
)
ARRAY, DOUBLE = np.ndarray, np.dtype(np.float64)
QUOTES_AN_EXPIRY, MANY = 16, 1000  # fewer quotes an expiry than this, in a book of more than this, are scattered
SMALLEST_VOL_OF_VOL = 1e-3  # below, variance is a curve in time, and correlation has no meaning


@dataclass(frozen=True)
class Heston:
    """Heston's model; European prices to 1e-11 of the forward and sensitivities to 1e-9, from one day to ten years.

        dS = S sqrt(v) dW,    dv = mean_reversion (long_variance - v) dt + vol_of_vol sqrt(v) dZ,
        dW dZ = correlation dt,    v(0) = initial_variance

    Feller's condition need not hold. Fourier inversion, on contours that follow from the parameters and the expiry
    alone.

    Args:
        kernel: "native" (compiled) or "numpy"; by default the compiled one if it is installed. They agree to
            rounding, and which one ran is part of ``name``.
        expiries: "shared" prices expiry by expiry; "scattered" interpolates between expiries, to the same accuracy,
            and is far faster where hardly two quotes share one, as with tick data. By default ``calibrate`` chooses
            what suits its quotes, and everything else takes "shared".

    Raises:
        UsageError: the kernel asked for is not there.

    >>> c = Contracts(forward=100.0, strike=100.0, expiry=1.0, discount=1.0, is_call=True)
    >>> Heston().price([2.0, 0.06, 0.3, -0.6, 0.06], c).round(6)
    array([9.440028])
    """

    kernel: Kernel = field(default_factory=default_kernel)
    expiries: Literal["shared", "scattered"] | None = None

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        if self.expiries not in (None, "shared", "scattered"):
            raise UsageError(
                f'expiries={self.expiries!r} is unknown. Use "shared" or "scattered".', expiries=self.expiries
            )

    @property
    def name(self) -> str:
        return f"heston/{self.kernel}-{self.expiries or 'shared'}-{3 if self.expiries == 'scattered' else 2}"

    @property
    def parameters(self) -> ParameterSpace:
        return SPACE

    @property
    def latent(self) -> str:
        """The parameter that changes from day to day; the others are the model's own. See ``calibrate(panel=)``."""
        return "initial_variance"

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if the model has no price (see ``Raises``).

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        layout = self._layout(contracts)
        values = kernel_of.values(self.kernel, self._vector(theta), layout.parts)
        return contracts.scale * layout.unsorted(values) + contracts.intrinsic

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the five parameters ``(n, 5)``.

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        layout = self._layout(contracts)
        vector = self._vector(theta)
        rows = kernel_of.rows(self.kernel, vector, layout.parts, self._kept(vector))
        return linearized(rows, layout, contracts)

    def accumulate(self, theta: Theta, contracts: Contracts, observed: ArrayLike, weight: ArrayLike) -> Floats:
        """Return a whole Gauss-Newton pass in one go: the sums of ``w a a'`` with ``a = (J_1 .. J_5, observed -
        price)``.

        The 21 numbers are the upper triangle row by row: curvature, score (last column) and cost (last number).

        Raises:
            ParameterError: a parameter is missing, unknown or outside the model's domain.
        """
        root = np.sqrt(np.asarray(weight, float))
        return self.accumulate_scaled(
            theta, contracts, root * contracts.scale, root * (np.asarray(observed, float) - contracts.intrinsic)
        )

    def accumulate_scaled(self, theta: Theta, contracts: Contracts, scale: Floats, target: Floats) -> Floats:
        """``accumulate`` with what does not depend on theta prepared: see ``Objective``."""
        return self.accumulator(contracts, scale, target)(theta)

    def accumulator(self, contracts: Contracts, scale: Floats, target: Floats) -> Callable[[Theta], Floats]:
        """``accumulate_scaled`` of these contracts, for a search that asks for one theta after the other."""
        layout = self._layout(contracts)
        found = kernel_of.accumulator(self.kernel, layout.parts, layout.sorted(scale), layout.sorted(target))

        def sums(theta: Theta) -> Floats:
            vector = self._vector(theta)
            return found(vector, self._kept(vector))

        return sums

    def searcher(self, contracts: Contracts, scale: Floats, target: Floats) -> Callable[..., Any] | None:
        """Return the compiled search over these contracts, from a theta; None if Python follows it."""
        layout = self._layout(contracts)
        search = kernel_of.searcher(self.kernel, layout.parts, layout.sorted(scale), layout.sorted(target))
        return None if search is None else lambda theta, *how: search(theta, self._kept(np.array(theta)), *how)

    def _kept(self, vector: Floats) -> Any:
        """Return what the kernel keeps at a canonical start, where every search of a fleet begins; None elsewhere."""
        key = vector.tobytes()
        return kernel_of.kept_at(key) if key in STARTS and self.kernel == "native" else None

    def weigher(self, nodes: Contracts, quadratic: Floats, linear: Floats, centre: Floats) -> Callable[[Theta], Floats]:
        """Return the function of theta that a calibration from moments needs; see ``Quadrature``.

        Its result are sums over nodes of forward and discount one.
        """
        layout = nodes.slices
        kernel, part = self.kernel, layout.parts
        columns = tuple(map(layout.sorted, (quadratic, linear, centre)))
        return lambda theta: kernel_of.weighed(kernel, self._vector(theta), part, *columns)

    def suited(self, contracts: Contracts) -> Heston:
        """Return this model with ``expiries`` chosen for these contracts, unless it was chosen already."""
        if self.expiries is not None:
            return self
        scattered = len(contracts.slices.expiries) * QUOTES_AN_EXPIRY > len(contracts) > MANY
        return replace(self, expiries="scattered" if scattered else "shared")

    def _layout(self, contracts: Contracts) -> Layout:
        return contracts.panels if self.expiries == "scattered" else contracts.slices

    def _vector(self, theta: Theta) -> Floats:
        plain = type(theta) is ARRAY and theta.dtype is DOUBLE and theta.shape == (5,)
        vector: Floats = theta if plain else SPACE.vector(theta)  # type: ignore[assignment]
        kappa, vbar, sigma, rho, v0 = vector.tolist()
        # Floats beside floats: Python takes far longer to compare one with an integer, and a search asks at every step.
        above = kappa > 0.0 and vbar > 0.0 and sigma >= SMALLEST_VOL_OF_VOL and v0 > 0.0
        if above and -1.0 < rho < 1.0 and kappa < inf and vbar < inf and sigma < inf and v0 < inf:
            return vector
        SPACE.vector(vector)  # raises if a number is not finite
        for parameter, value, holds, need in (
            ("mean_reversion", kappa, kappa > 0, "above 0"),
            ("long_variance", vbar, vbar > 0, "above 0"),
            ("vol_of_vol", sigma, sigma >= SMALLEST_VOL_OF_VOL, f"at least {SMALLEST_VOL_OF_VOL}"),
            ("correlation", rho, -1 < rho < 1, "between -1 and 1"),
            ("initial_variance", v0, v0 > 0, "above 0"),
        ):
            if not holds:
                raise ParameterError(f"{parameter} is {value:g}; it must be {need}.", parameter=parameter, value=value)
        raise AssertionError("unreachable")
