"""The largest memory in use during a computation, beyond what was in use before."""

from __future__ import annotations

import ctypes
import tracemalloc
from collections.abc import Callable
from pathlib import Path

CALLS = 3  # how often the work is done: once to warm up, once for each way of looking
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_bytes(work: Callable[[], object]) -> int:
    """Peak minus start, by Python's allocator or by the kernel's high-water mark, whichever saw more.

    Compiled code hides from the first, memory that was free already from the second.
    The work is done once before, so that imports and first-use caches are not counted.
    """
    work()
    return max(_traced(work), _resident(work))


def _traced(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident(work: Callable[[], object]) -> int:
    """Linux only; elsewhere the work is done and nothing seen."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # gives free memory back, lest the work take it unseen
        RESET.write_text("5")  # sets the high-water mark back to the present size
        before = _status("VmRSS")
    except (OSError, AttributeError):
        work()
        return 0
    work()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return 1024 * int(line.split()[1])
