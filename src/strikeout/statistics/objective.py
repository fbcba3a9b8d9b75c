"""What a calibration minimises, as a frozen value in one canonical order; and the weights of quotes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import RefusedError, UnidentifiedError, UsageError
from strikeout.kernels import black
from strikeout.kernels.arrays import Floats, Rows
from strikeout.quotes.contracts import Contracts, Features, Layout
from strikeout.statistics.losses import Loss, Squared
from strikeout.text import Advice, Argument, Mention, agreeing, many

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
        raise UsageError(
            f"weights: {count} quotes need {count} weights; got an array of shape {weight.shape}.", count=count
        )
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


if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

# Rounding of a model's price relative to discount * forward. A pricing kernel that chooses its nodes by theta jumps by
# about this much; so do volatilities near the money.
JITTER = 1e-13
# Rounding of a plain formula relative to its value, and of any price relative to discount * forward: a dozen operations
# of half a unit in the last place each.
PLAIN = 16.0 * 2.0**-52
# A volatility is known to the rounding of its price over its vega. A vega below this share of discount * forward counts
# as this share: one quote far out in the wings is not to excuse all the others.
FLATTEST = 1e-8


Residual = Literal["price", "implied_vol"]
RESIDUALS = ("price", "implied_vol")


@dataclass(frozen=True, eq=False)
class Objective:
    """``sum of loss(sqrt(w) (target - model))`` over contracts sorted so that no row order of the book can show.

    The order is by expiry, log-moneyness, then every other column, the observed price and the weight included (of a
    book of features: by every feature, then these two): rows that still tie are the same row. Quotes of weight zero
    are left out, as if they had never been there.

    ``book``, ``prices``, ``targets`` and ``weights`` are in the order of the quotes, all else in the canonical one.
    """

    book: Contracts
    prices: Floats
    targets: Floats  # what the model is held against: prices, or their implied volatilities
    weights: Floats
    residual: Residual
    order: Rows  # row numbers of the quotes that count, in canonical order
    places: int  # how many different (expiry, log-moneyness) there are
    loss: Loss = field(default_factory=Squared)

    def __len__(self) -> int:
        return len(self.order)

    def with_loss(self, loss: Loss) -> Objective:
        return replace(self, loss=loss)

    @cached_property
    def contracts(self) -> Contracts:
        ordered = self.book[self.order]
        if len(self.order) == len(self.book) and not isinstance(self.book, Features):
            # Sorted contracts have the slices of the book itself; to sort them again would take as long as pricing.
            rows = np.arange(len(self.order))
            s = self.book.slices
            vars(ordered)["slices"] = Layout(rows, s.expiries, s.offsets, s.k, s.t, in_order=True)
        return ordered

    @cached_property
    def observed(self) -> Floats:
        return _frozen(self.prices[self.order])

    @cached_property
    def target(self) -> Floats:
        return _frozen(self.targets[self.order])

    @cached_property
    def weight(self) -> Floats:
        return _frozen(self.weights[self.order])

    @cached_property
    def root_weight(self) -> Floats:
        return np.sqrt(self.weight)

    @cached_property
    def prepared(self) -> tuple[Contracts, Floats, Floats]:
        """What a model's fused pass takes: contracts, sqrt(w) discount forward, sqrt(w) (observed - intrinsic)."""
        c = self.contracts
        return c, self.root_weight * c.scale, self.root_weight * (self.observed - c.intrinsic)

    @cached_property
    def out_of_the_money(self) -> Contracts:
        """The same strikes, each on the side whose price is all time value; parity gives both one volatility."""
        c = self.contracts
        return Contracts(
            forward=c.forward, strike=c.strike, expiry=c.expiry, discount=c.discount, is_call=c.log_moneyness >= 0.0
        )

    @cached_property
    def rounding(self) -> float:
        """``sqrt(sum w e^2)``, with e the rounding error of a residual.

        No cost is known better than to ``2 sqrt(cost)`` times this, and no residual vector better than to this length.
        """
        if isinstance(self.book, Features):
            return PLAIN * self._length(np.abs(self.observed))
        c = self.contracts
        if self.residual == "price":
            return JITTER * self._length(c.scale)
        vega = black.vega(c.forward, c.strike, c.expiry, self.target, c.discount)
        return self._length(JITTER + PLAIN / np.maximum(vega / c.scale, FLATTEST))

    def _length(self, size: Floats) -> float:
        return sqrt(float(np.add.reduce(self.weight * size * size)))


def objective_of(
    quotes: Quotes, *, residual: Residual = "price", weights: Weighting = "given"
) -> tuple[Objective, str]:
    """Return the objective these quotes pose, and the name of the weighting."""
    weight, rule = weights_for_residual(quotes, residual, weights)
    prices = quotes.observed + 0.0  # a negative zero would sort like zero and read differently
    order, places = canonical_order(quotes.contracts, prices, weight)
    if not len(order):
        none = agreeing(len(quotes), "The quote has no", f"None of the {len(quotes):,} quotes has a")
        raise UnidentifiedError(f"{none} weight above zero: nothing to calibrate to.", count=len(quotes))
    _refuse_overflow(quotes, weight)
    targets = prices if residual == "price" else implied_volatilities(quotes)
    return Objective(quotes.contracts, prices, targets, weight, residual, order, places), rule


def weights_for_residual(quotes: Quotes, residual: Residual, weights: Weighting) -> tuple[Floats, str]:
    """Return one weight per quote, in the order of the quotes, and the name of the weighting."""
    if residual not in RESIDUALS:
        raise UsageError(
            Argument("residual", residual), f" is not a kind of residual. Use one of {', '.join(RESIDUALS)}."
        )
    weight, rule = weights_of(quotes, weights)
    if residual == "implied_vol" and rule in OF_PRICES:
        raise UsageError(
            Argument("weights", rule),
            ' are made for price residuals. Implied volatilities take "none", "given", "vol-spread" or your own.',
        )
    if residual == "price" and rule in OF_VOLATILITIES:
        raise UsageError(
            Argument("weights", rule),
            " is made for implied volatility residuals. Give ",
            Argument("residual", "implied_vol"),
            " too.",
            weights=rule,
        )
    return weight, rule


def _refuse_overflow(quotes: Quotes, weight: Floats) -> None:
    """Raise RefusedError if a price squares to infinity, as a sentinel like 1e300: no search can begin there."""
    largest = np.abs(quotes.observed)
    if not isinstance(quotes.contracts, Features):
        largest = np.maximum(largest, quotes.contracts.scale)
    with np.errstate(over="ignore"):
        squares = weight * largest * largest
        if np.isfinite(np.add.reduce(squares)):
            return
    is_finite = np.isfinite(squares)
    worst = np.array([squares.argmax()]) if is_finite.all() else np.flatnonzero(~is_finite)
    raise RefusedError(
        f"{len(worst):,} of {len(quotes):,} quotes are too large to be squared and summed: {quotes.ids[worst[0]]} has "
        f"a price or forward of {largest[worst[0]]:.1g}, a weight of {weight[worst[0]]:.1g}. Leave such quotes out, or "
        "give all prices in a larger unit.",
        ids=quotes.ids[worst].tolist(),
    )


def canonical_order(contracts: Contracts, observed: Floats, weight: Floats) -> tuple[Rows, int]:
    """Return rows of weight above zero by expiry, log-moneyness, then every other column; and how many differ in these
    two.

    Features: by every column, then the observed price and the weight; and how many differ in the columns.
    """
    if isinstance(contracts, Features):
        counts = np.flatnonzero(weight > 0.0)
        found, places = contracts[counts].sorted_rows(observed[counts], weight[counts])
        return counts[found], places
    order = contracts.slices.order
    if not weight.all():
        order = order[weight[order] > 0.0]
    expiry, moneyness = contracts.expiry[order], contracts.log_moneyness[order]
    tied = (expiry[1:] == expiry[:-1]) & (moneyness[1:] == moneyness[:-1])
    ties = int(np.count_nonzero(tied))
    if ties:  # eight keys over a whole book would take longer than calibrating it
        order = order.copy()
        places = np.flatnonzero(np.r_[tied, False] | np.r_[False, tied])
        rows, c = order[places], contracts
        keys = (weight, observed, c.is_call, c.discount, c.strike, c.forward, c.log_moneyness, c.expiry)
        order[places] = rows[np.lexsort(tuple(key[rows] for key in keys))]
    return order, len(order) - ties


def _frozen(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
