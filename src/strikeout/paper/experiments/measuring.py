"""How long something takes on one core, and how fast that grows.

Times are the median of several runs and the quartiles around it; growth is the slope of a line through logarithms.

Processor time of this thread, not of the wall: what else a machine does would count more for slow work than for quick.
Nothing that is timed here uses a second thread: footprints are taken in runs that are too short for one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError
from strikeout.quotes.quotes import Quotes

NORMAL = 1.959963984540054  # 97.5 % of a normal variable lie below
TURN = 5e-3  # seconds: what is quicker is repeated within a run, which then counts as the mean of its calls


@dataclass(frozen=True)
class Times:
    """Seconds: median, lower and upper quartile, over how many runs."""

    median: float
    low: float
    high: float
    runs: int

    def scaled(self, factor: float) -> Times:
        """Return the times of ``factor`` times as much of the same work."""
        return Times(self.median * factor, self.low * factor, self.high * factor, self.runs)

    @property
    def spread(self) -> float:
        """The interquartile range over the median, in per cent."""
        return 100.0 * (self.high - self.low) / self.median


def timed(work: Callable[[], object], *, runs: int) -> Times:
    """Run the work ``runs`` times, after once or twice unmeasured."""
    return timed_in_turn({"": work}, runs=runs)[""]


def timed_in_turn(works: Mapping[str, Callable[[], object]], *, runs: int) -> dict[str, Times]:
    """Run each work ``runs`` times, one after the other in every run: a machine that is slower for a while is for all.

    Ratios of times are to be taken from one such call.
    """
    repeats = {}
    for name, work in works.items():
        once = _mean(work, 1)
        if once < TURN:
            once = _mean(work, 1)
        repeats[name] = max(1, min(2000, int(TURN / max(once, 1e-9))))
    taken = [{name: _mean(work, repeats[name]) for name, work in works.items()} for _ in range(runs)]
    found = {}
    for name in works:
        low, median, high = np.quantile([one[name] for one in taken], [0.25, 0.5, 0.75]).tolist()
        found[name] = Times(median, low, high, runs)
    return found


def _mean(work: Callable[[], object], repeats: int) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        work()
    return (time.thread_time() - begin) / repeats


def fresh(quotes: Quotes) -> Quotes:
    """Return the quotes as new objects: what an earlier run sorted must not make the next one cheaper."""
    return quotes[:]


@dataclass(frozen=True)
class Slope:
    """The exponent of a power law and the interval that holds it 95 times in 100, if the scatter is normal."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def slope_of(x: ArrayLike, y: ArrayLike) -> Slope:
    """Return the least-squares slope of ``ln y`` against ``ln x``.

    >>> round(slope_of([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]).value, 9)
    2.0
    """
    across, up = np.asarray(x, float), np.asarray(y, float)
    if len(across) < 3 or np.ptp(across) == 0.0:
        raise UsageError(f"slope_of: {len(across)} points at {len(set(across.tolist()))} places; three are needed.")
    if not (across > 0.0).all() or not (up > 0.0).all():
        raise UsageError("slope_of: a logarithm needs numbers above zero. Leave out the points that are not.")
    a, b = np.log(across), np.log(up)
    a = a - a.mean()
    value = float(a @ b / (a @ a))
    rest = b - b.mean() - value * a
    error = float(np.sqrt(rest @ rest / (len(a) - 2) / (a @ a)))
    reach = _student(len(a) - 2) * error
    return Slope(value, value - reach, value + reach)


def _student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t: exact for 1 and 2 degrees, else the series of Cornish and Fisher.

    The series is good to 1 % from three degrees on.
    """
    if freedom <= 2:
        return 12.706 if freedom == 1 else 4.303
    z, n = NORMAL, float(freedom)
    series = (
        (z**3 + z) / (4 * n),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3),
    )
    return z + sum(series)
