"""Propositions 1 and 4 as experiments: subtraction, shards and a rebuild from the retained quotes give one system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibration import Calibration
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import recompute_shards
from strikeout.forgetting.restep import restep
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.normal_equations import PAPER_RIDGE
from strikeout.statistics.shards import Shards, shard

Floats = NDArray[np.float64]

CUTS = {
    "10 days": "day:10",
    "30 days": "day:30",
    "maturity and moneyness": "product",
    "30 days and maturity": "day:30,maturity",
}


@dataclass(frozen=True)
class Exactness:
    """One strike-out done three ways.

    ``is_equal``: state and parameters of all three are the same bits. ``in_doubles``: by what share of the step's
    largest entry subtraction and rebuild differ where both sum doubles, as the paper does.
    """

    cut: str
    shards: int
    touched: int
    forgotten: int
    is_equal: bool
    in_doubles: float


def exactness(calibration: Calibration, *, fractions: Sequence[float], seed: int) -> Iterator[Exactness]:
    """Return every sharding at every fraction, quotes drawn at random.

    Raises:
        RefusedError: a quote cannot be counted exactly.
    """
    rng = np.random.default_rng(seed)
    quotes = calibration.quotes
    for name, cuts in CUTS.items():
        shards = shard(quotes, cuts)
        for fraction in fractions:
            ids = rng.choice(quotes.ids, max(1, round(fraction * len(quotes))), replace=False)
            yield struck(calibration, ids, shards=shards, cut=name)


def struck(calibration: Calibration, ids: NDArray[np.str_], *, shards: Shards, cut: str = "") -> Exactness:
    """Return one strike-out by subtraction, by shards and by a rebuild, compared bit for bit.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a quote cannot be counted exactly.
    """
    footprints = calibration.footprints
    steps = [
        downdate(footprints, ids),
        recompute_shards(calibration, ids, shards=shards).step,
        restep(calibration.quotes.without(ids), calibration.model, footprints.whole.schema),
    ]
    states = {step.equations.digest() for step in steps}
    moves = {step.change.tobytes() for step in steps}
    return Exactness(
        cut=cut,
        shards=len(shards),
        touched=len(shards.of(ids)),
        forgotten=len(ids),
        is_equal=len(states) == len(moves) == 1,
        in_doubles=_in_doubles(calibration, ids),
    )


def _in_doubles(calibration: Calibration, ids: NDArray[np.str_]) -> float:
    H, G = _sums(calibration, calibration.quotes)
    gone = _sums(calibration, calibration.quotes.only(ids))
    kept = _sums(calibration, calibration.quotes.without(ids))
    ridge = PAPER_RIDGE * np.eye(len(G))
    fast = np.linalg.solve(H - gone[0] + ridge, G - gone[1])
    rebuilt = np.linalg.solve(kept[0] + ridge, kept[1])
    return float(np.max(np.abs(fast - rebuilt)) / np.max(np.abs(rebuilt)))


def _sums(calibration: Calibration, quotes: Quotes) -> tuple[Floats, Floats]:
    price, J = calibration.model.linearize(calibration.parameters, quotes.contracts)
    return J.T @ J, J.T @ (quotes.observed - price)
