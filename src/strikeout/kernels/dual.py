"""Dual numbers: a value and its derivatives by p parameters, carried through NumPy's own functions.

    symbol  meaning                                                            shape
    x       value, real or complex                                             s
    dx      its derivatives                                                    p, s
    f'      derivative of an elementary function, analytic at its argument

    (x, dx) + (y, dy) = (x + y, dx + dy)        (x, dx) (y, dy) = (x y, x dy + y dx)        f(x, dx) = (f(x), f'(x) dx)

Exact to rounding: nothing is subtracted that was not subtracted in f. Every rule is elementwise, so what holds of f for
a frequency or a row holds of its derivatives. Functions that are not analytic (``abs``, ``conj``, ``real``) have no
rule; NumPy then raises a TypeError that names them. Comparisons look at the value alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Index = SupportsIndex | slice | tuple[Any, ...] | Array

# f'(x), given x and f(x)
SLOPES: dict[np.ufunc, Callable[[Array, Array], Any]] = {
    np.negative: lambda _x, _f: -1.0,
    np.positive: lambda _x, _f: 1.0,
    np.exp: lambda _x, f: f,
    np.expm1: lambda _x, f: f + 1.0,
    np.log: lambda x, _f: 1.0 / x,
    np.log1p: lambda x, _f: 1.0 / (1.0 + x),
    np.sqrt: lambda _x, f: 0.5 / f,
    np.square: lambda x, _f: 2.0 * x,
    np.reciprocal: lambda _x, f: -f * f,
    np.sin: lambda x, _f: np.cos(x),
    np.cos: lambda x, _f: -np.sin(x),
    np.tan: lambda _x, f: 1.0 + f * f,
    np.sinh: lambda x, _f: np.cosh(x),
    np.cosh: lambda x, _f: np.sinh(x),
    np.tanh: lambda _x, f: 1.0 - f * f,
    np.arcsin: lambda x, _f: 1.0 / np.sqrt(1.0 - x * x),
    np.arctan: lambda x, _f: 1.0 / (1.0 + x * x),
    np.arcsinh: lambda x, _f: 1.0 / np.sqrt(1.0 + x * x),
    np.arctanh: lambda x, _f: 1.0 / (1.0 - x * x),
}
# df/dx and df/dy, given x, y and f(x, y)
Partial = Callable[[Array, Array, Array], Any]
PARTIALS: dict[np.ufunc, tuple[Partial, Partial]] = {
    np.add: (lambda _x, _y, _f: 1.0, lambda _x, _y, _f: 1.0),
    np.subtract: (lambda _x, _y, _f: 1.0, lambda _x, _y, _f: -1.0),
    np.multiply: (lambda _x, y, _f: y, lambda x, _y, _f: x),
    np.divide: (lambda _x, y, _f: 1.0 / y, lambda _x, y, f: -f / y),
    # x^0 is flat even at x = 0: 0 x, not 0 / x
    np.power: (lambda x, y, _f: y * np.power(x, np.where(y == 0, 1.0, y - 1.0)), lambda x, _y, f: f * np.log(x)),
}
OF_THE_VALUE = {
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isfinite, np.isnan, np.isinf,
}  # fmt: skip


class Dual(NDArrayOperatorsMixin):
    """A value with its derivatives; works wherever NumPy's functions above do. Never changed in place."""

    def __init__(self, value: ArrayLike, slopes: ArrayLike) -> None:
        self.value = np.asarray(value)
        self.slopes = np.asarray(slopes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Dual]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Index) -> Dual:
        places = index if isinstance(index, tuple) else (index,)
        return Dual(self.value[index], self.slopes[(slice(None), *places)])

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Dual({self.value!r})"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        # `x += y` asks for the result in x. A dual is a value: the name x gets the new one.
        out = named.pop("out", None)
        if method != "__call__" or named or (out is not None and not isinstance(out[0], Dual)):
            return NotImplemented
        values = [x.value if isinstance(x, Dual) else np.asarray(x) for x in inputs]
        if ufunc in OF_THE_VALUE:
            return ufunc(*values)
        if ufunc in SLOPES:
            value = np.asarray(ufunc(*values))
            return Dual(value, SLOPES[ufunc](values[0], value) * self.slopes)
        if ufunc not in PARTIALS:
            return NotImplemented
        value = np.asarray(ufunc(*values))
        slopes = [
            np.broadcast_to(
                partial(values[0], values[1], value) * _aligned(x, value.shape), (len(x.slopes), *value.shape)
            )
            for x, partial in zip(inputs, PARTIALS[ufunc], strict=True)
            if isinstance(x, Dual)
        ]
        return Dual(value, slopes[0] if len(slopes) == 1 else slopes[0] + slopes[1])

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function is np.where and len(args) == 3:
            condition, x, y = args
            p = len(self.slopes)
            x, y = (one if isinstance(one, Dual) else Dual(one, np.zeros((p, *np.shape(one)))) for one in (x, y))
            value = np.where(condition, x.value, y.value)
            return Dual(value, np.where(condition, _aligned(x, value.shape), _aligned(y, value.shape)))
        if function in (np.zeros_like, np.ones_like) and len(args) == 1:
            return function(self.value, **named)
        return NotImplemented


def variables(x: NDArray[np.float64]) -> Dual:
    """Return the parameters themselves: each with slope one by itself."""
    return Dual(x, np.eye(len(x)))


def parts(found: Any, p: int) -> tuple[Array, Array]:
    """Value and derivatives ``(p, *shape)`` of what a function gave; one that used no parameter is flat."""
    if isinstance(found, Dual):
        return found.value, found.slopes
    value = np.asarray(found)
    return value, np.zeros((p, *value.shape))


def _aligned(x: Dual, shape: tuple[int, ...]) -> Array:
    """Return the slopes with as many axes as the result has, the parameters' first."""
    missing = len(shape) - x.value.ndim
    return x.slopes.reshape(len(x.slopes), *(1,) * missing, *x.value.shape)
