"""Strike quotes out shard by shard: the touched shards are built again from raw quotes, the others kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.errors import UsageError
from strikeout.forgetting.restep import equations_of
from strikeout.models.model import Model
from strikeout.quotes.features import Features
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.normal_equations import NormalEquations, Ridge
from strikeout.statistics.shards import Shards, shard, shard_states
from strikeout.statistics.system import OneStep
from strikeout.statistics.weights import Weighting


@dataclass(frozen=True, eq=False)
class Recomputed:
    """A step, and the states of all shards after it."""

    step: OneStep
    states: Mapping[str, NormalEquations]


def recompute(
    states: Mapping[str, NormalEquations],
    touched: Mapping[str, Quotes],
    *,
    model: Model,
    weights: Weighting | None = None,
    ridge: Ridge = None,
    free: tuple[int, ...] | None = None,
) -> Recomputed:
    """The step of ``downdate``, bit for bit, without any footprint of what is struck out.

    So it also heals: quotes whose footprints were never kept, or were lost, go with their shard.

    Args:
        states: of every shard, by name.
        touched: the retained raw quotes of every shard that held a quote to strike out; an empty book where none is
            left of it.

    Raises:
        UsageError: no shard is given, a touched one is unknown, or model and weights are not those of the states.
        RefusedError: a quote cannot be counted exactly.
    """
    unknown = sorted(touched.keys() - states.keys())
    if unknown or not states:
        raise UsageError(
            f"recompute: {len(unknown)} of the {len(touched)} touched shards are not among the {len(states)} known: "
            f"{', '.join(unknown[:3])}. Give the state of every shard.",
            shards=unknown,
        )
    schema = next(iter(states.values())).schema
    fresh = {
        name: equations_of(touched[name], model, schema, weights=weights) if name in touched else state
        for name, state in states.items()
    }
    return Recomputed(OneStep(NormalEquations.total(fresh.values()), ridge, free), fresh)


def recompute_shards(
    calibration: Calibration, ids: ArrayLike, *, shards: Shards | None = None, free: tuple[int, ...] | None = None
) -> Recomputed:
    """``recompute`` on a calibration's own footprints and quotes, cut into shards (by expiry where not given).

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        UsageError: the shards are not of the calibration's quotes.
        RefusedError: a quote cannot be counted exactly.
    """
    quotes = calibration.quotes
    if shards is None:
        shards = whole(quotes) if isinstance(quotes.contracts, Features) else shard(quotes, "expiry")
    gone = set(quotes.only(ids).ids.tolist())
    touched = {
        name: quotes.only([member for member in shards.members(name).tolist() if member not in gone])
        for name in shards.of(ids)
    }
    return recompute(
        shard_states(calibration.footprints, shards),
        touched,
        model=calibration.model,
        weights=calibration.settings.weights,
        free=free,
    )


def whole(quotes: Quotes) -> Shards:
    """The book as one shard."""
    return Shards(quotes.ids, np.zeros(len(quotes), np.intp), ("all",))
