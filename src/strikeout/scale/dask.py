"""An engine on a Dask cluster: the only module that imports Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from strikeout.errors import UsageError
from strikeout.scale.engines import ONE_THREAD, REPEATS, Cluster, imported

Batch = TypeVar("Batch")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Dask(Cluster):
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
        return Dask(imported("distributed", engine="dask", called="Dask").Client(address))
    except OSError as error:
        raise UsageError(f"engine: nothing answers at {address} ({error}). Check the address.", engine="dask") from None
    except TypeError as error:  # Dask's answer to an address with TLS and no certificate
        raise UsageError(
            f"engine: {address} needs certificates ({error}). Set distributed.comm.tls in Dask's configuration.",
            engine="dask",
        ) from None


def local(count: int) -> Dask:
    """Return an engine on a new cluster of some worker processes of this machine, with one thread each.

    Raises:
        UsageError: Dask is not installed.
    """
    distributed = imported("distributed", engine="dask", called="Dask")
    # Dask's own value makes the allocator of every worker return memory after each task, at twice the time.
    import_module("dask").config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None})
    cluster = distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, env=ONE_THREAD)
    return Dask(distributed.Client(cluster))
