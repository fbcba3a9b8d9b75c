"""The rules about the market, applied to quotes just read: what they flag is told, what they reject is left out."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.frames import market_of
from strikeout.quotes.checks.market import check_market
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rules import Rules


def judged(
    quotes: Quotes, at: pl.Series, rules: Rules, checks: Checks
) -> tuple[Quotes, pl.DataFrame, NDArray[np.intp]]:
    """The quotes that stay, what was found, and the positions in the table of those left out.

    Args:
        at: where in the table each quote was.
    """
    layout = rules.layout
    price = next(role for role in ("price", "bid", "iv") if role in layout.used)
    places = {"price": layout.places[price], **layout.places}
    market = market_of(quotes, at.cast(pl.Int64), rules.table.rows.gather(at))
    found = check_market(market, checks, numbering=rules.table.numbering, places=places)
    rejected = found.filter("is_rejected")["at"].unique()
    if not rejected.len():
        return quotes, found, np.empty(0, np.intp)
    cut = at.is_in(rejected.implode()).to_numpy()
    return quotes.without(quotes.ids[cut]), found, at.to_numpy()[cut].astype(np.intp)
