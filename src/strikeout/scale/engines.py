"""Where tasks run: in this process, in processes of this machine, or on a cluster of Dask, Ray or Spark.

An engine may run the batches in any order and a batch more than once. A task is a pure function of its batch, and a
refusal is an answer: an engine repeats only what it lost itself, such as the batches of a worker that was killed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, Self, TypeVar

from strikeout.errors import RefusedError, UsageError

Batch = TypeVar("Batch")
Answer = TypeVar("Answer")

CLUSTERS = ("dask", "ray", "spark")  # each in the module of its name, the only one that imports it
REPEATS = 10  # of a batch whose worker was lost, on a cluster
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "STRIKEOUT_THREADS": "1"}  # of a worker: the other cores are for other workers
MOST_LOSSES = 100  # pools of processes that may break before a gathering is given up


class Engine(Protocol):
    """Runs a task on batches, in any order, each at least once."""

    @property
    def workers(self) -> int:
        """The number of tasks that run at the same time, as far as it is known."""
        ...

    def answers(self, task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Iterator[Answer]:
        """Yield the answer of the task to each batch, as they come."""
        ...


class Cluster(ABC):
    """An engine that is connected to something, and disconnected at the end of a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect, and stop what was started here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def imported(module: str, *, engine: str, called: str) -> Any:
    """Return the library of an engine.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(
            f"{called} is not installed. Install strikeout[{engine}], or use engine='processes'.", engine=engine
        ) from None


@dataclass(frozen=True)
class Here:
    """This process, one batch after the other."""

    @property
    def workers(self) -> int:
        return 1

    def answers(self, task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Iterator[Answer]:
        return map(task, batches)


@dataclass(frozen=True)
class Processes:
    """Processes of this machine; a lost one is replaced, and its batches are repeated.

    A script that uses it needs the usual ``if __name__ == "__main__":``, as for any pool of processes in Python.

    Args:
        count: how many; the number of cores by default.

    Raises:
        RefusedError: processes are lost again and again; ``answers`` raises it.
    """

    count: int | None = None

    @property
    def workers(self) -> int:
        return self.count or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def answers(self, task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Iterator[Answer]:
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        waiting = dict(enumerate(batches))
        for _ in range(MOST_LOSSES):
            with ProcessPoolExecutor(
                min(self.workers, max(len(waiting), 1)), mp_context=get_context("spawn"), initializer=_one_thread
            ) as pool:
                try:
                    places = {pool.submit(task, batch): place for place, batch in waiting.items()}
                    for done in as_completed(list(places)):
                        yield done.result()
                        del waiting[places.pop(done)]  # an answer that is kept is memory that grows
                        del done
                except BrokenProcessPool:
                    continue  # the pool is lost as a whole: what is left goes to a new one
            return
        raise RefusedError(
            f"Processes were lost {MOST_LOSSES} times, probably for want of memory; {len(waiting):,} batches are left. "
            "Use fewer processes, or smaller partitions.",
            batches=len(waiting),
        )


def _one_thread() -> None:
    """Let a worker use one core: the others are for the other workers."""
    os.environ.update(ONE_THREAD)


def engine_named(engine: Engine | str | int | None) -> Engine:
    """Return an engine by its name; an engine is returned as it is.

    Args:
        engine: None or "processes", a number of processes, "here"; "dask", "ray" or "spark" for a cluster on this
            machine (Spark: the session of this process, if there is one), with an address for a running one:
            "dask:tcp://host:8786", "dask:tls://host:8786", "ray:host:6379", "spark:spark://host:7077", "spark:sc://host".

    Raises:
        UsageError: an unknown name, or an engine that is not installed.
    """
    if engine is None or engine == "processes":
        return Processes()
    if isinstance(engine, int):
        if engine < 1:
            raise UsageError(f"engine={engine}: a number of processes is 1 or more.")
        return Processes(engine)
    if not isinstance(engine, str):
        return engine
    name, _, address = engine.partition(":")
    if name == "here":
        return Here()
    if name in CLUSTERS:
        made: Engine = import_module(f"strikeout.scale.{name}").connected(address or None)
        return made
    raise UsageError(f'engine={engine!r} is unknown. Use "processes", "here", {_quoted(CLUSTERS)}, or "dask:ADDRESS".')


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
