"""Corrupted feeds, the paper's own reason to forget: struck out by one step, from moments, and by a refit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError
from strikeout.forgetting.forget import forget
from strikeout.forgetting.paper_variants import paper_step
from strikeout.models.heston import Heston
from strikeout.paper.cache import Cache, fast, retrain
from strikeout.quotes.quotes import Quotes
from strikeout.synthetic.heston_quotes import TRUTH
from strikeout.text import many

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Feed:
    """A book with some quotes gone bad, and which those are."""

    name: str
    quotes: Quotes
    bad: Mask


@dataclass(frozen=True, eq=False)
class Purged:
    """One bad feed struck out. Distances are the worst parameter's, in standard errors of the refit.

    ``one_step``, ``resolved`` and ``truth``: how far the paper's step, the answer from moments and the parameters the
    prices were made with lie from the refit of the retained quotes. ``agreement`` is the paper's own measure of the
    same step, in its floating point: the relative distance of fast from retrain; ``norm`` is the distance itself, of
    which the paper reports "below 1e-8 in all instances". ``rmse_...`` are of the retained
    quotes, in currency; infinite where the parameters are none of the model's.
    """

    name: str
    forgotten: int
    one_step: float
    resolved: float
    truth: float
    agreement: float
    norm: float
    outside: tuple[str, ...]
    rmse_before: float
    rmse_one_step: float
    rmse_refit: float
    parameters: dict[str, float]  # the one step's


def feeds(book: Quotes, *, seed: int) -> Iterator[Feed]:
    """Make decimal shifts, stale days and bad ticks on one of the paper's books."""
    rng = np.random.default_rng(seed)
    day, clean = book.labels["day"], book.observed
    begin = int(day.max() + 1) // 3

    def block(length: int) -> Mask:
        return np.asarray((day >= begin) & (day < begin + length))

    for factor, length in ((0.1, 1), (0.1, 5), (10.0, 5)):
        bad = block(length)
        yield Feed(
            f"prices x {factor:g}, {many(length, 'day')}", book.with_observed(clean * np.where(bad, factor, 1.0)), bad
        )
    for length in (3, 10):
        bad = block(length)
        stale = clean.copy()
        stale[bad] = np.tile(clean[day == begin - 1], length)
        yield Feed(f"stale for {many(length, 'day')}", book.with_observed(stale), bad)
    for share in (0.01, 0.05):
        bad = rng.random(len(book)) < share
        ticks = clean * np.where(bad, np.exp(0.5 * rng.standard_normal(len(book))), 1.0)
        yield Feed(f"bad ticks, {100 * share:g} % of quotes", book.with_observed(ticks), bad)
    bad = rng.random(len(book)) < 0.05
    yield Feed("5 % at random, nothing bad", book, bad)


def purged(feed: Feed) -> Purged:
    """Return the bad quotes of a feed struck out in every way, beside a cold refit of the retained quotes.

    Raises:
        RefusedError: the retained quotes do not determine the parameters.
    """
    model = Heston()
    ids = feed.quotes.ids[feed.bad]
    before = calibrate(feed.quotes, model)
    retained = feed.quotes.without(ids)
    refit = calibrate(retained, model)
    step = paper_step(before, ids)
    agreement, norm = _floating_difference(before, feed.bad)
    ours = forget(before, ids=ids, operator="resolve")
    return Purged(
        name=feed.name,
        forgotten=len(ids),
        one_step=apart(step.parameters, refit),
        resolved=apart(ours.parameters, refit),
        truth=apart(dict(TRUTH), refit),
        agreement=agreement,
        norm=norm,
        outside=_outside(step.parameters),
        rmse_before=rmse(before.parameters, retained),
        rmse_one_step=rmse(step.parameters, retained),
        rmse_refit=rmse(refit.parameters, retained),
        parameters=step.parameters,
    )


def apart(parameters: dict[str, float], optimum: Calibration) -> float:
    """Return how far parameters lie from an optimum: the worst of them, in the optimum's standard errors."""
    errors = [abs(x - optimum.parameters[name]) / optimum.standard_errors[name] for name, x in parameters.items()]
    return max(error if isfinite(error) else inf for error in errors)


def rmse(parameters: dict[str, float], quotes: Quotes) -> float:
    """Return the RMSE of observed less model price, in currency; infinite if the model has no price."""
    try:
        found = float(np.sqrt(np.mean((quotes.observed - Heston().price(parameters, quotes.contracts)) ** 2)))
    except ParameterError:
        return inf
    return found if isfinite(found) else inf


def _floating_difference(before: Calibration, bad: Mask) -> tuple[float, float]:
    """Return the norm of fast - retrain in the paper's floating point, relative to retrain and absolute."""
    cache = Cache(before.quotes, model=before.model, theta_ref=before.parameters)
    again = retrain(cache, bad).theta
    norm = float(np.linalg.norm(fast(cache, bad).theta - again))
    return norm / float(np.linalg.norm(again)), norm


def _outside(parameters: dict[str, float]) -> tuple[str, ...]:
    """Return the parameters that no Heston model can have."""
    return tuple(
        name
        for name, value in parameters.items()
        if not (-1.0 < value < 1.0 if name == "correlation" else 0.0 < value < inf)
    )
