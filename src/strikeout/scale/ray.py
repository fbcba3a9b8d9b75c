"""An engine on Ray: the only module that imports Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from strikeout.errors import UsageError
from strikeout.scale.engines import ONE_THREAD, REPEATS, Cluster, imported

Batch = TypeVar("Batch")
Answer = TypeVar("Answer")

AHEAD = 2  # batches per worker that are submitted before the first of them is done: bounds the memory of the driver


@dataclass(frozen=True)
class Ray(Cluster):
    """A connection to Ray, whatever cluster it leads to.

    Each batch is a task of its own with one core; no data passes between workers.
    """

    ray: Any
    is_own: bool  # started here, so that it is stopped with the engine

    @property
    def workers(self) -> int:
        return max(int(self.ray.cluster_resources().get("CPU", 1)), 1)

    def answers(self, task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Iterator[Answer]:
        remote = self.ray.remote(num_cpus=1, max_retries=REPEATS)(_run)
        shared = self.ray.put(task)
        waiting = iter(batches)
        running: list[Any] = []
        for _ in range(AHEAD * self.workers):
            running += [remote.remote(shared, batch) for batch in _next(waiting)]
        while running:
            (done,), running = self.ray.wait(running, num_returns=1)
            answer: Answer = self.ray.get(done)
            running += [remote.remote(shared, batch) for batch in _next(waiting)]
            yield answer

    def close(self) -> None:
        """Disconnect, and stop Ray if it was started here."""
        if self.is_own:
            self.ray.shutdown()


def _run(task: Callable[[Batch], Answer], batch: Batch) -> Answer:
    return task(batch)


def _next(waiting: Iterator[Batch]) -> list[Batch]:
    return [batch for batch in [next(waiting, None)] if batch is not None]


def connected(address: str | None) -> Ray:
    """Return an engine on the cluster at an address, or on a new one of this machine's cores.

    Args:
        address: "HOST:PORT" of the head node, or "ray://HOST:PORT" of a Ray client server.

    Raises:
        UsageError: Ray is not installed, or nothing answers at the address.
    """
    return local(os.cpu_count() or 1) if address is None else _started(address=address)


def local(count: int) -> Ray:
    """Return an engine on a new cluster of this machine, with some worker processes.

    Raises:
        UsageError: Ray is not installed.
    """
    return _started(num_cpus=count, include_dashboard=False)


def _started(**how: Any) -> Ray:
    ray = imported("ray", engine="ray", called="Ray")
    if ray.is_initialized():
        return Ray(ray, is_own=False)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    try:
        ray.init(runtime_env={"env_vars": ONE_THREAD}, logging_level="ERROR", **how)
    except (OSError, RuntimeError, ValueError) as error:
        where = how.get("address", "this machine")
        raise UsageError(
            f"engine: Ray cannot be reached at {where} ({error}). Check the address.", engine="ray"
        ) from None
    return Ray(ray, is_own=True)
