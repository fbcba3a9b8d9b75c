"""The rules about the market, applied to quotes just read: what they flag is told, what they reject is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from strikeout.quotes.checks.catalogue import RULES
from strikeout.quotes.checks.frames import market_of
from strikeout.quotes.checks.market import CHECKED, check_market, unchecked
from strikeout.quotes.checks.settings import Checks
from strikeout.quotes.forward_table import Forwards
from strikeout.quotes.forwards import with_forwards
from strikeout.quotes.joining import stacked
from strikeout.quotes.quotes import Quotes
from strikeout.quotes.rules import Rules
from strikeout.quotes.slices import MOMENT_LABELS
from strikeout.wording import printable

Beside = Callable[[], Quotes]
PIECE = 1_000_000  # quotes looked at together, more or less
LOOK_BACK = frozenset({"Q210"})
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
    found, missing = _checked(quotes, at, rules, checks)
    rejected = found.filter("is_rejected")["at"].unique()
    if not rejected.len():
        return Judgement(quotes, at, (lost, found), forwards, 0, missing)
    kept = ~np.isin(at, rejected.to_numpy())
    quotes, forwards, at, more = _carried(quotes[kept], at[kept], rules, beside)
    return Judgement(quotes, at, (lost, found, more), forwards, rejected.len(), missing)


def _checked(
    quotes: Quotes, at: NDArray[np.intp], rules: Rules, checks: Checks
) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """What the rules find, and which were not run. A large book is looked at a piece at a time."""
    table, places = rules.table, places_told(rules)
    found = []
    for rows, asked in _pieces(quotes, checks):
        market = market_of(quotes if rows is None else quotes._rows(rows), *_where(at, rows, table.rows))
        found.append(check_market(market, asked, numbering=table.numbering, places=places))
    return _in_turn(pl.concat(found)), unchecked(market_of(quotes[:1]).columns, checks)


def places_told(rules: Rules) -> dict[str, str]:
    """What the source calls each canonical column; "price" is whatever the price is made of."""
    table, layout = rules.table, rules.layout
    called = {role: table.called(role) if table.profile else name for role, name in layout.places.items()}
    price = next(role for role in ("price", "bid", "iv") if role in layout.used)
    return {role: printable(name) for role, name in {"price": called[price], **called}.items()}


def _in_turn(found: pl.DataFrame) -> pl.DataFrame:
    """Issues in the order of the rules, whether they were looked for in one piece or in many."""
    turn = {code: place for place, code in enumerate(CHECKED)}
    by = pl.col("code").replace_strict(turn, return_dtype=pl.Int64)
    return found.sort(by, maintain_order=True)


def _where(at: NDArray[np.intp], rows: NDArray[np.intp] | None, numbers: pl.Series) -> tuple[pl.Series, pl.Series]:
    here = at if rows is None else at[rows]
    return pl.Series(here), numbers.gather(here)


def _pieces(quotes: Quotes, checks: Checks) -> Iterator[tuple[NDArray[np.intp] | None, Checks]]:
    """Rows to look at together, and what to look for: all quotes of a moment are in one piece, and once more, for the
    rule that looks back in time, all quotes of a strike."""
    count = -(-len(quotes) // PIECE)
    if count < 2:
        yield None, checks
        return
    others = frozenset(RULES) - LOOK_BACK
    moment = pl.Series(np.zeros(len(quotes), np.uint64))
    for name in (name for name in MOMENT_LABELS if name in quotes.labels):
        moment = (moment + pl.Series(quotes.labels[name].tolist()).hash()).hash()
    strike = pl.Series(quotes.contracts.strike).hash()
    for key, off in ((moment, LOOK_BACK), (strike, others)):
        piece = (key % count).to_numpy()
        for number in range(count):
            rows = np.flatnonzero(piece == number)
            if rows.size:
                yield rows, replace(checks, off=checks.off | off)


def _carried(
    quotes: Quotes, at: NDArray[np.intp], rules: Rules, beside: Beside | None
) -> tuple[Quotes, Forwards | None, NDArray[np.intp], pl.DataFrame]:
    """The quotes that have a forward, and an issue for each that has none."""
    made, forwards, lost = with_forwards(quotes)
    if lost.any() and beside is not None:
        made, forwards, lost = beside_others(quotes, beside())
    return made, forwards, at[~lost], without_forward(rules, at[lost])


def beside_others(quotes: Quotes, held: Quotes) -> tuple[Quotes, Forwards | None, NDArray[np.bool_]]:
    """As ``with_forwards``, where forwards rest on these quotes and on others that are held."""
    held = held[~np.isin(held.ids, quotes.ids)]
    everything, forwards, nowhere = with_forwards(stacked(held, quotes))
    return everything[np.isin(everything.ids, quotes.ids)], forwards, nowhere[len(held) :]


def without_forward(rules: Rules, at: NDArray[np.intp]) -> pl.DataFrame:
    """An issue for each of these rows of the table: it has no forward."""
    fails = np.zeros(rules.frame.height, bool)
    fails[at] = True
    return rules.failures("Q116", "strike", pl.Series(fails), NO_FORWARD)
