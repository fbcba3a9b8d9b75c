"""Quotes priced with known parameters of Heston's model, on one date or on many."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes

NAMES = ("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance")
TRUTH: Mapping[str, float] = MappingProxyType(dict(zip(NAMES, (2.0, 0.06, 0.30, -0.6, 0.06), strict=True)))
SPOT, RATE = 100.0, 0.01
DAYS_PER_YEAR = 252  # trading days
FIRST_DAY = "2024-01-02"  # any fixed business day
DIVIDEND_YIELD = 0.005


def random_quotes(
    count: int,
    *,
    maturities: int = 12,
    seed: int = 0,
    theta: Mapping[str, float] | ArrayLike | None = None,
    noise: float = 5e-4,
    puts: float = 0.5,
) -> Quotes:
    """Return a random book of any size whose truth is ``theta`` (`TRUTH` where not given), spot 100.

    Expiries lie between two weeks and two years, strikes within 2.5 standard deviations of the forward and never
    beyond half or twice of it.

    Args:
        maturities: how many distinct expiries; ``count`` makes them all distinct.
        noise: standard deviation of the price errors, in currency.
        puts: the share of puts.

    Raises:
        UsageError: a count or share that cannot be, or parameters that give no prices.

    >>> random_quotes(1000, maturities=7, seed=1).ids[17]
    np.str_('q0000017')
    """
    if not 1 <= maturities <= count or not 0 <= puts <= 1 or not noise >= 0:
        raise UsageError(
            f"random_quotes: 1 <= maturities <= count, 0 <= puts <= 1 and noise >= 0 are needed; "
            f"got count {count}, maturities {maturities}, puts {puts}, noise {noise}."
        )
    vector = vector_of(TRUTH if theta is None else theta)
    rng = np.random.default_rng(seed)
    expiries = _distinct_expiries(maturities, rng)
    # The first quotes take one maturity each, so that all of them occur; the rest are drawn.
    slot = np.concatenate([np.arange(maturities), rng.integers(0, maturities, count - maturities)])
    years = expiries[slot]
    forward = SPOT * elementary.exp((RATE - DIVIDEND_YIELD) * years)
    deviation = np.sqrt(max(float(vector[1]), float(vector[4])) * years)
    moneyness = np.clip(uniform_draws(rng, -2.5, 2.5, count) * deviation, -elementary.log(2), elementary.log(2))
    contracts = Contracts(
        forward=forward,
        strike=forward * elementary.exp(moneyness),
        expiry=years,
        discount=elementary.exp(-RATE * years),
        is_call=rng.random(count) >= puts,
    )
    observed = heston_prices(vector, contracts)
    if not np.isfinite(observed).all():
        raise UsageError(f"random_quotes: these parameters give no finite price: {vector.tolist()}.")
    if noise:
        observed += noise * normal_draws(rng, count)
    return Quotes._trusted(
        ids=_numbered(count),
        contracts=contracts,
        observed=observed,
        weight=np.ones(count),
        spread=np.full(count, np.nan),
        labels={"source": same("synthetic", count)},
    )


def normal_draws(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Draw standard normal numbers; those in the tails are rounded to multiples of 2^-36.

    About one draw in four thousand lies in the tails of NumPy's ziggurat, which begin at 3.654. Only there NumPy takes
    a logarithm from the C library. Rounding keeps its last bits, which differ between processors, out of a book.
    """
    z = rng.standard_normal(shape)
    return np.where(np.abs(z) < 3.65, z, np.rint(z * 2.0**36) * 2.0**-36)


def uniform_draws(rng: np.random.Generator, low: float, high: float, count: int) -> Floats:
    """Draw numbers between ``low`` and ``high``. Not ``rng.uniform``, whose C code may be compiled with fused sums."""
    return low + (high - low) * rng.random(count)


def _distinct_expiries(count: int, rng: np.random.Generator) -> Floats:
    """Return one expiry in each of ``count`` equal steps of ln T, so that no two coincide."""
    low, high = elementary.log(14 / 365), elementary.log(2.0)
    steps: Floats = (np.arange(count) + uniform_draws(rng, 0.1, 0.9, count)) / count
    return np.asarray(elementary.exp(low + (high - low) * steps))


def _numbered(count: int) -> NDArray[np.str_]:
    """ "q0000000", "q0000001", ...: written digit by digit into the characters, ten million in about a second."""
    width = max(7, len(str(count - 1)))
    points = np.empty((count, width + 1), np.uint32)
    points[:, 0] = ord("q")
    rest = np.arange(count, dtype=np.uint32 if count < 1 << 32 else np.uint64)
    for place in range(width, 0, -1):
        rest, points[:, place] = np.divmod(rest, 10)
    points[:, 1:] += ord("0")
    names: NDArray[np.str_] = points.view(f"U{width + 1}").ravel()
    return names


def heston_prices(theta: Floats, contracts: Contracts) -> Floats:
    """Heston's prices at these parameters, in the order of `NAMES`."""
    from strikeout.kernels import heston

    return np.array(
        heston.price(
            theta, contracts.forward, contracts.strike, contracts.expiry, contracts.discount, contracts.is_call
        )
    )


def vector_of(theta: Mapping[str, float] | ArrayLike) -> Floats:
    if isinstance(theta, Mapping):
        if set(theta) != set(NAMES):
            raise UsageError(f"Heston's parameters are {', '.join(NAMES)}; got {', '.join(map(str, theta))}.")
        return np.array([float(theta[name]) for name in NAMES])
    vector = np.array(theta, dtype=float)
    if vector.shape != (len(NAMES),):
        raise UsageError(f"Heston has five parameters ({', '.join(NAMES)}); got shape {vector.shape}.")
    return vector


def same(text: str, count: int) -> NDArray[np.object_]:
    return np.full(count, text, dtype=object)


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
        raise UsageError(
            f"panel_quotes: at least one day and noise >= 0 are needed; got {days} days, noise {noise}.",
            days=days,
            noise=noise,
        )
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
