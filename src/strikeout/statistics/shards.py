"""Quotes grouped by date, month, expiry, product, source or any label, and the state of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import exact
from strikeout.kernels.arrays import Rows, Words
from strikeout.quotes.names import NameIndex, Names
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

DAYS_PER_YEAR = 365.0
# Fixed edges, never quantiles: the shard of a quote must not depend on its neighbours.
EDGES = {"moneyness": ((0.8, 0.95, 1.05, 1.2), "K/F"), "maturity": ((30.0, 90.0, 180.0, 365.0), "days")}
OWN = ("expiry", "month", "moneyness", "maturity", "product")


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """Quotes in named parts, each in exactly one. Parts may be of any size.

    ``codes`` are places in ``names``, one per quote.
    """

    ids: Names
    codes: Rows
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex.of(self.ids)

    def of(self, ids: ArrayLike) -> tuple[str, ...]:
        """Return the shards with at least one of these quotes.

        Raises:
            UnknownIdError: an id that is not there, or one given twice.
        """
        return tuple(self.names[code] for code in np.unique(self.codes[self._index.find(ids)]))

    def touched(self, ids: ArrayLike) -> tuple[Shards, Rows]:
        """Return the shards with at least one of these quotes, without these quotes, and the rows of what they retain.

        Raises:
            UnknownIdError: an id that is not there, or one given twice.
        """
        gone = self._index.find(ids)
        is_touched = np.zeros(len(self), bool)
        is_touched[self.codes[gone]] = True
        is_left = is_touched[self.codes]
        is_left[gone] = False
        rows = np.flatnonzero(is_left)
        place = np.cumsum(is_touched) - 1  # of a touched shard among the touched ones
        names = tuple(compress(self.names, is_touched.tolist()))
        return Shards(self.ids[rows], place[self.codes[rows]], names), rows

    def beside(self, rows: Rows) -> tuple[list[int], Rows]:
        """Return the numbers of the shards with one of these rows, and the rows of all their quotes, in no order."""
        order, ends = self._grouped
        touched = sorted(set(self.codes[rows].tolist()))
        if len(touched) == len(self):
            return touched, order
        if 4 * len(touched) > len(self):  # many slices take longer than a look at every quote
            is_touched = np.zeros(len(self), bool)
            is_touched[touched] = True
            return touched, np.flatnonzero(is_touched[self.codes])
        return touched, np.concatenate([order[:0], *(order[ends[code] : ends[code + 1]] for code in touched)])

    @cached_property
    def _grouped(self) -> tuple[Rows, Rows]:
        """The row numbers, shard by shard, and where each shard begins and ends among them."""
        order = np.argsort(self.codes, kind="stable").astype(np.int64)
        return order, np.searchsorted(self.codes[order], np.arange(len(self) + 1))

    def members(self, name: str) -> Names:
        """Return the ids of one shard, in the order of the book.

        Raises:
            UsageError: no shard has this name.
        """
        if name not in self._codes_by_name:
            shown = ", ".join(self.names[:3]) + (", ..." if len(self) > 3 else "")
            raise UsageError(f"No shard is named {name!r}. The {len(self)} shards are {shown}.", shard=name)
        ids: Names = self.ids[self.codes == self._codes_by_name[name]]
        return ids

    @cached_property
    def _codes_by_name(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.names)}

    @property
    def sizes(self) -> dict[str, int]:
        """The number of quotes per shard."""
        counts = np.bincount(self.codes, minlength=len(self))
        return {name: int(count) for name, count in zip(self.names, counts, strict=True)}

    def __repr__(self) -> str:
        return f"<Shards: {len(self.ids):,} quotes in {len(self):,}>"


def shard(quotes: Quotes, by: str | Sequence[str]) -> Shards:
    """Partition quotes by one or several cuts.

    A cut is a label; ``LABEL:WIDTH`` for days per shard of a label of dates, or the width for one of numbers; "month"
    for the months of the label date; "expiry" for one shard per expiry; "maturity" (days), "moneyness" (strike over
    forward) and "product" (both), whose edges may be given: ``maturity:30,60``, ``moneyness:0.9,1.1``,
    ``product:30,60``, the last for the maturities alone. Text may name several cuts, separated by commas:
    "date:30,product:30,60".

    Dates are counted from 1970-01-01 and edges are fixed, so no other quote can move a shard's borders.

    Raises:
        UsageError: an unknown label, a width or edges that cannot be used, or dates that cannot be read.

    >>> from strikeout import paper
    >>> shard(paper.quotes("small"), "day:30").sizes
    {'0': 180, '30': 180, '60': 180}
    >>> shard(paper.quotes("small"), "month,maturity:60").names[:2]
    ('2024-01 / <60 days', '2024-01 / >=60 days')
    """
    cuts = split_cuts(by) if isinstance(by, str) else list(by)
    if not cuts:
        raise UsageError("shard: nothing to cut by. Give the name of a label, or several.")
    codes, names = np.zeros(len(quotes), np.intp), [""]
    for cut in cuts:
        keys, own = _keys(quotes, cut)
        present, codes = np.unique(codes * len(own) + keys, return_inverse=True)
        names = [f"{names[at // len(own)]} / {own[at % len(own)]}".removeprefix(" / ") for at in map(int, present)]
    if len(set(names)) < len(names):  # "a / b" and "c" read like "a" and "b / c": one name is one shard
        distinct, alike = np.unique(names, return_inverse=True)
        codes, names = alike[codes], distinct.tolist()
    codes.flags.writeable = False
    return Shards(quotes.ids, codes, tuple(names))


SMALLEST = 10  # quotes per shard, from which on the sums of shards are smaller than footprints
_SUMS: WeakKeyDictionary[Footprints, tuple[Shards, Words, Rows]] = WeakKeyDictionary()
_LATEST: WeakKeyDictionary[Quotes, tuple[str | tuple[str, ...], Shards]] = WeakKeyDictionary()


def shards_of(quotes: Quotes, by: str | Sequence[str] | Shards) -> Shards:
    """Return these shards if they are of these quotes, or cut the quotes. The latest cut is kept with its quotes."""
    if isinstance(by, Shards):
        if by.ids is not quotes.ids and not np.array_equal(by.ids, quotes.ids):
            raise UsageError("shards: these are of other quotes. Make them with states.shard(quotes, ...).")
        return by
    asked = by if isinstance(by, str) else tuple(by)
    known = _LATEST.get(quotes)
    if known is None or known[0] != asked:
        known = _LATEST[quotes] = (asked, shard(quotes, by))
    return known[1]


def one_shard(quotes: Quotes) -> Shards:
    """Return all quotes as one shard."""
    return Shards(quotes.ids, np.zeros(len(quotes), np.intp), ("all",))


def split_cuts(text: str) -> list[str]:
    """Split text at its commas. A number after a comma belongs to the cut before it.

    >>> split_cuts("date:30,product:30,60,source")
    ['date:30', 'product:30,60', 'source']
    """
    cuts: list[str] = []
    for piece in (piece.strip() for piece in text.split(",")):
        if cuts and ":" in cuts[-1] and _is_number(piece):
            cuts[-1] += f",{piece}"
        elif piece:
            cuts.append(piece)
    return cuts


def cut_names(quotes: Quotes, cut: str) -> NDArray[np.str_]:
    """Return the name of the shard of every quote under one cut, such as "maturity:30,60"."""
    keys, names = _keys(quotes, cut)
    return np.array(names, np.str_)[keys] if names else np.empty(0, "U1")


def shard_states(footprints: Footprints, shards: Shards) -> dict[str, NormalEquations]:
    """Return the state of each shard, by the name of the shard. Their total is that of all footprints.

    Raises:
        UnknownIdError: a quote that is in no shard.
    """
    if not np.array_equal(footprints.ids, shards.ids):
        shards = Shards(footprints.ids, _codes_of(footprints, shards), shards.names)
    order, ends = shards._grouped
    return {
        name: footprints.total(order[begin:end])
        for name, (begin, end) in zip(shards.names, pairwise(ends), strict=True)
    }


def with_shards_replaced(
    footprints: Footprints, shards: Shards, touched: Sequence[int], rows: Rows, fresh: NormalEquations
) -> NormalEquations:
    """Return the total of all footprints with ``fresh`` in place of the shards of these numbers, which hold these rows.

    The sums of all shards are kept with the footprints, for the latest shards; of shards of a few quotes they would
    take more memory than the footprints, which are subtracted instead.
    """
    if len(shards) * SMALLEST > len(footprints):
        return footprints.total().less(footprints, rows) + fresh
    known = _SUMS.get(footprints)
    if known is None or known[0] is not shards:
        order, ends = shards._grouped
        parts = [order[begin:end] for begin, end in pairwise(ends)]
        counts = np.array([footprints.counted(part) for part in parts])
        known = _SUMS[footprints] = shards, np.stack([footprints.total(part).words for part in parts]), counts
    is_kept = np.ones(len(shards), bool)
    is_kept[touched] = False
    words = exact.total(np.concatenate([known[1][is_kept], fresh.words[None]]))
    return NormalEquations(footprints.schema, words, fresh.count + int(known[2][is_kept].sum()))


def _codes_of(footprints: Footprints, shards: Shards) -> Rows:
    shards._index.find(footprints.ids)  # refuses, by name, what is in no shard
    known = dict(zip(shards.ids.tolist(), shards.codes.tolist(), strict=True))
    return np.array([known[name] for name in footprints.ids.tolist()], np.intp)


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _keys(quotes: Quotes, cut: str) -> tuple[Rows, list[str]]:
    """Return a key per quote, and the name of every key, in the order of the values."""
    by, _, given = (cut, "", "") if cut in quotes.labels else cut.partition(":")
    if by in OWN and by in quotes.labels:
        raise UsageError(
            f"shard: {by!r} is both a label of this book and a cut of every book. Rename the label.", by=by
        )
    if by not in OWN and by not in quotes.labels:
        known = ", ".join([*quotes.labels, *OWN])
        raise UsageError(f"shard: {by!r} is not a label of this book. Use one of {known}.", label=by)
    if by in OWN and not hasattr(quotes.contracts, "expiry"):
        raise UsageError(f"shard: these quotes are not options and have no {by}. Cut by a label.", label=by)
    if by == "month":
        if given:
            raise UsageError(f"shard: month takes no width; got {cut!r}. Write date:{given} for a number of days.")
        if "date" not in quotes.labels:
            raise UsageError("shard: month needs the label date, which these quotes lack.", label="date")
        return _distinct(_dates("date", quotes.labels["date"]).astype("datetime64[M]"))
    numbers = _numbers(cut, given)
    if by == "product":
        maturity, moneyness = _bucket(quotes, "maturity", numbers, cut), _bucket(quotes, "moneyness", (), cut)
        names = [f"{a}, {b}" for a in maturity[1] for b in moneyness[1]]
        return maturity[0] * len(moneyness[1]) + moneyness[0], names
    if by in EDGES:
        return _bucket(quotes, by, numbers, cut)
    column = quotes.contracts.expiry if by == "expiry" else quotes.labels[by]
    if not numbers:
        return _distinct(column)
    if len(numbers) > 1:
        raise UsageError(f"shard: {cut!r} has {len(numbers)} widths; {by} takes one.")
    return _distinct(_blocks(by, column, numbers[0]))


def _numbers(cut: str, given: str) -> tuple[float, ...]:
    pieces = given.split(",") if given else []
    wrong = [piece for piece in pieces if not _is_number(piece)]
    if wrong or cut.endswith(":"):
        raise UsageError(f"shard: {cut!r} has no number after the colon. Write date:30 or product:30,60.")
    return tuple(map(float, pieces))


def _distinct(column: NDArray[Any]) -> tuple[Rows, list[str]]:
    texts = column.astype(str) if column.dtype.kind == "O" else column
    values, keys = np.unique(texts, return_inverse=True)
    return keys, [str(value) for value in values.tolist()] if values.dtype.kind != "M" else values.astype(str).tolist()


def _blocks(by: str, column: NDArray[Any], size: float) -> NDArray[Any]:
    if not size > 0.0:
        raise UsageError(f"shard: the width {size:g} of {by} must be above zero.")
    if column.dtype.kind in "iuf":
        begins = np.floor(column / size) * size
        whole = column.dtype.kind != "f" and size.is_integer()
        return begins.astype(np.int64) if whole else begins
    dates = _dates(by, column)
    if not size.is_integer():
        raise UsageError(f"shard: the width {size:g} of {by} must be a whole number of days.")
    return (dates.astype(np.int64) // int(size) * int(size)).astype("datetime64[D]")


def _dates(by: str, column: NDArray[Any]) -> NDArray[np.datetime64]:
    try:
        dates = column.astype("datetime64[D]")
    except (ValueError, TypeError) as error:
        raise UsageError(f"shard: {by!r} holds no dates to cut by days ({error}). Write them as 2025-04-14.") from error
    missing = int(np.count_nonzero(np.isnat(dates)))
    if missing:
        raise UsageError(
            f"shard: {missing:,} of {len(dates):,} quotes have no {by} to cut by days. Cut by another label.",
            missing=missing,
            count=len(dates),
        )
    return dates


def _bucket(quotes: Quotes, by: str, edges: Sequence[float], cut: str) -> tuple[Rows, list[str]]:
    c, (usual, unit) = quotes.contracts, EDGES[by]
    values = c.strike / c.forward if by == "moneyness" else c.expiry * DAYS_PER_YEAR
    edges = edges or usual
    if any(low >= high for low, high in pairwise(edges)) or edges[0] <= 0.0:
        raise UsageError(f"shard: the edges of {cut!r} must be above zero and ascend.")
    between = [f"{low:g}-{high:g} {unit}" for low, high in pairwise(edges)]
    return np.searchsorted(edges, values, side="right"), [f"<{edges[0]:g} {unit}", *between, f">={edges[-1]:g} {unit}"]
