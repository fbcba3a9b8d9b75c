"""How long something takes: the median of several runs and the quartiles around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TURN = 5e-3  # seconds: what is quicker is repeated within a run, which then counts as its quickest call


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
    once = _quickest(work, 1)
    if once < TURN:
        once = _quickest(work, 1)
    repeats = max(1, min(500, int(TURN / max(once, 1e-9))))
    taken = [_quickest(work, repeats) for _ in range(runs)]
    low, median, high = np.quantile(taken, [0.25, 0.5, 0.75]).tolist()
    return Times(median, low, high, runs)


def _quickest(work: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return float(best)
