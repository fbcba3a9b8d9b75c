"""How a calibration was asked for, so that other quotes can be calibrated the same way.

Which quotes of a book the objective is made of: a visible rule about a quote's contract, never a cut at reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from strikeout.calibration.coordinates import Bounds
from strikeout.calibration.starts import STARTS, Start
from strikeout.errors import RefusedError, UsageError
from strikeout.kernels.arrays import Mask
from strikeout.quotes.forwards import as_given
from strikeout.statistics.objective import Residual, Weighting
from strikeout.text import Argument, agreeing

if TYPE_CHECKING:
    from strikeout.quotes.contracts import Contracts
    from strikeout.quotes.quotes import Quotes

Choice = Literal["all", "otm"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


def is_out_of_the_money(contracts: Contracts) -> Mask:
    """Puts below the forward, calls at it and above: of every strike the side whose price is all time value."""
    out: Mask = contracts.is_call == (contracts.strike >= contracts.forward)
    return out


def chosen(quotes: Quotes, select: Choice) -> Quotes:
    """Return the quotes that count: all, or those out of the money, each with the forward it has in the book."""
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


FREE = "free"  # the latent path of a panel has no prior


@dataclass(frozen=True)
class Settings:
    """Everything ``calibrate`` takes beside the quotes and the model.

    Weights given as an array are kept by id, so that they stay with their quotes.

    >>> Settings(loss="huber").keywords()["loss"]
    'huber'
    """

    weights: Weighting = "given"
    residual: Residual = "price"
    loss: str = "squared"
    bounds: Bounds | None = None
    fixed: Mapping[str, float] | None = None
    feller: Literal["warn", "enforce", "ignore"] = "warn"
    starts: int | Start | Sequence[Start] = STARTS
    select: Choice = "all"
    panel: str | None = None
    errors: str | Sequence[str] = "auto"
    latent: str = FREE

    @property
    def has_prior(self) -> bool:
        """Whether the path of a panel has a prior, so that its parameters are not those of least cost."""
        return self.latent != FREE

    def keywords(self) -> dict[str, Any]:
        """For ``calibrate(quotes, model, **settings.keywords())``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def settings_of(quotes: Quotes, **asked: Any) -> Settings:
    """Return the settings these keywords of ``calibrate`` ask for, as values of their own: later changes do not reach
    them."""
    weights, starts = asked["weights"], asked["starts"]
    if isinstance(weights, Mapping):
        weights = dict(weights)
    elif not isinstance(weights, str):
        weights = dict(zip(quotes.ids.tolist(), np.asarray(weights, float).tolist(), strict=True))
    if not isinstance(starts, int):
        starts = dict(starts) if isinstance(starts, Mapping) else tuple(dict(start) for start in starts)
    errors = asked["errors"] if isinstance(asked["errors"], str) else tuple(asked["errors"])
    copied = {name: None if asked[name] is None else dict(asked[name]) for name in ("bounds", "fixed")}
    return Settings(**{**asked, **copied, "weights": weights, "starts": starts, "errors": errors})
