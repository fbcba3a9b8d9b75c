"""What the last bits of a calibration depend on besides its quotes: the build that a certificate and a book name."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from strikeout.kernels.compiled import native

# Models whose prices are correctly rounded operations in a fixed order where the kernel is compiled.
FIXED = (
    "heston/native-",
    "bates/native-",
    "double-heston/native-",
    "variance-gamma/native-",
    "sabr-",
    "svi/",
    "ssvi/",
    "black-scholes/",
)
NAMED = ("machine", "python", "numpy", "kernel")  # in every build
ROUNDING = ("processor", "blas", "libc")  # what a price computed in NumPy rounds by
CORE_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def build_of(model: str) -> dict[str, str]:
    """Return what the bits of a model of this name depend on: they are claimed for this build.

    With the compiled kernel the built-in models give the same bits on every processor. What is computed in NumPy does
    not: NumPy chooses its exp and log by the processor's instructions or takes those of the C library, and BLAS chooses
    its products by the processor's core. The build of a model that users bring, and of every model without the compiled
    kernel, names these too.

    >>> sorted(build_of("paper-heston(u_max=50, nodes=180, step=1e-5)"))[:2]
    ['blas', 'kernel']
    """
    compiled = native() is not None
    build = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernel": "compiled" if compiled else "numpy",
    }
    return build if compiled and model.startswith(FIXED) else {**build, **_rounding()}


def difference(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Return how two builds differ, in a sentence; empty if they are the same.

    >>> difference({"numpy": "2.3.0", "machine": "arm64"}, {"numpy": "2.4.6", "machine": "arm64"})
    'The builds differ: numpy 2.3.0 there, numpy 2.4.6 here.'
    """
    apart = [name for name in sorted({*there, *here}) if there.get(name) != here.get(name)]
    if not apart:
        return ""
    first, second = (", ".join(f"{name} {build.get(name, 'not named')}" for name in apart) for build in (there, here))
    return f"The builds differ: {first} there, {second} here."


@cache
def _rounding() -> dict[str, str]:
    config: dict[str, Any] = np.show_config(mode="dicts") or {}  # type: ignore[assignment]
    simd, blas = config.get("SIMD Extensions", {}), config.get("Build Dependencies", {}).get("blas", {})
    found = {
        "processor": " ".join([*simd.get("baseline", ()), *simd.get("found", ())]),
        "blas": " ".join(filter(None, (blas.get("name"), blas.get("version"), _core()))),
        "libc": " ".join(filter(None, platform.libc_ver())),
    }
    return {name: value for name, value in found.items() if value}


def _core() -> str:
    """Return the processor that OpenBLAS chose its products for; as requested if unknown, empty for another library."""
    own = Path(str(import_module("numpy._core._multiarray_umath").__file__))
    bundled = sorted(Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*"))  # Windows asks each by itself
    for path in (own, *bundled):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in CORE_NAMES:
            if (said := getattr(library, name, None)) is not None:
                said.restype = ctypes.c_char_p
                return (said() or b"").decode("ascii", "replace")
    return os.environ.get("OPENBLAS_CORETYPE", "")
