"""Derivatives of a given function by complex steps, each compared with differences.

    symbol  meaning                                                                shape
    f       a function of p parameters, one value per row                          p -> n
    x       the point                                                              p
    D_h     (f(x + h) - f(x - h)) / 2 h, off by h^2 f''' / 6                       n, a parameter
    D       (4 D_(h/2) - D_h) / 3, Richardson's: of fourth order, off by h^4 f^(5) / 480
    C       Im f(x + i e) / e: exact to rounding, for nothing is subtracted

C is right only if f keeps imaginary parts (``abs`` and ``real`` drop them). It is taken for rows at which it agrees
with D to within a few |D_(h/2) - D_h|, which is far more than D is off by, or to the rounding of the differences;
elsewhere D is. The choice follows from the row and x alone, never from other rows. Four real evaluations and a complex
one per parameter. Squire and Trapp (1998), "Using complex variables to estimate derivatives of real functions".

Dual numbers: a value and its derivatives by p parameters, carried through NumPy's own functions.

    symbol  meaning                                                            shape
    x       value, real or complex                                             s
    dx      its derivatives                                                    p, s
    f'      derivative of an elementary function, analytic at its argument

    (x, dx) + (y, dy) = (x + y, dx + dy)        (x, dx) (y, dy) = (x y, x dy + y dx)        f(x, dx) = (f(x), f'(x) dx)

Exact to rounding: nothing is subtracted that was not subtracted in f. Every rule is elementwise, so what holds of f
for a frequency or a row holds of its derivatives. Functions that are not analytic (``abs``, ``conj``, ``real``) have
no rule; NumPy then raises a TypeError that names them. Comparisons look at the value alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from math import ldexp
from typing import Any, SupportsIndex

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, NDArray

from strikeout.kernels.arrays import Floats
from strikeout.kernels.elementary import nearest_exponent

Function = Callable[[NDArray[Any]], NDArray[Any]]

TINY = 2.0**-100  # e: its square is lost beside anything, so the real part of f does not move
STEP = 2.0**-10  # h over |x|: rounding (eps / h) and fourth-order error (h^4 / 480) are then both near 2e-13
FEW = 16.0
ROUNDINGS = 64.0  # of some dozen operations, in units of eps times the size of what they add up


def rows(f: Function, x: Floats, scales: Floats) -> Floats:
    """Return the derivatives of every row by every parameter, ``(n, p)``; ``scales`` are the steps' sizes where x is
    zero.

    Not-a-number if f has no value at x, or only differences would do and f has none beside x.
    """
    h = np.array([_step(value, scale) for value, scale in zip(x, scales, strict=True)])
    found = [differences(f, x, i, h[i]) for i in range(len(x))]
    D, apart, largest = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
    exact = complex_steps(f, x)
    if exact is None:
        return D
    # What f adds up may be larger than f: a parameter times its derivative is the size of its term.
    size = largest.max(axis=1) + np.add.reduce(np.abs(x * exact), axis=1)
    doubt = FEW * apart + ROUNDINGS * np.finfo(float).eps * size[:, None] / h
    # False where the differences left the domain of f: then they cannot speak against C.
    return np.where(np.abs(exact - D) > doubt, D, exact)


def differences(f: Function, x: Floats, i: int, h: float) -> tuple[Floats, Floats, Floats]:
    """Return by parameter i: D, |D_(h/2) - D_h|, and the largest value of f on the way."""
    values = [f(_moved(x, i, step)) for step in (h, -h, 0.5 * h, -0.5 * h)]
    wide, narrow = (values[0] - values[1]) / (2.0 * h), (values[2] - values[3]) / h
    return (4.0 * narrow - wide) / 3.0, np.abs(narrow - wide), np.max(np.abs(values), axis=0)


def complex_steps(f: Function, x: Floats) -> Floats | None:
    """Return C by every parameter, ``(n, p)``; None if f takes no complex numbers."""
    columns = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # a dropped imaginary part shows against D
        for i in range(len(x)):
            try:
                columns.append(np.imag(f(_moved(x.astype(complex), i, 1j * TINY))) / TINY)
            except TypeError:
                return None
    return np.stack(columns, axis=1)


def _step(x: float, scale: float) -> float:
    """Return a power of two: neither x + h nor the division by h is then rounded, but for a bit of x."""
    return ldexp(1.0, nearest_exponent(STEP * float(abs(x) if x != 0.0 else scale)))


def _moved(x: NDArray[Any], i: int, step: complex) -> NDArray[Any]:
    moved = x.copy()
    moved[i] += step
    return moved


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


def _less_one(y: Array) -> Array:
    return np.where(y == 0, 1.0, y - 1.0) if y.ndim or y == 0 else y - 1.0


# df/dx and df/dy, given x, y and f(x, y); None for one
Partial = Callable[[Array, Array, Array], Any] | None
PARTIALS: dict[np.ufunc, tuple[Partial, Partial]] = {
    np.add: (None, None),
    np.subtract: (None, lambda _x, _y, _f: -1.0),
    np.multiply: (lambda _x, y, _f: y, lambda x, _y, _f: x),
    np.divide: (lambda _x, y, _f: 1.0 / y, lambda _x, y, f: -f / y),
    # x^0 is flat even at x = 0: 0 x, not 0 / x
    np.power: (lambda x, y, _f: y * np.power(x, _less_one(y)), lambda x, _y, f: f * np.log(x)),
}
OF_THE_VALUE = {
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isfinite, np.isnan, np.isinf,
}  # fmt: skip


class Dual(NDArrayOperatorsMixin):
    """A value with its derivatives; works wherever NumPy's functions above do. Never changed in place.

    ``slopes`` has the axes of the value after that of the parameters; any of them may have length one.
    """

    __slots__ = ("slopes", "value")

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
        return Dual(self.value[index], self.full[(slice(None), *places)])

    @property
    def full(self) -> Array:
        """The slopes ``(p, *shape)``, every axis as long as the value's."""
        whole = (len(self.slopes), *self.value.shape)
        return self.slopes if self.slopes.shape == whole else np.broadcast_to(self.slopes, whole)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Dual({self.value!r})"

    # NumPy's own operators would find the same rules, in twice the time.
    def __add__(self, other: Any) -> Dual:
        return _combined(np.add, self, other)

    def __radd__(self, other: Any) -> Dual:
        return _combined(np.add, other, self)

    def __sub__(self, other: Any) -> Dual:
        return _combined(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Dual:
        return _combined(np.subtract, other, self)

    def __mul__(self, other: Any) -> Dual:
        return _combined(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Dual:
        return _combined(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Dual:
        return _combined(np.divide, self, other)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        # `x += y` asks for the result in x. A dual is a value: the name x gets the new one.
        out = named.pop("out", None)
        if method != "__call__" or named or (out is not None and not isinstance(out[0], Dual)):
            return NotImplemented
        values = [x.value if isinstance(x, Dual) else x for x in inputs]
        if ufunc in OF_THE_VALUE:
            return ufunc(*values)
        if ufunc in SLOPES:
            value = np.asarray(ufunc(*values))
            return Dual(value, SLOPES[ufunc](values[0], value) * self.slopes)
        if ufunc not in PARTIALS:
            return NotImplemented
        return _combined(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function is np.where and len(args) == 3:
            condition, x, y = args
            p = len(self.slopes)
            x, y = (one if isinstance(one, Dual) else Dual(one, np.zeros((p, *np.shape(one)))) for one in (x, y))
            value = np.where(condition, x.value, y.value)
            return Dual(value, np.where(condition, _aligned(x, value.ndim), _aligned(y, value.ndim)))
        if function in (np.zeros_like, np.ones_like) and len(args) == 1:
            return function(self.value, **named)
        return NotImplemented


def _combined(ufunc: np.ufunc, x: Any, y: Any) -> Dual:
    """Return a function of two arguments, of which one or both are dual."""
    u, v = x.value if isinstance(x, Dual) else np.asarray(x), y.value if isinstance(y, Dual) else np.asarray(y)
    value = np.asarray(ufunc(u, v))
    slopes = []
    for one, partial in zip((x, y), PARTIALS[ufunc], strict=True):
        if isinstance(one, Dual):
            own = _aligned(one, value.ndim)
            slopes.append(own if partial is None else partial(u, v, value) * own)
    return Dual(value, slopes[0] if len(slopes) == 1 else slopes[0] + slopes[1])


def variables(x: Floats) -> Dual:
    """Return the parameters themselves: each with slope one by itself."""
    return Dual(x, np.eye(len(x)))


def parts(found: Any, p: int) -> tuple[Array, Array]:
    """Value and derivatives ``(p, *shape)`` of what a function gave; one that used no parameter is flat."""
    if isinstance(found, Dual):
        return found.value, found.full
    value = np.asarray(found)
    return value, np.zeros((p, *value.shape))


def _aligned(x: Dual, axes: int) -> Array:
    """Return the slopes with as many axes as the result has, the parameters' first."""
    missing = axes - x.value.ndim
    return x.slopes.reshape(len(x.slopes), *(1,) * missing, *x.slopes.shape[1:]) if missing else x.slopes
