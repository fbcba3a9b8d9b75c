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

    What depends on the book alone (its order, its targets) is made here, as a calibration makes it once; the peer's
    tables are made beforehand, too.
    """
    model = (so.Heston() if kernel is None else so.Heston(kernel=kernel)).suited(contracts)
    accumulate = model.accumulator(contracts, contracts.scale, observed - contracts.intrinsic)
    return lambda: accumulate(theta)


def price(theta: Floats, contracts: so.Contracts) -> Floats:
    return so.Heston().suited(contracts).price(theta, contracts)


def sensitivities(theta: Floats, contracts: so.Contracts) -> Floats:
    return so.Heston().suited(contracts).linearize(theta, contracts)[1]


def twin_price(theta: Floats, contracts: so.Contracts) -> Floats:
    return so.Heston(kernel="numpy").price(theta, contracts)
