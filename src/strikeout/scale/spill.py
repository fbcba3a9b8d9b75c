"""States of partitions on disk, and their sums in memory: what a driver holds does not grow with the partitions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from strikeout.scale.partition import Part, Plan, State

MOST_SUMS = 64  # combinations of tag values with a sum in memory; with more there is none, and sums are read from disk


@dataclass(frozen=True, slots=True)
class SpilledPart:
    """The state of the quotes of one partition that share the values of the tags, on disk until it is asked for."""

    partition: str
    tags: tuple[str, ...]
    count: int
    spill: Spill = field(repr=False, compare=False)
    begin: int = field(repr=False, compare=False)
    end: int = field(repr=False, compare=False)

    @property
    def state(self) -> State:
        """The state, read again each time."""
        return self.spill.read(self.begin, self.end)


class Spill:
    """A file without a name for states, gone when nothing uses it any more, and the sums of those that were kept."""

    def __init__(self, plan: Plan) -> None:
        folder = plan.folder  # beside the cache if there is one: /tmp may be memory
        if folder is not None:
            with suppress(OSError):
                Path(folder).mkdir(parents=True, exist_ok=True)
        self._plan = plan
        place = folder if folder is not None and Path(folder).is_dir() else None
        self._file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 - open as long as its parts are used
        self._lock = Lock()
        self._sums: dict[tuple[str, ...], tuple[int, RunningSum]] | None = {}

    def keep(self, sealed: bytes, parts: Sequence[Part]) -> list[SpilledPart]:
        """Write the sealed states of a partition, and add them to the sums; ``parts`` is what they contain."""
        with self._lock:
            base = self._file.seek(0, 2)
            self._file.write(sealed)
        for part in parts:
            self._add(part)
        return [
            SpilledPart(part.partition, part.tags, part.count, self, *(base + place for place in part.span))
            for part in parts
        ]

    def _add(self, part: Part) -> None:
        if self._sums is None:
            return
        count, running = self._sums.get(part.tags) or (0, RunningSum(self._plan))
        running.add(part.state)
        self._sums[part.tags] = count + 1, running
        if len(self._sums) > MOST_SUMS:
            self._sums = None

    def read(self, begin: int, end: int) -> State:
        """Return the state that lies between these places of the file."""
        with self._lock:
            self._file.seek(begin)
            data = self._file.read(end - begin)
        return self._plan.decoded(data)

    def sum_of(self, tags: tuple[str, ...], parts: Sequence[SpilledPart]) -> Iterable[State]:
        """Return states with the sum of these parts, which are of this file: their sum if it is known, else each."""
        count, running = (self._sums or {}).get(tags, (0, None))
        return [running.total()] if running is not None and count == len(parts) else (part.state for part in parts)


class RunningSum:
    """The sum of states that come one after the other, by halves: a large one is not copied for every small one."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._halves: list[tuple[int, State]] = []  # sums of 2^k states, k falling

    def add(self, state: State) -> None:
        """Add a state."""
        power = 0
        while self._halves and self._halves[-1][0] == power:
            power, state = power + 1, self._plan.total([self._halves.pop()[1], state])
        self._halves.append((power, state))

    def total(self) -> State:
        """Return the sum so far."""
        whole = self._plan.total([state for _, state in self._halves])
        if self._halves:
            self._halves = [(self._halves[0][0], whole)]
        return whole


def total(plan: Plan, parts: Iterable[SpilledPart]) -> State:
    """Return the sum of the states of some parts, with few of them in memory at a time."""
    grouped: dict[tuple[Spill, tuple[str, ...]], list[SpilledPart]] = {}
    for part in parts:
        grouped.setdefault((part.spill, part.tags), []).append(part)
    running = RunningSum(plan)
    for (spill, tags), own in grouped.items():
        for state in spill.sum_of(tags, own):
            running.add(state)
    return running.total()
