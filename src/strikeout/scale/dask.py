"""An engine on a Dask cluster: the only module that imports Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, TypeVar

from strikeout.errors import UsageError

Batch = TypeVar("Batch")
Answer = TypeVar("Answer")

REPEATS = 10  # of a batch whose worker was lost


@dataclass(frozen=True)
class Dask:
    """A client of dask.distributed, whatever cluster it is connected to.

    Each batch is a task of its own; no data passes between workers.
    """

    client: Any

    @property
    def workers(self) -> int:
        return max(len(self.client.scheduler_info()["workers"]), 1)

    def answers(self, task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Iterator[Answer]:
        distributed: Any = import_module("distributed")
        # Keys are names of their own: Dask would otherwise compute a digest of every batch, and join equal ones.
        places = self.client.map(task, list(batches), pure=False, retries=REPEATS)
        for done in distributed.as_completed(places):
            answer: Answer = done.result()
            yield answer
            done.release()

    def __enter__(self) -> Dask:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client, and the cluster if it was started here."""
        cluster = self.client.cluster
        self.client.close()
        if cluster is not None:
            cluster.close()


def connected(address: str | None) -> Dask:
    """Return an engine on the scheduler at an address, or on a new cluster of this machine's cores.

    A scheduler with TLS reads its certificates from Dask's own configuration.

    Raises:
        UsageError: Dask is not installed, or nothing answers at the address.
    """
    if address is None:
        return local(os.cpu_count() or 1)
    try:
        return Dask(_library().Client(address))
    except OSError as error:
        raise UsageError(f"engine: nothing answers at {address} ({error}). Check the address.", engine="dask") from None


def local(count: int) -> Dask:
    """Return an engine on a new cluster of some worker processes of this machine, with one thread each.

    Raises:
        UsageError: Dask is not installed.
    """
    distributed = _library()
    # Dask's own value makes the allocator of every worker return memory after each task, at twice the time.
    import_module("dask").config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None})
    environment = {"POLARS_MAX_THREADS": "1", "STRIKEOUT_THREADS": "1"}
    cluster = distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, env=environment)
    return Dask(distributed.Client(cluster))


def _library() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise UsageError(
            "Dask is not installed. Install strikeout[dask], or use engine='processes'.", engine="dask"
        ) from None
