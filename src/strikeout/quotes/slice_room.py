"""Quotes put away by slice, as far as forwards rest on them: a part of the slices can then be looked at alone."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

import numpy as np
import polars as pl

from strikeout.quotes.contracts import Contracts
from strikeout.quotes.derive import label_array
from strikeout.quotes.forwards import FORWARD_FROM, NEEDED
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.scratch import Place, Scratch
from strikeout.quotes.slices import KEYS

PARTS = 32  # of ten million quotes each is a few hundred thousand
NUMBERS = ("forward", "strike", "expiry", "discount", "is_call")
TEXTS = (*KEYS, "exercise", "discount_from", FORWARD_FROM)


class SliceRoom:
    """Quotes whose forwards are derived, on disk; only what such a forward rests on is kept of each."""

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self._scratch = Scratch(folder)
        self._places: list[list[Place]] = [[] for _ in range(PARTS)]
        self._known = pl.Series([], dtype=pl.UInt64)

    def add(self, quotes: Quotes, *, only_known: bool = False) -> None:
        """Puts quotes away; where ``only_known``, those of slices that are here already."""
        table = _table(quotes)
        key = pl.Series([0], dtype=pl.UInt64).new_from_index(0, table.height)
        for name in (*KEYS, "expiry"):
            key = (key + table[name].cast(pl.String).hash()).hash()
        if only_known:
            here = key.is_in(self._known.implode())
            table, key = table.filter(here), key.filter(here)
        else:
            self._known = pl.concat([self._known, key]).unique()
        part = (key % PARTS).to_numpy()
        for number in np.unique(part).tolist():
            self._places[number].append(self._scratch.put(table.filter(pl.Series(part == number))))

    def parts(self) -> Iterator[Quotes]:
        """All quotes, some slices at a time, whole ones."""
        for places in self._places:
            if places:
                yield _quotes(self._scratch.all(places))

    def close(self) -> None:
        """Gives the room on disk back."""
        self._scratch.close()


def _table(quotes: Quotes) -> pl.DataFrame:
    columns = {"id": pl.Series(quotes.ids.tolist(), dtype=pl.String)}
    columns |= {name: pl.Series(getattr(quotes.contracts, name)) for name in NUMBERS}
    columns |= {name: pl.Series(getattr(quotes, name)) for name in ("observed", "weight", "spread")}
    for name in dict.fromkeys((*NEEDED, *TEXTS)):
        held = quotes.labels.get(name)
        if name in TEXTS:
            texts = [""] * len(quotes) if held is None else held.astype(str).tolist()
            columns[name] = pl.Series(texts, dtype=pl.String)
        elif held is not None and held.dtype.kind in "fiu":
            columns[name] = pl.Series(held.astype(float))
        else:
            columns[name] = pl.Series(np.full(len(quotes), np.nan))
    return pl.DataFrame(columns)


def _quotes(table: pl.DataFrame) -> Quotes:
    contracts = Contracts(**{name: table[name].to_numpy() for name in NUMBERS})
    own = {name: table[name].to_numpy().copy() for name in ("observed", "weight", "spread")}
    labels = {name: label_array(table[name]) for name in dict.fromkeys((*NEEDED, *TEXTS))}
    return Quotes._trusted(ids=table["id"].to_numpy().astype(str), contracts=contracts, labels=labels, **own)
