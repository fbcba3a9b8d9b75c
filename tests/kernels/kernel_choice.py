"""The two kernels a Heston test runs on, and single slices in their own units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pytest

from strikeout.kernels import compiled
from strikeout.models.heston import Heston
from strikeout.models.model import Model
from strikeout.quotes.contracts import Contracts

needs_native = pytest.mark.skipif(compiled.native() is None, reason="the compiled kernel is not built")
each_kernel = pytest.mark.parametrize("kernel", [pytest.param("native", marks=needs_native), "numpy"])
Result = TypeVar("Result")
KERNELS = ["numpy"] if compiled.native() is None else ["native", "numpy"]


def slice_at(T: float, k: Sequence[float] | np.ndarray) -> Contracts:
    """Out-of-the-money options on a forward of one: puts below it, calls from it on."""
    k = np.asarray(k, float)
    return Contracts(forward=1.0, strike=np.exp(k), expiry=T, discount=1.0, is_call=np.exp(k) >= 1.0)


def values(model: Model | str, theta: Sequence[float], T: float, k: Sequence[float] | np.ndarray) -> np.ndarray:
    """Out-of-the-money values and their derivatives, ``(1 + p, n)``, by a model or by Heston on the kernel named."""
    model = Heston(model) if isinstance(model, str) else model
    price, jacobian = model.linearize(np.array(theta, float), slice_at(T, k))
    return np.vstack([price, jacobian.T])


def total_variance(theta: Sequence[float], T: float) -> float:
    """E[integral of v over 0..T] in the Heston model."""
    kappa, vbar, _, _, v0 = theta
    return float(vbar * T + (v0 - vbar) * -np.expm1(-kappa * T) / kappa)


def under_each(run: Callable[[], Result]) -> dict[str, Result]:
    """Return what `run` returns, by name of the instruction set. Skip the test if there is only one."""
    module = compiled.native()
    names = [] if module is None else module.available_instructions()
    if len(names) < 2:
        pytest.skip("this processor has only the plain instructions, or the kernel is not compiled")
    assert module is not None
    found = {}
    try:
        for name in names:
            module.use_instructions(name)
            assert module.instructions() == name
            found[name] = run()
    finally:
        module.use_instructions(names[-1])
    return found
