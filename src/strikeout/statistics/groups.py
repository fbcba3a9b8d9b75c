"""Quotes in groups: one by one, or by what their labels share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.quotes.conditions import Column, computed_columns, full_name, own_columns
from strikeout.statistics.shards import OWN, cut_names, split_cuts
from strikeout.text import did_you_mean

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

Rows = NDArray[np.intp]
By = str | Sequence[str] | NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class Groups:
    """What names each group, and the number of the group each quote is in."""

    keys: dict[str, NDArray[Any]]
    number: Rows
    count: int


def groups_of(quotes: Quotes, by: By) -> Groups:
    """Return the groups of a book.

    Args:
        by: None for every quote on its own; a label, a column of the contracts or a cut of ``states.shard`` ("month",
            "maturity:30,60", "date:30"), or several of them; or an array of one group name per quote.

    Raises:
        UsageError: a label that the quotes do not have, or an array of another length.
    """
    if by is None:
        return Groups({"id": quotes.ids}, np.arange(len(quotes)), len(quotes))
    if isinstance(by, np.ndarray):
        if by.shape != (len(quotes),):
            raise UsageError(f"by: {len(quotes):,} quotes need one group name each; got an array of shape {by.shape}.")
        columns = {"group": by}
    else:
        names = (
            split_cuts(by)
            if isinstance(by, str) and by not in quotes.labels
            else [by]
            if isinstance(by, str)
            else list(by)
        )
        if not names:
            raise UsageError("by: no label was given. Leave it out for every quote on its own.")
        columns = {name: column_of(quotes, name) for name in names}
    return _grouped(columns)


def column_of(quotes: Quotes, name: str) -> NDArray[Any]:
    """Return a label of the quotes, a column of their contracts, or the names of a cut.

    Raises:
        UsageError: there is none of that name.
    """
    if name in quotes.labels:
        return quotes.labels[name]
    contracts = getattr(quotes.contracts, "columns", None)  # of a custom model's quotes, by name
    own = dict(contracts) if contracts is not None else _described(quotes)
    if name in own:
        return np.asarray(own[name])
    if name.partition(":")[0] in (*OWN, *quotes.labels) and contracts is None:
        return cut_names(quotes, name)
    named: dict[str, Column] = {**computed_columns(quotes), **own_columns(quotes)}
    meant = full_name(name, (*quotes.labels, *named))
    if meant is not None:
        return named[meant]() if meant in named else quotes.labels[meant]
    known = list(dict.fromkeys([*quotes.labels, *own, *(OWN if contracts is None else ()), *named]))
    raise UsageError(
        f"by: the quotes have no label {name!r}.{did_you_mean(name, known)} They have {', '.join(known)}.", label=name
    )


def _described(quotes: Quotes) -> dict[str, NDArray[Any]]:
    try:
        return {field.name: getattr(quotes.contracts, field.name) for field in fields(quotes.contracts)}
    except TypeError:
        return {}


def _grouped(columns: dict[str, NDArray[Any]]) -> Groups:
    codes, firsts = None, None
    for column in columns.values():
        code, count = _codes(column)
        codes, firsts = _ranked(code if codes is None else codes * count + code)
    assert codes is not None
    assert firsts is not None
    return Groups({name: column[firsts] for name, column in columns.items()}, codes, len(firsts))


def _codes(column: NDArray[Any]) -> tuple[Rows, int]:
    """Return the rank of each value among the values that occur, and how many occur."""
    if not len(column) or (column == column[0]).all():  # one value for all, which is common, needs no sorting
        return np.zeros(len(column), np.intp), 1
    if column.dtype.kind == "O":
        values = column.tolist()
        try:
            ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
        except TypeError:  # values of several types: by what they look like
            values = column.astype(str).tolist()
            ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
        return np.fromiter(map(ranks.__getitem__, values), np.intp, len(values)), len(ranks)
    found, codes = np.unique(column, return_inverse=True)
    return codes.ravel(), len(found)


def _ranked(codes: Rows) -> tuple[Rows, Rows]:
    """Return the rank of each code among those that occur, and the first row of each."""
    if not len(codes) or codes.max() > 4 * len(codes):
        _, firsts, ranks = np.unique(codes, return_index=True, return_inverse=True)
        return ranks.ravel(), firsts
    occurs = np.bincount(codes) > 0
    ranks = (np.cumsum(occurs) - 1)[codes]
    firsts = np.empty(int(occurs.sum()), np.intp)
    firsts[ranks[::-1]] = np.arange(len(codes))[::-1]  # of several assignments to one place the last one stays
    return ranks, firsts
