"""Times candidates in turn, so that a busy machine is busy for all of them, and compares them round by round."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Work = Callable[[], object]
Candidate = Callable[[], Work]  # prepares a fresh call, unmeasured; the work itself is measured

TURN = 5e-3  # seconds: quicker work is repeated within a turn until it takes this long, and at least
FEWEST = 3  # times, unless one call alone takes ten turns


def same(work: Work) -> Candidate:
    """A candidate that does the same work in every turn: no state is left from an earlier turn."""
    return lambda: work


@dataclass(frozen=True)
class Timing:
    """Median seconds of a call, and the median over rounds of this candidate's time over that of the first.

    A turn counts as its quickest call: on a shared machine the others were slowed by other processes.
    """

    seconds: float
    ratio: float


def interleave(candidates: Mapping[str, Candidate], *, rounds: int) -> dict[str, Timing]:
    """Gives every candidate a turn a round (ours, peer, ours, peer, ...). The first one is what the ratios divide by.

    Each candidate is called once before, unmeasured, and again to see how often a turn should repeat it. Garbage
    collection waits until the end.

    Raises:
        ValueError: there are no candidates or no rounds.
    """
    if not candidates or rounds < 1:
        raise ValueError(f"{len(candidates)} candidates and {rounds} rounds: at least one of each is needed.")
    repeats = {}
    for name, candidate in candidates.items():
        candidate()()
        once = max(_seconds(candidate, 1), 1e-9)
        repeats[name] = 1 if once > 10 * TURN else min(1000, max(FEWEST, int(TURN / once)))
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        table = [{name: _seconds(one, repeats[name]) for name, one in candidates.items()} for _ in range(rounds)]
    finally:
        if was_enabled:
            gc.enable()
    first = next(iter(candidates))
    return {
        name: Timing(median(row[name] for row in table), median(row[name] / row[first] for row in table))
        for name in candidates
    }


def _seconds(candidate: Candidate, repeats: int) -> float:
    """The quickest of some calls."""
    taken = []
    for work in [candidate() for _ in range(repeats)]:
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return min(taken)
