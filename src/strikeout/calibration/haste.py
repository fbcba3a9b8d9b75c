"""Variance that returns to its mean before the first expiry: what quotes can then still tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from strikeout.calibration.feller import MEAN_REVERSION, VOL_OF_VOL

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

FORGOTTEN = 5.0  # mean_reversion times the first expiry: exp(-5) = 0.7 % of where variance began is left by then
DAYS = 365.0
LN_2 = 0.6931471805599453


def haste(calibration: Calibration) -> tuple[str, ...]:
    """A sentence where variance is faster than the quotes can see, else nothing.

    As mean_reversion and vol_of_vol grow together, Heston's model tends to a Levy process, the normal inverse Gaussian
    one, which knows neither of the two but a ratio of them: the cost hardly changes along the way.
    """
    speed, contracts = calibration.parameters.get(MEAN_REVERSION), getattr(calibration.quotes, "contracts", None)
    if speed is None or contracts is None or VOL_OF_VOL not in calibration.parameters:
        return ()
    first = float(np.min(contracts.expiry))
    if not speed * first > FORGOTTEN:
        return ()
    return (
        f"Variance returns to its mean before the quotes can see it: half of any excess is gone in "
        f"{_spell(LN_2 / speed)}, and the first expiry is in {_spell(first)}. They tell vol_of_vol / "
        "mean_reversion, and little more of either or of initial_variance.",
    )


def _spell(years: float) -> str:
    days = DAYS * years
    said, unit = (f"{24.0 * days:.2g}", "hour") if days < 1.0 else (f"{days:.3g}", "day")
    return f"{said} {unit}" if said == "1" else f"{said} {unit}s"
