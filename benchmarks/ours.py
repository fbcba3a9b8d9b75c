"""Ours, called the way a calibration calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import strikeout as so

Floats = NDArray[np.float64]


def one_pass(
    contracts: so.Contracts, observed: Floats, theta: Floats, *, kernel: Literal["native", "numpy"] | None = None
) -> Callable[[], Floats]:
    """A Gauss-Newton pass over contracts in canonical order, ready to be called again and again.

    What depends on the book alone (its order, its targets; in NumPy the polynomials of its strikes) is made here, as a
    calibration makes it once; the peer's tables are made beforehand, too.
    """
    model = (so.Heston() if kernel is None else so.Heston(kernel=kernel)).suited(contracts)
    ready = model.accumulator(contracts, contracts.scale, observed - contracts.intrinsic)
    return lambda: ready(theta)


def price(theta: Floats, contracts: so.Contracts) -> Floats:
    return so.Heston().suited(contracts).price(theta, contracts)


def sensitivities(theta: Floats, contracts: so.Contracts) -> Floats:
    return so.Heston().suited(contracts).linearize(theta, contracts)[1]


def twin_prices(theta: Floats, contracts: so.Contracts, rows: NDArray[np.intp]) -> Floats:
    """What the NumPy twin's pass makes of some quotes of a book: sums in which one of them counts, each in turn."""
    model = so.Heston(kernel="numpy").suited(contracts)
    found = []
    for row in rows:
        scale = np.zeros(len(contracts))
        scale[row] = contracts.scale[row]
        found.append(np.sqrt(model.accumulate_scaled(theta, contracts, scale, np.zeros(len(contracts)))[-1]))
    return contracts.intrinsic[rows] + found
