"""Calibrate the retained quotes as if no others had ever been there: the yardstick of every other operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.settings import Settings
from strikeout.forgetting.refusal import determined
from strikeout.forgetting.vanishing import left, refuse_vanished
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes


def recalibrate(retained: Quotes, model: Model, settings: Settings) -> Calibration:
    """A cold calibration of these quotes with these settings: nothing of any other quote can be in it.

    Weights of a robust loss are decided again, by the retained quotes alone.

    Raises:
        UnidentifiedError: the quotes do not determine the parameters.
        RefusedError: they lead to the model's own bounds, no optimum was found, a quote lacks what is needed, or the
            settings name a parameter that went with its expiry.
    """
    refuse_vanished(left(model, retained, settings), settings)
    found: Calibration = calibrate(retained, model, **settings_for(retained, settings).keywords())
    return determined(found)


def settings_for(retained: Quotes, settings: Settings) -> Settings:
    """Weights by id without those of other quotes: the weight of a forgotten quote is to be forgotten too."""
    weights = settings.weights
    if not isinstance(weights, Mapping):
        return settings
    return replace(settings, weights={name: weights[name] for name in retained.ids.tolist() if name in weights})
