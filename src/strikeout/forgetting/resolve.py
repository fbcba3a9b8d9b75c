"""Solve the retained problem again from its moments: the whole nonlinear optimum, without reading a quote."""

from __future__ import annotations

from strikeout.calibration.calibration import Calibration
from strikeout.calibration.from_moments import calibrate_moments
from strikeout.calibration.settings import Settings
from strikeout.forgetting.refusal import determined
from strikeout.models.model import Model
from strikeout.statistics.moments import Moments


def resolve(moments: Moments, model: Model, *, settings: Settings) -> Calibration:
    """Return the optimum of the quotes behind the moments: a pure function of the state, whatever its history.

    Subtract first: ``resolve(moments - moments_of(forgotten), ...)``.
    """
    return determined(calibrate_moments(moments, model, settings))
