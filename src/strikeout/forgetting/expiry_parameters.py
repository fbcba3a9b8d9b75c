"""Models with parameters per expiry: what is left once the last quote of an expiry is struck out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strikeout.calibration.settings import Settings, chosen
from strikeout.errors import RefusedError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes

NAMED = 6  # parameters a sentence names before it counts the rest


def model_left(model: Model, retained: Quotes, settings: Settings) -> Model:
    """Return the model with the parameters of the expiries of these quotes; as given if it has none per expiry."""
    if getattr(model, "expiries", None) != "quoted":
        return model
    formed: Model = model.suited(chosen(retained, settings.select).contracts)  # type: ignore[attr-defined]
    return formed


def check_expiries(model: Model, settings: Settings) -> None:
    """Raise RefusedError if bounds, fixed or starts name parameters of an expiry that is no longer quoted."""
    names, starts = model.parameters.names, settings.starts
    points = () if isinstance(starts, int) else (starts,) if isinstance(starts, Mapping) else starts
    started = [name for point in points for name in point]
    for setting, given in (("bounds", settings.bounds), ("fixed", settings.fixed), ("starts", started)):
        gone = [name for name in dict.fromkeys(given or ()) if name not in names]
        if gone:
            raise RefusedError(
                f"{setting} names {_some(gone)}, and without quotes of its expiry a parameter is removed: what is "
                f"left has {_some(names)}. Calibrate the retained quotes with {setting}={{...}} for these.",
                gone=gone,
                parameters=list(names),
            )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
