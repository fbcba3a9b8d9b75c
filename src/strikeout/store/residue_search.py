"""Search a whole book for the bytes of erased quotes, and separate what they left from what occurs by chance.

Every byte of a book's file either belongs to a row or to none (see ``sqlite_layout``).

- Bytes of rows are read as the store reads them, decrypted, and searched for numbers in the places and forms in which
  this kind of row holds them: whole words in footprints and states, whole numbers and names in pages of text and in
  the ledger. Rows of quotes hold retained quotes and nothing else, so it is enough that no erased id is among them. A
  number that appears if one reads from the middle of one number into the next is not a trace: a book that never held
  the erased quotes has it too.
- Bytes that belong to no row are searched for every needle in every form, at any byte. They must be zero, or copies of
  rows that are still in the book; others are counted, even if they match no needle.

The search reads one snapshot whose log is empty, so all of the book is in its file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.byte_search import ByteSearch
from strikeout.store.bookfile import damaged
from strikeout.store.holding import borrowed, bytes_at
from strikeout.store.residue import BINARY, LETTERS, Hit, Needles, NeedleSearch, Progress, scan, value_of
from strikeout.store.sqlite_layout import MAGIC, Layout, LayoutError, layout_of
from strikeout.store.store import PAGE_KINDS, SHARD_DATA, Reading, Store

WORD = 8
STATES = "state"  # pages of this kind end with words; all others are text
DIGESTS = "erased"  # pages of this kind are keyed digests: letters and digits in them occur by chance
BATCH = 1 << 20  # words looked up at once


@dataclass(frozen=True)
class Trace:
    """Something of an erased quote that is still there: what, in which form, its value, and the place."""

    what: str
    form: str
    value: str
    place: str

    def __str__(self) -> str:
        return f"{self.what} {self.value} ({self.form}) in {self.place}"


@dataclass(frozen=True)
class Search:
    """What a search found, in how many bytes and for how many needles.

    ``coincidences`` are matches that belong to retained rows. ``unaccounted`` counts bytes that belong to no row and
    are neither zero nor a copy of a row.
    """

    traces: tuple[Trace, ...]
    searched: int
    needles: int
    coincidences: int
    unaccounted: int
    entry: int | None = None  # of the ledger, with which the result was recorded

    @property
    def is_clean(self) -> bool:
        """Whether no trace was found and every byte of the book is accounted for."""
        return not self.traces and not self.unaccounted

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "entry": self.entry,
            "is_clean": self.is_clean,
            "traces": [vars(trace) for trace in self.traces],
            "unaccounted": self.unaccounted,
            "coincidences": self.coincidences,
            "searched": self.searched,
            "needles": self.needles,
        }

    def to_counts(self) -> dict[str, int]:
        """Return the numbers that the ledger records. The number of needles is not among them: it depends on the erased
        quotes."""
        return {"traces": len(self.traces), "unaccounted": self.unaccounted}


def search_book(
    store: Store,
    needles: Needles,
    *,
    erased: Collection[str] = (),
    files: Iterable[Path] = (),
    progress: Progress | None = None,
) -> Search:
    """Search a book, and files outside it, for needles.

    Args:
        erased: ids that no quote of the book may have.
        files: outside the book, that may hold copies.

    Raises:
        BusyError: another process reads or writes the book, so its log cannot be emptied. Nothing was changed.
        DamagedBookError: the file is damaged.
        OSError: a file cannot be read.
    """
    outside = list(files)
    with store.settled() as book:
        traces = list(_in_rows(book, needles.search(), frozenset(erased)))
        inside = list(store.files())
        layouts = {path: _layout(path) for path in inside}
        unaccounted = sum(_unaccounted(path, layout) for path, layout in layouts.items() if layout is not None)
        hits = scan([*inside, *outside], needles, progress=progress)
        searched = sum(path.stat().st_size for path in [*inside, *outside] if path.exists())
        coincidences = 0
        for hit in hits:
            layout = layouts.get(hit.path)
            if layout is not None and not _is_in_gap(layout, hit):
                coincidences += 1  # as part of a row it was looked at above
                continue
            place = f"{hit.path.name}, byte {hit.offset:,}"
            unused = ", which belongs to no row" if layout is not None else ""
            traces.append(Trace(hit.what, hit.form, hit.value, place + unused))
    return Search(tuple(traces), searched, len(needles), coincidences, unaccounted)


def _in_rows(book: Reading, search: NeedleSearch, erased: frozenset[str]) -> Iterator[Trace]:
    """Return what is found in rows, read as the store reads them."""
    for shard in book.shards():
        for name in erased.intersection(book.members(shard)) if erased else ():
            yield Trace("id", "quote", name, f"shard {shard} of the quotes")
    words = _Words(search)
    for what in SHARD_DATA:
        for shard in book.shards_with(what):
            yield from words.add(book.shard_data(shard, what) or b"", f"the {what} of shard {shard}")
    for kind in (kind for kind in PAGE_KINDS if kind != DIGESTS):
        for name in book.pages(kind):
            data, place = book.page(kind, name) or b"", f"the page {kind} {name}"
            yield from _in_text(search, data.partition(b"\n")[0] if kind == STATES else data, place)
            if kind == STATES:
                yield from words.add(data, place)
    yield from words.flush()
    for number, entry in enumerate(book.entries(), 1):
        yield from _in_text(search, entry, f"entry {number} of the ledger")


def _in_text(search: NeedleSearch, data: bytes, place: str) -> Iterator[Trace]:
    for at, needle, what, form in search.matches(data):
        is_part = what == "id" and (
            data[max(at - 1, 0) : at].isalnum() or data[at + len(needle) : at + len(needle) + 1].isalnum()
        )
        if not is_part:
            yield Trace(what, form, value_of(needle, form), f"{place}, byte {at:,}")


class _Words:
    """Words of footprints and states, compared with needles of eight bytes many at a time.

    What is kept of a shard and a page of states end with their words, so words are counted from the end.
    """

    def __init__(self, search: NeedleSearch) -> None:
        numbers = {needle: (what, form) for needle, what, form in search.kinds() if form in BINARY}
        self._kinds = numbers
        self._wanted = np.unique(np.frombuffer(b"".join(numbers), "<u8"))
        self._rows: list[tuple[str, NDArray[np.uint64]]] = []
        self._count = 0

    def add(self, data: bytes, place: str) -> Iterator[Trace]:
        words = np.frombuffer(data, "<u8", len(data) // WORD, len(data) % WORD)
        self._rows.append((place, words))
        self._count += len(words)
        if self._count >= BATCH:
            yield from self.flush()

    def flush(self) -> Iterator[Trace]:
        rows, self._rows, self._count = self._rows, [], 0
        if not rows or not len(self._wanted):
            return
        together = np.concatenate([words for _, words in rows])
        near = np.minimum(np.searchsorted(self._wanted, together), len(self._wanted) - 1)
        ends = np.cumsum([len(words) for _, words in rows])
        for at in np.flatnonzero(self._wanted[near] == together).tolist():
            row = int(np.searchsorted(ends, at, side="right"))
            place, words = rows[row]
            needle = together[at].tobytes()
            what, form = self._kinds[needle]
            number = at - int(ends[row]) + len(words)
            yield Trace(what, form, value_of(needle, form), f"{place}, word {number:,}")


def _layout(path: Path) -> Layout | None:
    """Return the layout of a SQLite file; None for others, such as its log.

    Raises:
        DamagedBookError: it is damaged.
    """
    try:
        with borrowed(path) as file:
            if bytes_at(file, 0, len(MAGIC)) != MAGIC:
                return None
            return layout_of(lambda offset, size: bytes_at(file, offset, size), path.stat().st_size)
    except FileNotFoundError:
        return None
    except (LayoutError, IndexError) as error:
        raise damaged(path, str(error)) from error


def _is_in_gap(layout: Layout, hit: Hit) -> bool:
    """Return whether a match is in bytes that belong to no row, and these are not zero."""
    with borrowed(hit.path) as file:
        parts = layout.within(hit.offset, hit.offset + hit.size)
        return any(any(bytes_at(file, begin, end - begin)) for begin, end in parts)


def _unaccounted(path: Path, layout: Layout) -> int:
    """Return how many bytes belong to no row and are neither zero nor a copy of a row.

    If a page was split, SQLite leaves copies of the rows that moved. A byte is part of a copy if it is in eight bytes
    that a row has too. Old pointers to cells, and fewer than eight bytes together, are not counted.
    """
    with borrowed(path) as file:
        parts = []
        for begin, end in layout.gaps.tolist():
            data = _after_pointers(bytes_at(file, begin, end - begin), layout.page)
            parts += [data] if any(data) else []
        windows = list(dict.fromkeys(data[at : at + WORD] for data in parts for at in range(len(data) - WORD + 1)))
        windows = [window for window in windows if WORD - window.count(0) >= LETTERS]  # mostly zeros prove nothing
        copied = _in_live(file, path.stat().st_size, layout, windows)
    return sum(_unexplained(data, copied) for data in parts)


def _after_pointers(data: bytes, page: int) -> bytes:
    """Return a gap without the pointers to cells at its beginning: if rows move to another page, SQLite shortens the
    list of pointers and leaves the old ones, two bytes each and smaller than a page."""
    places = np.frombuffer(data, ">u2", len(data) // 2)
    is_other = (places == 0) | (places >= page)
    return data[2 * int(np.argmax(is_other)) :] if is_other.any() else data[2 * len(places) :]


def _in_live(file: int, length: int, layout: Layout, windows: list[bytes]) -> set[bytes]:
    """Return those of these windows that occur in bytes of rows."""
    found: set[bytes] = set()
    if not windows:
        return found
    search, size = ByteSearch(windows), 1 << 22
    for begin in range(0, length, size):
        block = bytearray(bytes_at(file, begin, size + WORD - 1))
        for low, high in layout.within(begin, begin + len(block)):
            block[low - begin : high - begin] = bytes(high - low)
        found.update(windows[number] for number in np.unique(search.find(bytes(block))[1]).tolist())
    return found


def _unexplained(data: bytes, copied: set[bytes]) -> int:
    """Return how many bytes that are not zero are in no copy, in runs of at least eight."""
    is_open = np.frombuffer(data, np.uint8) != 0
    for at in range(len(data) - WORD + 1):
        if data[at : at + WORD] in copied:
            is_open[at : at + WORD] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_open.astype(np.int8), [0]])))
    runs = edges[1::2] - edges[::2]
    return int(runs[runs >= WORD].sum())
