"""The rules about the market, applied to quotes just read: what they flag is told, what they reject is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.frames import market_of
from strikeout.quotes.checks.market import check_market, unchecked
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.forwards import with_forwards
from strikeout.quotes.joining import stacked
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rules import Rules

Beside = Callable[[], Quotes]
NO_FORWARD = (
    "its slice gives no forward; add forward and discount, or spot, rate and dividend_yield, or its calls and puts."
)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The quotes that stay and where in the table each was; what was found; how many sound rows were cut.

    ``unchecked`` are the rules that were not run, and why.
    """

    quotes: Quotes
    at: NDArray[np.intp]
    found: tuple[pl.DataFrame, ...]
    forwards: Forwards | None
    cut: int
    unchecked: Mapping[str, str]


def judged(quotes: Quotes, good: pl.Series, rules: Rules, checks: Checks, *, beside: Beside | None = None) -> Judgement:
    """The quotes with their forwards, without those that have none and those a rule was told to reject.

    Forwards rest on quotes of the book alone: where a rule leaves some out, they are found once more without them.

    Args:
        good: which rows of the table the quotes are.
        beside: quotes on which forwards may rest too, asked for only where those read do not give one.
    """
    quotes, forwards, at, lost = _carried(quotes, good.arg_true().to_numpy().astype(np.intp), rules, beside)
    layout = rules.layout
    price = next(role for role in ("price", "bid", "iv") if role in layout.used)
    market = market_of(quotes, pl.Series(at), rules.table.rows.gather(at))
    places = {"price": layout.places[price], **layout.places}
    found = check_market(market, checks, numbering=rules.table.numbering, places=places)
    missing = unchecked(market.columns, checks)
    rejected = found.filter("is_rejected")["at"].unique()
    if not rejected.len():
        return Judgement(quotes, at, (lost, found), forwards, 0, missing)
    kept = ~np.isin(at, rejected.to_numpy())
    quotes, forwards, at, more = _carried(quotes[kept], at[kept], rules, beside)
    return Judgement(quotes, at, (lost, found, more), forwards, rejected.len(), missing)


def _carried(
    quotes: Quotes, at: NDArray[np.intp], rules: Rules, beside: Beside | None
) -> tuple[Quotes, Forwards | None, NDArray[np.intp], pl.DataFrame]:
    """The quotes that have a forward, and an issue for each that has none."""
    made, forwards, lost = with_forwards(quotes)
    if lost.any() and beside is not None:
        held = beside()
        held = held[~np.isin(held.ids, quotes.ids)]
        everything, forwards, nowhere = with_forwards(stacked(held, quotes))
        made, lost = everything[np.isin(everything.ids, quotes.ids)], nowhere[len(held) :]
    fails = np.zeros(rules.frame.height, bool)
    fails[at[lost]] = True
    return made, forwards, at[~lost], rules.failures("Q116", "strike", pl.Series(fails), NO_FORWARD)
