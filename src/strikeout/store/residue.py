"""Search files for the bytes of erased quotes: every number and name, in every form this package writes them.

Numbers are written as eight bytes, little-endian, or as text, decimal or hexadecimal; names as text. A number or name
that a retained quote has too proves nothing if it is found, and is not searched for. Nor is one that is likely to occur
by chance: a number such as 90 or 0.5, whose eight bytes are mostly zero, the text of a number of few digits, a short
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.kernels.byte_search import ByteSearch
from strikeout.quotes.features import Features
from strikeout.quotes.quotes import Quotes
from strikeout.store.holding import borrowed, bytes_at

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

    def search(self) -> NeedleSearch:
        """Return a search for all of them at once."""
        return NeedleSearch(self)


class NeedleSearch:
    """A search for needles in blocks of bytes."""

    def __init__(self, needles: Needles) -> None:
        self.needles = list(needles.found)
        self._kinds = list(needles.found.values())
        self._search = ByteSearch(self.needles)
        self.longest = max(map(len, self.needles), default=1)

    def kinds(self) -> Iterator[tuple[bytes, str, str]]:
        """Return every needle with what it is of and its form."""
        return ((needle, what, form) for needle, (what, form) in zip(self.needles, self._kinds, strict=True))

    def matches(self, block: bytes) -> Iterator[tuple[int, bytes, str, str]]:
        """Return place, needle, what it is of and its form for every match; text of numbers only as a whole number."""
        places, numbers = self._search.find(block)
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            needle, (what, form) = self.needles[number], self._kinds[number]
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
    kept = _numbers_of(retained)
    for what, column in _numbers(erased).items():
        found |= _needles(what, column, kept)
    names = [name for name in map(_encode, erased.ids.tolist()) if len(name) >= LETTERS]
    for number in _found_in(names, retained):
        names[number] = b""
    return Needles(found | {name: ("id", TEXT) for name in names if name})


def _found_in(names: list[bytes], retained: Quotes | None) -> set[int]:
    """Return the numbers of the names that are part of the name of a retained quote."""
    if retained is None:
        return set()
    return set(ByteSearch(names).find(b"\n".join(map(_encode, retained.ids.tolist())))[1].tolist())


def _encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def needles_of_numbers(what: str, values: ArrayLike, *, retained: Quotes | None = None) -> Needles:
    """Return what must not be found of these numbers, except those that a retained quote has too."""
    return Needles(_needles(what, np.asarray(values, float), _numbers_of(retained)))


def needles_of_texts(what: str, texts: Iterable[str]) -> Needles:
    """Return what must not be found of these texts, except short ones."""
    return Needles({text.encode(): (what, TEXT) for text in texts if len(text) >= DIGITS})


def needles_of_integers(what: str, rows: NDArray[np.int64], *, retained: NDArray[np.int64] | None = None) -> Needles:
    """Return what must not be found of footprints or other integers, except small ones (below 2^32)."""
    values = np.unique(rows)
    values = values[np.abs(values.astype(float)) >= 2.0**32]
    if retained is not None:
        values = values[~np.isin(values, retained)]
    return Needles(dict.fromkeys(_words(values.astype("<i8")), (what, INTEGER)))


def scan(paths: Iterable[Path], needles: Needles, *, progress: Progress | None = None) -> list[Hit]:
    """Return where any of the needles occurs in these files, at any byte. A file that does not exist holds none.

    Raises:
        OSError: a file is there and cannot be read.
    """
    search, done = needles.search(), 0
    hits: set[Hit] = set()
    paths = list(paths)
    total = sum(path.stat().st_size for path in paths if path.exists())
    for path in paths:
        for offset, data, is_last in _blocks(path, search.longest):
            for place, needle, what, form in search.matches(data):
                # At the edge of a block the bytes beside a text are not known: the overlap has them.
                is_inside = (place or not offset) and (is_last or place + len(needle) < len(data))
                if is_inside:
                    hits.add(Hit(what, form, value_of(needle, form), path, offset + place, len(needle)))
            done += len(data)
            if progress is not None:
                progress(min(done, total), total)
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


def _numbers_of(retained: Quotes | None) -> NDArray[np.float64]:
    """Return every number of the retained quotes, without its sign."""
    theirs = _numbers(retained) if retained is not None else {}
    return np.unique(np.concatenate([np.abs(held) for held in theirs.values()])) if theirs else np.empty(0)


def _needles(what: str, column: NDArray[np.float64], kept: NDArray[np.float64]) -> dict[bytes, tuple[str, str]]:
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
