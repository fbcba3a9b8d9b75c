"""How long something takes on one core: the median of several runs and the quartiles around it.

Processor time of this thread, not of the wall: what else a machine does would count more for slow work than for quick.
Nothing that is timed here uses a second thread (books of this size are below the kernel's threshold for one).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TURN = 5e-3  # seconds: what is quicker is repeated within a run, which then counts as the mean of its calls


@dataclass(frozen=True)
class Times:
    """Seconds: median, lower and upper quartile, over how many runs."""

    median: float
    low: float
    high: float
    runs: int

    def scaled(self, factor: float) -> Times:
        """The times of ``factor`` times as much of the same work."""
        return Times(self.median * factor, self.low * factor, self.high * factor, self.runs)

    @property
    def spread(self) -> float:
        """The interquartile range over the median, in per cent."""
        return 100.0 * (self.high - self.low) / self.median


def timed(work: Callable[[], object], *, runs: int) -> Times:
    """Runs the work ``runs`` times, after once or twice unmeasured."""
    once = _mean(work, 1)
    if once < TURN:
        once = _mean(work, 1)
    repeats = max(1, min(2000, int(TURN / max(once, 1e-9))))
    taken = [_mean(work, repeats) for _ in range(runs)]
    low, median, high = np.quantile(taken, [0.25, 0.5, 0.75]).tolist()
    return Times(median, low, high, runs)


def _mean(work: Callable[[], object], repeats: int) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        work()
    return (time.thread_time() - begin) / repeats
