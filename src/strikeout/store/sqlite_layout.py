"""Which bytes of a SQLite file belong to a row, and which to none.

A byte belongs to a row if it can be reached from the table of tables: it is in a cell of a B-tree page, in a page that
a long row continues in, or in the headers and pointers that lead there. What is left are gaps: the space between the
pointers and the cells of a page, freed blocks, the end of the last page of a long row, and pages that no table uses.
Gaps can hold what was deleted. The format is documented at https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from strikeout.kernels.arrays import Integers

MAGIC = b"SQLite format 3\0"
HEADER = 100  # bytes before the header of the first page; https://www.sqlite.org/fileformat.html, section 1.3
INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE = 2, 5, 10, 13
KINDS = (INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE)
INTEGER_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)  # bytes of a value by its serial type

Read = Callable[[int, int], bytes]  # offset and size to bytes
Gaps = Integers  # one row per gap: where it begins and ends


class LayoutError(ValueError):
    """The bytes are not those of a SQLite file that is whole."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The gaps of a SQLite file, ascending, as pairs of offsets; and the size of its pages."""

    gaps: Gaps
    page: int

    def within(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Return the parts of a range of bytes that are in gaps."""
        first = int(np.searchsorted(self.gaps[:, 1], begin, side="right"))
        for low, high in self.gaps[first:].tolist():
            if low >= end:
                return
            yield max(low, begin), min(high, end)


def layout_of(read: Read, length: int) -> Layout:
    """Return the gaps of the file of this length."""
    return _Walk(read, length).layout()


class _Walk:
    """One walk over all pages that can be reached."""

    def __init__(self, read: Read, length: int) -> None:
        head = read(0, HEADER)
        if head[: len(MAGIC)] != MAGIC or len(head) < HEADER:
            raise LayoutError("not a SQLite file")
        size = int.from_bytes(head[16:18], "big")
        self._read, self._size = read, 65536 if size == 1 else size
        if self._size < 512 or length % self._size:
            raise LayoutError("not a whole number of pages")
        self._usable = self._size - head[20]
        self._count = length // self._size
        self._seen = np.zeros(self._count + 1, bool)
        self._gaps: list[tuple[int, int]] = []

    def layout(self) -> Layout:
        roots = [1]
        for page in self._tree(1):
            roots += self._roots(page) if page[HEADER if page is self._first else 0] == LEAF_TABLE else []
        for root in roots[1:]:
            for _ in self._tree(root):
                pass
        whole = np.flatnonzero(~self._seen[1:])
        self._gaps += [(page * self._size, (page + 1) * self._size) for page in whole.tolist()]
        return Layout(
            np.array(sorted(gap for gap in self._gaps if gap[0] < gap[1]), np.int64).reshape(-1, 2), self._size
        )

    def _page(self, number: int) -> bytes:
        if not 0 < number <= self._count or self._seen[number]:
            raise LayoutError(f"page {number} is used twice or is outside the file")
        self._seen[number] = True
        return self._read((number - 1) * self._size, self._size)

    def _tree(self, root: int) -> Iterator[bytes]:
        """Walk a B-tree, note the gaps of its pages and return their bytes."""
        pending = [root]
        while pending:
            number = pending.pop()
            page, base = self._page(number), (number - 1) * self._size
            if number == 1:
                self._first = page
            at = HEADER if number == 1 else 0
            kind, cells = page[at], _u16(page, at + 3)
            if kind not in KINDS:
                raise LayoutError(f"page {number} is not part of a tree")
            is_interior = kind in (INTERIOR_INDEX, INTERIOR_TABLE)
            pointers = at + (12 if is_interior else 8)
            begin = _u16(page, at + 5) or 65536
            self._gaps.append((base + pointers + 2 * cells, base + min(begin, self._usable)))
            self._gaps.append((base + self._usable, base + self._size))
            self._gaps += [(base + low, base + high) for low, high in _freed(page, _u16(page, at + 1))]
            places = np.frombuffer(page, ">u2", cells, pointers).astype(np.int64)
            if len(places) and int(places.max()) >= self._usable:
                raise LayoutError(f"a cell of page {number} is outside it")
            if is_interior:
                pending += [_u32(page, place) for place in places.tolist()]
                pending.append(_u32(page, at + 8))
            if kind != INTERIOR_TABLE:
                self._follow(page, places + (4 if is_interior else 0), kind)
            yield page

    def _follow(self, page: bytes, places: Integers, kind: int) -> None:
        """Follow the rows that continue in other pages."""
        # The size of a row shorter than 128 bytes is one byte: most rows of an index need no further look.
        sizes = np.frombuffer(page, np.uint8)[places]
        for place in places[sizes >= min(0x80, self._most(kind) + 1)].tolist():
            payload, after = _varint(page, place)
            if kind == LEAF_TABLE:
                _, after = _varint(page, after)
            local = self._local(payload, kind)
            if local < payload:
                self._chain(_u32(page, after + local), payload - local)

    def _most(self, kind: int) -> int:
        """Return the size of the longest row that does not continue in another page."""
        return self._usable - 35 if kind == LEAF_TABLE else (self._usable - 12) * 64 // 255 - 23

    def _local(self, payload: int, kind: int) -> int:
        """Return how many bytes of a row are in its own page."""
        usable, most = self._usable, self._most(kind)
        if payload <= most:
            return payload
        least = (usable - 12) * 32 // 255 - 23
        spill = least + (payload - least) % (usable - 4)
        return spill if spill <= most else least

    def _chain(self, number: int, remaining: int) -> None:
        while remaining:
            page, base = self._page(number), (number - 1) * self._size
            here = min(remaining, self._usable - 4)
            self._gaps.append((base + 4 + here, base + self._size))
            remaining -= here
            number = _u32(page, 0)

    def _roots(self, page: bytes) -> list[int]:
        """Return the first pages of the tables and indexes that a page of the table of tables names."""
        at = HEADER if page is self._first else 0
        places = np.frombuffer(page, ">u2", _u16(page, at + 3), at + 8).tolist()
        return [root for place in places if (root := self._root(page, place))]

    def _root(self, page: bytes, place: int) -> int:
        payload, after = _varint(page, place)
        _, begin = _varint(page, after)
        record = page[begin : begin + self._local(payload, LEAF_TABLE)]
        size, at = _varint(record, 0)
        types = []
        while at < size:
            kind, at = _varint(record, at)
            types.append(kind)
        before = sum(_width(kind) for kind in types[:3])  # type, name and table come before the number of the page
        if types[3] == 9:
            return 1
        return int.from_bytes(record[size + before : size + before + _width(types[3])], "big")


def _width(kind: int) -> int:
    return INTEGER_SIZES[kind] if kind < len(INTEGER_SIZES) else (kind - 12) // 2


def _freed(page: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Return the freed blocks of a page, without the four bytes that link them."""
    last = 0
    while at:
        if at <= last or at + 4 > len(page):
            raise LayoutError("freed blocks are out of order")
        size = _u16(page, at + 2)
        yield at + 4, at + size
        last, at = at, _u16(page, at)


def _u16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _varint(data: Any, at: int) -> tuple[int, int]:
    """Return a number of SQLite's variable length, and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9
