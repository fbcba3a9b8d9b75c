"""Find where any of many byte strings (needles) occurs in a block of bytes.

    symbol   meaning                                                          type
    needle   a byte string of four bytes or more                              bytes
    anchor   eight bytes of a needle (four if it is shorter than eight) by    uint64
             which it is looked up; the place of these bytes in it is kept
    shape    length of a needle and place of its anchor                       two integers

The compiled search makes one pass over the block whose speed does not depend on the number of needles. The twin below
is its definition and gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from strikeout.kernels.arrays import Integers, Words
from strikeout.kernels.compiled import native

LONG, SHORT = 8, 4
BITS = 20  # of the filter of the twin


class ByteSearch:
    """A search for distinct needles of four bytes or more."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        module = native()
        self._twin = None if module is not None else SearchTwin(needles)
        if module is not None:
            ends = np.cumsum(np.fromiter(map(len, needles), np.int64, len(needles)), dtype=np.int64)
            self._compiled = module.ByteSearch(b"".join(needles), ends)

    def find(self, block: bytes) -> tuple[Integers, Integers]:
        """Return the places where needles begin, ascending, and the number of the needle at each."""
        if self._twin is not None:
            return self._twin.find(block)
        found: tuple[Integers, Integers] = self._compiled.find(block)
        return found


class SearchTwin:
    """``ByteSearch`` without compiled code, and its definition."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._numbers = {needle: number for number, needle in enumerate(needles)}
        self._shapes: dict[int, dict[int, set[tuple[int, int]]]] = {LONG: {}, SHORT: {}}
        for needle in needles:
            width, place = (LONG, (len(needle) - LONG) // 2) if len(needle) >= LONG else (SHORT, 0)
            anchor = int.from_bytes(needle[place : place + width], "little")
            self._shapes[width].setdefault(anchor, set()).add((len(needle), place))
        self._anchors = {width: np.array(sorted(found), np.uint64) for width, found in self._shapes.items()}
        self._filters = {width: np.zeros(1 << BITS, bool) for width in self._anchors}
        for width, anchors in self._anchors.items():
            self._filters[width][_hashed(anchors)] = True

    def find(self, block: bytes) -> tuple[Integers, Integers]:
        """Return the places where needles begin, ascending, and the number of the needle at each."""
        found = sorted({match for width in self._anchors for match in self._matches(block, width)})
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def _matches(self, block: bytes, width: int) -> Iterator[tuple[int, int]]:
        anchors, shapes = self._anchors[width], self._shapes[width]
        for shift in range(width if len(anchors) else 0):
            count = max(len(block) - shift, 0) // width
            words = np.frombuffer(block, f"<u{width}", count, min(shift, len(block))).astype(np.uint64)
            likely = np.flatnonzero(self._filters[width][_hashed(words)])
            likely = likely[np.isin(words[likely], anchors)]
            for row, word in zip(likely.tolist(), words[likely].tolist(), strict=True):
                at = shift + width * row
                for length, place in shapes[word]:
                    number = self._numbers.get(block[at - place : at - place + length]) if at >= place else None
                    if number is not None:
                        yield at - place, number


def _hashed(words: Words) -> Words:
    return (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - BITS)
