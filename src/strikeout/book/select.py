"""Resolve ids or a condition to quotes of a book, with the ids it stores and the forwards that depend on them.

Ids of an encrypted book: those that contain the contract are replaced by keyed digests.

A store keeps ids readable, since a book is searched by them. An id that was made for a row without one is the contract
itself, as in ``2024-01-02/T0.123/80/C``, and would reveal what the book encrypts. The digest is keyed with the secret
of the book, so the same row gets the same id again. Verbs accept the readable id too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from strikeout.book.records import Snapshot
from strikeout.errors import NothingMeantError, RefusedError, UnknownIdError, UsageError
from strikeout.kernels.arrays import Mask
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.forwards import as_given, derived, is_derived, touched_by
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes, join
from strikeout.store.store import ENCRYPTION, Reading
from strikeout.text import Argument, agreeing, many, part

Commit = Callable[[str, bytes], str]
DIGITS = 24  # 96 bits: no two of a million quotes share an id


def is_encrypted(store: Reading) -> bool:
    """Return whether the quotes of a book are encrypted."""
    return store.page("setting", ENCRYPTION) is not None


def hidden_id(name: str, commit: Commit) -> str:
    """Return the id that replaces this one in an encrypted book."""
    return f"q-{commit('name', name.encode())[:DIGITS]}"


def reveals_contract(quotes: Quotes) -> Mask:
    """Return which ids contain strike and right of their quote, as those made for rows without an id do."""
    if not isinstance(quotes.contracts, Contracts):
        return np.zeros(len(quotes), bool)
    columns = (quotes.ids, quotes.contracts.strike, quotes.contracts.is_call)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([_reveals(name.split("/"), strike, is_call) for name, strike, is_call in rows], bool)


def hide_contracts(quotes: Quotes, commit: Commit) -> Quotes:
    """Return the same quotes, with ids that do not contain their contracts."""
    revealing = reveals_contract(quotes)
    if not revealing.any():
        return quotes
    named = zip(quotes.ids.tolist(), revealing.tolist(), strict=True)
    return Quotes(
        ids=[hidden_id(name, commit) if is_revealing else name for name, is_revealing in named],
        contracts=quotes.contracts,
        observed=quotes.observed,
        weight=quotes.weight,
        spread=quotes.spread,
        labels=dict(quotes.labels),
    )


def as_kept(store: Reading, ids: ArrayLike | None, commit: Commit) -> ArrayLike | None:
    """Return ids as a book stores them: in an encrypted one, the keyed digest of an id that it does not hold itself."""
    if ids is None or not is_encrypted(store):
        return ids
    names = as_names([ids] if isinstance(ids, str) else ids)
    if not len(names):
        return names
    other = as_names([hidden_id(name, commit) for name in names.tolist()])
    return np.where(~store.known(names) & store.known(other), other, names)


def _reveals(parts: list[str], strike: float, is_call: bool) -> bool:
    right = "C" if is_call else "P"
    return any(after == right and _is(before, strike) for before, after in pairwise(parts))


def _is(text: str, number: float) -> bool:
    try:
        return float(text) == number
    except ValueError:
        return False


LABELS = "labels"  # the setting that names the labels of quotes that were erased
USUAL = {"date", "expiry_date", "source"}


def named(
    store: Reading, *, ids: ArrayLike | None, where: str | None, verb: str, whole: Quotes | None = None
) -> Quotes:
    """Return the selected quotes, held or set aside. By ids only these are read; a condition is evaluated on all.

    Args:
        whole: all quotes, held and set aside, if they were read already.
    """
    if (ids is None) == (where is None):
        raise UsageError(f'Select the quotes to {verb} in one way: ids=[...] or where="...".', verb=verb)
    if where is not None:
        from strikeout.quotes.selection import nothing_matches, select  # loads SQLite

        whole = store.quotes(struck=None) if whole is None else whole
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
    """Return the selected quotes, all of them held; a condition is evaluated on those held only."""
    struck = records.struck
    whole = records.quotes if where is not None and not struck else None
    meant = named(records.store, ids=ids, where=where, verb=verb, whole=whole)
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
            Argument("where", where),
            f": ALL {many(count, 'quote')} match. If you want to {verb} all of them, add ",
            Argument("all_quotes", True),
            ".",
            where=where,
            count=count,
        )


def refuse_nothing(count: int, *, verb: str) -> None:
    """Raise NothingMeantError if no quote is selected."""
    if not count:
        raise NothingMeantError(f"No quote of the book is selected, so there is nothing to {verb}.", verb=verb)


def whole_slices(held: Quotes, gone: Quotes) -> Quotes:
    """Return quotes to be removed with the forwards they have in the book, as they are in its moments."""
    if not is_derived(gone).any():
        return gone
    left = int(np.count_nonzero(touched_by(held, np.isin(held.ids, gone.ids))))
    if left:
        raise RefusedError(
            f"The forwards of {many(left, 'quote')} that would stay depend on those to be removed, and a book that is "
            "calibrated through moments cannot refit them. Remove whole slices, or calibrate the book through quotes.",
            count=left,
        )
    return as_given(held.only(gone.ids))


def new_slices(held: Quotes, new: Quotes) -> Quotes:
    """Return quotes to be added with the forwards they will have in the book."""
    if not is_derived(new).any():
        return new
    both = join(held, new)
    left = int(np.count_nonzero(touched_by(both, np.isin(both.ids, new.ids))))
    if left:
        raise RefusedError(
            f"The forwards of {many(left, 'quote')} of the book would change with the added ones, and a book that is "
            "calibrated through moments cannot refit them. Calibrate the book through quotes first.",
            count=left,
        )
    return as_given(both.only(new.ids))
