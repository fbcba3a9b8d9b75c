"""Solve the retained problem again from its moments: the whole nonlinear optimum, and no quote is looked at."""

from __future__ import annotations

from dataclasses import replace

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.calibration.settings import Settings
from strikeout.forgetting.refusal import determined
from strikeout.models.model import Model
from strikeout.statistics.moments import Moments


def resolve(moments: Moments, model: Model, *, settings: Settings) -> Calibration:
    """The optimum of the quotes behind the moments: a pure function of the state, whatever its history.

    Subtract first: ``resolve(moments - moments_of(forgotten), ...)``.

    Raises:
        UnidentifiedError: the moments do not determine the parameters.
        RefusedError: they lead to the model's own bounds, or no optimum was found.
    """
    return determined(calibrated(moments, model, settings=settings))


def calibrated(moments: Moments, model: Model, *, settings: Settings) -> Calibration:
    """``calibrate_moments`` with the settings of another calibration.

    Raises:
        UnidentifiedError: there are too few quotes for the free parameters.
    """
    found = calibrate_moments(
        moments,
        model,
        bounds=settings.bounds,
        fixed=settings.fixed,
        feller=settings.feller,
        starts=settings.starts,
    )
    # Moments make no panel; whether one was left open is kept, for whoever calibrates from quotes again.
    return replace(found, settings=replace(found.settings, panel=settings.panel))
