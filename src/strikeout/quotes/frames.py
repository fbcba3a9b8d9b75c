"""Frames of the caller's library from columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from strikeout.errors import UsageError

Library = Literal["polars", "pandas", "pyarrow"]


def frame_from(columns: Mapping[str, NDArray[Any]], library: str) -> Any:
    """Return a frame of these columns.

    Args:
        library: "polars", "pandas" or "pyarrow".

    >>> import numpy as np
    >>> frame_from({"strike": np.array([90.0, 110.0])}, "polars").shape
    (2, 1)
    """
    import narwhals as nw

    if library not in get_args(Library):
        raise UsageError(
            f"library {library!r}: not a library of frames. Use one of {', '.join(get_args(Library))}.", library=library
        )
    plain = {name: x.astype(str).tolist() if x.dtype.kind in "OUTM" else x for name, x in columns.items()}
    try:
        return nw.to_native(nw.from_dict(plain, backend=library))  # type: ignore[arg-type]
    except (ImportError, ModuleNotFoundError) as error:
        raise UsageError(f"library {library!r}: not installed. Install it, or use polars.", library=library) from error
