"""Your own model: any function of parameters and named columns that NumPy or JAX can evaluate row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, signature
from itertools import pairwise, product
from math import inf, isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import ParameterError, UsageError
from strikeout.kernels import derivatives
from strikeout.kernels.arrays import Floats
from strikeout.kernels.elementary import nearest_exponent
from strikeout.models import jax_function
from strikeout.models.jax_function import is_jax
from strikeout.models.model import ParameterSpace, Theta
from strikeout.quotes.contracts import Contracts, Features

Function = Callable[..., Any]
Starts = Mapping[str, float] | Sequence[Mapping[str, float]]
Bounds = Mapping[str, tuple[float, float]]
Ranges = Mapping[str, tuple[float, float]]

VERSION = 1  # of the rule in kernels/derivatives.py: another one moves the last bits of a footprint
# How far the other parameters may inflate a variance before it counts as undetermined: only if rounding would decide.
# The author of a function must judge whether it is more accurate than that.
INFLATION = 1e13
# With ranges: bits below the largest value or derivative over them, out of 62. The other twelve are for rows beyond it.
KEPT = 50
# Without ranges: bits below the typical value, out of 62. The other twenty are for rows far above it.
TYPICAL = 42
WIDEST = 8  # without ranges, columns are probed at 2^-8 to 2^8
PROBES = 1024  # points of Halton's sequence over the ranges, beside their corners
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
FINEST = 300  # 2^-300 is far below the rounding of anything a double can hold beside one


@dataclass(frozen=True, eq=False, repr=False)
class CustomModel:
    """A function of parameters and features as a model. Made by ``custom_model``.

    ``grid``: residuals are kept on multiples of ``2^-grid`` where footprints are exact integers. Without it the grid
    follows from ``ranges``, where the columns lie, or else from the typical size of the function.
    """

    name: str
    parameters: ParameterSpace
    function: Function
    jacobian: Function | None
    features: tuple[str, ...]  # the columns the function takes
    grid: int | None
    inflation: float = INFLATION
    latent: str | None = None  # the parameter that every group of a panel has for itself
    ranges: Ranges | None = None

    def price(self, theta: Theta, contracts: Contracts | Features) -> Floats:
        """Return the values of the function, one per row; not-a-number if it has none."""
        vector, columns = self.parameters.vector(theta), self._columns(contracts)
        with np.errstate(all="ignore"):
            return self._evaluated(vector, columns, len(contracts))

    def linearize(self, theta: Theta, contracts: Contracts | Features) -> tuple[Floats, Floats]:
        """Return values ``(n,)`` and their derivatives by the parameters ``(n, p)``.

        The derivatives are those of ``jacobian`` if it was given, else as in ``kernels/derivatives.py``.
        """
        vector, columns, count = self.parameters.vector(theta), self._columns(contracts), len(contracts)
        with np.errstate(all="ignore"):
            value = self._evaluated(vector, columns, count)
            if self.jacobian is not None:
                return value, self._given(vector, columns, count)
            return value, derivatives.rows(lambda x: self._evaluated(x, columns, count), vector, self._scales)

    @cached_property
    def exponents(self) -> tuple[int, ...] | None:
        """The grid of exact rows, one exponent per parameter and one for the residual; None if ``grid`` is given.

        It follows from the sizes of the function and of its derivatives over ``ranges``; without them from the median
        size of the function where columns are powers of two. Both at the first start: no quote can move it, and the
        groups of a panel have one grid.
        """
        if self.grid is not None:
            return None
        start = self.parameters.starts[0]
        if self.ranges is None:
            finest = TYPICAL - nearest_exponent(self._typical(start))
            sizes = np.abs(start).tolist()
            return (*(finest + (nearest_exponent(size) if size > 0.0 else 0) for size in sizes), finest)
        value, slopes = self.linearize(start, _probes(self.ranges, self.features))
        found = np.abs(np.column_stack([slopes, value]))
        largest = np.max(np.where(np.isfinite(found), found, 0.0), axis=0).tolist()
        if not all(largest[-1:]):
            raise ParameterError(
                f"{self.name}: the function is zero or has no value in its ranges at its first start. Give ranges "
                "in which it has one, or a grid."
            )
        return tuple(KEPT - nearest_exponent(size) if size > 0.0 else KEPT for size in largest)

    def _typical(self, start: Floats) -> float:
        """Return the median size of the function where columns are powers of two; 1 if it has no value there."""
        try:
            sizes = np.abs(self.price(start, _powers(self.features)))
        except Exception:  # a function of the user's own may refuse rows that it was not written for
            return 1.0
        sizes = np.sort(sizes[np.isfinite(sizes) & (sizes > 0.0)])
        return float(sizes[len(sizes) // 2]) if len(sizes) else 1.0

    def suited(self, contracts: Contracts | Features) -> CustomModel:
        """Return this model, tried out on these rows: a row alone must give the bits it gives among the others."""
        cuts = sorted({0, min(1, len(contracts)), (len(contracts) + 1) // 2, len(contracts)})
        whole = self._tried(contracts)
        apart = np.concatenate([whole[:0], *(self._tried(contracts[slice(a, b)]) for a, b in pairwise(cuts))])
        mixed = np.argwhere((whole != apart) & ~(np.isnan(whole) & np.isnan(apart)))
        if mixed.size:
            row, column = mixed[0].tolist()
            among_all, among_fewer = float(whole[row, column]), float(apart[row, column])
            what = f"its derivative by {self.parameters.names[column - 1]}" if column else "its value"
            raise UsageError(
                f"{self.name}: the function mixes rows: {what} in row {row} is {among_all!r} among all {len(whole)} "
                f"rows and {among_fewer!r} among fewer ({len(np.unique(mixed[:, 0]))} such rows). "
                "It must follow from its own row alone, the same every time: no mean, sum, sort or matrix product over "
                "rows, no new random numbers. Compute such a column before, and give it as a feature.",
                row=row,
            )
        return self

    def _tried(self, contracts: Contracts | Features) -> Floats:
        """At the first start: the values, and beside them the derivatives where a function gives them."""
        start = self.parameters.starts[0]
        if self.jacobian is None:
            return self.price(start, contracts)[:, None]
        value, slopes = self.linearize(start, contracts)
        return np.concatenate([value[:, None], slopes], axis=1)

    @property
    def _scales(self) -> Floats:
        """What a step in a parameter is relative to where the parameter itself is zero: its start, or one."""
        start = np.abs(np.asarray(self.parameters.starts[0], float))
        return np.where(start > 0.0, start, 1.0)

    def _columns(self, contracts: Contracts | Features) -> dict[str, Floats]:
        if not isinstance(contracts, Features):
            raise UsageError(
                f"{self.name} takes named columns, but these quotes are option contracts. Make the book with "
                "Quotes.from_columns(ids, observed, strike=..., expiry=..., ...).",
                name=self.name,
            )
        missing = [name for name in self.features if name not in contracts.columns]
        if missing:
            raise UsageError(
                f"{self.name} takes {', '.join(self.features)}, but the quotes have no {', '.join(missing)}: their "
                f"columns are {', '.join(contracts.names)}. Give the missing ones to Quotes.from_columns.",
                missing=missing,
            )
        return {name: contracts.columns[name] for name in self.features}

    def _evaluated(self, vector: NDArray[Any], columns: Mapping[str, Floats], count: int) -> NDArray[Any]:
        """Return values of the dtype of the vector, real or complex."""
        found = self.function(**dict(zip(self.parameters.names, vector, strict=True)), **columns)
        if is_jax(found):
            raise UsageError(
                f'{self.name}: the function returned JAX\'s numbers. Pass jacobian="jax": they are then in double '
                "precision, and the derivatives JAX's own.",
                name=self.name,
            )
        values = np.asarray(found)
        if values.shape != (count,) and values.shape != ():
            raise UsageError(
                f"{self.name}: for {count} rows the function returned shape {values.shape}. Return one number per row.",
                name=self.name,
                count=count,
            )
        if vector.dtype.kind != "c" and values.dtype.kind not in "fiub":
            raise UsageError(
                f"{self.name}: the function returned {values.dtype}, not numbers. Return one number per row."
            )
        return np.array(np.broadcast_to(values, (count,)), vector.dtype)

    def _given(self, vector: Floats, columns: Mapping[str, Floats], count: int) -> Floats:
        assert self.jacobian is not None
        names = self.parameters.names
        found = self.jacobian(**dict(zip(names, vector, strict=True)), **columns)
        if not isinstance(found, Mapping) or set(found) != set(names):
            got = sorted(found) if isinstance(found, Mapping) else type(found).__name__
            raise UsageError(
                f"{self.name}: jacobian must give back a mapping of {', '.join(names)} to derivatives; it gave {got}.",
                name=self.name,
            )
        try:
            return np.stack([np.broadcast_to(np.asarray(found[name], float), (count,)) for name in names], axis=1)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self.name}: jacobian must return one number per row and parameter: {error}.") from error

    def __repr__(self) -> str:
        return f"<CustomModel {self.name}: {', '.join((*self.parameters.names, *self.features))}>"


def custom_model(
    name: str,
    *,
    parameters: Starts | ParameterSpace,
    price: Function,
    jacobian: Function | Literal["jax"] | None = None,
    bounds: Bounds | None = None,
    grid: int | None = None,
    latent: str | None = None,
    ranges: Ranges | None = None,
) -> CustomModel:
    """Any function of parameters and named columns as a model that calibrates and forgets like every other.

    ``price`` takes every parameter and every column it needs by name, and returns one number per row. A row's value
    must depend on that row alone.

    Args:
        name: fingerprints the function: give another one whenever ``price`` changes.
        parameters: a start by name, or several such; a search begins there. Or a whole ``ParameterSpace``.
        jacobian: takes what ``price`` takes and gives a mapping of every parameter's name to its derivatives. By
            default they are found by complex steps, each held against differences of fourth order, which take their
            place where the function drops imaginary parts. "jax" where ``price`` is written with ``jax.numpy``: it is
            then compiled in double precision, and the derivatives are JAX's (``pip install "strikeout[jax]"``).
        bounds: (lower, upper) by name, unbounded where not given. A search stays inside; differences look beyond them
            by a thousandth of the parameter.
        grid: footprints keep residuals on multiples of ``2^-grid``; they must stay below ``2^(62 - grid)``. Where not
            given, it follows from the typical size of the function at the first start.
        latent: the parameter that has a value of its own in every group of a panel (``calibrate(panel=...)``).
        ranges: (lowest, highest) of every column, by name. The grid of exact states then follows from the size of the
            function and of its derivatives over these ranges: for functions whose size varies by more than a million.
            State what the columns can be, not what these quotes have.

    Raises:
        UsageError: no name, no start, a function that takes no such parameter, a grid out of reach, or no JAX.
        ParameterError: starts that name different parameters, empty bounds, a start outside them, or a latent
            parameter that is none.

    >>> decay = custom_model("decay", parameters={"height": 1.0, "rate": 0.1},
    ...                      price=lambda height, rate, t: height * np.exp(-rate * t))
    >>> decay.price({"height": 2.0, "rate": 0.0}, Features({"t": [1.0, 5.0]}))
    array([2., 2.])
    """
    if not name.strip():
        raise UsageError("custom_model: the name is empty. Name the function; rename it whenever it changes.")
    if grid is not None and not 0 <= grid <= FINEST:
        raise UsageError(f"custom_model: grid={grid} must lie between 0 and {FINEST}.", grid=grid)
    space = _space(parameters, bounds or {})
    if latent is not None and latent not in space.names:
        raise ParameterError(
            f"latent={latent!r} is not a parameter of {name}. They are {', '.join(space.names)}.",
            latent=latent,
            name=name,
        )
    features = _features(name, price, space.names)
    _check_ranges(name, ranges, features)
    if jacobian == "jax":
        traced = jax_function.jax_function(name, price, space.names)
        kind = f"jax-{jax_function.VERSION}-{traced.version}"
        return CustomModel(
            f"{name}/{kind}", space, traced.values, traced.derivatives, features, grid, latent=latent, ranges=ranges
        )
    if isinstance(jacobian, str):
        raise UsageError(f'custom_model: jacobian={jacobian!r}: give a function, "jax", or nothing.', jacobian=jacobian)
    if jacobian is not None:
        _features(name, jacobian, space.names)
    return CustomModel(f"{name}/custom-{VERSION}", space, price, jacobian, features, grid, latent=latent, ranges=ranges)


def _space(parameters: Starts | ParameterSpace, bounds: Bounds) -> ParameterSpace:
    if isinstance(parameters, ParameterSpace):
        if bounds:
            raise UsageError("custom_model: a ParameterSpace has bounds of its own. Leave bounds out.")
        return parameters
    starts = [parameters] if isinstance(parameters, Mapping) else list(parameters)
    if not starts or not all(isinstance(start, Mapping) and start for start in starts):
        raise UsageError("custom_model: parameters must be a start by name, such as {'rate': 0.1}, or several such.")
    names = tuple(starts[0])
    unknown = [name for name in bounds if name not in names]
    if unknown:
        raise ParameterError(f"bounds names {unknown}, no parameter of the model. They are {', '.join(names)}.")
    sides = [bounds.get(name, (-inf, inf)) for name in names]
    lower, upper = np.array([float(low) for low, _ in sides]), np.array([float(high) for _, high in sides])
    space = ParameterSpace(names, lower, upper, np.empty((0, len(names))))
    points = np.array([space.vector(start) for start in starts])
    for i, parameter in enumerate(names):
        if not lower[i] < upper[i]:
            raise ParameterError(
                f"bounds of {parameter}: ({lower[i]:g}, {upper[i]:g}) are empty. Give (lower, upper).",
                parameter=parameter,
            )
        outside = points[(points[:, i] < lower[i]) | (points[:, i] > upper[i]), i]
        if outside.size:
            raise ParameterError(
                f"The start of {parameter}, {outside[0]:g}, lies outside its bounds [{lower[i]:g}, {upper[i]:g}]. "
                "Move it inside, or widen the bounds.",
                parameter=parameter,
            )
    return ParameterSpace(names, lower, upper, points)


def _check_ranges(name: str, ranges: Ranges | None, features: tuple[str, ...]) -> None:
    """Raise UsageError if ranges are given and not one finite range per column."""
    if ranges is None:
        return
    if set(ranges) != set(features) or len(features) > len(PRIMES):
        raise UsageError(
            f"{name}: ranges has {', '.join(ranges) or 'nothing'}, but the function takes the columns "
            f"{', '.join(features)}. Give one range per column, {len(PRIMES)} columns at most."
        )
    for column, (low, high) in ranges.items():
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise UsageError(f"{name}: the range of {column} is ({low:g}, {high:g}). Give (lowest, highest), finite.")


def _probes(ranges: Ranges, features: tuple[str, ...]) -> Features:
    """Return the corners of the ranges, and points spread evenly between them."""
    corners = np.array(list(product((0.0, 1.0), repeat=len(features))))
    inside = np.array([[_radical_inverse(i, PRIMES[j]) for j in range(len(features))] for i in range(1, PROBES + 1)])
    share = np.concatenate([corners, inside]) if features else np.zeros((1, 0))
    sides = [ranges[name] for name in features]
    return Features(
        {
            name: low + (high - low) * share[:, j]
            for j, (name, (low, high)) in enumerate(zip(features, sides, strict=True))
        }
    )


def _powers(features: tuple[str, ...]) -> Features:
    """Return powers of two in every column, combined evenly."""
    columns = {}
    for j, name in enumerate(features):
        turn, place = divmod(j, len(PRIMES))
        shares = [_radical_inverse(i + turn, PRIMES[place]) for i in range(1, 65)]
        columns[name] = np.ldexp(1.0, np.array([int((2 * WIDEST + 1) * share) - WIDEST for share in shares]))
    return Features(columns)


def _radical_inverse(index: int, base: int) -> float:
    """Return the digits of the index in a base, mirrored behind the point."""
    total, scale = 0.0, 1.0 / base
    while index:
        total += scale * (index % base)
        index, scale = index // base, scale / base
    return total


def _features(name: str, function: Function, parameters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns a function takes: its arguments that are not parameters and have no default."""
    try:
        taken = list(signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: the arguments of {function!r} cannot be read: {error}. Wrap it in a def.") from error
    named = [p for p in taken if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    missing = [parameter for parameter in parameters if parameter not in {p.name for p in named}]
    if missing or len(named) < len(taken):
        raise UsageError(
            f"{name}: every parameter and column is handed over by name, but the function takes "
            f"({', '.join(map(str, taken))}). Let it take {', '.join(parameters)} and its columns, each by name.",
            missing=missing,
        )
    return tuple(p.name for p in named if p.name not in parameters and p.default is Parameter.empty)
