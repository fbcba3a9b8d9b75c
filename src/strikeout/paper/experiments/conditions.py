"""Proposition 4 and its remarks as experiments: what the stability bounds say, and how often they may say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from strikeout.assurance import bounds
from strikeout.assurance.bounds import Bound
from strikeout.assurance.spectrum import leverages
from strikeout.calibration.calibration import Calibration
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import linearize
from strikeout.statistics.losses import TUNING, Huber
from strikeout.statistics.objective import objective_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Condition:
    """One bound over several strike-outs of one size.

    ``holds`` is the share of strike-outs where its condition does, ``respected`` the share where the truth lies on the
    promised side, ``tightness`` the median of truth over bound where it says something (else not-a-number).
    ``leverage`` is the median largest eigenvalue of ``H^-1 (H - H')``.
    """

    bound: str
    scaled: bool
    forgotten: int
    holds: float
    respected: float
    tightness: float
    leverage: float


def conditions(calibration: Calibration, *, counts: Sequence[int], runs: int, seed: int) -> Iterator[Condition]:
    """Every bound, in plain and in scaled parameters, at every number of forgotten quotes.

    Raises:
        UsageError: the curvature before is singular.
        RefusedError: a quote cannot be counted exactly.
    """
    rng = np.random.default_rng(seed)
    footprints = footprints_of(calibration.quotes, calibration.model, calibration.parameters)
    whole = footprints.total()
    before = whole.system()
    for count in counts:
        drawn = [rng.choice(len(footprints), count, replace=False).astype(np.int64) for _ in range(runs)]
        after = [(whole - footprints.total(np.sort(places))).system() for places in drawn]
        leverage = float(np.median([leverages(before, system)[-1] for system in after]))
        for scaled in (False, True):
            for name, found in _bounds(before, after, scaled=scaled).items():
                tight = [one.tightness for one in found if np.isfinite(one.tightness)]
                yield Condition(
                    bound=name,
                    scaled=scaled,
                    forgotten=count,
                    holds=float(np.mean([one.condition_holds for one in found])),
                    respected=float(np.mean([one.is_respected for one in found])),
                    tightness=float(np.median(tight)) if tight else nan,
                    leverage=leverage,
                )


def _bounds(before: Linearization, after: Sequence[Linearization], *, scaled: bool) -> dict[str, list[Bound]]:
    return {
        "stability": [bounds.stability(before, one, scaled=scaled) for one in after],
        "Neumann, ||H^-1|| ||dH||": [bounds.neumann(before, one, norms="separate", scaled=scaled) for one in after],
        "Neumann, ||H^-1 dH||": [bounds.neumann(before, one, norms="joint", scaled=scaled) for one in after],
        "Weyl": [bounds.weyl(before, one, scaled=scaled) for one in after],
    }


@dataclass(frozen=True)
class Pull:
    """How far one wrong quote moves the step taken at the clean parameters, under two losses.

    The length of the move, every parameter over the standard error it has when the others are known
    (``s / sqrt(H_aa)``). ``bound`` is the paper's remark on Huber's loss made right: the norm of the inverse, not the
    condition number.
    """

    wrong_by: float  # currency
    squared: float
    huber: float
    bound: float


def pulls(calibration: Calibration, *, wrong_by: Sequence[float]) -> list[Pull]:
    """One quote of a clean book made wrong by more and more, and struck out.

    Raises:
        UsageError: the curvature is singular.
    """
    quotes, model, noise = calibration.quotes, calibration.model, calibration.rmse
    theta = list(calibration.parameters.values())
    row = len(quotes) // 2
    J = model.linearize(theta, quotes.contracts[[row]])[1]
    loss = Huber(TUNING * noise)
    out = []
    for amount in wrong_by:
        observed = quotes.observed.copy()
        observed[row] += amount
        book = quotes.with_observed(observed)
        whole, _ = objective_of(book)
        kept, _ = objective_of(book.without(quotes.ids[[row]]))
        squared = bounds.stability(linearize(whole, model, theta), linearize(kept, model, theta), scaled=True)
        robust = bounds.huber(
            linearize(whole.with_loss(loss), model, theta),
            linearize(kept.with_loss(loss), model, theta),
            forgotten=J,
            threshold=loss.threshold,
            scaled=True,
        )
        out.append(Pull(float(amount), squared.truth / noise, robust.truth / noise, robust.value / noise))
    return out
