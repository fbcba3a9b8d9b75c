"""Room on disk for what does not fit into memory: tables put away in one nameless file, which ends with the process."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from tempfile import TemporaryFile
from types import TracebackType

import polars as pl

from strikeout.errors import UsageError


@dataclass(frozen=True)
class Place:
    """Where in the file a table is."""

    begin: int
    length: int


class Scratch:
    """A file that only this process can open, since it has no name: not even a kill leaves it behind.

    Args:
        folder: on whose disk it is; the one for temporary files where not given.

    >>> with Scratch() as scratch:
    ...     place = scratch.put(pl.DataFrame({"strike": [90.0, 110.0]}))
    ...     scratch.get(place).height
    2
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        self._end = 0
        self._folder = folder

    def put(self, table: pl.DataFrame) -> Place:
        """Puts a table away.

        Raises:
            UsageError: the disk is full.
        """
        page = BytesIO()
        table.write_ipc(page, compression="lz4")
        data = page.getbuffer()
        try:
            self._file.seek(self._end)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise self._no_room(error) from error
        place = Place(self._end, len(data))
        self._end += len(data)
        return place

    def _no_room(self, error: OSError) -> UsageError:
        if self._folder is None:
            folder, remedy = "the folder for temporary files", "Make room, or name another folder in TMPDIR."
        else:
            folder, remedy = f"the disk of {self._folder}", "Make room there."
        return UsageError(
            f"A large file is read in pieces, and {folder} has no room for them ({error.strerror}, after "
            f"{self._end >> 20:,} MB). {remedy}"
        )

    def get(self, place: Place) -> pl.DataFrame:
        """The table that was put there."""
        self._file.seek(place.begin)
        return pl.read_ipc(BytesIO(self._file.read(place.length)))

    def all(self, places: list[Place]) -> pl.DataFrame:
        """The tables that were put there, below one another; of no places a table without columns."""
        return pl.concat([self.get(place) for place in places]) if places else pl.DataFrame()

    def clear(self) -> None:
        """Begins anew: what was put away is gone."""
        self._file.truncate(0)
        self._end = 0

    def close(self) -> None:
        """Gives the room back."""
        self._file.close()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
