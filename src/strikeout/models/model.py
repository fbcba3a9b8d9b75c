"""The `Model` protocol: parameters and contracts in, prices and sensitivities out; and what compiled models share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import ParameterError, UsageError
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import KERNELS, native
from strikeout.quotes.contracts import Contracts, Layout

Theta = Mapping[str, float] | ArrayLike


@dataclass(frozen=True, eq=False)
class ParameterSpace:
    """The parameters of a model, always by name: four libraries use four orders.

    ``lower`` and ``upper`` are the bounds of a calibration, ``starts`` its canonical starting points (one per row).
    ``edges`` names the parameters at whose lower bound the model itself ends, such as a variance of zero: there is
    nothing beyond, so a search that ends there has found its optimum. ``more_starts`` are tried too if the canonical
    ones lead to a fit far worse than smooth curves through the expiries. ``is_curve`` is true for parameters of a curve
    through quotes: a parameter that the quotes leave open, or that ends on a bound, is reported, and the curve is an
    answer all the same. ``stages`` are values of the parameters that this model adds to a simpler one: first those
    without effect, then those that the default search adds to the optimum of the simpler model, one start each. All
    arrays are read-only copies.
    """

    names: tuple[str, ...]
    lower: Floats
    upper: Floats
    starts: Floats
    edges: tuple[str, ...] = ()
    more_starts: Floats = field(default_factory=lambda: np.empty((0, 0)))
    is_curve: bool = False
    stages: tuple[Mapping[str, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "starts", "more_starts"):
            own = np.array(getattr(self, name), dtype=float)  # a copy, so that no caller can change it
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    def __len__(self) -> int:
        return len(self.names)

    def vector(self, theta: Theta) -> Floats:
        """Return the parameters as an array in the order of ``names``, from a mapping by name or such an array.

        Raises:
            ParameterError: a name is missing or unknown, the length is wrong, or a value is not finite.
        """
        if isinstance(theta, Mapping):
            missing = [name for name in self.names if name not in theta]
            unknown = [name for name in theta if name not in self.names]
            if missing or unknown:
                raise ParameterError(
                    f"Parameters by name: missing {missing}, unknown {unknown}. The names are {list(self.names)}.",
                    missing=missing,
                    unknown=unknown,
                )
            vector = np.array([float(theta[name]) for name in self.names])
        else:
            vector = np.array(theta, dtype=float)
        if vector.shape != (len(self.names),):
            raise ParameterError(
                f"{len(self.names)} parameters are needed ({', '.join(self.names)}); got shape {vector.shape}."
            )
        for name, value in zip(self.names, vector.tolist(), strict=True):
            if not isfinite(value):
                raise ParameterError(f"{name} is {value}; parameters must be finite numbers.", parameter=name)
        return vector

    def named(self, vector: ArrayLike) -> dict[str, float]:
        return {name: float(value) for name, value in zip(self.names, np.asarray(vector), strict=True)}


@runtime_checkable
class Model(Protocol):
    """Prices European options and differentiates them.

    Invariants: a row's price depends on that row's contract and theta alone, to the last bit (never on its neighbours
    in the batch); the same call gives the same bits; ``name`` changes whenever a price could.
    """

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> ParameterSpace: ...

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract, in the currency of the forward."""
        ...

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices and their derivatives: ``(n,)`` and ``(n, p)``, columns in the order of
        ``parameters.names``."""
        ...


Domain = Mapping[str, tuple[float, float]]


def inside(space: ParameterSpace, theta: Theta, domain: Domain) -> Floats:
    """Return the parameters as an array in the order of the space, each strictly between the two ends of its domain.

    ``domain`` goes by name; ``vol_of_vol`` speaks for ``vol_of_vol[0.5]`` too.

    >>> space = ParameterSpace(("vol",), np.array([0.01]), np.array([3.0]), np.array([[0.2]]))
    >>> inside(space, {"vol": 0.3}, {"vol": (0.0, inf)})
    array([0.3])
    """
    vector = space.vector(theta)
    for name, value in zip(space.names, vector.tolist(), strict=True):
        low, high = domain.get(name.partition("[")[0], (-inf, inf))
        if not low < value < high:
            need = f"above {low:g}" if high == inf else f"between {low:g} and {high:g}"
            raise ParameterError(f"{name} is {value:g}; it must be {need}.", parameter=name, value=value)
    return vector


def check_kernel(kernel: str) -> None:
    """Raise UsageError if there is no such kernel here."""
    if kernel not in KERNELS:
        raise UsageError(f'kernel={kernel!r} is unknown. Use "native" or "numpy".', kernel=kernel)
    if kernel == "native" and native() is None:
        raise UsageError(
            'The compiled kernel is not installed. Use kernel="numpy", or reinstall with a C++17 compiler.'
        )


def linearized(rows: Floats, layout: Layout, contracts: Contracts) -> tuple[Floats, Floats]:
    """Return prices ``(n,)`` and derivatives ``(n, p)``, from out-of-the-money values ``(1 + p, n)`` in a layout."""
    values = layout.unsorted(rows)
    return contracts.scale * values[0] + contracts.intrinsic, values[1:].T * contracts.scale[:, None]
