"""The most memory a piece of work held at once, beyond what was there before."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_bytes(work: Callable[[], object]) -> tuple[int, str]:
    """Peak minus start, and how it was seen.

    On Linux the kernel's own high-water mark, which compiled code cannot escape; elsewhere Python's allocator alone.
    The work is done once before, so that imports and first-use caches are not counted.
    """
    work()
    try:
        RESET.write_text("5")  # sets the high-water mark back to the present size
        before = _status("VmRSS")
        work()
        return max(_status("VmHWM") - before, 0), "resident set"
    except OSError:
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1], "tracemalloc"
        finally:
            tracemalloc.stop()


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return 1024 * int(line.split()[1])
