"""Parameters that go with the last quote of their expiry: models with a set of them for every expiry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.choosing import chosen
from strikeout.calibration.settings import Settings
from strikeout.errors import RefusedError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes

NAMED = 6  # parameters a sentence names before it counts the rest


def left(model: Model, retained: Quotes, settings: Settings) -> Model:
    """The model in the form these quotes give it, where its parameters follow from their expiries; else as given.

    Raises:
        RefusedError: no quote is left that counts.
    """
    if getattr(model, "expiries", None) != "quoted":
        return model
    formed: Model = model.suited(chosen(retained, settings.select).contracts)  # type: ignore[attr-defined]
    return formed


def why_not_stepped(calibration: Calibration, retained: Quotes) -> str | None:
    """Why a step cannot take these parameters away; None where all of them stay."""
    names = left(calibration.asked, retained, calibration.settings).parameters.names
    if names == calibration.model.parameters.names:
        return None
    return "an expiry goes with its last quote, and a step cannot take its parameters along"


def refuse_vanished(model: Model, settings: Settings) -> None:
    """Nothing, where bounds, fixed and starts name parameters that the model still has.

    Raises:
        RefusedError: they name some that went with their expiry.
    """
    names, starts = model.parameters.names, settings.starts
    points = () if isinstance(starts, int) else (starts,) if isinstance(starts, Mapping) else starts
    started = [name for point in points for name in point]
    for where, given in (("bounds", settings.bounds), ("fixed", settings.fixed), ("starts", started)):
        gone = [name for name in dict.fromkeys(given or ()) if name not in names]
        if gone:
            raise RefusedError(
                f"{where} names {_some(gone)}, and with the last quotes of an expiry its parameters go too: what is "
                f"left has {_some(names)}. Calibrate the retained quotes with {where}={{...}} for these.",
                gone=gone,
                parameters=list(names),
            )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
