"""Looking for what was erased in the very bytes of the files: every number and name, in every form we write them.

What a retained quote has too proves nothing when it is found, and is not looked for. Nor is what may be anywhere by
chance: a number like 90 or 0.5, whose eight bytes are mostly zero, the text of a number of few digits, a short name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.quotes.features import Features
from strikeout.quotes.quotes import Quotes
from strikeout.store.holding import borrowed, bytes_at

DIGITS = 6  # of a number, from which on its text is no coincidence
BYTES = 5  # of a number's eight that are not zero, from which on they are no coincidence
LETTERS = 4  # of a name, from which on it is no coincidence
BLOCK = 1 << 22
MANY = 1000  # likely places from which on a sorted search beats looking each of them up


@dataclass(frozen=True)
class Hit:
    """Where something was found that should be gone: what it is of, in which form, in which file, at which byte."""

    what: str
    form: str
    path: Path
    offset: int


@dataclass(frozen=True)
class Needles:
    """Bytes to look for, each with what it is of and its form."""

    found: Mapping[bytes, tuple[str, str]]

    def __len__(self) -> int:
        return len(self.found)

    def __or__(self, other: Needles) -> Needles:
        return Needles({**other.found, **self.found})


def needles_of(erased: Quotes, *, retained: Quotes | None = None) -> Needles:
    """What must not be found once these quotes are erased: ids, prices, strikes, ... that no retained quote has.

    >>> from strikeout import paper
    >>> book = paper.quotes("small")
    >>> sorted({what for what, form in needles_of(book[:3], retained=book[3:]).found.values()})
    ['forward', 'id', 'observed']
    """
    found: dict[bytes, tuple[str, str]] = {}
    kept = _known(retained)
    for what, column in _numbers(erased).items():
        found |= _gone(what, column, kept)
    names: list[str] = [] if retained is None else retained.ids.tolist()
    known, together = set(names), "\n".join(names)
    for name in erased.ids.tolist():
        # The byte or two after a retained name may, by chance, be the letters by which an erased one is longer.
        longer = any(name[:-more] in known for more in (1, 2, 3))
        if len(name) >= LETTERS and not longer and name not in together:
            found[name.encode("utf-8", "surrogatepass")] = ("id", "text")
            found[name.encode("utf-32-le", "surrogatepass")] = ("id", "text, four bytes a character")
    return Needles(found)


def needles_of_numbers(what: str, values: ArrayLike, *, retained: Quotes | None = None) -> Needles:
    """What must not be found of these numbers, apart from those that a retained quote has too."""
    return Needles(_gone(what, np.asarray(values, float), _known(retained)))


def needles_of_texts(what: str, texts: Iterable[str]) -> Needles:
    """What must not be found of these texts; short ones may be anywhere, and are left out."""
    return Needles({text.encode(): (what, "text") for text in texts if len(text) >= DIGITS})


def needles_of_integers(what: str, rows: NDArray[np.int64], *, retained: NDArray[np.int64] | None = None) -> Needles:
    """What must not be found of footprints or other whole numbers; small ones (below 2^32) may be anywhere, and are
    left out."""
    values = np.unique(rows)
    values = values[np.abs(values.astype(float)) >= 2.0**32]
    if retained is not None:
        values = values[~np.isin(values, retained)]
    found: dict[bytes, tuple[str, str]] = {}
    for value in values.tolist():
        found[value.to_bytes(8, "little", signed=True)] = (what, "int64, little-endian")
        found[value.to_bytes(8, "big", signed=True)] = (what, "int64, big-endian")
        found[str(value).encode()] = (what, "text")
    return Needles(found)


def scan(paths: Iterable[Path], needles: Needles) -> list[Hit]:
    """Where any of the needles is in these files, at whatever byte it begins. A file that is gone holds nothing.

    Raises:
        OSError: a file is there and cannot be read.
    """
    longest = max((len(needle) for needle in needles.found), default=1)
    table = _Table([needle for needle in needles.found if len(needle) >= 8])
    short = [needle for needle in needles.found if len(needle) < 8]
    hits: set[Hit] = set()
    for path in paths:
        for offset, data in _pieces(path, longest):
            places = [*table.places(data), *((place, needle) for needle in short for place in _places(data, needle))]
            hits |= {Hit(*needles.found[needle], path, offset + place) for place, needle in places}
    return sorted(hits, key=lambda hit: (str(hit.path), hit.offset, hit.what, hit.form))


def _numbers(quotes: Quotes) -> dict[str, NDArray[np.float64]]:
    c = quotes.contracts
    described: dict[str, Any] = (
        dict(c.columns)
        if isinstance(c, Features)
        else {name: getattr(c, name) for name in ("strike", "expiry", "forward", "discount")}
    )
    labels = {f"label {name}": column for name, column in quotes.labels.items() if column.dtype.kind == "f"}
    return {"observed": quotes.observed, "weight": quotes.weight, "spread": quotes.spread, **described, **labels}


def _known(retained: Quotes | None) -> NDArray[np.float64]:
    """Every number of the retained quotes, without its sign."""
    theirs = _numbers(retained) if retained is not None else {}
    return np.unique(np.concatenate([np.abs(held) for held in theirs.values()])) if theirs else np.empty(0)


def _gone(what: str, column: NDArray[np.float64], kept: NDArray[np.float64]) -> dict[bytes, tuple[str, str]]:
    own = np.unique(column[np.isfinite(column) & (column != 0)])
    gone = own[~np.isin(np.abs(own), kept)].tolist()
    return {data: (what, form) for value in gone for form, data in _forms(value)}


def _forms(value: float) -> Iterator[tuple[str, bytes]]:
    eight = np.float64(value).astype("<f8").tobytes()
    if len(eight) - eight.count(0) >= BYTES:
        yield "float64, little-endian", eight
        yield "float64, big-endian", eight[::-1]
    text = repr(abs(value))
    if len(text.partition("e")[0].strip("0.").replace(".", "")) >= DIGITS:
        yield "text", text.encode()
        yield "hexadecimal text", abs(value).hex().encode()


def _places(data: bytes, needle: bytes) -> Iterator[int]:
    place = data.find(needle)
    while place >= 0:
        yield place
        place = data.find(needle, place + 1)


class _Table:
    """Many needles looked for at once by their last eight bytes: by 16 bits of a hash, then by all 64, then whole."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._by_end: dict[bytes, list[bytes]] = {}
        for needle in needles:
            self._by_end.setdefault(needle[-8:], []).append(needle)
        self._words = np.frombuffer(b"".join(self._by_end), "<u8")
        self._likely = np.zeros(1 << 16, bool)
        self._likely[_hashed(self._words)] = True

    def places(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        for shift in range(8 if len(self._words) else 0):
            words = np.frombuffer(data, "<u8", count=max(len(data) - shift, 0) // 8, offset=min(shift, len(data)))
            likely = np.flatnonzero(self._likely[_hashed(words)])
            if len(likely) > MANY:
                likely = likely[np.isin(words[likely], self._words)]
            for row in likely.tolist():
                end = shift + 8 * row + 8
                for needle in self._by_end.get(data[end - 8 : end], ()):
                    if end >= len(needle) and data.startswith(needle, end - len(needle)):
                        yield end - len(needle), needle


def _hashed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(48)


def _pieces(path: Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """The bytes of a file in overlapping blocks; of SQLite's files the seams of the pages too.

    A long row goes on in another page after four bytes that say which is next (and in the log after the head of a
    frame), so a number may stand across the two: the end of every page is looked at joined to the body of the next.
    """
    try:
        with borrowed(path) as file:
            begin, page, between = _layout(bytes_at(file, 0, 32))
            offset, tail = 0, b""
            while block := bytes_at(file, offset, BLOCK):
                yield offset - len(tail), tail + block
                offset, tail = offset + len(block), (tail + block)[-(longest - 1) :] if longest > 1 else b""
            if page:
                reach = min(longest - 1, page - 4)
                for seam in range(begin + page, offset - between, page + between):
                    joined = bytes_at(file, seam - reach, reach + between + 4 + reach)
                    yield seam - reach, joined[:reach] + joined[reach + between + 4 :]
    except FileNotFoundError:
        return


def _layout(head: bytes) -> tuple[int, int, int]:
    """Of a SQLite file or log: where the first page begins, how long a page is, and what is between two."""
    if head.startswith(b"SQLite format 3\0"):
        size = int.from_bytes(head[16:18], "big")
        return 0, 65536 if size == 1 else size, 0
    if int.from_bytes(head[:4], "big") in (0x377F0682, 0x377F0683):
        return 32 + 24, int.from_bytes(head[8:12], "big"), 24
    return 0, 0, 0
