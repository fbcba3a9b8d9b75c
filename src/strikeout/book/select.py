"""Which quotes of a book are meant, read without reading the others."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import ArrayLike

from strikeout.book.records import Snapshot
from strikeout.errors import NothingMeantError, UnknownIdError, UsageError
from strikeout.quotes.forwards import derived
from strikeout.quotes.names import Names, as_names
from strikeout.quotes.quotes import Quotes
from strikeout.store.store import Reading, Store
from strikeout.wording import agreeing, part

LABELS = "labels"  # the setting that names the labels of quotes that were erased
USUAL = {"date", "expiry_date", "source"}


def named(store: Store, *, ids: ArrayLike | None, where: str | None, verb: str) -> Quotes:
    """The quotes meant, held or set aside. By ids only they are read; a condition is asked of all.

    Raises:
        UsageError: not exactly one of ``ids`` and ``where`` is given, or the condition cannot be read.
        UnknownIdError: an id the book does not have, or one given twice.
        NothingMeantError: no quote matches the condition.
    """
    if (ids is None) == (where is None):
        raise UsageError(f'Say what to {verb} in one way: ids=[...] or where="...".')
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


def names_for(store: Reading, quotes: Quotes, where: str) -> Names:
    """The ids of those of a book's quotes for which a condition holds.

    Raises:
        UsageError: the condition cannot be read.
    """
    from strikeout.quotes.selection import select  # loads SQLite

    return select(quotes, where, also=labels_of(store, store.quotes(struck=None)))


def labels_of(store: Reading, quotes: Quotes) -> tuple[str, ...]:
    """The labels a condition may ask for in a book whose quotes, held or set aside, are these: theirs, those that only
    erased ones had, and where none are left the usual ones."""
    known = {*quotes.labels, *erased_labels(store)} | (set() if len(quotes) else USUAL)
    return tuple({name.lower(): name for name in sorted(known)}.values())


def erased_labels(store: Reading) -> tuple[str, ...]:
    """The labels that quotes had which are erased; not what they said."""
    return tuple(json.loads(store.page("setting", LABELS) or b"[]"))


def held(records: Snapshot, *, ids: ArrayLike | None, where: str | None, verb: str) -> Quotes:
    """The quotes meant, all of them held; a condition is asked of those held only.

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


def refuse_nothing(count: int, *, verb: str) -> None:
    """Nothing, where quotes are meant.

    Raises:
        NothingMeantError: none is.
    """
    if not count:
        raise NothingMeantError(f"No quote of the book is meant by that, so there is nothing to {verb}.")
