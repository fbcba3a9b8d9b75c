"""Select quotes of a book by ids or by a condition, and read only these."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import ArrayLike

from strikeout.book.records import Snapshot
from strikeout.errors import NothingMeantError, UnknownIdError, UsageError
from strikeout.quotes.forwards import derived
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes
from strikeout.store.store import Reading, Store
from strikeout.text import Argument, agreeing, many, part

LABELS = "labels"  # the setting that names the labels of quotes that were erased
USUAL = {"date", "expiry_date", "source"}


def named(store: Store, *, ids: ArrayLike | None, where: str | None, verb: str) -> Quotes:
    """Return the selected quotes, held or set aside. By ids only these are read; a condition is evaluated on all.

    Raises:
        UsageError: not exactly one of ``ids`` and ``where`` is given, or the condition cannot be read.
        UnknownIdError: an id the book does not have, or one given twice.
        NothingMeantError: no quote matches the condition.
    """
    if (ids is None) == (where is None):
        raise UsageError(f'Select the quotes to {verb} in one way: ids=[...] or where="...".')
    if where is not None:
        from strikeout.quotes.selection import nothing_matches, select  # loads SQLite

        whole = store.quotes(struck=None)
        everything, _ = derived(whole)  # a condition may look at forwards: as if none were set aside
        also = labels_of(store, whole)
        names = select(everything, where, also=also)
        if not len(names):
            raise nothing_matches(everything, where, verb=verb, also=also)
        return store.named(names)
    return store.named(as_names([ids] if isinstance(ids, str) else [] if ids is None else ids))


def labels_of(store: Reading, quotes: Quotes) -> tuple[str, ...]:
    """Return the labels that a condition may use: those of these quotes, held or set aside, those that only erased
    quotes had, and the usual ones if there are no quotes."""
    known = {*quotes.labels, *erased_labels(store)} | (set() if len(quotes) else USUAL)
    return tuple({name.lower(): name for name in sorted(known)}.values())


def erased_labels(store: Reading) -> tuple[str, ...]:
    """Return the names of the labels of erased quotes; their values are not stored."""
    return tuple(json.loads(store.page("setting", LABELS) or b"[]"))


def held(records: Snapshot, *, ids: ArrayLike | None, where: str | None, verb: str) -> Quotes:
    """Return the selected quotes, all of them held; a condition is evaluated on those held only.

    Raises:
        UsageError: not exactly one of ``ids`` and ``where`` is given, or the condition cannot be read.
        UnknownIdError: an id the book does not have, has set aside, or one given twice.
    """
    meant = named(records.store, ids=ids, where=where, verb=verb)
    struck = records.struck
    is_aside = np.array([name in struck for name in meant.ids.tolist()], bool)
    aside = meant.ids[is_aside].tolist()
    if aside and ids is not None:
        shown, them = ", ".join(map(repr, aside[:3])), agreeing(len(aside), "it", "them")
        raise UnknownIdError(
            f"{part(len(aside), len(meant), 'quote', verb=('is', 'are'))} set aside already: {shown}. "
            f"Leave {them} out.",
            ids=aside,
        )
    return meant[~is_aside]


def check_all(count: int, total: int, *, where: str | None, all_quotes: bool, verb: str) -> None:
    """Raise UsageError if a condition matches every quote of a book and that is not confirmed."""
    if where is not None and count == total and not all_quotes:
        raise UsageError(
            f"where={where!r}: ALL {many(count, 'quote')} match. If you want to {verb} all of them, add ",
            Argument("all_quotes", True),
            ".",
            where=where,
            count=count,
        )


def refuse_nothing(count: int, *, verb: str) -> None:
    """Raise NothingMeantError if no quote is selected.

    Raises:
        NothingMeantError: the count is zero.
    """
    if not count:
        raise NothingMeantError(f"No quote of the book is selected, so there is nothing to {verb}.")
