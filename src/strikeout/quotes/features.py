"""Named columns of numbers: what a quote is of if it is not an option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.text import many

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

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
                f"Features: columns of different lengths: {lengths}. Give one value per quote, or one for all."
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
        raise UsageError(f"Features: {name!r} is not a name a function can take. Use letters, digits and underscores.")
    try:
        array = (
            np.atleast_1d(np.asarray(column, float)) + 0.0
        )  # a negative zero would sort like zero and read otherwise
    except (TypeError, ValueError) as error:
        raise UsageError(f"Features: {name} must be numbers: {error}.", column=name) from error
    if array.ndim != 1:
        raise UsageError(f"Features: {name} has shape {array.shape}. Give one value per quote.", column=name)
    return array
