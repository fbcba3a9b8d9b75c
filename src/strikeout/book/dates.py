"""Whether a book is of several dates, seen from a few of its quotes: where it goes through moments all are not read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from strikeout.calibration.panels import LABEL, values_of
from strikeout.quotes.quotes import Quotes
from strikeout.store.store import Reading


def shows_several_dates(store: Reading, *, come: Quotes) -> bool:
    """Whether the first quote retained, the last, and those that come are of two dates or more; no other is read.

    Never true of a book of one date. Of a book that gets its second date it is true, and as good as always of one that
    has several, since quotes come in the order of their dates.

    Args:
        store: with the quotes that come in it.
    """
    shards, away = list(store.shards()), {*store.struck()}
    first, last = _outermost(store, shards, away, 0), _outermost(store, shards[::-1], away, -1)
    return len(_dates(come) | _dates(first) | _dates(last)) > 1


def _outermost(store: Reading, shards: Iterable[int], away: set[str], end: int) -> Quotes:
    """The first or the last quote retained, from shards in that order; none of an empty book."""
    for shard in shards:
        here = [name for name in store.members(shard) if name not in away]
        if here:
            return store.named([here[end]])
    return store.named([])


def _dates(quotes: Quotes) -> set[str]:
    if LABEL not in quotes.labels:
        return set()
    values, missing = values_of(quotes.labels[LABEL])
    return set(np.unique(values[~missing]).astype(str).tolist())
