"""An engine on Spark: the only module that imports PySpark. It uses data frames alone, so Spark Connect works too."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from strikeout.errors import UsageError
from strikeout.scale.engines import ONE_THREAD, REPEATS, Cluster, imported

Batch = TypeVar("Batch")
Answer = TypeVar("Answer")

SCHEMA = "place int, answer binary"


@dataclass(frozen=True)
class Spark(Cluster):
    """A Spark session, whatever cluster it is connected to.

    Each batch is a partition of one row; tasks and answers pass as Spark's own serializer writes them.
    """

    session: Any
    is_own: bool  # started here, so that it is stopped with the engine

    @property
    def workers(self) -> int:
        context = getattr(self.session, "sparkContext", None)
        return max(int(context.defaultParallelism), 1) if context is not None else 8

    def answers(self, task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Iterator[Answer]:
        given = list(batches)
        # One row per partition: a plain repartition would hash some rows together and leave other partitions empty.
        places = self.session.range(0, len(given), 1, numPartitions=max(len(given), 1))
        answers = places.mapInArrow(_mapper(task, given), SCHEMA)
        load = _serializer().loads
        for row in answers.toLocalIterator(prefetchPartitions=True):
            answer: Answer = load(bytes(row["answer"]))
            yield answer

    def close(self) -> None:
        """Stop the session if it was started here."""
        if self.is_own:
            self.session.stop()


def _mapper(task: Callable[[Batch], Answer], batches: Sequence[Batch]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that a worker applies to its rows: place in, place and answer out."""

    def run(tables: Iterator[Any]) -> Iterator[Any]:
        arrow = import_module("pyarrow")
        dump = _serializer().dumps
        for table in tables:
            for place in table.column(0).to_pylist():
                answer = dump(task(batches[place]))
                columns = [arrow.array([place], arrow.int32()), arrow.array([answer], arrow.binary())]
                yield arrow.RecordBatch.from_arrays(columns, names=["place", "answer"])

    return run


def _serializer() -> Any:
    return import_module("pyspark.serializers").CPickleSerializer()


def connected(address: str | None) -> Spark:
    """Return an engine on the session of this process, a Spark at an address, or a new one of this machine's cores.

    Args:
        address: of a master ("spark://HOST:7077", "local[4]") or of Spark Connect ("sc://HOST:15002").

    Raises:
        UsageError: PySpark is not installed, or Spark cannot be started.
    """
    sql = imported("pyspark.sql", engine="spark", called="PySpark")
    if address is None:
        running = sql.SparkSession.getActiveSession()  # a notebook of Databricks has one
        if running is not None:
            return Spark(running, is_own=False)
    builder = sql.SparkSession.builder.appName("strikeout")
    if address is not None and address.startswith("sc://"):
        builder = builder.remote(address)
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise workers run whatever python3 is on the path
        # A master without a number of failures gives up at the first lost worker when it is local.
        builder = builder.master(address or f"local[*,{REPEATS}]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.task.maxFailures", str(REPEATS))
        # Spark divides small ranges of rows and joins small partitions; here a row is minutes of work.
        builder = builder.config("spark.sql.adaptive.enabled", "false")
        for name, value in ONE_THREAD.items():
            builder = builder.config(f"spark.executorEnv.{name}", value)
    try:
        return Spark(builder.getOrCreate(), is_own=True)
    except Exception as error:
        where = address or "this machine"
        raise UsageError(f"engine: Spark cannot be started at {where} ({error}).", engine="spark") from None
