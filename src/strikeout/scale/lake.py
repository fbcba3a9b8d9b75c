"""A lake: quotes in many files, each of them a partition."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import polars as pl

from strikeout.errors import UnreadableFileError, UsageError
from strikeout.quotes.checks.catalogue import Checks
from strikeout.quotes.clock import Clock
from strikeout.quotes.reading import Reading, inspect_quotes

ENDINGS = (".parquet", ".csv", ".csv.gz")
DELTA_LOG = "_delta_log"


@dataclass(frozen=True)
class Lake:
    """Files of quotes in a folder, by a pattern, or in an object store. Each file is a partition.

    Parts of a path such as ``underlying=SPX`` are columns of the quotes below it. Quotes of one book, an underlying on
    one day by default, lie in one partition: then a quote that is there twice is found.

    Args:
        path: a folder, a file, a pattern ("data/2024-*.parquet"), or a pattern in an object store ("s3://bucket/*.parquet";
            Parquet only).
        each: the labels that make one book.
        profile, constants, checks, forwards, exercise, clock: how each partition is read, as for ``read_quotes``.
        storage: options and credentials of the object store, as Polars takes them (``storage_options``).

    Raises:
        UsageError: no label is given in ``each``.
    """

    path: str | os.PathLike[str]
    each: tuple[str, ...] = ("underlying", "date")
    profile: str | None = None
    constants: Mapping[str, Any] | None = None
    checks: Checks | Mapping[str, float | str] | str | None = None
    forwards: str = "auto"
    exercise: Literal["european", "american", "auto"] = "auto"
    clock: Clock | None = None
    storage: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "each", (self.each,) if isinstance(self.each, str) else tuple(self.each))
        if not self.each:
            raise UsageError('Lake: each names no label. Name the labels of one book, such as ("underlying", "date").')

    @property
    def is_remote(self) -> bool:
        """Whether the files lie in an object store."""
        return "://" in str(self.path)

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        """The files, in order; for a folder relative to it.

        Raises:
            UnreadableFileError: there are none.
        """
        found = self._listed()
        if not found:
            wanted = ", ".join(ENDINGS)
            raise UnreadableFileError(
                f"{self.path}: there are no files of quotes here ({wanted}). Check the path.", path=str(self.path)
            )
        return tuple(sorted(found))

    def _listed(self) -> list[str]:
        if self.is_remote:
            paths = pl.scan_parquet(str(self.path), storage_options=self._storage, include_file_paths="path")
            names: list[str] = paths.select("path").unique().collect()["path"].to_list()
            return names
        base = Path(self.path)
        if base.is_dir():
            _refuse_table(base)
            inside = (file for file in base.rglob("*") if file.is_file() and file.name.endswith(ENDINGS))
            return [file.relative_to(base).as_posix() for file in inside if not _is_hidden(file.relative_to(base))]
        if base.is_file():
            return [str(base)]
        root = Path(base.anchor or ".")
        return [str(file) for file in root.glob(str(base.relative_to(base.anchor))) if file.name.endswith(ENDINGS)]

    def location(self, partition: str) -> str:
        """Return the path or address of a partition."""
        base = Path(self.path)
        return str(base / partition) if not self.is_remote and base.is_dir() else partition

    def content(self, partition: str) -> str:
        """Return the digest of a partition's bytes; in an object store, of its columns.

        Raises:
            UnreadableFileError: it cannot be read.
        """
        if self.is_remote:
            return _frame_digest(self._frame(partition))
        try:
            with Path(self.location(partition)).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UnreadableFileError(f"{partition}: cannot be read ({error.strerror}).", path=partition) from error

    def read(self, partition: str) -> Reading:
        """Read one partition.

        Raises:
            StrikeoutError: as ``inspect_quotes``.
        """
        place = self.location(partition)
        is_frame = self.is_remote or (place.endswith(".parquet") and "=" in partition)
        return inspect_quotes(
            self._frame(partition) if is_frame else place,
            profile=self.profile,
            constants=self.constants,
            checks=self.checks,
            forwards=self.forwards,
            exercise=self.exercise,
            clock=self.clock,
        )

    def _frame(self, partition: str) -> pl.DataFrame:
        try:
            return pl.read_parquet(
                self.location(partition),
                storage_options=self._storage,
                hive_partitioning=True,
                try_parse_hive_dates=False,
            )
        except (OSError, pl.exceptions.PolarsError) as error:
            raise UnreadableFileError(f"{partition}: cannot be read as Parquet ({error}).", path=partition) from error

    @property
    def _storage(self) -> dict[str, str] | None:
        return None if self.storage is None else dict(self.storage)

    def settings(self) -> str:
        """Return how partitions are read, as text: equal for lakes whose partitions are read alike."""
        given = (_sorted(self.constants), _sorted(self.checks))
        return repr((self.each, self.profile, *given, self.forwards, self.exercise, self.clock))


def _sorted(given: object) -> object:
    return sorted(given.items()) or None if isinstance(given, Mapping) else given


def _refuse_table(folder: Path) -> None:
    """Raise UsageError for the folder of a Delta or Iceberg table: its files have deleted rows too."""
    is_iceberg = any((folder / "metadata").glob("*.metadata.json"))
    if is_iceberg or (folder / DELTA_LOG).is_dir():
        kind = "Iceberg" if is_iceberg else "Delta"
        raise UsageError(
            f"{folder}: is a {kind} table, and its folder contains deleted rows and old versions too. Write its "
            "current version to plain Parquet files and use their folder.",
            path=str(folder),
        )


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _frame_digest(frame: pl.DataFrame) -> str:
    buffer = BytesIO()
    frame.write_ipc(buffer)
    return hashlib.sha256(buffer.getvalue()).hexdigest()
