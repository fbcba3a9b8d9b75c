"""Parts of a book, by date, expiry, product, source or any label; the whole is their sum, however it was cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.quotes.names import NameIndex, Names
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import NormalEquations

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

# Fixed edges, never quantiles: the shard of a quote must not depend on its neighbours.
MONEYNESS = (0.8, 0.95, 1.05, 1.2)  # strike over forward
MATURITY = (30.0, 90.0, 180.0, 365.0)  # days
DAYS_A_YEAR = 365.0
OWN = ("expiry", "moneyness", "maturity", "product")


@dataclass(frozen=True, eq=False, repr=False)
class Shards:
    """Every quote of a book in exactly one named part. Parts may be of any size.

    ``codes`` are places in ``names``, one a quote.
    """

    ids: Names
    codes: NDArray[np.intp]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex.of(self.ids)

    def of(self, ids: ArrayLike) -> tuple[str, ...]:
        """The shards that hold at least one of these quotes: those a strike-out touches.

        Raises:
            UnknownIdError: an id that is not there, or one given twice.
        """
        return tuple(self.names[code] for code in np.unique(self.codes[self._index.find(ids)]))

    def members(self, name: str) -> Names:
        """The ids of one shard, in the order of the book.

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
        """How many quotes each shard holds."""
        counts = np.bincount(self.codes, minlength=len(self))
        return {name: int(count) for name, count in zip(self.names, counts, strict=True)}

    def __repr__(self) -> str:
        return f"<Shards: {len(self.ids):,} quotes in {len(self):,}>"


def shard(quotes: Quotes, by: str | Sequence[str], *, size: float | Mapping[str, float] | None = None) -> Shards:
    """The book cut by a label, or by several at once.

    Beside the labels: "expiry" (each its own shard), "moneyness" and "maturity" (fixed buckets), "product" (both).

    Args:
        size: days a shard for a label of dates, or its width for one of numbers; by name where ``by`` names several.
            Dates are counted from 1970-01-01, so no other quote can move a shard's borders.

    Raises:
        UsageError: an unknown label, a size that is not above zero or fits no label, or dates that cannot be read.

    >>> from strikeout import paper
    >>> shard(paper.quotes("small"), "day", size=30).sizes
    {'0': 180, '30': 180, '60': 180}
    """
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        raise UsageError("shard: nothing to cut by. Give the name of a label, or several.")
    widths = size if isinstance(size, Mapping) else {columns[0]: size} if size is not None else {}
    if size is not None and (set(widths) - set(columns) or (len(columns) > 1 and not isinstance(size, Mapping))):
        raise UsageError(
            f"shard: size={size!r} does not say which of {', '.join(columns)} it is for. Give size={{name: width}}."
        )
    codes, names = np.zeros(len(quotes), np.intp), [""]
    for column in columns:
        keys, own = _keys(quotes, column, widths.get(column))
        present, codes = np.unique(codes * len(own) + keys, return_inverse=True)
        names = [f"{names[at // len(own)]} / {own[at % len(own)]}".removeprefix(" / ") for at in map(int, present)]
    if len(set(names)) < len(names):  # "a / b" and "c" read like "a" and "b / c": one name is one shard
        distinct, alike = np.unique(names, return_inverse=True)
        codes, names = alike[codes], distinct.tolist()
    codes.flags.writeable = False
    return Shards(quotes.ids, codes, tuple(names))


def shard_states(footprints: Footprints, shards: Shards) -> dict[str, NormalEquations]:
    """What the quotes of each shard leave behind, by the name of the shard. Their total is that of all footprints.

    Raises:
        UnknownIdError: a quote that is in no shard.
    """
    codes = shards.codes if np.array_equal(footprints.ids, shards.ids) else _codes_of(footprints, shards)
    order = np.argsort(codes, kind="stable").astype(np.int64)
    ends = np.searchsorted(codes[order], np.arange(len(shards) + 1))
    return {
        name: footprints.total(order[begin:end])
        for name, (begin, end) in zip(shards.names, pairwise(ends), strict=True)
    }


def _codes_of(footprints: Footprints, shards: Shards) -> NDArray[np.intp]:
    shards._index.find(footprints.ids)  # refuses, by name, what is in no shard
    known = dict(zip(shards.ids.tolist(), shards.codes.tolist(), strict=True))
    return np.array([known[name] for name in footprints.ids.tolist()], np.intp)


def _keys(quotes: Quotes, by: str, size: float | None) -> tuple[NDArray[np.intp], list[str]]:
    """A key a quote, and the name of every key, in the order of the values."""
    if by in OWN and by in quotes.labels:
        raise UsageError(f"shard: {by!r} is both a label of this book and a cut of every book. Rename the label.")
    if by not in OWN and by not in quotes.labels:
        known = ", ".join([*quotes.labels, *OWN])
        raise UsageError(f"shard: {by!r} is no label of this book. Use one of {known}.", label=by)
    if by == "product":
        maturity, moneyness = _keys(quotes, "maturity", size), _keys(quotes, "moneyness", size)
        names = [f"{a}, {b}" for a in maturity[1] for b in moneyness[1]]
        return maturity[0] * len(moneyness[1]) + moneyness[0], names
    if by in ("moneyness", "maturity"):
        if size is not None:
            raise UsageError(f"shard: the buckets of {by} are fixed and take no size. Cut by a label of your own.")
        c = quotes.contracts
        return (
            _bucket(c.strike / c.forward, MONEYNESS, "K/F")
            if by == "moneyness"
            else _bucket(c.expiry * DAYS_A_YEAR, MATURITY, "days")
        )
    column = quotes.contracts.expiry if by == "expiry" else quotes.labels[by]
    if size is not None:
        column = _blocks(by, column, size)
    texts = column.astype(str) if column.dtype.kind == "O" else column
    values, keys = np.unique(texts, return_inverse=True)
    return keys, [str(value) for value in values.tolist()] if values.dtype.kind != "M" else values.astype(str).tolist()


def _blocks(by: str, column: NDArray[Any], size: float) -> NDArray[Any]:
    if not 0.0 < size < np.inf:
        raise UsageError(f"shard: size={size!r} of {by} must be above zero.")
    if column.dtype.kind in "iuf":
        begins = np.floor(column / size) * size
        whole = column.dtype.kind != "f" and float(size).is_integer()
        return begins.astype(np.int64) if whole else begins
    try:
        dates = column.astype("datetime64[D]")
    except (ValueError, TypeError) as error:
        raise UsageError(f"shard: {by!r} holds no dates to cut by days ({error}). Write them as 2025-04-14.") from error
    missing = int(np.count_nonzero(np.isnat(dates)))
    if missing:
        raise UsageError(
            f"shard: {missing:,} of {len(dates):,} quotes have no {by} to cut by days. Cut by another label."
        )
    if not float(size).is_integer():
        raise UsageError(f"shard: size={size!r} of {by} must be a whole number of days.")
    return (dates.astype(np.int64) // int(size) * int(size)).astype("datetime64[D]")


def _bucket(values: NDArray[np.float64], edges: Sequence[float], unit: str) -> tuple[NDArray[np.intp], list[str]]:
    between = [f"{low:g}-{high:g} {unit}" for low, high in pairwise(edges)]
    return np.searchsorted(edges, values, side="right"), [f"<{edges[0]:g} {unit}", *between, f">={edges[-1]:g} {unit}"]
