"""The paper's two sets of quotes, rebuilt from its description (section "Illustrations")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.kernels.arrays import Floats
from strikeout.paper import heston
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.synthetic.heston_quotes import (
    DAYS_PER_YEAR,
    FIRST_DAY,
    NAMES,
    RATE,
    SPOT,
    TRUTH,
    heston_prices,
    normal_draws,
    same,
    vector_of,
)

PAPER_START: Mapping[str, float] = MappingProxyType(dict(zip(NAMES, (1.0, 0.04, 0.20, -0.3, 0.04), strict=True)))


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


Path = Literal["log-euler", "euler-maruyama"]


def quotes(
    size: Literal["small", "large"],
    *,
    seed: int = 42,
    quadrature: Literal["exact", "paper"] = "exact",
    path: Path = "log-euler",
) -> Quotes:
    """Return the paper's small (540 quotes) or large (2,700) set of calls; the true parameters are ``paper.TRUTH``.

    Every day is priced at the same initial variance, as the paper does, although its path has another one each day.

    Args:
        quadrature: "paper" prices with the paper's own rule, which errs by 9e-4 on the small set, as much as its noise.
        path: how the spot moves. The paper states Euler-Maruyama, which is "euler-maruyama": S + r S dt + sqrt(v) S dW.
            The default, and what the report uses, takes the same step in log S, so that S stays above zero; with
            daily steps the two spots differ by up to 3e-3 of themselves in 180 days.

    Raises:
        UsageError: another size, quadrature or path.

    >>> from strikeout import paper
    >>> len(paper.quotes("small"))
    540
    """
    if size not in PAPER_SETS:
        raise UsageError(f"The paper has a 'small' and a 'large' set; {size!r} was asked for.", size=size)
    if quadrature not in ("exact", "paper"):
        raise UsageError(f"quadrature is 'exact' or 'paper'; {quadrature!r} was asked for.", quadrature=quadrature)
    if path not in ("log-euler", "euler-maruyama"):
        raise UsageError(f"path is 'log-euler' or 'euler-maruyama'; {path!r} was asked for.")
    made = PAPER_SETS[size]
    day, term, strike = (
        grid.ravel() for grid in np.meshgrid(np.arange(made.days), made.maturities, made.strikes, indexing="ij")
    )
    spot = spot_path(made.days, seed=seed, path=path)[day]
    years = term / DAYS_PER_YEAR
    contracts = Contracts(
        forward=spot * elementary.exp(RATE * years),
        strike=strike,
        expiry=years,
        discount=elementary.exp(-RATE * years),
        is_call=True,
    )
    exact = _paper_prices(contracts, made) if quadrature == "paper" else heston_prices(vector_of(TRUTH), contracts)
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


def spot_path(days: int, *, seed: int, path: Path = "log-euler") -> Floats:
    """Return the spot at the start of each day under ``paper.TRUTH``, one step per trading day, as ``path`` names it.

    The variance moves by Euler-Maruyama under both and is floored at 1e-6 after each step.
    """
    kappa, vbar, sigma, rho, v0 = vector_of(TRUTH)
    dt = 1 / DAYS_PER_YEAR
    rng = np.random.default_rng(seed)
    spots = np.empty(days)
    s, v = SPOT, v0
    for day in range(days):
        spots[day] = s
        z1, z2 = normal_draws(rng, 2)
        z2 = rho * z1 + np.sqrt(1 - rho * rho) * z2
        if path == "euler-maruyama":
            s = s + RATE * s * dt + np.sqrt(v * dt) * s * z1
        else:
            s = s * elementary.exp((RATE - 0.5 * v) * dt + np.sqrt(v * dt) * z1)
        v = max(v + kappa * (vbar - v) * dt + sigma * np.sqrt(v * dt) * z2, 1e-6)
    return spots


def _paper_prices(contracts: Contracts, made: PaperSet) -> Floats:
    columns = heston.columns_of(contracts)
    return heston.price(vector_of(TRUTH), *columns, u_max=made.u_max, nodes=made.nodes)
