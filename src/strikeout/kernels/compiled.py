"""The compiled module, where the package was installed with a compiler."""

from __future__ import annotations

from functools import cache
from types import ModuleType


@cache
def native() -> ModuleType | None:
    """The compiled module, or None: then the NumPy and Python twins do the work, to the same end."""
    try:
        from strikeout.kernels import _native
    except ImportError:
        return None
    return _native
