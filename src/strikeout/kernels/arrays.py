"""Types of arrays by their elements, for every package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]  # 64 bits each: parts of exact integers, or hashes
Rows = NDArray[np.intp]  # row numbers, or positions in another array
Mask = NDArray[np.bool_]  # one per row
