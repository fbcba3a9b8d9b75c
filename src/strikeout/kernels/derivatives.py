"""Derivatives of a function that is only given: complex steps, each held against differences.

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
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.elementary import nearest_exponent

Floats = NDArray[np.float64]
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
