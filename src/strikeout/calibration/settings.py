"""How a calibration was asked for, so that other quotes can be calibrated the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from strikeout.calibration.coordinates import Bounds
from strikeout.calibration.otm_filter import Choice
from strikeout.calibration.starts import Start
from strikeout.statistics.objective import Residual
from strikeout.statistics.weights import Weighting

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


FREE = "free"  # the latent path of a panel has no prior
STARTS = 4  # canonical starts of a search, unless others are asked for


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
