"""Which quotes of a book the objective is made of: a visible rule about a quote's contract, never a cut at reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError, UsageError
from strikeout.quotes.forwards import as_given
from strikeout.text import Argument, agreeing

if TYPE_CHECKING:
    from strikeout.quotes.contracts import Contracts
    from strikeout.quotes.quotes import Quotes

Choice = Literal["all", "otm"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


def is_out_of_the_money(contracts: Contracts) -> NDArray[np.bool_]:
    """Puts below the forward, calls at it and above: of every strike the side whose price is all time value."""
    out: NDArray[np.bool_] = contracts.is_call == (contracts.strike >= contracts.forward)
    return out


def chosen(quotes: Quotes, select: Choice) -> Quotes:
    """Return the quotes that count: all of them, or those out of the money, each with the forward it has in the book.

    Raises:
        UsageError: another word, or quotes of no options.
        RefusedError: no quote is out of the money.
    """
    if select not in CHOICES:
        raise UsageError(Argument("select", select), f" is unknown. Use one of {', '.join(CHOICES)}.")
    if select == "all":
        return quotes
    kept = is_out_of_the_money(quotes.contracts)
    if not kept.any():
        none = agreeing(len(quotes), "The quote is not", f"None of the {len(quotes):,} quotes is")
        raise RefusedError(f"{none} out of the money. Give ", Argument("select", "all"), ".")
    # Apart from the in-the-money quotes their forwards depend on, the others could not be refitted: they are as given.
    return as_given(quotes[kept])


def weights_for(used: Quotes, quotes: Quotes, weights: Any) -> Any:
    """Return weights in the order of the book, for those of its quotes that count; rules and weights by id as they
    are."""
    if isinstance(weights, str) or used is quotes or hasattr(weights, "keys"):
        return weights
    array = np.asarray(weights, float)
    return array if array.shape != (len(quotes),) else array[np.isin(quotes.ids, used.ids)]
