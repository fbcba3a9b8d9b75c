"""Names in order, however many: sorted some at a time, put away on disk, and brought together in runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from strikeout.quotes.scratch import Place, Scratch

PAGE = 20_000  # names that are fetched together
RUN = 400_000  # names that are held at once, more or less


@dataclass(frozen=True)
class _Page:
    """Sorted names on disk, and the first and the last of them."""

    first: bytes
    last: bytes
    place: Place


class NameRuns:
    """Names and the chunk each is in, from the lowest to the highest."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._pages: list[_Page] = []

    def add(self, names: Sequence[bytes], chunks: Sequence[int]) -> None:
        """Puts some names away, in any order."""
        table = pl.DataFrame({"name": names, "chunk": chunks}, schema={"name": pl.Binary, "chunk": pl.Int64})
        table = table.sort("name")
        for begin in range(0, table.height, PAGE):
            page = table[begin : begin + PAGE]
            self._pages.append(_Page(page["name"][0], page["name"][-1], self._scratch.put(page)))

    def runs(self) -> Iterator[tuple[list[bytes], list[int]]]:
        """All names with their chunks: each run in order, and every run above the one before."""
        firsts = sorted(page.first for page in self._pages)
        edges: list[bytes | None] = [*firsts[:: max(1, RUN // PAGE)], None]
        for low, high in pairwise(edges):
            places = [p.place for p in self._pages if (high is None or p.first < high) and (not low or p.last >= low)]
            table = self._scratch.all(places)
            table = table.filter(pl.col("name") >= pl.lit(low, pl.Binary))
            if high is not None:
                table = table.filter(pl.col("name") < pl.lit(high, pl.Binary))
            table = table.sort("name")
            yield table["name"].to_list(), table["chunk"].to_list()
