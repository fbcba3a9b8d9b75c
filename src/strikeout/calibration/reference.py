"""Where footprints are taken: at parameters that a few bad quotes hardly move."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from strikeout.calibration.calibrate import fit
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError
from strikeout.statistics.losses import SQUARED


def robust_reference(calibration: Calibration) -> dict[str, float]:
    """Return the parameters of the same quotes, calibrated the same way but under Huber's loss.

    Rows taken there make one Gauss-Newton step good to a few hundredths of a standard error with up to a fifth of the
    quotes bad; at the least-squares parameters a single bad day can ruin it. Every point of the model is a valid
    reference, so a search that did not converge still gives one.

    Raises:
        RefusedError: the search ended where the model has no parameters at all.
    """
    if calibration.loss != SQUARED or calibration.moments is not None:
        return dict(calibration.parameters)
    robust = replace(calibration.settings, loss="huber")
    found: dict[str, float] = fit(calibration.quotes, calibration.asked, **robust.keywords()).parameters
    if not all(isfinite(value) for value in found.values()):
        raise RefusedError("No reference: the search under Huber's loss ended at no finite parameters. Fix parameters.")
    return found
