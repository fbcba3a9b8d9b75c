"""The compiled module, if the package was installed with a compiler, and its number of threads."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType
from typing import Any, Literal

Kernel = Literal["native", "numpy"]
KERNELS: tuple[Kernel, ...] = ("native", "numpy")


@cache
def native() -> ModuleType | None:
    """Return the compiled module, or None: then the NumPy and Python twins do the work, to the same end."""
    try:
        from strikeout.kernels import _native
    except ImportError:
        return None
    return _native


def compiled() -> Any:
    """Return the compiled module."""
    module = native()
    if module is None:
        raise RuntimeError("The compiled kernel is not installed.")
    return module


def default_kernel() -> Kernel:
    """Return "native" if the compiled kernel is installed and ``STRIKEOUT_KERNEL`` is not "numpy", else "numpy"."""
    wanted = os.environ.get("STRIKEOUT_KERNEL", "native")
    return "numpy" if wanted == "numpy" or native() is None else "native"


def threads() -> int:
    """Return how many threads a large book may take; ``STRIKEOUT_THREADS`` overrides the number of cores. Changes no
    bit."""
    wanted = os.environ.get("STRIKEOUT_THREADS", "")
    return int(wanted) if wanted.isdecimal() and 0 < int(wanted) < 1 << 16 else _cores()


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
