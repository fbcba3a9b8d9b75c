"""Temporary storage for chunks: in memory, or on disk if they do not fit there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from os import PathLike
from tempfile import TemporaryFile

import numpy as np
import polars as pl

from strikeout.errors import UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.dividends import DIVIDENDS
from strikeout.quotes.forwards import FORWARD_FROM, NEEDED
from strikeout.quotes.parity import KEYS
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.row_values import label_array

Place = pl.DataFrame | tuple[int, int]  # of a stored chunk: itself, or where it begins and ends in the file


class Spill:
    """Chunks on disk, in a file without a name that only this process can open: not even a kill leaves it behind.

    Args:
        folder: a folder on the disk to use; the folder for temporary files by default.
        on_disk: False keeps the chunks in memory, as they are.

    >>> spill = Spill()
    >>> place = spill.put(pl.DataFrame({"strike": [90.0, 110.0]}))
    >>> spill.get(place).height
    2
    >>> spill.close()
    """

    def __init__(self, folder: str | PathLike[str] | None = None, *, on_disk: bool = True) -> None:
        self._file = TemporaryFile(dir=folder) if on_disk else None  # noqa: SIM115 - closed by `close`
        self._end = 0
        self._folder = folder

    def put(self, table: pl.DataFrame) -> Place:
        """Store a chunk and return its place; raise UsageError if the disk is full."""
        if self._file is None:
            return table
        page = BytesIO()
        table.write_ipc(page, compression="lz4")
        begin = self._end
        try:
            self._file.seek(begin)
            self._file.write(page.getbuffer())
            self._file.flush()
        except OSError as error:
            where, remedy = "the folder for temporary files", "Free space there, or name another folder in TMPDIR."
            if self._folder is not None:
                where, remedy = f"the disk of {self._folder}", "Free space there."
            raise UsageError(
                f"A large file is read in chunks, and {where} has no space for them ({error.strerror}, after "
                f"{begin >> 20:,} MB). {remedy}"
            ) from error
        self._end += page.getbuffer().nbytes
        return begin, self._end

    def get(self, place: Place) -> pl.DataFrame:
        """Return the chunk stored there."""
        if isinstance(place, pl.DataFrame):
            return place
        assert self._file is not None, "a place in a file, and no file"
        begin, end = place
        self._file.seek(begin)
        return pl.read_ipc(BytesIO(self._file.read(end - begin)))

    def all(self, places: Sequence[Place]) -> pl.DataFrame:
        """Return these chunks below one another; a table without columns if there are none."""
        # A column that one lacks, since none of its rows is American, is empty there.
        return pl.concat(map(self.get, places), how="diagonal", rechunk=True) if places else pl.DataFrame()

    def clear(self) -> None:
        """Remove every chunk."""
        if self._file is not None:
            self._file.truncate(0)
        self._end = 0

    def close(self) -> None:
        """Free the disk space."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


PARTS = 32  # of ten million quotes each is a few hundred thousand
NUMBERS = ("forward", "strike", "expiry", "discount", "is_call")
TEXTS = (*KEYS, "exercise", "discount_from", FORWARD_FROM, DIVIDENDS)


class SliceSpill:
    """Quotes whose forwards are derived, on disk; only what such a forward depends on is kept of each."""

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self._scratch = Spill(folder)
        self._places: list[list[Place]] = [[] for _ in range(PARTS)]
        self._known = pl.Series([], dtype=pl.UInt64)

    def add(self, quotes: Quotes, *, only_known: bool = False) -> None:
        """Store quotes; with ``only_known`` those of slices that are here already."""
        table = _table(quotes)
        key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, table.height)
        for name in (*KEYS, "expiry"):
            key = (key + table[name].cast(pl.String).hash()).hash()
        if only_known:
            here = key.is_in(self._known.implode())
            table, key = table.filter(here), key.filter(here)
        else:
            self._known = pl.concat([self._known, key]).unique()
        part = (key % PARTS).to_numpy()
        for number in np.unique(part).tolist():
            self._places[number].append(self._scratch.put(table.filter(pl.Series(part == number))))

    def parts(self) -> Iterator[Quotes]:
        """Yield all quotes, some slices at a time, whole ones."""
        for places in self._places:
            if places:
                yield _quotes(self._scratch.all(places))

    def close(self) -> None:
        """Free the disk space."""
        self._scratch.close()


def _table(quotes: Quotes) -> pl.DataFrame:
    columns = {"id": pl.Series(quotes.ids.tolist(), dtype=pl.String)}
    columns |= {name: pl.Series(getattr(quotes.contracts, name)) for name in NUMBERS}
    columns |= {name: pl.Series(getattr(quotes, name)) for name in ("observed", "weight", "spread")}
    for name in dict.fromkeys((*NEEDED, *TEXTS)):
        held = quotes.labels.get(name)
        if name in TEXTS:
            texts = [""] * len(quotes) if held is None else held.astype(str).tolist()
            columns[name] = pl.Series(texts, dtype=pl.String)
        elif held is not None and held.dtype.kind in "fiu":
            columns[name] = pl.Series(held.astype(float))
        else:
            columns[name] = pl.Series(np.full(len(quotes), np.nan))
    return pl.DataFrame(columns)


def _quotes(table: pl.DataFrame) -> Quotes:
    contracts = Contracts(**{name: table[name].to_numpy() for name in NUMBERS})
    own = {name: table[name].to_numpy().copy() for name in ("observed", "weight", "spread")}
    labels = {name: label_array(table[name]) for name in dict.fromkeys((*NEEDED, *TEXTS))}
    return Quotes._trusted(ids=table["id"].to_numpy().astype(str), contracts=contracts, labels=labels, **own)


PAGE = 20_000  # names that are fetched together
RUN = 400_000  # names that are held at once, more or less


class ExternalSort:
    """Names and the chunk each is in, from the lowest to the highest."""

    def __init__(self, scratch: Spill) -> None:
        self._scratch = scratch
        self._pages: list[tuple[bytes, bytes, Place]] = []  # the first and the last name of each

    def add(self, names: Sequence[bytes], chunks: Sequence[int]) -> None:
        """Add names, in any order."""
        table = pl.DataFrame({"name": names, "chunk": chunks}, schema={"name": pl.Binary, "chunk": pl.Int64})
        table = table.sort("name")
        for begin in range(0, table.height, PAGE):
            page = table[begin : begin + PAGE]
            self._pages.append((page["name"][0], page["name"][-1], self._scratch.put(page)))

    def runs(self) -> Iterator[tuple[list[bytes], list[int]]]:
        """Yield all names with their chunks: each run in order, and every run above the one before."""
        firsts = sorted(first for first, _, _ in self._pages)
        edges: list[bytes | None] = [*firsts[:: max(1, RUN // PAGE)], None]
        for low, high in pairwise(edges):
            places = [
                place
                for first, last, place in self._pages
                if (high is None or first < high) and (not low or last >= low)
            ]
            table = self._scratch.all(places)
            table = table.filter(pl.col("name") >= pl.lit(low, pl.Binary))
            if high is not None:
                table = table.filter(pl.col("name") < pl.lit(high, pl.Binary))
            table = table.sort("name")
            yield table["name"].to_list(), table["chunk"].to_list()
