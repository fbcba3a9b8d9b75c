"""Find quotes by name among millions, and sort rows by two columns, faster than a Python loop and with its answer."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from math import ldexp
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UnknownIdError, UsageError
from strikeout.kernels.arrays import Floats, Rows, Words
from strikeout.kernels.compiled import native
from strikeout.text import Advice, agreeing, many, part

Names = NDArray[np.str_]

# Up to this many names a dictionary finds a few rows in two microseconds; beyond, its memory is better spent.
DICTIONARY = 1 << 20


@dataclass(frozen=True, eq=False)
class NameIndex:
    """The row of every name. ``keys`` are the names' fingerprints in ascending order, ``rows`` where each came from."""

    names: Names
    keys: NDArray[Any]
    rows: Rows
    hashed: bool

    @staticmethod
    def of(names: Names) -> NameIndex:
        """Return an index of these names."""
        prints = fingerprints(names)
        rows = np.argsort(prints)
        keys = prints[rows]
        twins = np.flatnonzero(keys[1:] == keys[:-1])
        if not twins.size:
            return NameIndex(names, keys, rows, hashed=True)
        # Equal fingerprints: the same name twice, or (about once in 10^7 books of a million) two different names.
        return NameIndex.by_name(names)

    @staticmethod
    def by_name(names: Names) -> NameIndex:
        """Return an index sorted by the names themselves: slower to make, and never in doubt."""
        rows = np.argsort(names, kind="stable")
        ordered = names[rows]
        twins = np.flatnonzero(ordered[1:] == ordered[:-1])
        if twins.size:
            first = str(ordered[twins[0]])
            raise UsageError(
                f"Quotes: the id {first!r} is there more than once ({twins.size} repeats in all). "
                "Ids name quotes, so each must be unique; rename or drop the repeats.",
                id=first,
                repeats=int(twins.size),
            )
        return NameIndex(names, ordered, rows, hashed=False)

    @cached_property
    def _row_by_name(self) -> dict[str, int]:
        return dict(zip(self.names.tolist(), range(len(self.names)), strict=True))

    def look_up(self, wanted: ArrayLike) -> tuple[int, ...] | None:
        """Return the rows of these names, in their order; None if ``find`` has to look, and to report the problem."""
        asked = wanted.tolist() if isinstance(wanted, np.ndarray) else wanted
        if not isinstance(asked, list) or len(self.names) > DICTIONARY:
            return None
        row = self._row_by_name
        try:
            found = itemgetter(*asked)(row) if len(asked) > 1 else tuple(row[name] for name in asked)
        except (KeyError, TypeError):
            return None
        return found if len(set(found)) == len(found) else None

    def find(self, wanted: ArrayLike) -> Rows:
        """Return the rows of these names, in ascending order."""
        asked = as_names([wanted] if isinstance(wanted, str) else wanted)
        if not asked.size:
            return np.empty(0, np.intp)
        sought = fingerprints(asked) if self.hashed else asked
        places = np.minimum(np.searchsorted(self.keys, sought), max(len(self.keys) - 1, 0))
        known = np.zeros(len(asked), bool)
        if len(self.keys):
            known = self.names[self.rows[places]] == asked
        if not known.all():
            unknown = asked[~known].tolist()
            raise UnknownIdError(
                f"{part(len(unknown), len(asked), 'id', verb=('is', 'are'))} not among the ids of "
                f"{many(len(self.names), 'quote')}: {_few(unknown)}. ",
                Advice.TAKE_IDS,
                ".",
                ids=unknown,
            )
        found = np.sort(self.rows[places])
        repeated = found[1:][found[1:] == found[:-1]]
        if repeated.size:
            twice = self.names[np.unique(repeated)].tolist()
            raise UnknownIdError(
                f"{many(len(twice), 'id')} {agreeing(len(twice), 'was', 'were')} given more than once: {_few(twice)}. "
                "Give each id once.",
                ids=twice,
            )
        return found


def as_names(names: ArrayLike | Set[str]) -> Names:
    """Return names as a one-dimensional text array."""
    array = np.asarray(list(names) if isinstance(names, Set) else names)
    if array.size == 0:
        return np.empty(0, "U1")
    if array.dtype.kind in "OT":
        if set(map(type, array.ravel())) - {str, np.str_}:
            raise UsageError(
                "Ids are names, so they must be text; some of those given are not. Convert them with str()."
            )
        array = array.astype("U")
    if array.dtype.kind != "U" or array.ndim != 1:
        raise UsageError(
            f"Ids are names, never row numbers: a list of text is needed; got {array.dtype} of shape {array.shape}."
        )
    empty = np.flatnonzero(array == "")
    if empty.size:
        raise UsageError(
            f"The id at row {empty[0]} is empty ({empty.size} such). Every quote needs a name.", row=int(empty[0])
        )
    return array


def fingerprints(names: Names) -> Words:
    """Return a 64-bit number for each name, the same whatever the width of the array that holds it.

    Sum over the characters of (code point * a fixed odd number of that position), modulo 2^64.
    """
    width = names.dtype.itemsize // 4
    points = np.ascontiguousarray(names, dtype=names.dtype.newbyteorder("=")).view(np.uint32).reshape(len(names), width)
    total = np.zeros(len(names), np.uint64)
    for column, factor in enumerate(_factors(width)):
        total += points[:, column] * factor
    return total ^ (total >> np.uint64(32))


def _factors(count: int) -> Words:
    # splitmix64 of 1, 2, 3, ...: published constants, made odd so that no factor loses the high bits.
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def _few(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


A_HANDFUL = 1_000  # rows, which NumPy sorts about as fast
FEW = 5_000  # rows, which a general sort takes no longer for
FEWEST_BITS = 12  # of the second column in a key; with fewer, nearly all rows would tie


def sorted_rows(first: Floats, second: Floats, *ties: Floats) -> Rows:
    """Return the rows by ``first``, then ``second``, then each of ``ties``; equal ones in the order they come. Finite
    numbers.

    >>> sorted_rows(np.array([2.0, 1.0, 2.0]), np.array([0.5, 0.1, -0.5]))
    array([1, 2, 0])
    """
    module = native()
    if module is None or len(first) < A_HANDFUL:
        return sorted_rows_twin(first, second, *ties)
    rows: Rows = module.sorted_rows(*map(np.ascontiguousarray, (first, second, *ties)))
    return rows


def sorted_rows_twin(first: Floats, second: Floats, *ties: Floats) -> Rows:
    """``sorted_rows`` without compiled code.

    Rank of the first column, a coarse image of the second and the row number go into one integer a row, and integers
    NumPy sorts ten times as fast as rows by columns. Rows whose image is too coarse to separate them, few or none,
    are then sorted by the columns themselves.
    """
    count = len(first)
    if count < FEW:
        return np.lexsort((*reversed(ties), second, first))
    distinct = np.sort(first)
    distinct = distinct[np.r_[True, distinct[1:] != distinct[:-1]]]
    for_row, for_first = max(count - 1, 1).bit_length(), max(len(distinct) - 1, 1).bit_length()
    for_second = 63 - for_row - for_first
    span = float(second.max() - second.min())
    scale = ldexp(1.0, for_second - 1) / span if span > 0.0 else np.inf
    if for_second < FEWEST_BITS or not 0.0 < scale < np.inf:
        return np.lexsort((*reversed(ties), second, first))
    # Rounding keeps the order of what it rounds, so an image can tie two rows but never swap them. Half the range is
    # left over for rounding upwards.
    image = (second - second.min()) * scale
    key = np.searchsorted(distinct, first).astype(np.int64) << for_second
    key += image.astype(np.int64)
    key <<= for_row
    key += np.arange(count)
    key.sort()
    order = (key & ((1 << for_row) - 1)).astype(np.intp)
    key >>= for_row
    tied = key[1:] == key[:-1]
    if tied.any():
        places = np.flatnonzero(np.r_[tied, False] | np.r_[False, tied])
        rows = order[places]
        order[places] = rows[np.lexsort((*(tie[rows] for tie in reversed(ties)), second[rows], key[places]))]
    return order
