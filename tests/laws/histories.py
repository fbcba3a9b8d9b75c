"""Random histories of a book, plain or a panel: what the laws of forgetting are tried on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import strikeout as so


def same(one: so.results.Calibration, other: so.results.Calibration) -> bool:
    """Parameters, path, errors, history and state: every bit of them."""
    return one.to_dict() == other.to_dict() and one.state.digest() == other.state.digest()


def wander(
    quotes: so.Quotes,
    start: so.results.Calibration,
    rng: np.random.Generator,
    *,
    length: int,
    leaving: Callable[[set[int]], set[int]],
) -> tuple[so.results.Calibration, frozenset[int]]:
    """Forgets, learns, restores and rolls, in random order; the end of it, and the rows that are held then.

    ``start`` is a calibration of all ``quotes``; ``leaving`` chooses the rows that go, given those that are held.
    """
    every = set(range(len(quotes)))
    calibration, held, done = start, set(every), []
    for _ in range(length):
        out = leaving(held)
        back = set(rng.permutation(sorted(every - held))[: rng.integers(0, len(every) - len(held) + 1)].tolist())
        verb = rng.choice(["forget", "learn", "roll", "restore"])
        if verb == "forget":
            done.append((so.forget(calibration, ids=quotes.ids[sorted(out)]), out))
            calibration, held = done[-1][0].calibration, held - out
        elif verb == "learn":
            calibration, held = so.learn(calibration, quotes[sorted(back)]), held | back
        elif verb == "roll":
            calibration = so.roll(calibration, quotes[sorted(back)], forget=quotes.ids[sorted(out)])
            held = (held - out) | back
        else:
            for forgetting, rows in done:
                if not rows & held:
                    calibration, held = so.restore(forgetting, calibration), held | rows
    return calibration, frozenset(held)


def in_every_order(
    start: so.results.Calibration, one: NDArray[np.object_], other: NDArray[np.object_]
) -> list[so.results.Calibration]:
    """Two sets of names forgotten one after the other, the other way round, and at once."""
    forward = so.forget(so.forget(start, ids=one).calibration, ids=other).calibration
    backward = so.forget(so.forget(start, ids=other).calibration, ids=one).calibration
    return [forward, backward, so.forget(start, ids=np.concatenate([other, one])).calibration]
