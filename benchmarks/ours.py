"""Ours, called the way a calibration calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

import strikeout as so
from strikeout.kernels import backend

Floats = NDArray[np.float64]


@contextmanager
def kernel(name: str) -> Iterator[None]:
    """Runs the body on the "native" kernel or on its "numpy" twin."""
    with backend.use(name):
        yield


def one_pass(contracts: so.Contracts, observed: Floats, theta: Floats) -> Callable[[], Floats]:
    """A Gauss-Newton pass over contracts in canonical order, ready to be called again and again."""
    model = so.Heston()
    weight = np.ones(len(observed))
    return lambda: model.accumulate(theta, contracts, observed, weight)


def price(theta: Floats, contracts: so.Contracts) -> Floats:
    return so.Heston().price(theta, contracts)
