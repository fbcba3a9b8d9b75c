"""Shared by models with a compiled kernel and a NumPy twin: the choice of the kernel, and prices from its rows."""

from __future__ import annotations

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats
from strikeout.kernels.compiled import KERNELS, native
from strikeout.quotes.contracts import Contracts, Layout


def check_kernel(kernel: str) -> None:
    """Raise UsageError if there is no such kernel here."""
    if kernel not in KERNELS:
        raise UsageError(f'kernel={kernel!r} is unknown. Use "native" or "numpy".')
    if kernel == "native" and native() is None:
        raise UsageError(
            'The compiled kernel is not installed. Use kernel="numpy", or reinstall with a C++17 compiler.'
        )


def linearized(rows: Floats, layout: Layout, contracts: Contracts) -> tuple[Floats, Floats]:
    """Return prices ``(n,)`` and derivatives ``(n, p)``, from out-of-the-money values ``(1 + p, n)`` in a layout."""
    values = layout.unsorted(rows)
    return contracts.scale * values[0] + contracts.intrinsic, values[1:].T * contracts.scale[:, None]
