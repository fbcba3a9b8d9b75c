"""What is remembered of an erased quote so that it is known when it returns: keyed digests, nothing else."""

from __future__ import annotations

import struct
from collections.abc import Callable, Set

import numpy as np
from numpy.typing import NDArray

from strikeout.quotes.quotes import Quotes

Commit = Callable[[str, bytes], str]
KEPT = ("date", "source")  # two feeds may well quote the same price; these labels tell them apart


def traces(quotes: Quotes, commit: Commit) -> list[tuple[str, str]]:
    """Two commitments a quote: to its id, and to what it says (contract, price, date, source).

    Either alone gives a returning quote away: under another id, or at another price. Without the key they say nothing.
    """
    c = quotes.contracts
    numbers = np.column_stack([c.forward, c.strike, c.expiry, c.discount, c.is_call, quotes.observed])
    labels = [quotes.labels[name].astype(str).tolist() for name in KEPT if name in quotes.labels]
    tags = ["\x1f".join(row) for row in zip(*labels, strict=True)] if labels else [""] * len(quotes)
    return [
        (commit("id", name.encode()), commit("content", struct.pack("<6d", *row) + tag.encode()))
        for name, row, tag in zip(quotes.ids.tolist(), numbers.tolist(), tags, strict=True)
    ]


def returning(quotes: Quotes, erased: Set[str], commit: Commit) -> NDArray[np.bool_]:
    """Which of these quotes were erased before."""
    if not erased:
        return np.zeros(len(quotes), bool)
    return np.array([bool({*pair} & erased) for pair in traces(quotes, commit)], bool)
