"""Propositions 3 and 5 and their remarks as experiments: what the bounds promise, how often their conditions hold."""

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
from strikeout.statistics.normal_equations import PAPER_RIDGE
from strikeout.statistics.objective import objective_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Condition:
    """One bound over several strike-outs of one size.

    ``holds`` is the share of strike-outs where its condition does, ``respected`` the share where the truth lies on the
    promised side, ``tightness`` the median of truth over bound (not-a-number if the condition never holds).
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
    """Return every bound, in plain and in scaled parameters, at every number of forgotten quotes.

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
        "combined (remark)": [_combined(before, one, scaled=scaled) for one in after],
        "stability with lambda": [_with_ridge(before, one, scaled=scaled) for one in after],
    }


def _combined(before: Linearization, after: Linearization, *, scaled: bool) -> Bound:
    """Return the bound of the remark on conditioning.

    (||dG|| + ||dH|| ||d||) / (lambda_min(H) (1 - ||H^-1 dH||)), if that norm is below 1.
    """
    H, G, H_left, G_left = _systems(before, after, scaled=scaled)
    d = np.linalg.solve(H, G)
    change = np.linalg.norm(np.linalg.solve(H, H_left - H), 2)
    smallest = np.linalg.eigvalsh(H)[0] * (1.0 - change)
    value = (np.linalg.norm(G_left - G) + np.linalg.norm(H_left - H, 2) * np.linalg.norm(d)) / smallest
    moved = float(np.linalg.norm(np.linalg.solve(H_left, G_left) - d))
    return Bound("combined", float(value), "at most", "||H^-1 dH|| < 1", bool(change < 1.0), moved)


def _with_ridge(before: Linearization, after: Linearization, *, scaled: bool) -> Bound:
    """Return the bound of Proposition 5, both steps with the paper's lambda.

    ||d' - d|| <= ||(H' + lambda I)^-1|| (||dG|| + ||dH|| ||d||)
    """
    H, G, H_left, G_left = _systems(before, after, scaled=scaled)
    ridge = PAPER_RIDGE * np.eye(len(G))
    d, d_left = np.linalg.solve(H + ridge, G), np.linalg.solve(H_left + ridge, G_left)
    inverse = np.linalg.norm(np.linalg.inv(H_left + ridge), 2)
    value = inverse * (np.linalg.norm(G_left - G) + np.linalg.norm(H_left - H, 2) * np.linalg.norm(d))
    return Bound("stability", float(value), "at most", "none", True, float(np.linalg.norm(d_left - d)))


def _systems(before: Linearization, after: Linearization, *, scaled: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Return H, G, H' and G', in the parameters or in the parameters times sqrt(H_aa)."""
    whole, left = np.array(before.rows), np.array(after.rows)
    size = np.sqrt(np.diag(whole)[:-1]) if scaled else np.ones(len(whole) - 1)
    by = np.outer(size, size)
    return whole[:-1, :-1] / by, whole[-1, :-1] / size, left[:-1, :-1] / by, left[-1, :-1] / size


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
    """Return one quote of a clean book made wrong by more and more, and struck out.

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
