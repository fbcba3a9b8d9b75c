"""What is traded: European calls and puts, as arrays. All that a model ever sees.

`Features` are named columns of numbers, for quotes that are not options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.quotes.names import sorted_rows
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.kernels.heston_twin import Parts


FEW = 8  # fewer than one in FEW rows are quicker to sort than to look for among all
PANEL = 0.2  # width of a panel of ln T
COLUMNS = ("forward", "strike", "expiry", "discount", "is_call")


@dataclass(frozen=True, eq=False)
class Layout:
    """The contracts in one fixed order, in parts. A property of the contracts alone, so it is found once.

    ``slices``: by expiry, then log-moneyness; a part is one expiry, ``k = ln(strike / forward)`` and ``t`` is None.
    ``panels``: by panel of ln T, then ``k = ln(strike / forward) / sqrt(T)``; ``t`` is ln T across the panel, -1 to 1.
    """

    order: Rows  # row numbers of the contracts, sorted
    expiries: Floats  # of a slice its expiry, of a panel the middle of its ln T
    offsets: Rows  # part j holds sorted rows offsets[j] .. offsets[j + 1]
    k: Floats  # sorted
    t: Floats | None
    in_order: bool  # the contracts were sorted already

    @cached_property
    def parts(self) -> Parts:
        """As the kernels take them."""
        from strikeout.kernels.heston_twin import Parts

        return Parts(self.expiries, self.offsets, self.k, self.t, 0.5 * PANEL)

    def sorted(self, column: Floats) -> Floats:
        """Return a column of the contracts in this order; contiguous."""
        return column if self.in_order and column.flags.c_contiguous else column[self.order]

    @cached_property
    def _places(self) -> Rows:
        """Where each contract is in this order."""
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return places

    def only(self, rows: Rows) -> Layout:
        """Return the slices of these contracts, without another sort; rows keep their numbers."""
        if len(rows) < len(self.order) // FEW:
            places = np.sort(self._places.take(rows))
        else:
            kept = np.zeros(len(self.order), bool)
            kept[rows] = True
            places = np.flatnonzero(kept.take(self.order))
        offsets = np.searchsorted(places, self.offsets)
        filled = offsets[1:] > offsets[:-1]
        is_whole = filled.all()
        return Layout(
            order=self.order.take(places),
            expiries=self.expiries if is_whole else self.expiries[filled],
            offsets=offsets if is_whole else np.append(offsets[:-1][filled], len(places)),
            k=self.k.take(places),
            t=None,
            in_order=False,
        )

    def unsorted(self, columns: Floats) -> Floats:
        """Return columns in this order, back in the order of the contracts; the last axis is the contracts'."""
        if self.in_order:
            return columns
        out = np.empty_like(columns)
        out[..., self.order] = columns
        return out


@dataclass(frozen=True, eq=False)
class Contracts:
    """European options, one per row; every column an array of the same length, read-only.

    Args:
        forward: of the underlying to the expiry, in the currency of the price.
        expiry: years from the quote to the expiry.
        discount: value today of one unit of currency paid at the expiry.

    Raises:
        UsageError: lengths differ, or a number is not finite, or is not above zero.

    >>> Contracts(forward=100.0, strike=[90.0, 110.0], expiry=0.5, discount=1.0, is_call=True).strike
    array([ 90., 110.])
    """

    forward: Floats
    strike: Floats
    expiry: Floats
    discount: Floats
    is_call: Mask

    def __init__(
        self, *, forward: ArrayLike, strike: ArrayLike, expiry: ArrayLike, discount: ArrayLike, is_call: ArrayLike
    ) -> None:
        given: dict[str, NDArray[Any]] = {
            "forward": np.atleast_1d(np.asarray(forward, float)),
            "strike": np.atleast_1d(np.asarray(strike, float)),
            "expiry": np.atleast_1d(np.asarray(expiry, float)),
            "discount": np.atleast_1d(np.asarray(discount, float)),
            "is_call": np.atleast_1d(np.asarray(is_call, bool)),
        }
        lengths = {name: len(column) for name, column in given.items() if len(column) != 1}
        if len(set(lengths.values())) > 1 or any(column.ndim != 1 for column in given.values()):
            raise UsageError(
                f"Contracts: columns of different lengths: {lengths}. Give one value per contract, or one for all.",
                lengths=lengths,
            )
        count = next(iter(lengths.values()), 1)
        for name, column in given.items():
            if name != "is_call":
                bad = np.flatnonzero(~(np.isfinite(column) & (column > 0)))
                if bad.size:
                    raise UsageError(
                        f"Contracts: {name} at row {bad[0]} is {column[bad[0]]:g}; it must be finite and above zero "
                        f"({many(bad.size, 'such row')}).",
                        column=name,
                        row=int(bad[0]),
                    )
            whole = np.array(np.broadcast_to(column, (count,)))
            whole.flags.writeable = False
            object.__setattr__(self, name, whole)

    def __len__(self) -> int:
        return len(self.strike)

    def __getitem__(self, rows: ArrayLike | slice) -> Contracts:
        """Return the contracts of these rows (numbers, a mask or a slice), in that order."""
        picked = rows if isinstance(rows, slice) else np.asarray(rows, np.intp if np.size(rows) == 0 else None)
        out = object.__new__(Contracts)  # what was checked once need not be checked again
        columns = vars(out)
        is_numbers = isinstance(picked, np.ndarray) and picked.dtype.kind == "i"  # take is three times as fast
        for name in COLUMNS:
            column = getattr(self, name)
            columns[name] = _frozen(np.atleast_1d(column.take(picked) if is_numbers else column[picked]))
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, tuple(getattr(self, field.name) for field in fields(self))

    def __iter__(self) -> Iterator[Contracts]:
        return (self[[row]] for row in range(len(self)))

    @cached_property
    def log_moneyness(self) -> Floats:
        """``k = ln(strike / forward)``."""
        return _frozen(elementary.log(self.strike / self.forward))

    @cached_property
    def scale(self) -> Floats:
        """``discount * forward``: what a price is divided by to have no unit."""
        return _frozen(self.discount * self.forward)

    @cached_property
    def intrinsic(self) -> Floats:
        """Discounted value if the forward were the price at expiry: ``discount * max(+-(forward - strike), 0)``."""
        away = self.forward - self.strike
        np.subtract(self.strike, self.forward, out=away, where=~self.is_call)
        np.maximum(away, 0.0, out=away)
        away *= self.discount
        return _frozen(away)

    @cached_property
    def slices(self) -> Layout:
        """By expiry, then log-moneyness."""
        order = sorted_rows(self.expiry, self.log_moneyness)
        expiry = self.expiry[order]
        return _layout(order, key=expiry, expiries=expiry, k=self.log_moneyness[order], t=None)

    def runs(self, most: int, only: Rows | None = None) -> Iterator[tuple[Rows, Contracts]]:
        """Yield row numbers and their contracts, slice by slice: up to ``most`` of them, or one larger slice.

        Args:
            only: distinct row numbers of the contracts to yield; all if not given.
        """
        layout = self.slices if only is None else self.slices.only(only)
        ends, j = layout.offsets, 0
        while j < len(layout.expiries):
            last = max(int(np.searchsorted(ends, ends[j] + most, "right")) - 1, j + 1)
            rows = layout.order[ends[j] : ends[last]]
            part = object.__new__(Contracts)
            columns = vars(part)
            for name in COLUMNS:
                columns[name] = _frozen(getattr(self, name).take(rows))
            columns["slices"] = Layout(
                order=np.arange(len(rows)), expiries=layout.expiries[j:last], offsets=ends[j : last + 1] - ends[j],
                k=layout.k[ends[j] : ends[last]], t=None, in_order=True,
            )  # fmt: skip
            yield rows, part
            j = last

    @cached_property
    def panels(self) -> Layout:
        """By panel of ln T, then log-moneyness over the root of T."""
        log_expiry = elementary.log(self.expiry)
        panel = np.floor(log_expiry / PANEL)
        k = self.log_moneyness / np.sqrt(self.expiry)
        order = sorted_rows(panel, k, self.expiry)
        middle = (panel[order] + 0.5) * PANEL
        t = (log_expiry[order] - middle) / (0.5 * PANEL)
        return _layout(order, key=panel[order], expiries=middle, k=k[order], t=t)


def _layout(order: Rows, *, key: Floats, expiries: Floats, k: Floats, t: Floats | None) -> Layout:
    count = len(order)
    breaks = np.flatnonzero(key[1:] != key[:-1]) + 1
    offsets = np.zeros(len(breaks) + 2 if count else 1, np.intp)
    if count:
        offsets[1:-1], offsets[-1] = breaks, count
    return Layout(
        order=_frozen(order),
        expiries=_frozen(expiries[offsets[:-1]]),
        offsets=_frozen(offsets),
        k=_frozen(k),
        t=None if t is None else _frozen(t),
        in_order=bool((order[1:] > order[:-1]).all()),
    )


def _unpickled(*columns: NDArray[Any]) -> Contracts:
    return Contracts(**dict(zip((field.name for field in fields(Contracts)), columns, strict=True)))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


OF_OPTIONS = {name for name in dir(Contracts) if not name.startswith("_")} | set(Contracts.__dataclass_fields__)


@dataclass(frozen=True, eq=False, init=False)
class Features:
    """Named columns of numbers, one row per quote; all a custom model sees. Read-only.

    Args:
        columns: by name, in any order; each one value per row, or one for all rows.

    Raises:
        UsageError: there is no column, lengths differ, a name is not an identifier, or a value is not finite.

    >>> Features({"dose": [1.0, 2.0, 4.0], "age": 30.0})[[0, 2]].columns["dose"]
    array([1., 4.])
    """

    columns: Mapping[str, Floats]

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        if not columns:
            raise UsageError("Features: no column is given. Name at least one: x=[...].")
        arrays = {name: _numbers(name, columns[name]) for name in sorted(columns)}  # no order of arguments can show
        lengths = {name: len(array) for name, array in arrays.items() if len(array) != 1}
        if len(set(lengths.values())) > 1:
            raise UsageError(
                f"Features: columns of different lengths: {lengths}. Give one value per quote, or one for all.",
                lengths=lengths,
            )
        count = next(iter(lengths.values()), 1)
        whole = {name: np.array(np.broadcast_to(array, (count,))) for name, array in arrays.items()}
        for name, array in whole.items():
            bad = np.flatnonzero(~np.isfinite(array))
            if bad.size:
                raise UsageError(
                    f"Features: {name} at row {bad[0]} is {array[bad[0]]}; it must be finite "
                    f"({many(bad.size, 'such row')}).",
                    column=name,
                    row=int(bad[0]),
                )
        self._set(whole)

    def _set(self, columns: Mapping[str, Floats]) -> None:
        for array in columns.values():
            array.flags.writeable = False
        object.__setattr__(self, "columns", MappingProxyType(dict(columns)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: ArrayLike | slice) -> Features:
        """Return the features of these rows (numbers, a mask or a slice), in that order."""
        picked: Any = rows if isinstance(rows, slice) else np.asarray(rows, np.intp if np.size(rows) == 0 else None)
        features = object.__new__(Features)
        features._set({name: column[picked].copy() for name, column in self.columns.items()})
        return features

    def __iter__(self) -> Iterator[Features]:
        return (self[[row]] for row in range(len(self)))

    def sorted_rows(self, *ties: Floats) -> tuple[Rows, int]:
        """Row numbers by every column in turn, then by ``ties``; and how many rows differ in their columns."""
        columns = list(self.columns.values())
        order = np.lexsort((*reversed(ties), *reversed(columns)))
        if not len(order):
            return order, 0
        ordered = [column[order] for column in columns]
        changes = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
        return order, 1 + int(np.count_nonzero(changes))

    def __getattr__(self, name: str) -> NoReturn:
        columns = ", ".join(vars(self).get("columns", ()))
        if name in OF_OPTIONS:
            raise UsageError(
                f"These quotes are not options but rows of {columns}: they have no {name}. Implied volatilities, vega "
                "weights, smiles, moments and files of quotes are for books of option contracts.",
                column=name,
            )
        raise AttributeError(f"Features has no {name!r}; its columns are in .columns: {columns}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Features, (dict(self.columns),)


def _numbers(name: str, column: ArrayLike) -> Floats:
    if not name.isidentifier():
        raise UsageError(
            f"Features: {name!r} is not a name a function can take. Use letters, digits and underscores.", name=name
        )
    try:
        array = (
            np.atleast_1d(np.asarray(column, float)) + 0.0
        )  # a negative zero would sort like zero and read otherwise
    except (TypeError, ValueError) as error:
        raise UsageError(f"Features: {name} must be numbers: {error}.", column=name) from error
    if array.ndim != 1:
        raise UsageError(f"Features: {name} has shape {array.shape}. Give one value per quote.", column=name)
    return array
