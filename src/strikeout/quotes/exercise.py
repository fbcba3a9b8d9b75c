"""American quotes as European ones: a derived input, recomputed with the forwards of their slice and never stored.

An American mid gives an implied volatility under American exercise; the European price at that volatility is what the
models are calibrated to. The label ``american_mid`` holds the mid itself, and ``observed`` the European price, which
depends on the mid, spot, strike and expiry of the quote and on forward and discount of its slice:

    rate = -ln(discount) / T        dividend yield (with borrow) = rate - ln(forward / spot) / T

With cash dividends (label ``dividends``) the yield is what they leave of the forward, the borrow:
``kernels/dividends``.

Forward and discount by put-call parity need European prices, and those need forward and discount: a fixed number of
rounds, begun with parity of the mids near the money.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels import american, black, dividends, elementary
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.dividends import DIVIDENDS, cash_flows
from strikeout.quotes.parity import AMERICAN_MID, run_starts
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


# Each round halves the error or better: after eight a slice of one year is 6e-6 of its forward and 5e-5 in its rate
# from the end, far below what spreads allow. A fixed number: a rule for stopping would make a slice depend on others.
ROUNDS = 8
TEXTS = ("a", "american")
STYLES = ("european", "american", "auto")


def check_style(exercise: str) -> None:
    """Raise UsageError if American rows cannot be read in this way."""
    if exercise not in STYLES:
        raise UsageError(f"exercise is {exercise!r}; it is one of {', '.join(STYLES)}.", exercise=exercise)


def is_american(styles: NDArray[np.object_]) -> Mask:
    """Return whether each text of the column ``exercise`` means American."""
    starts = run_starts([styles])
    of_run = [str(text).strip().lower() in TEXTS for text in styles[starts].tolist()]
    return np.repeat(np.array(of_run, bool), np.diff(starts, append=len(styles)))


def to_european(quotes: Quotes) -> Quotes:
    """Return the quotes with every American price replaced by the European price at the same implied volatility.

    American quotes are those whose label ``exercise`` is A or American; each needs a label ``spot``. Their prices move
    to the label ``american_mid``. If their forwards are derived, the European prices are recomputed with them whenever
    a quote of the slice is added or removed; ``forget``, ``verify`` and books do so.

    A price at or below what exercising now pays has no implied volatility and is kept as it is. Give a rate if you have
    one: American prices determine it poorly.

    Raises:
        UsageError: an American quote has no spot above zero.
        RefusedError: a slice gives no forward.
    """
    from strikeout.quotes.forwards import is_derived, refitted

    style = quotes.labels.get("exercise")
    chosen = np.zeros(len(quotes), bool) if style is None else is_american(np.asarray(style, object))
    if not chosen.any():
        return quotes
    spot = quotes.labels.get("spot")
    known = np.full(len(quotes), np.nan) if spot is None or spot.dtype.kind not in "fiu" else spot.astype(float)
    without = chosen & ~((known > 0.0) & np.isfinite(known))
    if without.any():
        raise UsageError(
            f"exercise: {many(int(without.sum()), 'American quote')} without a spot above zero, which early exercise "
            "depends on. Add a column spot.",
            ids=quotes.ids[without].tolist(),
        )
    already = quotes.labels.get(AMERICAN_MID)
    mid = np.where(chosen, quotes.observed, np.nan)
    if already is not None:
        mid = np.where(np.isfinite(already), already, mid)
    own = np.flatnonzero(chosen & ~is_derived(quotes))
    observed = np.array(quotes.observed)
    paid = quotes.labels.get(DIVIDENDS)
    observed[own] = european_prices(
        mid[own], known[own], quotes.contracts[own], None if paid is None else np.asarray(paid, object)[own]
    )
    made = type(quotes)._trusted(
        ids=quotes.ids, contracts=quotes.contracts, observed=observed, weight=quotes.weight, spread=quotes.spread,
        labels={**quotes.labels, AMERICAN_MID: mid},
    )  # fmt: skip
    return refitted(made, is_derived(made))


def american_volatilities(mid: Floats, spot: Floats, contracts: Contracts) -> Floats:
    """Return the implied volatility of each American mid; not-a-number if there is none.

    Rates and yields here are estimates, and a negative rate together with a yield below it (above it for a call: the
    case of two exercise boundaries) is as good as always noise of a short slice. Such a quote is read as European.
    """
    F, K, T, D, is_call = contracts.forward, contracts.strike, contracts.expiry, contracts.discount, contracts.is_call
    with np.errstate(all="ignore"):
        rate = -elementary.log(D) / T
        dividend = rate - elementary.log(F / spot) / T
        start = black.implied_volatility(mid, F, K, T, D, is_call)
        two = np.where(is_call, (rate < dividend) & (dividend < 0.0), (dividend < rate) & (rate < 0.0))
        columns = [np.ascontiguousarray(column, float) for column in (spot, K, T, rate, dividend, start)]
    found = american.volatilities(np.where(two, np.nan, mid), columns, np.ascontiguousarray(is_call), fine=False)
    return np.where(two, start, found)


def european_prices(mid: Floats, spot: Floats, contracts: Contracts, paid: NDArray[np.object_] | None = None) -> Floats:
    """Return the European price at the volatility of each American mid; the mid itself if it has none.

    Args:
        paid: the label ``dividends`` of each quote; empty for a continuous yield.
    """
    c = contracts
    cash = np.zeros(len(mid), bool) if paid is None else np.array([bool(text) for text in paid.tolist()], bool)
    found = np.full(len(mid), np.nan)
    plain = np.flatnonzero(~cash)
    if plain.size:
        part = c[plain]
        sigma = american_volatilities(mid[plain], spot[plain], part)
        found[plain] = black.price(part.forward, part.strike, part.expiry, sigma, part.discount, part.is_call)
    if paid is not None and cash.any():
        _convert_with_cash(found, mid, spot, c, paid, np.flatnonzero(cash))
    return np.where(np.isfinite(found), found, mid)


def _convert_with_cash(
    found: Floats, mid: Floats, spot: Floats, c: Contracts, paid: NDArray[np.object_], rows: Rows
) -> None:
    """Write the European prices of quotes with cash dividends, which share a grid if their markets are the same."""
    groups: dict[tuple[str, float, float, float, float, bool], list[int]] = {}
    for row in rows.tolist():
        market = str(paid[row]), c.expiry[row], c.discount[row], c.forward[row], spot[row], bool(c.is_call[row])
        groups.setdefault(market, []).append(row)
    for (text, T, D, F, S, is_call), members in groups.items():
        flows, at = cash_flows(text), np.array(members)
        with np.errstate(all="ignore"):
            rate = float(-elementary.log(np.array([D]))[0] / T)
            cost = float(flows.cost(np.array([S]), np.array([F]), float(T))[0])
        if not (np.isfinite(rate) and np.isfinite(cost)):
            continue
        _, found[at] = dividends.conversions(
            mid[at], spot[at], c.strike[at], forward=c.forward[at], discount=float(D),
            steps=dividends.steps_of(flows, float(T), rate, cost), is_call=is_call,
        )  # fmt: skip
