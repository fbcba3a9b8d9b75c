"""Search a book for residue of erased quotes: the traces to look for, and the search.

Search files for the bytes of erased quotes: every number and name, in every form this package writes them.

Numbers are written as eight bytes, little-endian, or as text, decimal or hexadecimal; names as text. A number or name
that a retained quote has too proves nothing if it is found, and is not searched for. Nor is one that is likely to occur
by chance: a number such as 90 or 0.5, whose eight bytes are mostly zero, the text of a number of few digits, a short
name.

Search a whole book for the bytes of erased quotes, and separate what they left from what occurs by chance.

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

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.kernels.arrays import Floats, Integers, Mask, Words
from strikeout.kernels.byte_search import ByteSearch
from strikeout.quotes.contracts import Features
from strikeout.quotes.quotes import Quotes
from strikeout.store.bookfile import damaged
from strikeout.store.holding import borrowed, bytes_at
from strikeout.store.sqlite_layout import MAGIC, Layout, LayoutError, layout_of
from strikeout.store.sqlite_reading import key
from strikeout.store.store import PAGE_KINDS, SHARD_DATA, Reading, Store

FLOAT, INTEGER, TEXT, DECIMAL, HEXADECIMAL = "float64", "int64", "text", "decimal text", "hexadecimal text"
BINARY = (FLOAT, INTEGER)
DIGITS = 6  # of a number, from which on its text is not likely to occur by chance
BYTES = 5  # of a number's eight that are not zero, from which on they are not likely to occur by chance
LETTERS = 4  # of a name, likewise
BLOCK = 1 << 22
NUMBER = frozenset(b"0123456789.abcdefxpABCDEFXP")  # bytes that continue the text of a number
Progress = Callable[[int, int], None]  # called with the bytes searched so far and their total


@dataclass(frozen=True)
class Hit:
    """Where a byte string was found: what it is of, its form and value, in which file and at which byte."""

    what: str
    form: str
    value: str
    path: Path
    offset: int
    size: int


@dataclass(frozen=True)
class Needles:
    """Byte strings to search for, each with what it is of and its form."""

    found: Mapping[bytes, tuple[str, str]]

    def __len__(self) -> int:
        return len(self.found)

    def __or__(self, other: Needles) -> Needles:
        return Needles({**other.found, **self.found})

    @cached_property
    def _search(self) -> ByteSearch:
        return ByteSearch(list(self.found))

    @cached_property
    def _kinds(self) -> list[tuple[bytes, tuple[str, str]]]:
        return list(self.found.items())

    @property
    def longest(self) -> int:
        """The length of the longest; 1 if there are none."""
        return max(map(len, self.found), default=1)

    def matches(self, block: bytes) -> Iterator[tuple[int, bytes, str, str]]:
        """Return place, needle, what it is of and its form for every match; text of numbers only as a whole number."""
        places, numbers = self._search.find(block)
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            needle, (what, form) = self._kinds[number]
            if form not in (DECIMAL, HEXADECIMAL) or _is_whole(block, place, len(needle)):
                yield place, needle, what, form


def _is_whole(block: bytes, place: int, length: int) -> bool:
    """Return whether the text of a number does not continue before or after."""
    end = place + length
    return not (place and block[place - 1] in NUMBER) and not (end < len(block) and block[end] in NUMBER)


def value_of(needle: bytes, form: str) -> str:
    """Return the number or text that a needle is the bytes of."""
    if form == FLOAT:
        return repr(float(np.frombuffer(needle, "<f8")[0]))
    if form == INTEGER:
        return str(int.from_bytes(needle, "little", signed=True))
    return needle.decode("utf-8", "surrogatepass")


def needles_of(erased: Quotes, *, retained: Quotes | None = None) -> Needles:
    """Return what must not be found once these quotes are erased: ids, prices, strikes, ... that no retained quote has.

    >>> from strikeout import paper
    >>> book = paper.quotes("small")
    >>> sorted({what for what, form in needles_of(book[:3], retained=book[3:]).found.values()})
    ['forward', 'id', 'observed']
    """
    found: dict[bytes, tuple[str, str]] = {}
    columns = _numbers(erased)
    kept = _kept_of(np.concatenate([*columns.values()]), retained)
    for what, column in columns.items():
        found |= _needles(what, column, kept)
    names = [name for name in map(key, erased.ids.tolist()) if len(name) >= LETTERS]
    if names and retained is not None:
        theirs = b"\n".join(map(key, retained.ids.tolist()))
        for number in set(ByteSearch(names).find(theirs)[1].tolist()):  # part of the name of a retained quote
            names[number] = b""
    return Needles(found | {name: ("id", TEXT) for name in names if name})


def needles_of_numbers(what: str, values: ArrayLike, *, retained: Quotes | None = None) -> Needles:
    """Return what must not be found of these numbers, except those that a retained quote has too."""
    column = np.asarray(values, float)
    return Needles(_needles(what, column, _kept_of(column, retained)))


def needles_of_texts(what: str, texts: Iterable[str]) -> Needles:
    """Return what must not be found of these texts, except short ones."""
    return Needles({text.encode(): (what, TEXT) for text in texts if len(text) >= DIGITS})


def needles_of_integers(what: str, rows: Integers, *, retained: Integers | None = None) -> Needles:
    """Return what must not be found of footprints or other integers, except small ones (below 2^32)."""
    values = np.unique(rows)
    values = values[np.abs(values.astype(float)) >= 2.0**32]
    if retained is not None:
        values = values[~_is_among(values, [retained])]
    return Needles(dict.fromkeys(_words(values.astype("<i8")), (what, INTEGER)))


def scan(paths: Iterable[Path], needles: Needles, *, progress: Progress | None = None) -> list[Hit]:
    """Return where any of the needles occurs in these files, at any byte. A file that does not exist holds none."""
    done, hits = 0, set[Hit]()
    paths = list(paths)
    total = sum(path.stat().st_size for path in paths if path.exists())
    for path in paths:
        for offset, data, is_last in _blocks(path, needles.longest):
            for place, needle, what, form in needles.matches(data):
                # At the edge of a block the bytes beside a text are not known: the overlap has them.
                is_inside = (place or not offset) and (is_last or place + len(needle) < len(data))
                if is_inside:
                    hits.add(Hit(what, form, value_of(needle, form), path, offset + place, len(needle)))
            done += len(data)
            if progress is not None:
                progress(min(done, total), total)
    return sorted(hits, key=lambda hit: (str(hit.path), hit.offset, hit.what, hit.form))


def _numbers(quotes: Quotes) -> dict[str, Floats]:
    c = quotes.contracts
    described: dict[str, Any] = (
        dict(c.columns)
        if isinstance(c, Features)
        else {name: getattr(c, name) for name in ("strike", "expiry", "forward", "discount")}
    )
    labels = {f"label {name}": column for name, column in quotes.labels.items() if column.dtype.kind == "f"}
    return {"observed": quotes.observed, "weight": quotes.weight, "spread": quotes.spread, **described, **labels}


def _kept_of(numbers: Floats, retained: Quotes | None) -> Floats:
    """Return those of these numbers, without their signs, that a retained quote has too."""
    wanted = np.unique(np.abs(numbers))
    columns = () if retained is None else _numbers(retained).values()
    return wanted[_is_among(wanted, (np.abs(column) for column in columns))]


def _is_among(wanted: NDArray[Any], columns: Iterable[NDArray[Any]]) -> Mask:
    """Return which of the few sorted numbers occur in any of the long columns, which are not sorted for it."""
    found = np.zeros(len(wanted), bool)
    if len(wanted):
        for column in columns:
            near = np.minimum(np.searchsorted(wanted, column), len(wanted) - 1)
            found[near[wanted[near] == column]] = True
    return found


def _needles(what: str, column: Floats, kept: Floats) -> dict[bytes, tuple[str, str]]:
    own = np.unique(column[np.isfinite(column) & (column != 0)])
    gone = own[~np.isin(np.abs(own), kept)].astype("<f8")
    is_dense = np.count_nonzero(gone.view(np.uint8).reshape(-1, 8), axis=1) >= BYTES
    found = dict.fromkeys(_words(gone[is_dense]), (what, FLOAT))
    for value in np.unique(np.abs(gone)).tolist():
        text = repr(value)
        if len(text.partition("e")[0].strip("0.").replace(".", "")) >= DIGITS:
            found[text.encode()] = (what, DECIMAL)
            found[value.hex().encode()] = (what, HEXADECIMAL)
    return found


def _words(values: NDArray[Any]) -> list[bytes]:
    blob = values.tobytes()
    return [blob[at : at + 8] for at in range(0, len(blob), 8)]


def _blocks(path: Path, longest: int) -> Iterator[tuple[int, bytes, bool]]:
    """Return offset, bytes and whether it is the last, for every block of a file.

    Blocks overlap by a needle and one byte on either side.
    """
    try:
        with borrowed(path) as file:
            offset, tail, block = 0, b"", bytes_at(file, 0, BLOCK)
            while block:
                following = bytes_at(file, offset + len(block), BLOCK)
                data = tail + block
                yield offset - len(tail), data, not following
                offset, tail, block = offset + len(block), data[-(longest + 1) :], following
    except FileNotFoundError:
        return


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
    """
    outside = list(files)
    with store.settled() as book:
        traces = list(_in_rows(book, needles, frozenset(erased)))
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


def _in_rows(book: Reading, needles: Needles, erased: frozenset[str]) -> Iterator[Trace]:
    """Return what is found in rows, read as the store reads them."""
    for shard in book.shards():
        for name in erased.intersection(book.members(shard)) if erased else ():
            yield Trace("id", "quote", name, f"shard {shard} of the quotes")
    words = _Words(needles)
    for what in SHARD_DATA:
        for shard in book.shards_with(what):
            yield from words.add(book.shard_data(shard, what) or b"", f"the {what} of shard {shard}")
    for kind in (kind for kind in PAGE_KINDS if kind != DIGESTS):
        for name in book.pages(kind):
            data, place = book.page(kind, name) or b"", f"the page {kind} {name}"
            yield from _in_text(needles, data.partition(b"\n")[0] if kind == STATES else data, place)
            if kind == STATES:
                yield from words.add(data, place)
    yield from words.flush()
    for number, entry in enumerate(book.entries(), 1):
        yield from _in_text(needles, entry, f"entry {number} of the ledger")


def _in_text(needles: Needles, data: bytes, place: str) -> Iterator[Trace]:
    for at, needle, what, form in needles.matches(data):
        is_part = what == "id" and (
            data[max(at - 1, 0) : at].isalnum() or data[at + len(needle) : at + len(needle) + 1].isalnum()
        )
        if not is_part:
            yield Trace(what, form, value_of(needle, form), f"{place}, byte {at:,}")


class _Words:
    """Words of footprints and states, compared with needles of eight bytes many at a time.

    What is kept of a shard and a page of states end with their words, so words are counted from the end.
    """

    def __init__(self, needles: Needles) -> None:
        self._kinds = {needle: kind for needle, kind in needles.found.items() if kind[1] in BINARY}
        self._wanted = np.unique(np.frombuffer(b"".join(self._kinds), "<u8"))
        self._rows: list[tuple[str, Words]] = []
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
    """Return the layout of a SQLite file; None for others, such as its log."""
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
