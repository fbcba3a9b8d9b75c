"""Ids that say nothing: an encrypted book replaces ids that are made of the contract by keyed digests.

A store keeps ids readable, since they are what a book is searched by. An id that was made for a row without one is the
contract itself, as in ``2024-01-02/T0.123/80/C``, and would tell in the clear what the book keeps under lock. The
digest is keyed with the secret of the book, so the same row gets the same id again. Verbs accept the readable id too.
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
DIGITS = 24  # 96 bits: no two of a million quotes share a name


def is_encrypted(store: Reading) -> bool:
    """Whether a book keeps its quotes under keys."""
    return store.page("setting", ENCRYPTION) is not None


def veiled(name: str, commit: Commit) -> str:
    """The id that stands for this one in an encrypted book."""
    return f"q-{commit('name', name.encode())[:DIGITS]}"


def is_spoken(quotes: Quotes) -> NDArray[np.bool_]:
    """Which ids hold strike and right of their quote, as those do that are made for rows without one."""
    if not isinstance(quotes.contracts, Contracts):
        return np.zeros(len(quotes), bool)
    columns = (quotes.ids, quotes.contracts.strike, quotes.contracts.is_call)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([_speaks(name.split("/"), strike, is_call) for name, strike, is_call in rows], bool)


def veil(quotes: Quotes, commit: Commit) -> Quotes:
    """The same quotes, with ids that do not hold their contracts."""
    spoken = is_spoken(quotes)
    if not spoken.any():
        return quotes
    named = zip(quotes.ids.tolist(), spoken.tolist(), strict=True)
    return Quotes(
        ids=[veiled(name, commit) if tells else name for name, tells in named],
        contracts=quotes.contracts,
        observed=quotes.observed,
        weight=quotes.weight,
        spread=quotes.spread,
        labels=dict(quotes.labels),
    )


def as_kept(store: Reading, ids: ArrayLike | None, commit: Commit) -> ArrayLike | None:
    """Ids as a book has them: in an encrypted one, those it does not know by the name given, by the one that stands
    for it.

    Raises:
        UsageError: the ids are no text.
    """
    if ids is None or not is_encrypted(store):
        return ids
    names = as_names([ids] if isinstance(ids, str) else ids)
    if not len(names):
        return names
    other = as_names([veiled(name, commit) for name in names.tolist()])
    return np.where(~store.known(names) & store.known(other), other, names)


def _speaks(parts: list[str], strike: float, is_call: bool) -> bool:
    right = "C" if is_call else "P"
    return any(after == right and _is(before, strike) for before, after in pairwise(parts))


def _is(text: str, number: float) -> bool:
    try:
        return float(text) == number
    except ValueError:
        return False
