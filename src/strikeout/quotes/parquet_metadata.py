"""Check the metadata of a Parquet file before Polars reads it.

Polars allocates what the metadata ask for. A negative count of values, one flipped bit, becomes an allocation of 2^61
bytes, and a failed allocation ends the process: no exception can be caught. So counts, sizes and offsets of the footer
and of every page header are compared with each other and with the length of the file first. What a page contains is
left to Polars, which reports damage there as an error.

Metadata are structs in Thrift's compact protocol: numbers are zigzag varints, and each field has a number and a type.
Polars reads a known field by its number, whatever type it is written with. A field of another type than the format
defines is therefore refused: the two readings would differ from there on.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strikeout.errors import UnreadableFileError
from strikeout.quotes.limits import BYTES_A_CELL, LONGEST_ROW, MOST_PAGES, check_growth

MAGIC = b"PAR1"
TAIL = 8  # length of the footer in 4 bytes, and the magic
DEEPEST = 32  # structs within structs, and groups of columns within groups
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
BITS = {I16: 16, I32: 32, I64: 64}
LONGEST_VARINT = 10  # bytes


@dataclass(frozen=True)
class Shape:
    """The fields of a struct that are known: their types and the shapes of structs inside it, by number of the field.

    They are those of parquet.thrift in apache/parquet-format. A field that is not listed is skipped by its own type.
    """

    types: Mapping[int, int]
    within: Mapping[int, Shape] = field(default_factory=dict)


UNKNOWN = Shape({})
DATA_PAGE = Shape({1: I32, 2: I32, 3: I32, 4: I32, 5: STRUCT})
DATA_PAGE_V2 = Shape({1: I32, 2: I32, 3: I32, 4: I32, 5: I32, 6: I32, 7: TRUE, 8: STRUCT})
DICTIONARY_PAGE = Shape({1: I32, 2: I32, 3: TRUE})
PAGE_HEADER = Shape(
    {1: I32, 2: I32, 3: I32, 4: I32, 5: STRUCT, 6: STRUCT, 7: STRUCT, 8: STRUCT},
    {5: DATA_PAGE, 7: DICTIONARY_PAGE, 8: DATA_PAGE_V2},
)
COLUMN = Shape(
    {1: I32, 2: LIST, 3: LIST, 4: I32, 5: I64, 6: I64, 7: I64, 8: LIST, 9: I64, 10: I64, 11: I64, 12: STRUCT}
)
CHUNK = Shape({1: BINARY, 2: I64, 3: STRUCT, 4: I64, 5: I32, 6: I64, 7: I32}, {3: COLUMN})
GROUP = Shape({1: LIST, 2: I64, 3: I64, 4: LIST, 5: I64, 6: I64, 7: I16}, {1: CHUNK})
ELEMENT = Shape({1: I32, 2: I32, 3: I32, 4: BINARY, 5: I32, 6: I32, 7: I32, 8: I32, 9: I32, 10: STRUCT})
FILE = Shape({1: I32, 2: LIST, 3: I64, 4: LIST, 5: LIST, 6: BINARY, 7: LIST}, {2: ELEMENT, 4: GROUP})


class DamageError(ValueError):
    """Metadata that no file has; the message is the reason."""


def check_parquet(path: Path) -> None:
    """Raise UnreadableFileError if counts, sizes or offsets in the metadata cannot be those of this file."""
    size = path.stat().st_size
    try:
        if size < len(MAGIC) + TAIL:
            raise DamageError(f"{size} bytes")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            values, unpacked = _check_file(data, size)
    except (DamageError, OSError) as error:
        raise UnreadableFileError(
            f"{path.name}: not a readable Parquet file ({error}). Fetch it again.", source=path.name
        ) from error
    check_growth(path.name, max(values * BYTES_A_CELL, unpacked), size)


def _check_file(data: mmap.mmap, size: int) -> tuple[int, int]:
    """Return how many values the columns have, and the bytes that their pages unpack to."""
    if data[:4] != MAGIC or data[size - 4 :] != MAGIC:
        raise DamageError("it does not begin and end with PAR1")
    length = int.from_bytes(data[size - TAIL : size - 4], "little")
    end = size - TAIL - length
    if end < len(MAGIC):
        raise DamageError(f"a footer of {length:,} bytes")
    footer, _ = _struct(_Bytes(data, end, size - TAIL), FILE)
    leaves = _leaves(_listed(footer, 2))
    rows = _count(footer, 3, "rows")
    values = unpacked = pages = 0
    for number, group in enumerate(_listed(footer, 4)):
        chunks = _listed(group, 1)
        if len(chunks) != len(leaves):
            raise DamageError(f"{len(chunks):,} columns in row group {number}, and {len(leaves):,} in the schema")
        height = _count(group, 3, f"rows of row group {number}")
        rows -= height
        for leaf, chunk in zip(leaves, chunks, strict=True):
            where = f"column {leaf.name!r} of row group {number}"
            column = chunk.get(3)
            if column is None:
                raise DamageError(f"no metadata of {where}")
            count = _count(column, 5, f"values of {where}")
            if leaf.is_flat and count != height:
                raise DamageError(f"{count:,} values of {where}, which has {height:,} rows")
            values += count
            for page in _pages(data, end, column, where):
                unpacked += page
                pages += 1
                if pages > MOST_PAGES:
                    raise DamageError(f"more than {MOST_PAGES:,} pages")
    if rows:
        raise DamageError("its row groups have other numbers of rows than the footer")
    return values, unpacked


@dataclass(frozen=True)
class _Leaf:
    """A column of the schema that has values; flat if it has one value or null per row."""

    name: str
    is_flat: bool


def _leaves(elements: list[dict[int, Any]]) -> list[_Leaf]:
    """Return the columns of a schema, which lists groups before their members."""
    found: list[_Leaf] = []
    ends = [1]  # members that are still to come, of each group that is open; the root is alone
    flat = [True]
    for element in elements:
        while ends and not ends[-1]:
            ends.pop()
            flat.pop()
        if not ends:
            raise DamageError("columns beyond the schema")
        ends[-1] -= 1
        name = bytes(element.get(4, b"")).decode("utf-8", "replace")
        is_flat = flat[-1] and element.get(3, 0) != 2  # 2 is repeated
        children = _count(element, 5, f"columns in {name!r}") if 5 in element else 0
        if not 0 <= element.get(2, 0) <= LONGEST_ROW:
            raise DamageError(f"values of {element[2]:,} bytes in column {name!r}")
        if children:
            ends.append(children)
            flat.append(is_flat)
            if len(ends) > DEEPEST:
                raise DamageError("columns nested too deep")
        elif len(elements) > 1:
            found.append(_Leaf(name, is_flat))
    if any(ends):
        raise DamageError("columns missing from the schema")
    return found


def _pages(data: mmap.mmap, end: int, column: Mapping[int, Any], where: str) -> Iterator[int]:
    """Check the page headers of a column chunk; yield the bytes that each page unpacks to."""
    left = int(column[5])
    begin = _count(column, 9, f"offset of {where}")
    if column.get(11, 0):
        begin = min(begin, _count(column, 11, f"dictionary of {where}"))
    stop = begin + _count(column, 7, f"bytes of {where}")
    _count(column, 6, f"unpacked bytes of {where}")
    if begin < len(MAGIC) or stop > end:
        raise DamageError(f"{where} is at {begin:,} to {stop:,}, outside the {end:,} bytes of columns")
    at = begin
    while at < stop and left > 0:
        header, at = _struct(_Bytes(data, at, stop), PAGE_HEADER)
        packed = _count(header, 3, f"bytes of a page of {where}")
        unpacked = _count(header, 2, f"unpacked bytes of a page of {where}")
        at += packed
        if at > stop:
            raise DamageError(f"a page of {packed:,} bytes reaches beyond {where}")
        if 7 in header:
            words = _count(header[7], 1, f"values in the dictionary of {where}")
            if words > 8 * unpacked:  # a value has a bit at least
                raise DamageError(f"{words:,} values in the {unpacked:,} bytes of the dictionary of {where}")
        for number in (5, 8):
            if number in header:
                left -= _count(header[number], 1, f"values of a page of {where}")
        if 8 in header:
            _check_levels(header[8], unpacked, where)
        if left < 0:
            raise DamageError(f"pages of {where} have more values than the column")
        yield unpacked


def _check_levels(page: Mapping[int, Any], unpacked: int, where: str) -> None:
    """Compare the nulls, rows and bytes of levels that a data page of version 2 states with its size."""
    values = page[1]
    for number, what in ((2, "nulls"), (3, "rows")):
        if _count(page, number, f"{what} of a page of {where}") > values:
            raise DamageError(f"a page of {where} has more {what} than values")
    if sum(_count(page, number, f"bytes of levels of {where}") for number in (5, 6)) > unpacked:
        raise DamageError(f"levels of {where} are longer than their page")


def _count(fields: Mapping[int, Any], number: int, what: str) -> int:
    found = fields.get(number)
    if found is None or found < 0:
        raise DamageError(f"{'no' if found is None else format(found, ',')} {what}")
    return int(found)


def _listed(fields: Mapping[int, Any], number: int) -> list[dict[int, Any]]:
    found = fields.get(number, [])
    if not all(isinstance(one, dict) for one in found):
        raise DamageError("a list of something else")
    return list(found)


@dataclass
class _Bytes:
    """Some bytes of a file, read from ``at`` to ``end``."""

    data: mmap.mmap
    at: int
    end: int

    def take(self, count: int) -> int:
        """Skip some bytes and return where they begin."""
        begin = self.at
        if count > self.end - begin:
            raise DamageError("metadata that end too early")
        self.at = begin + count
        return begin

    def byte(self) -> int:
        return int(self.data[self.take(1)])

    def varint(self) -> int:
        found, data, begin = 0, self.data, self.at
        for place, at in enumerate(range(begin, min(begin + LONGEST_VARINT, self.end))):
            byte = data[at]
            found |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                self.at = at + 1
                return found
        if self.end - begin < LONGEST_VARINT:
            raise DamageError("metadata that end too early")
        raise DamageError("a number of more than 64 bits")

    def number(self, kind: int) -> int:
        found = self.varint()
        if found >> BITS[kind]:
            raise DamageError(f"a number of more than {BITS[kind]} bits")
        return (found >> 1) ^ -(found & 1)


def _struct(source: _Bytes, shape: Shape, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by number, and where it ends."""
    if depth > DEEPEST:
        raise DamageError("metadata nested too deep")
    found: dict[int, Any] = {}
    number = 0
    while head := source.byte():
        kind, step = head & 0x0F, head >> 4
        number = number + step if step else source.number(I16)
        expected = shape.types.get(number, kind)
        if (TRUE if kind == FALSE else kind) != (TRUE if expected == FALSE else expected) or number in found:
            raise DamageError(f"field {number} of its metadata is of another type or repeated")
        found[number] = _value(source, kind, shape.within.get(number, UNKNOWN), depth)
    return found, source.at


def _value(source: _Bytes, kind: int, shape: Shape, depth: int, *, is_listed: bool = False) -> Any:
    if kind in (TRUE, FALSE):
        return bool(source.byte()) if is_listed else kind == TRUE
    if kind in BITS:
        return source.number(kind)
    if kind == BYTE:
        return source.byte()
    if kind == DOUBLE:
        return source.take(8)
    if kind == BINARY:
        length = source.varint()
        begin = source.take(length)
        return source.data[begin : begin + length]
    if kind == STRUCT:
        return _struct(source, shape, depth + 1)[0]
    if kind in (LIST, SET):
        return _list(source, shape, depth + 1)
    raise DamageError(f"a field of the unknown type {kind}")  # maps are nowhere in the format


def _list(source: _Bytes, shape: Shape, depth: int) -> list[Any]:
    if depth > DEEPEST:
        raise DamageError("metadata nested too deep")
    head = source.byte()
    length = head >> 4 if head >> 4 < 15 else source.varint()
    if length > source.end - source.at:  # every element has a byte at least
        raise DamageError(f"a list of {length:,} elements")
    return [_value(source, head & 0x0F, shape, depth, is_listed=True) for _ in range(length)]
