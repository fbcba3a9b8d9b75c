"""Engines on one machine: the bits of a loop from each of them, and what a killed worker costs."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import strikeout as so
from benchmarks.lake import LICENCES, _folder, _lake
from benchmarks.rows import Result, Row
from strikeout.scale import Engine, Here, Processes

OTHERS = {"ray": "ray", "spark": "pyspark"}  # engines that are measured if they are installed


def run(*, is_quick: bool, is_full: bool) -> Result:  # noqa: ARG001
    """Gather a lake on every engine; kill workers of Dask."""
    files, size, kills = (8, 5_000, 5) if is_quick else (24, 100_000, 100)
    with _folder() as folder:
        lake = _lake(folder / "lake", files, size)
        loop, alone = _timed(lake, Here())
        task = f"{files * size:,} quotes in {files} files, by the clock"
        rows = [Row(task, "a loop in this process", alone, 1.0)]
        rows += _by_engine(task, lake, loop, alone)
        more, facts = _kills(lake, loop, kills)
        rows += more
        facts["digest"] = loop[:16]
    return Result("engines", is_quick, tuple(rows), facts)


def _timed(lake: so.scale.Lake, engine: Engine) -> tuple[str, float]:
    begin = time.perf_counter()
    found = so.scale.gather(lake, tags="licence", engine=engine)
    if {part.tags[0] for part in found.parts} != set(LICENCES):
        raise RuntimeError("a licence is missing")
    return found.digest(), time.perf_counter() - begin


def _by_engine(task: str, lake: so.scale.Lake, loop: str, alone: float) -> list[Row]:
    rows = []
    for name, made in _engines():
        with made() as engine:
            _timed(so.scale.Lake(Path(lake.path) / lake.partitions[0]), engine)  # starts the workers
            digest, seconds = _timed(lake, engine)
        note = "the same bits" if digest == loop else "DIFFERENT BITS"
        rows.append(Row(task, name, seconds, seconds / alone, note=f"{note}; {alone / seconds:.2f} times as fast"))
    return rows


def _engines() -> Iterator[tuple[str, Callable[[], Any]]]:
    from strikeout.scale.dask import local

    for count in (1, 2):
        yield f"processes, {count}", partial(_plain, Processes(count))
        yield f"Dask, {count} workers", partial(local, count)
    for name, module in OTHERS.items():
        if find_spec(module) is not None:
            yield f"{name.capitalize()}, all cores", partial(so.scale.engine_named, name)


@contextmanager
def _plain(engine: Engine) -> Iterator[Engine]:
    yield engine


def _kills(lake: so.scale.Lake, loop: str, kills: int) -> tuple[list[Row], dict[str, float | str]]:
    """Kill a random worker of two at a random moment of each gathering."""
    from strikeout.scale.dask import local

    draws, wrong, alone, taken = random.Random(1), 0, [], []
    while len(taken) < kills:
        with local(2) as engine:
            _timed(lake, engine)
            alone.append(_timed(lake, engine)[1])
            while len(taken) < kills and _has_workers(engine, 2):
                pids = [nanny.pid for nanny in engine.client.cluster.workers.values() if nanny.pid]
                timer = threading.Timer(draws.uniform(0.0, alone[0]), os.kill, (draws.choice(pids), signal.SIGKILL))
                timer.start()
                digest, seconds = _timed(lake, engine)
                timer.join()
                wrong += digest != loop
                taken.append(seconds)
    whole, mean = sum(alone) / len(alone), sum(taken) / kills
    task = f"the same with one of two Dask workers killed, {kills} times"
    rows = [
        Row(task, "no worker killed", whole, 1.0),
        Row(task, "a worker killed, on average", mean, mean / whole, note=f"{wrong} of {kills} with other bits"),
        Row(task, "1.5 times the first", 1.5 * whole, 1.5 * whole / mean, 1.0, note="the most that a kill may cost"),
    ]
    return rows, {"kills": kills, "kills with other bits": wrong, "slowest gathering with a kill, seconds": max(taken)}


def _has_workers(engine: Any, count: int) -> bool:
    """Return whether the workers are there again: one that was killed while it started, Dask does not start again."""
    try:
        engine.client.wait_for_workers(count, timeout=30)
    except TimeoutError:
        return False
    return True
