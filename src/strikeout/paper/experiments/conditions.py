"""Conditioning, relinearization and very small remainders.

Propositions 2 and 6 as experiments: the second Gauss-Newton step, and what it leaves, against the first.

symbol   meaning
d, d+    the first step, and the one after relinearizing all quotes where it led
left     the distance to the optimum after both steps
||.||    Euclidean, each parameter over its size (for a correlation over 1 - rho^2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from strikeout.assurance import bounds
from strikeout.assurance.bounds import Bound, leverages
from strikeout.assurance.indicator import sizes
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError, RefusedError
from strikeout.kernels.arrays import Floats, Rows
from strikeout.models.model import Model
from strikeout.paper.cache import Cache, fast
from strikeout.paper.experiments.measuring import Slope, slope_of
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.linearize import footprints_of, linearize, rows
from strikeout.statistics.losses import TUNING, Huber
from strikeout.statistics.normal_equations import PAPER_RIDGE
from strikeout.statistics.objective import objective_of
from strikeout.synthetic.heston_quotes import TRUTH

DIRECTION = (1.0, -0.6, 0.8, 0.5, -0.7)  # where the reference lies from the truth, in parameter sizes; any will do
ROUNDING = 1e-11  # a step shorter than this, in parameter sizes, is the rounding of prices divided by curvature


@dataclass(frozen=True, eq=False)
class Relinearizing:
    """Lengths of first and second steps from references nearer and nearer, for prices with some noise.

    ``slope`` is the exponent of the second step in the first (Proposition 2), ``accuracy`` that of what both steps
    leave (Proposition 6), each over the points above rounding.
    """

    noise: float  # standard deviation, in currency
    first: Floats
    second: Floats
    left: Floats
    slope: Slope
    accuracy: Slope


def relinearizing(
    book: Quotes, model: Model, *, noises: Sequence[float], points: int, seed: int
) -> list[Relinearizing]:
    """Measure one curve per noise. The paper's small-residual regime is a noise of zero, where the slope is two.

    With noise the score's first-order term ``C1 ||r|| ||d||`` takes over as the step shrinks, and the slope is one.
    """
    truth = model.parameters.vector(TRUTH)
    errors = np.random.default_rng(seed).standard_normal(len(book))
    exact = model.price(truth, book.contracts)
    away = np.geomspace(3e-4, 3e-2, points)
    return [_curve(book.with_observed(exact + noise * errors), model, truth, away, noise=noise) for noise in noises]


def _curve(book: Quotes, model: Model, truth: Floats, away: Floats, *, noise: float) -> Relinearizing:
    size = np.array(sizes(model.parameters, tuple(truth.tolist())))
    middle = truth
    for _ in range(20):  # the optimum of these prices, from which the references are measured
        middle = middle + _step(book, model, middle)
    lengths = []
    for distance in away:
        reference = middle + distance * np.array(DIRECTION) * size
        d = _step(book, model, reference)
        ahead = _step(book, model, reference + d)
        rest = reference + d + ahead - middle
        lengths.append([np.linalg.norm(x / size) for x in (d, ahead, rest)])
    first, second, left = np.array(lengths).T
    clear, known = second > ROUNDING, left > ROUNDING
    slope, accuracy = slope_of(first[clear], second[clear]), slope_of(first[known], left[known])
    return Relinearizing(noise, first, second, left, slope, accuracy)


def _step(book: Quotes, model: Model, theta: Floats) -> Floats:
    objective, _ = objective_of(book)
    residual, J = rows(objective, model, theta)
    norms = np.linalg.norm(J, axis=0)
    return np.asarray(np.linalg.lstsq(J / norms, residual, rcond=None)[0] / norms)


@dataclass(frozen=True, eq=False)
class Remainder:
    """Medians over random remainders of one size; RMSE on the retained quotes, in currency.

    ``step`` is the fit error after the paper's step, ``worst`` its largest, ``refit`` that of the least-squares
    parameters. ``linear`` is the fit error that the linearization itself predicts for the step: the paper's first
    mechanism is the distance from it to ``step``. ``rounding`` is the fit error between the step solved in floating
    point and the same system solved in integers: its second mechanism. ``outside`` is the share of steps that lead out
    of the model.
    """

    quotes: int
    condition: float
    refit: float
    linear: float
    step: float
    worst: float
    rounding: float
    outside: float


def remainders(calibration: Calibration, *, counts: Sequence[int], runs: int, seed: int) -> Iterator[Remainder]:
    """Keep ``counts`` quotes at random, ``runs`` times each, and forget all others by the paper's step."""
    quotes, model = calibration.quotes, calibration.model
    cache = Cache(quotes, model=model, theta_ref=calibration.parameters)
    exact = Cache(quotes, model=model, theta_ref=calibration.parameters, exact=True)
    rng = np.random.default_rng(seed)
    for count in counts:
        found = [_one(cache, exact, np.sort(rng.choice(len(quotes), count, replace=False))) for _ in range(runs)]
        values = np.array(found)
        inside = np.isfinite(values[:, 3])
        condition, refit, linear, step, rounding = (
            float(np.median(column[inside])) if inside.any() else inf for column in values.T
        )
        worst = float(values[inside, 3].max()) if inside.any() else inf
        outside = float(np.mean(~inside))
        yield Remainder(count, condition, refit, linear, step, worst, rounding, outside)


def _one(cache: Cache, exact: Cache, kept: Rows) -> tuple[float, float, float, float, float]:
    """Return the condition of H', then the RMSE of the refit, the linear prediction, the step and its rounding."""
    gone, quotes = cache.kept(kept), cache.quotes[kept]
    found = fast(cache, gone)
    d = found.theta - cache.theta_ref
    price, J = cache.model.linearize(cache.theta_ref, quotes.contracts)
    linear = _rms(quotes.observed - price - J @ d)
    ridge = cache.ridge * np.eye(len(d))
    condition = float(np.linalg.cond(found.H + ridge))
    try:
        step = _rmse(cache, found.theta, quotes)
    except ParameterError:
        step = inf
    rounding = _rms(J @ (found.theta - fast(exact, gone).theta))
    try:
        refit = calibrate(quotes, cache.model).rmse
    except RefusedError:
        refit = np.nan
    return condition, refit, linear, step, rounding


def _rmse(cache: Cache, theta: Floats, quotes: Quotes) -> float:
    return _rms(quotes.observed - cache.model.price(theta, quotes.contracts))


def _rms(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))


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
    """Return every bound, in plain and in scaled parameters, at every number of forgotten quotes."""
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
    """Return one quote of a clean book made wrong by more and more, and struck out."""
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
