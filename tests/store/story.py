"""A life of a book in steps, the same every time: what a store holds after n steps can be replayed in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from strikeout.store.store import PAGE_KINDS, SHARD_DATA, Reading, Writing
from tests.store.books import bits, quotes
from tests.store.memory_store import MemoryStore


def step(tx: Writing, number: int, *, erasing: bool = True) -> None:
    """The step of this number: an import, a strike-out, a restore or an erasure, with its state and its entry."""
    draw = np.random.default_rng(number)
    held, struck = tx.now.quotes(), list(tx.now.struck())
    verb = ("import", "strike", "restore", "erase")[int(draw.integers(4))]
    if verb == "restore" and struck:
        tx.unstrike(struck[: len(struck) // 2 + 1])
    elif verb == "strike" and len(held):
        tx.strike(draw.choice(held.ids, min(len(held), 27), replace=False), entry=number)
    elif verb == "erase" and erasing and len(held) > 400:
        tx.erase(draw.choice(held.ids, 150, replace=False))
        tx.remove("plan", "latest")
    else:
        tx.add(quotes(int(draw.integers(1, 400)), seed=number))
        tx.put("plan", "latest", draw.bytes(2000))
    for shard in draw.permutation(list(tx.now.shards()))[:3].tolist():
        tx.put_shard_data(shard, "footprints", draw.bytes(3000))
        tx.put_shard_data(shard, "states", draw.bytes(504))
    tx.remove_shard_data("footprints", tx.now.shards_with("footprints")[:1])
    tx.put("state", "s", tx.now.quotes().observed.tobytes())
    tx.append(f"{number} {verb}".encode())


def content(store: Reading) -> list[Any]:
    """All that a store holds."""
    pages = [(kind, name, store.page(kind, name)) for kind in PAGE_KINDS for name in store.pages(kind)]
    left = [(what, shard, store.shard_data(shard, what)) for what in SHARD_DATA for shard in store.shards_with(what)]
    return [
        bits(store.quotes(struck=None)),
        store.struck(),
        store.counts(),
        pages,
        store.shards(),
        left,
        store.entries(),
    ]


class Replay:
    """What a store holds after each number of steps, as the book in memory tells it."""

    def __init__(self, *, erasing: bool = True) -> None:
        self._erasing = erasing
        self._store = MemoryStore()
        self._known = [content(self._store.now)]

    def after(self, steps: int) -> list[Any]:
        while len(self._known) <= steps:
            with self._store.writing() as tx:
                step(tx, len(self._known) - 1, erasing=self._erasing)
            self._known.append(content(self._store.now))
        return self._known[steps]
