"""Our elementary functions against NumPy's: time and error, on arrays of ten thousand numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import Result, Row
from benchmarks.timing import interleave, same
from strikeout.kernels import elementary

Floats = NDArray[np.float64]

COUNT = 10_000
CHECKED = 500  # of them against 40 digits


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001 - every benchmark takes both
    """One task per function. Ours must not take longer than NumPy's."""
    rng = np.random.default_rng(5)
    z = 3.0 * rng.standard_normal(COUNT)
    size = np.abs(z) + 1e-3
    tasks: dict[str, tuple[Callable[..., Any], tuple[Floats, ...]]] = {
        "exp": (np.exp, (z,)),
        "expm1": (np.expm1, (z,)),
        "log": (np.log, (size,)),
        "log1p": (np.log1p, (size,)),
        "sin": (np.sin, (10.0 * z,)),
        "cos": (np.cos, (10.0 * z,)),
        "power": (np.power, (size, z)),
        "atan2": (np.arctan2, (z, z[::-1].copy())),
    }
    rows: list[Row] = []
    for name, (numpy, given) in tasks.items():
        ours = getattr(elementary, name)
        timed = interleave(
            {"strikeout": same(partial(ours, *given)), "NumPy": same(partial(numpy, *given))},
            rounds=5 if is_quick else 41,
        )
        exact = getattr(mpmath, name)
        for candidate, function in (("strikeout", ours), ("NumPy", numpy)):
            found = timed[candidate]
            note = f"{found.seconds / COUNT * 1e9:.2g} ns a number, off by {_units(function, exact, given):.2f} units"
            rows.append(
                Row(name, candidate, found.seconds, found.ratio, 1.0 if candidate == "NumPy" else None, note=note)
            )
    return Result("elementary", is_quick, tuple(rows), {"units": "in the last place, worst of 500 numbers"})


def _units(function: Callable[..., Any], exact: Callable[..., Any], given: tuple[Floats, ...]) -> float:
    """The largest error in units in the last place."""
    worst = 0.0
    with mpmath.workdps(40):
        for found, *at in zip(*((c[:CHECKED].tolist()) for c in (function(*given), *given)), strict=True):
            want = exact(*map(mpmath.mpf, at))
            worst = max(worst, float(abs(found - want) / mpmath.mpf(float(np.spacing(abs(float(want)))))))
    return worst
