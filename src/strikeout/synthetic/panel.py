"""A panel with a known answer: many days, one variance per day that follows its own path."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.quotes.contracts import Contracts, Floats
from strikeout.quotes.quotes import Quotes
from strikeout.synthetic.heston_quotes import (
    DAYS_PER_YEAR,
    FIRST_DAY,
    RATE,
    SPOT,
    TRUTH,
    heston_prices,
    normal_draws,
    same,
    vector_of,
)

MATURITIES = (30, 60, 90)  # in trading days
STRIKES = (80.0, 90.0, 100.0, 110.0, 120.0)  # of a spot of 100
STEPS = 16  # of the paths per day: v moves by a few percent daily, and a single step would meet the floor at times
STAY = 0.9  # probability of staying in a regime
FLOOR = 1e-4  # of the variance; a hundredth in volatility


def panel_quotes(
    days: int = 180,
    *,
    seed: int = 0,
    theta: Mapping[str, float] | ArrayLike | None = None,
    noise: float = 5e-4,
) -> Quotes:
    """Calls on ``days`` trading days, each priced at that day's own variance: the paper's large set as it would be.

    Spot and variance follow Heston's dynamics at ``theta`` (`TRUTH` where not given) from spot 100 and the
    initial variance on, and day t is priced with the variance of day t. Three expiries and five strikes a day, which
    follow the spot. The label ``variance`` is the true one.

    Args:
        noise: standard deviation of the price errors, in currency.

    Raises:
        UsageError: no days, or a noise below zero.

    >>> quotes = panel_quotes(2, seed=1)
    >>> len(quotes), len(set(quotes.labels["variance"]))
    (30, 2)
    """
    if days < 1 or not noise >= 0:
        raise UsageError(f"panel_quotes: at least one day and noise >= 0 are needed; got {days} days, noise {noise}.")
    vector = vector_of(TRUTH if theta is None else theta)
    rng = np.random.default_rng([seed, days])
    spots, variances = _paths(vector, days, rng)
    day, term, level = (grid.ravel() for grid in np.meshgrid(np.arange(days), MATURITIES, STRIKES, indexing="ij"))
    years = term / DAYS_PER_YEAR
    contracts = Contracts(
        forward=spots[day] * elementary.exp(RATE * years),
        strike=np.round(spots[day] * level / SPOT, 2),
        expiry=years,
        discount=elementary.exp(-RATE * years),
        is_call=True,
    )
    observed = np.empty(len(day))
    for d in range(days):
        rows = np.flatnonzero(day == d)
        observed[rows] = heston_prices(np.array([*vector[:4], variances[d]]), contracts[rows])
    dates = np.busday_offset(FIRST_DAY, np.arange(days), roll="forward").astype(str).astype(object)
    names = [f"d{d:04d}-{t}-{k:g}" for d, t, k in zip(day.tolist(), term.tolist(), level.tolist(), strict=True)]
    return Quotes(
        ids=names,
        contracts=contracts,
        observed=observed + noise * normal_draws(rng, len(day)),
        labels={
            "date": dates[day],
            "day": day,
            "spot": spots[day],
            "variance": variances[day],
            "source": same("synthetic", len(day)),
        },
    )


def regime_quotes(
    days: int = 60,
    *,
    seed: int = 0,
    values: tuple[float, float] = (0.3, 0.6),
    daily: float = 0.0,
    noise: float = 1e-2,
) -> Quotes:
    """``panel_quotes`` with a vol_of_vol that switches between two values from day to day.

    A day is in the regime of the day before with probability 0.9. The label ``regime`` is the true one, 1 or 2; both
    occur. The variance of a day does not depend on the regimes.

    Args:
        daily: relative standard deviation of a change of each day's vol_of_vol, common to all its quotes.

    Raises:
        UsageError: fewer than two days, or a noise below zero.

    >>> quotes = regime_quotes(30, seed=1)
    >>> sorted(set(quotes.labels["regime"].tolist()))
    [1, 2]
    """
    if days < 2 or not noise >= 0:
        raise UsageError(f"regime_quotes: two days and noise >= 0 are needed; got {days} days, noise {noise}.")
    base, rng = panel_quotes(days, seed=seed, noise=0.0), np.random.default_rng([seed, days, 1])
    leaves = rng.random(days) >= STAY
    if not leaves[1:].any():
        leaves[days // 2] = True
    regime = np.cumsum(leaves) % 2
    sigma = np.array(values)[regime] * (1.0 + daily * normal_draws(rng, days))
    day, observed, truth = base.labels["day"], np.empty(len(base)), dict(TRUTH)
    for d in range(days):
        rows = np.flatnonzero(day == d)
        truth |= {"vol_of_vol": float(sigma[d]), "initial_variance": float(base.labels["variance"][rows[0]])}
        observed[rows] = heston_prices(vector_of(truth), base.contracts[rows])
    return Quotes(
        ids=base.ids,
        contracts=base.contracts,
        observed=observed + noise * normal_draws(rng, len(day)),
        labels={**base.labels, "regime": regime[day] + 1},
    )


def _paths(vector: Floats, days: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Spot and variance at the start of each day."""
    kappa, vbar, sigma, rho, v = vector.tolist()
    dt = 1 / (DAYS_PER_YEAR * STEPS)
    shocks = normal_draws(rng, (days, STEPS, 2))
    spots, variances, s = np.empty(days), np.empty(days), SPOT
    for day in range(days):
        spots[day], variances[day] = s, v
        for z1, z2 in shocks[day].tolist():
            root = np.sqrt(v * dt)
            s = s * elementary.exp((RATE - 0.5 * v) * dt + root * z1)
            v = max(v + kappa * (vbar - v) * dt + sigma * root * (rho * z1 + np.sqrt(1 - rho * rho) * z2), FLOOR)
    return spots, variances
