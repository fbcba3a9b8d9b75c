"""Two books in one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.features import Features
from strikeout.quotes.forwards import FORWARD_FROM, is_derived, refitted
from strikeout.quotes.quotes import Quotes


def join(first: Quotes, second: Quotes) -> Quotes:
    """Return the quotes of both books, those of the first before those of the second.

    A label that only one of them has is empty (or not-a-number) for the quotes of the other. Forwards that are derived
    are refitted to the quotes of both.

    Raises:
        UsageError: an id is in both, or they are not of the same kind: options, or the same features.
        RefusedError: a slice gives no forward.

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
    """Return the quotes of both books, whose ids differ, with the forwards they have.

    Raises:
        UsageError: they are not of the same kind: options, or the same features.
    """
    names = dict.fromkeys([*first.labels, *second.labels])
    return Quotes._trusted(
        ids=np.concatenate([first.ids, second.ids]),
        contracts=_contracts(first.contracts, second.contracts),
        observed=np.concatenate([first.observed, second.observed]),
        weight=np.concatenate([first.weight, second.weight]),
        spread=np.concatenate([first.spread, second.spread]),
        labels={name: _label(first, second, name) for name in names},
    )


def _contracts(a: Contracts | Features, b: Contracts | Features) -> Contracts | Features:
    if isinstance(a, Contracts) and isinstance(b, Contracts):
        columns = ("forward", "strike", "expiry", "discount", "is_call")
        return Contracts(**{name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in columns})
    if isinstance(a, Features) and isinstance(b, Features) and a.names == b.names:
        return Features({name: np.concatenate([a.columns[name], b.columns[name]]) for name in a.names})
    kinds = [", ".join(c.names) if isinstance(c, Features) else "options" for c in (a, b)]
    raise UsageError(f"A book of {kinds[0]} and one of {kinds[1]} cannot be joined. Give both the same columns.")


def _label(first: Quotes, second: Quotes, name: str) -> NDArray[Any]:
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
