"""Books with a known answer: the paper's two sets, rebuilt from its description, and random ones of any size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.quotes.contracts import Contracts, Floats
from strikeout.quotes.quotes import Quotes

NAMES = ("mean_reversion", "long_variance", "vol_of_vol", "correlation", "initial_variance")
PAPER_TRUTH: Mapping[str, float] = MappingProxyType(dict(zip(NAMES, (2.0, 0.06, 0.30, -0.6, 0.06), strict=True)))
PAPER_START: Mapping[str, float] = MappingProxyType(dict(zip(NAMES, (1.0, 0.04, 0.20, -0.3, 0.04), strict=True)))

SPOT, RATE = 100.0, 0.01
DAYS_PER_YEAR = 252  # the paper counts trading days
FIRST_DAY = "2024-01-02"  # the paper names no dates; any fixed business day will do
DIVIDEND_YIELD = 0.005  # of random books only; the paper's has none


@dataclass(frozen=True)
class PaperSet:
    """What the paper lists of one of its two sets (section "Illustrations")."""

    days: int
    maturities: tuple[int, ...]  # in trading days
    strikes: tuple[float, ...]
    noise: float  # standard deviation of the price error
    u_max: float  # its quadrature's upper limit
    nodes: int


PAPER_SETS: Mapping[str, PaperSet] = MappingProxyType(
    {
        "small": PaperSet(90, (30, 60), (90.0, 100.0, 110.0), 1e-3, 50.0, 180),
        "large": PaperSet(180, (30, 60, 90), (80.0, 90.0, 100.0, 110.0, 120.0), 5e-4, 120.0, 800),
    }
)


def paper_quotes(
    size: Literal["small", "large"], *, seed: int = 42, quadrature: Literal["exact", "paper"] = "exact"
) -> Quotes:
    """The paper's small (540 quotes) or large (2,700) set of calls; the truth behind it is `PAPER_TRUTH`.

    Every day is priced at the same initial variance, as the paper does, although its path has another one each day.
    The paper's own quadrature errs by 9e-4 on the small set, as much as its noise; ``quadrature="paper"`` prices so.

    Raises:
        UsageError: another size or quadrature.

    >>> len(paper_quotes("small"))
    540
    """
    if size not in PAPER_SETS:
        raise UsageError(f"The paper has a 'small' and a 'large' set; {size!r} was asked for.")
    if quadrature not in ("exact", "paper"):
        raise UsageError(f"quadrature is 'exact' or 'paper'; {quadrature!r} was asked for.")
    made = PAPER_SETS[size]
    day, term, strike = (
        grid.ravel() for grid in np.meshgrid(np.arange(made.days), made.maturities, made.strikes, indexing="ij")
    )
    spot = spot_path(made.days, seed=seed)[day]
    years = term / DAYS_PER_YEAR
    contracts = Contracts(
        forward=spot * elementary.exp(RATE * years),
        strike=strike,
        expiry=years,
        discount=elementary.exp(-RATE * years),
        is_call=True,
    )
    exact = (
        _paper_prices(contracts, made) if quadrature == "paper" else heston_prices(vector_of(PAPER_TRUTH), contracts)
    )
    errors = made.noise * normal_draws(np.random.default_rng(seed + 1000), len(contracts))
    dates = np.busday_offset(FIRST_DAY, np.arange(made.days + max(made.maturities)), roll="forward")
    texts = np.array(dates.astype(str), dtype=object)
    names = [f"{size}-{d:03d}-{t}-{k:g}" for d, t, k in zip(day.tolist(), term.tolist(), strike.tolist(), strict=True)]
    return Quotes(
        ids=names,
        contracts=contracts,
        observed=exact + errors,
        labels={
            "date": texts[day],
            "expiry_date": texts[day + term],
            "day": day,
            "expiry_days": term,
            "spot": spot,
            "source": same("synthetic", len(day)),
        },
    )


def spot_path(days: int, *, seed: int) -> Floats:
    """The spot at the start of each day: Euler-Maruyama under `PAPER_TRUTH`, one step a trading day.

    The variance is floored at 1e-6 after each step.
    """
    kappa, vbar, sigma, rho, v0 = vector_of(PAPER_TRUTH)
    dt = 1 / DAYS_PER_YEAR
    rng = np.random.default_rng(seed)
    path = np.empty(days)
    s, v = SPOT, v0
    for day in range(days):
        path[day] = s
        z1, z2 = normal_draws(rng, 2)
        z2 = rho * z1 + np.sqrt(1 - rho * rho) * z2
        s = s * elementary.exp((RATE - 0.5 * v) * dt + np.sqrt(v * dt) * z1)
        v = max(v + kappa * (vbar - v) * dt + sigma * np.sqrt(v * dt) * z2, 1e-6)
    return path


def random_quotes(
    count: int,
    *,
    maturities: int = 12,
    seed: int = 0,
    theta: Mapping[str, float] | ArrayLike | None = None,
    noise: float = 5e-4,
    puts: float = 0.5,
) -> Quotes:
    """A random book of any size whose truth is ``theta`` (`PAPER_TRUTH` where not given), spot 100.

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
    vector = vector_of(PAPER_TRUTH if theta is None else theta)
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
    """One expiry in each of ``count`` equal steps of ln T, so that no two coincide."""
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


def _paper_prices(contracts: Contracts, made: PaperSet) -> Floats:
    from strikeout.kernels import paper_scheme

    return paper_scheme.price(
        vector_of(PAPER_TRUTH),
        contracts.forward,
        contracts.strike,
        contracts.expiry,
        contracts.discount,
        contracts.is_call,
        u_max=made.u_max,
        nodes=made.nodes,
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
