"""Weights of quotes: as given, equally, by price, by vega, by spread, or as the caller gives it.

Every rule looks at one quote alone. A weight that looked at the others would carry a struck quote into its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import RefusedError, UsageError
from strikeout.kernels import black
from strikeout.kernels.arrays import Floats
from strikeout.text import Advice, Argument, Mention, many

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

WeightRule = Literal["given", "none", "relative", "vega", "spread", "vol-spread"]
Weighting = WeightRule | ArrayLike | Mapping[str, float]
RULES = ("given", "none", "relative", "vega", "spread", "vol-spread")
OF_PRICES = ("relative", "vega", "spread")  # rules for price residuals only
OF_VOLATILITIES = ("vol-spread",)  # rules for implied volatility residuals only

# A vega below this share of the largest a contract of its expiry and forward can have is taken as this share, so that
# no far wing counts more than 10,000 times an at-the-money quote. The floor comes from the contract alone: one taken
# from the cross-section would let a quote reach its neighbours' weights.
VEGA_FLOOR = 0.01


def weights_of(quotes: Quotes, rule: Weighting) -> tuple[Floats, str]:
    """Return one weight per quote, in the order of the quotes, and the name of the rule.

    "given" takes ``quotes.weight``; "none" is one for all; "relative" is ``1 / price^2``, which makes residuals shares
    of the price; "vega" is ``1 / vega^2`` at the quote's own implied volatility, which makes price residuals volatility
    residuals to first order; "spread" is ``1 / spread^2``, residuals in units of the spread; "vol-spread" is
    ``(vega / spread)^2``, which makes implied volatility residuals multiples of the bid-ask spread in volatility
    (``spread / vega`` to first order, so that a bid of zero has one too). Your own are an array of
    one weight per quote, or a mapping from id to weight (which may contain other quotes too).
    """
    if isinstance(rule, Mapping):
        return _own(_by_id(quotes, rule), len(quotes)), "own"
    if not isinstance(rule, str):
        return _own(np.asarray(rule, float), len(quotes)), "own"
    if rule == "given":
        return quotes.weight, rule
    if rule == "none":
        return np.ones(len(quotes)), rule
    if rule == "relative":
        return 1.0 / np.square(_price(quotes)), rule
    if rule == "vega":
        return 1.0 / np.square(_floored_vega(quotes)), rule
    if rule == "spread":
        return 1.0 / np.square(_spread(quotes)), rule
    if rule == "vol-spread":
        c, spread = quotes.contracts, _spread(quotes)
        vega = black.vega(c.forward, c.strike, c.expiry, implied_volatilities(quotes), c.discount)
        return np.square(vega / spread), rule
    raise UsageError(
        Argument("weights", rule),
        f" is not a rule. Use one of {', '.join(RULES)}, or an array of one weight per quote.",
    )


def name_of(rule: Weighting) -> str:
    """Return the name of the rule: itself, or "own" for weights that were given."""
    return rule if isinstance(rule, str) else "own"


def implied_volatilities(quotes: Quotes) -> Floats:
    """Return the market's own Black volatility of every quote."""
    c = quotes.contracts
    vol = black.implied_volatility(quotes.observed, c.forward, c.strike, c.expiry, c.discount, c.is_call)
    _refuse_any(
        quotes,
        ~(np.isfinite(vol) & (vol > 0.0)),
        "no implied volatility (a price outside the no-arbitrage bounds)",
        "Strike them out (",
        Advice.STRIKE_OUT,
        "), or use price residuals and weights that need no volatility.",
    )
    return np.asarray(vol)


def _floored_vega(quotes: Quotes) -> Floats:
    c = quotes.contracts
    vega = black.vega(c.forward, c.strike, c.expiry, implied_volatilities(quotes), c.discount)
    largest = c.scale * np.sqrt(c.expiry) / sqrt(2.0 * pi)
    return np.maximum(vega, VEGA_FLOOR * largest)


def _price(quotes: Quotes) -> Floats:
    price = quotes.observed
    _refuse_any(
        quotes,
        ~(price > 0.0),
        "no price above zero to be relative to",
        "Strike them out (",
        Advice.STRIKE_OUT,
        "), or use ",
        Argument("weights", "spread"),
        " or ",
        Argument("weights", "none"),
        ".",
    )
    return price


def _spread(quotes: Quotes) -> Floats:
    spread = quotes.spread
    locked = (" Reading with ", Argument("checks", {"Q206": "reject"}), " leaves locked markets out.")
    _refuse_any(
        quotes,
        ~(np.isfinite(spread) & (spread > 0.0)),
        "no bid-ask spread above zero",
        "Give bid and ask for them, strike them out, or use ",
        Argument("weights", "vega"),
        ".",
        *(locked if (spread == 0.0).any() else ()),
    )
    return spread


def _by_id(quotes: Quotes, weights: Mapping[str, float]) -> Floats:
    names = quotes.ids.tolist()
    missing = [name for name in names if name not in weights]
    if missing:
        named = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise UsageError(
            f"weights: {len(missing)} of {len(quotes)} quotes have no weight among those given by id: {named}. "
            "Add their ids.",
            ids=missing,
        )
    return np.array([weights[name] for name in names], float)


def _own(weight: Floats, count: int) -> Floats:
    if weight.shape != (count,):
        raise UsageError(f"weights: {count} quotes need {count} weights; got an array of shape {weight.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if bad.size:
        raise UsageError(
            f"weights: row {bad[0]} has weight {weight[bad[0]]:g}; a weight is finite and not negative "
            f"({many(bad.size, 'such row')}).",
            row=int(bad[0]),
        )
    return weight


def _refuse_any(quotes: Quotes, bad: NDArray[Any], what: str, *remedy: str | Mention) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        ids = [str(quotes.ids[row]) for row in rows]
        named = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
        raise RefusedError(f"{rows.size:,} of {len(quotes):,} quotes have {what}: {named}. ", *remedy, ids=ids)
