"""Quotes: contracts, the observed price of each, and an id for every quote."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.quotes.contracts import Contracts, Features
from strikeout.quotes.forwards import FORWARD_FROM, is_derived, refitted
from strikeout.quotes.names import NameIndex, Names, as_names
from strikeout.quotes.parity import AMERICAN_MID
from strikeout.text import as_lines, many

DATE = "date"  # the label that holds the day of a quote
ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF

if TYPE_CHECKING:
    import polars as pl

Labels = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Quotes:
    """A book of quotes, one per row; every array read-only. A change is a new book.

    Args:
        ids: a unique, stable name for each quote; never row numbers.
        contracts: what each is a quote of; for a custom model named columns instead, see ``from_columns``.
        observed: the prices seen, in the currency of the forward.
        weight: of each squared residual; 1 where not given.
        spread: ask minus bid; not-a-number if unknown.
        labels: anything else known of each quote (date, source, licence, ...), by name. Text or numbers; ``date`` is
            the day of the quote, as text (2024-01-31, empty if unknown) or as ``datetime64``.

    Raises:
        UsageError: lengths differ, an id is empty or there twice, a price is not finite, a weight is not finite and
            above zero, a ``date`` is not a date, a text is not Unicode.

    >>> contracts = Contracts(forward=100.0, strike=[90.0, 110.0], expiry=0.5, discount=1.0, is_call=True)
    >>> Quotes(ids=["a", "b"], contracts=contracts, observed=[12.0, 2.5]).without(["a"]).ids
    array(['b'], dtype='<U1')
    """

    ids: Names
    contracts: Contracts
    observed: Floats
    weight: Floats
    spread: Floats
    labels: Labels

    def __init__(
        self,
        *,
        ids: ArrayLike,
        contracts: Contracts,
        observed: ArrayLike,
        weight: ArrayLike | None = None,
        spread: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        count = len(contracts)
        names = _sized("ids", as_names(ids), count)
        self._set(
            ids=np.array(names),
            contracts=contracts,
            observed=_numbers("observed", observed, count),
            weight=np.ones(count) if weight is None else _numbers("weight", weight, count),
            spread=np.full(count, np.nan) if spread is None else _numbers("spread", spread, count),
            labels={
                name: _sized(f"label {name!r}", _label(name, column), count) for name, column in (labels or {}).items()
            },
        )
        _check("observed", self.observed, np.isfinite(self.observed), "a finite number")
        _check("weight", self.weight, np.isfinite(self.weight) & (self.weight > 0), "finite and above zero")
        _check("spread", self.spread, ~np.isinf(self.spread), "a number, or not-a-number if unknown")
        check_names(self.labels)
        for name, column in (("id", self.ids), *((f"label {name!r}", column) for name, column in self.labels.items())):
            check_text(name, column)
        if DATE in self.labels:
            check_dates(self.labels[DATE])
        self._index  # noqa: B018  (built now so that a repeated id is refused here, not later)

    @classmethod
    def from_columns(
        cls,
        ids: ArrayLike,
        observed: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        **features: ArrayLike,
    ) -> Quotes:
        """Return quotes of anything a custom model can price: named columns of numbers, one row per quote.

        Their ``contracts`` are ``Features``; what needs options (implied volatilities, smiles, moments) is refused.

        Raises:
            UsageError: no column, lengths that differ, a number that is not finite, a label with the name of a
                feature; and as for any book.

        >>> Quotes.from_columns(["a", "b"], [10.1, 14.7], pressure=[77.6, 114.9])
        <Quotes: 2 quotes of pressure>
        """
        # A book is typed by its usual contents. Features refuse, in a sentence, what only options have.
        described = cast(Contracts, Features(features))
        twice = sorted(set(features) & set(labels or {}))
        if twice:
            raise UsageError(f"Quotes: {twice[0]!r} is a feature and a label. Rename one.", column=twice[0])
        return cls(ids=ids, contracts=described, observed=observed, weight=weight, labels=labels)

    @classmethod
    def _trusted(cls, **columns: Any) -> Quotes:
        """Return a book from columns already checked: rows of another book, or names that are unique by
        construction."""
        quotes = object.__new__(cls)
        quotes._set(**columns)
        return quotes

    def _set(self, *, labels: Mapping[str, NDArray[Any]], **columns: Any) -> None:
        for array in (*labels.values(), *(column for column in columns.values() if isinstance(column, np.ndarray))):
            array.flags.writeable = False
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        object.__setattr__(self, "labels", MappingProxyType(dict(labels)))

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex.of(self.ids)

    def __len__(self) -> int:
        return len(self.observed)

    def __getitem__(self, rows: ArrayLike | slice) -> Quotes:
        """Return the quotes of these rows (distinct numbers, a mask or a slice), in that order."""
        picked: Any = rows if isinstance(rows, slice) else np.asarray(rows, np.intp if np.size(rows) == 0 else None)
        if isinstance(picked, np.ndarray) and (picked.ndim == 0 or picked.dtype.kind not in "biu"):
            raise UsageError(
                f"Quotes: rows are a slice, a mask or distinct numbers; got {rows!r}. One row is quotes[[0]], quotes "
                "by id are quotes.only(ids)."
            )
        if (
            isinstance(picked, np.ndarray)
            and picked.dtype != bool
            and len(np.unique(picked % max(len(self), 1))) < picked.size
        ):
            raise UsageError("Quotes: a row is asked for twice, and a book holds each quote once. Give distinct rows.")
        return self._rows(picked)

    def _rows(self, picked: Any) -> Quotes:
        def rows(column: NDArray[Any]) -> NDArray[Any]:  # copied: a view would keep the whole book in memory
            return column[picked].copy() if isinstance(picked, slice) else column[picked]

        return Quotes._trusted(
            ids=rows(self.ids),
            contracts=self.contracts[picked],
            observed=rows(self.observed),
            weight=rows(self.weight),
            spread=rows(self.spread),
            labels={name: rows(column) for name, column in self.labels.items()},
        )

    def places(self, ids: ArrayLike) -> Rows:
        """Return the row numbers of these ids, in no order.

        Raises:
            UnknownIdError: an id that no quote of this book has, or one given twice.
        """
        found = self._index.look_up(ids)
        return self._index.find(ids) if found is None else np.array(found, np.intp)

    def only(self, ids: ArrayLike) -> Quotes:
        """Return the quotes with these ids, in the order of this book.

        Raises:
            UnknownIdError: an id that no quote of this book has, or one given twice.
        """
        return self._rows(self._index.find(ids))

    def without(self, ids: ArrayLike) -> Quotes:
        """Return the quotes with none of these ids, in the order of this book: as if the others had never been in it.

        Forwards that were derived from removed quotes (see ``quotes.forwards``) are refitted to the retained ones.

        Raises:
            UnknownIdError: an id that no quote of this book has, or one given twice.
            RefusedError: what is left of a slice gives no forward.
        """
        kept = np.ones(len(self), bool)
        kept[self._index.find(ids)] = False
        if "forward_from" not in self.labels:
            return self._rows(kept)
        from strikeout.quotes.forwards import refitted, touched_by

        return refitted(self._rows(kept), touched_by(self, ~kept)[kept])

    def with_observed(self, observed: ArrayLike) -> Quotes:
        """Return the same quotes with other observed prices, one per quote; forwards that were derived are found from
        these.

        The prices are European, also of quotes that were American (``american.to_european``): those no longer are.

        Raises:
            UsageError: the length differs, or a price is not finite.
            RefusedError: a slice of these prices gives no forward.
        """
        prices = _numbers("observed", observed, len(self))
        _check("observed", prices, np.isfinite(prices), "a finite number")
        repriced = Quotes._trusted(
            ids=self.ids,
            contracts=self.contracts,
            observed=prices,
            weight=self.weight,
            spread=self.spread,
            labels={name: column for name, column in self.labels.items() if name != AMERICAN_MID},
        )
        if "forward_from" not in self.labels:
            return repriced
        from strikeout.quotes.forwards import is_derived, refitted

        return refitted(repriced, is_derived(repriced))

    def to_frame(self) -> pl.DataFrame:
        """Return the book as a Polars frame in the canonical columns, the ones `read_quotes` understands."""
        from strikeout.quotes.writing import frame_of

        return frame_of(self)

    def __repr__(self) -> str:
        return f"<Quotes: {self._headline()}>"

    def _headline(self) -> str:
        if not len(self):
            return "empty"
        if isinstance(self.contracts, Features):
            return f"{many(len(self), 'quote')} of {', '.join(self.contracts.names)}"
        expiries = self.contracts.expiry
        distinct = len(np.unique(expiries))
        span = f"{expiries.min():.3g}" if distinct == 1 else f"{expiries.min():.3g} to {expiries.max():.3g}"
        return f"{many(len(self), 'quote')}, {many(distinct, 'maturity', 'maturities')} ({span} years)"

    def _facts(self) -> list[tuple[str, str]]:
        if not len(self):
            return []
        known = self.spread[np.isfinite(self.spread)]
        facts = [
            *self._described(),
            ("observed", _span(self.observed)),
            ("weight", _span(self.weight)),
            ("spread", f"{_span(known)} ({known.size:,} known)" if known.size else "unknown"),
        ]
        return facts + [(f"label {name}", _values(column)) for name, column in self.labels.items()]

    def _described(self) -> list[tuple[str, str]]:
        if isinstance(self.contracts, Features):
            return [(name, _span(column)) for name, column in self.contracts.columns.items()]
        calls = int(self.contracts.is_call.sum())
        return [
            ("calls / puts", f"{calls:,} / {len(self) - calls:,}"),
            ("strike", _span(self.contracts.strike)),
            ("forward", _span(self.contracts.forward)),
            ("discount", _span(self.contracts.discount)),
        ]

    def summary(self) -> str:
        """Return the book in a few lines of plain text."""
        width = max((len(name) for name, _ in self._facts()), default=0)
        return as_lines([self._headline(), *(f"  {name:<{width}}  {fact}" for name, fact in self._facts())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(fact)}</td></tr>"
            for name, fact in self._facts()
        )
        return f"<table><caption>{html.escape(self._headline())}</caption>{rows}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self.ids, self.contracts, self.observed, self.weight, self.spread, dict(self.labels))
        return _unpickled, columns


def _unpickled(*columns: Any) -> Quotes:
    return Quotes._trusted(
        **dict(zip(("ids", "contracts", "observed", "weight", "spread", "labels"), columns, strict=True))
    )


def _numbers(what: str, column: ArrayLike, count: int) -> Floats:
    try:
        array = np.array(column, dtype=float)
    except (TypeError, ValueError) as error:
        raise UsageError(f"Quotes: {what} must be numbers: {error}.", column=what) from error
    if array.ndim == 0:
        array = np.full(count, float(array))
    return _sized(what, array, count)


def _label(name: str, column: ArrayLike) -> NDArray[Any]:
    array = np.array(column)
    if array.dtype.kind == "T" or (array.dtype.kind == "O" and set(map(type, array.ravel())) - {str}):
        array = np.array(["" if value is None else str(value) for value in array.ravel()], dtype=object)
    if array.dtype.kind not in "OUfiubM":
        raise UsageError(
            f"Quotes: label {name!r} is {array.dtype}; labels are text, numbers, booleans or dates.", name=name
        )
    return array


def _sized(what: str, array: NDArray[Any], count: int) -> NDArray[Any]:
    if array.shape != (count,):
        raise UsageError(
            f"Quotes: {count:,} contracts, but {what} has shape {array.shape}. Give one value per contract.",
            column=what,
        )
    return array


def _check(what: str, column: Floats, good: Mask, needed: str) -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        raise UsageError(
            f"Quotes: {what} at row {bad[0]} is {column[bad[0]]}; it must be {needed} ({many(bad.size, 'such row')}).",
            column=what,
            row=int(bad[0]),
        )


def _span(column: Floats) -> str:
    low, high = float(column.min()), float(column.max())
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def _values(column: NDArray[Any]) -> str:
    if column.dtype.kind == "f":
        known = column[np.isfinite(column)]
        return _span(known) if known.size else "unknown"
    distinct = _sorted({bool(value) for value in column} if column.dtype.kind == "b" else set(column.tolist()))
    if len(distinct) <= 3:
        return ", ".join(str(value) for value in distinct)
    return f"{distinct[0]} to {distinct[-1]} ({many(len(distinct), 'value')})"


def _sorted(values: set[Any]) -> list[Any]:
    """Return the values in order; numbers given as text, such as the days of a file, in the order of the numbers."""
    try:
        return sorted(values, key=float)
    except (TypeError, ValueError):
        return sorted(values)


def join(first: Quotes, second: Quotes) -> Quotes:
    """Return the quotes of both books, those of the first before those of the second.

    A label that only one of them has is empty (or not-a-number) for the quotes of the other. Forwards that are derived
    are refitted to the quotes of both.

    >>> from strikeout import paper
    >>> book = paper.quotes("small")
    >>> len(join(book[:500], book[500:]))
    540
    """
    both = np.intersect1d(first.ids, second.ids)
    if both.size:
        raise UsageError(
            f"{both.size:,} of the {len(second):,} quotes have ids that are in the book already: "
            f"{', '.join(map(repr, both[:3].tolist()))}{', ...' if both.size > 3 else ''}. "
            "Forget the old ones first, or give the new ones other ids.",
            ids=both.tolist(),
        )
    joined = stacked(first, second)
    return refitted(joined, is_derived(joined)) if FORWARD_FROM in joined.labels else joined


def stacked(first: Quotes, second: Quotes) -> Quotes:
    """Return the quotes of both books, whose ids differ, with the forwards they have."""
    names = dict.fromkeys([*first.labels, *second.labels])
    return Quotes._trusted(
        ids=np.concatenate([first.ids, second.ids]),
        contracts=_contracts(first.contracts, second.contracts),
        observed=np.concatenate([first.observed, second.observed]),
        weight=np.concatenate([first.weight, second.weight]),
        spread=np.concatenate([first.spread, second.spread]),
        labels={name: _joined_label(first, second, name) for name in names},
    )


def _contracts(a: Contracts | Features, b: Contracts | Features) -> Contracts | Features:
    if isinstance(a, Contracts) and isinstance(b, Contracts):
        columns = ("forward", "strike", "expiry", "discount", "is_call")
        return Contracts(**{name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in columns})
    if isinstance(a, Features) and isinstance(b, Features) and a.names == b.names:
        return Features({name: np.concatenate([a.columns[name], b.columns[name]]) for name in a.names})
    kinds = [", ".join(c.names) if isinstance(c, Features) else "options" for c in (a, b)]
    raise UsageError(f"A book of {kinds[0]} and one of {kinds[1]} cannot be joined. Give both the same columns.")


def _joined_label(first: Quotes, second: Quotes, name: str) -> NDArray[Any]:
    parts = [book.labels.get(name) for book in (first, second)]
    known = [part for part in parts if part is not None]
    if len(known) < 2:
        kind = known[0].dtype.kind
        blank = {"f": np.nan, "i": np.nan, "u": np.nan, "M": np.datetime64("NaT")}.get(kind, "")
        parts = [
            np.full(len(book), blank, object if isinstance(blank, str) else None) if part is None else part
            for book, part in zip((first, second), parts, strict=True)
        ]
        known = [part for part in parts if part is not None]
    texts = [part.dtype.kind in "OU" for part in known]
    if any(texts):
        known = [part.astype(str).astype(object) for part in known]
    return np.concatenate(known)


def check_dates(column: NDArray[Any]) -> None:
    """Raise UsageError unless every value of the label ``date`` is a date or empty."""
    if column.dtype.kind == "M":
        return
    values = column.tolist()
    bad = {value for value in set(values) if not _is_date(value)}
    if bad:
        row = next(row for row, value in enumerate(values) if value in bad)
        raise UsageError(
            f"Quotes: label 'date' at row {row} is {values[row]!r}; it must be a date such as '2024-01-31', or '' if "
            "unknown. Write it so, or give the label another name.",
            label=DATE,
            row=row,
        )


def check_names(names: Iterable[str]) -> None:
    """Raise UsageError unless every name of a label is text that a file and a condition can hold."""
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name or not is_unicode(name):
            raise UsageError(
                f"Quotes: {name!r} is not a name for a label. Give a text that is not empty, without NUL characters "
                "and halves of surrogate pairs.",
                label=name,
            )


def check_text(what: str, column: NDArray[Any]) -> None:
    """Raise UsageError if a text has half of a surrogate pair: no file in UTF-8 could hold it."""
    if column.dtype.kind in "OU" and not _is_unicode(column):
        row = next(row for row, value in enumerate(column.tolist()) if not _is_unicode(np.array([value], object)))
        raise UsageError(
            f"Quotes: {what} at row {row} is {str(column[row])!r}: half of a surrogate pair is not Unicode text. "
            "Decode the text again, with errors='replace'.",
            column=what,
            row=row,
        )


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can hold this text; a name of a file that is none has halves of surrogate pairs for its
    bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_unicode(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "U":
        points = np.ascontiguousarray(column, column.dtype.newbyteorder("=")).view(np.uint32)
        return not bool(((points >= FIRST_SURROGATE) & (points <= LAST_SURROGATE)).any())
    return is_unicode("".join(set(column.tolist())))


def _is_date(value: Any) -> bool:
    try:
        return value == "" or (ISO_DATE.fullmatch(value) is not None and bool(date.fromisoformat(value)))
    except (TypeError, ValueError):
        return False
