"""Ids of an encrypted book: those that contain the contract are replaced by keyed digests.

A store keeps ids readable, since a book is searched by them. An id that was made for a row without one is the contract
itself, as in ``2024-01-02/T0.123/80/C``, and would reveal what the book encrypts. The digest is keyed with the secret
of the book, so the same row gets the same id again. Verbs accept the readable id too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.quotes.contracts import Contracts
from strikeout.quotes.names import as_names
from strikeout.quotes.quotes import Quotes
from strikeout.store.store import ENCRYPTION, Reading

Commit = Callable[[str, bytes], str]
DIGITS = 24  # 96 bits: no two of a million quotes share an id


def is_encrypted(store: Reading) -> bool:
    """Return whether the quotes of a book are encrypted."""
    return store.page("setting", ENCRYPTION) is not None


def hidden_id(name: str, commit: Commit) -> str:
    """Return the id that replaces this one in an encrypted book."""
    return f"q-{commit('name', name.encode())[:DIGITS]}"


def reveals_contract(quotes: Quotes) -> NDArray[np.bool_]:
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
    """Return ids as a book stores them: in an encrypted one, the keyed digest of an id that it does not hold itself.

    Raises:
        UsageError: the ids are not text.
    """
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
