"""Elementary functions with the same bits on every processor.

NumPy and the C library choose their exp, log, sin and so on by the processor's instructions, and the choices differ in
the last bit. What is hashed, certified or steers a search is computed with these functions instead. They are compiled
(``native/elementary.hpp``): each is a fixed sequence of correctly rounded operations, about one unit in the last place,
over the whole range of doubles. Without the compiled module they are NumPy's, and a certificate then names the
processor.

Arrays of any shape go in, arrays of that shape come out; ``exp``, ``expm1`` and ``log`` take complex ones too. Values
outside a domain give not-a-number. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.kernels.compiled import native

Array = NDArray[Any]
Compiled = Callable[..., None]

DOUBLE = np.dtype(np.float64)
SQRT_HALF = 0.7071067811865476
LARGEST_ANGLE = 2.0**30  # beyond, ``sin`` and ``cos`` answer not-a-number


def exp(x: ArrayLike) -> Any:
    """Return e^x, real or complex.

    >>> float(exp(1.0))
    2.718281828459045
    """
    return _EXP(x)


def expm1(x: ArrayLike) -> Any:
    """Return e^x - 1 with all its digits where x is small, real or complex."""
    return _EXPM1(x)


def log(x: ArrayLike) -> Any:
    """Return the natural logarithm, real or complex (principal branch); not-a-number for a real x below zero."""
    return _LOG(x)


def log1p(x: ArrayLike) -> Any:
    """Return ln(1 + x) with all its digits where x is small."""
    return _LOG1P(x)


def sin(x: ArrayLike) -> Any:
    """Return the sine; not-a-number beyond ``LARGEST_ANGLE``."""
    return _SIN(x)


def cos(x: ArrayLike) -> Any:
    """Return the cosine; not-a-number beyond ``LARGEST_ANGLE``."""
    return _COS(x)


def sqrt(x: ArrayLike) -> Any:
    """Return the square root, real or complex (real part not below zero). A real one is NumPy's, rounded correctly."""
    return _SQRT(x)


def atan2(y: ArrayLike, x: ArrayLike) -> Any:
    """Return the angle of the point (x, y), from -pi to pi."""
    return _ATAN2(y, x)


def power(x: ArrayLike, y: ArrayLike) -> Any:
    """Return x^y for x >= 0; not-a-number for x below zero."""
    return _POWER(x, y)


def nearest_exponent(x: float) -> int:
    """Return the whole number nearest to log2(x), for x above zero and finite. Exact: no logarithm is taken.

    >>> nearest_exponent(1.4), nearest_exponent(1.5)
    (0, 1)
    """
    fraction, exponent = frexp(x)
    return exponent if fraction >= SQRT_HALF else exponent - 1


def _of_one(numpy: Callable[..., Any], real: str | None, complex_: str | None) -> Callable[[ArrayLike], Any]:
    """Return a function of one array: the compiled ones of these names, or NumPy's without a compiled module."""
    module = native()
    if module is None:
        return _quiet(numpy)
    compiled: Compiled | None = getattr(module, real) if real else None
    compiled_complex: Compiled | None = getattr(module, complex_) if complex_ else None

    def function(x: ArrayLike) -> Any:
        if compiled is not None and _is_ready(x):
            out: Array = np.empty(x.shape)
            compiled(x, out)
            return out
        given = np.asarray(x)
        if given.dtype.kind == "c" and compiled_complex is not None:
            flat = np.ascontiguousarray(given, np.complex128).reshape(-1)
            out = np.empty(given.shape, np.complex128)
            compiled_complex(flat.view(np.float64), out.reshape(-1).view(np.float64))
        elif compiled is not None:
            out = np.empty(given.shape)
            compiled(np.ascontiguousarray(given, np.float64), out)
        else:
            return _quiet(numpy)(given)
        return out if given.ndim else out[()]

    return function


def _of_two(numpy: Callable[..., Any], name: str) -> Callable[[ArrayLike, ArrayLike], Any]:
    module = native()
    if module is None:
        return _quiet(numpy)
    compiled: Compiled = getattr(module, name)

    def function(x: ArrayLike, y: ArrayLike) -> Any:
        if _is_ready(x) and _is_ready(y) and x.shape == y.shape:
            out = np.empty(x.shape)
            compiled(x, y, out)
            return out
        first, second = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        out = np.empty(first.shape)
        compiled(np.ascontiguousarray(first), np.ascontiguousarray(second), out)
        return out if out.ndim else out[()]

    return function


def _is_ready(x: ArrayLike) -> TypeGuard[Array]:
    """Return whether the compiled functions can read x unconverted. Converting costs as much as 1,000 logarithms."""
    return type(x) is np.ndarray and x.dtype is DOUBLE and x.flags.c_contiguous and x.ndim > 0


def _quiet(numpy: Callable[..., Any]) -> Callable[..., Any]:
    def function(*given: ArrayLike) -> Any:
        with np.errstate(all="ignore"):
            return numpy(*given)

    return function


_EXP = _of_one(np.exp, "exp", "complex_exp")
_EXPM1 = _of_one(np.expm1, "expm1", "complex_expm1")
_LOG = _of_one(np.log, "log", "complex_log")
_LOG1P = _of_one(np.log1p, "log1p", None)
_SIN = _of_one(np.sin, "sin", None)
_COS = _of_one(np.cos, "cos", None)
_SQRT = _of_one(np.sqrt, None, "complex_sqrt")
_ATAN2 = _of_two(np.arctan2, "atan2")
_POWER = _of_two(np.power, "power")
