"""What the end of a search means: which kind of end it is, and how each start compares with the best."""

from __future__ import annotations

from strikeout.calibration.calibration import StartEnd
from strikeout.calibration.coordinates import Coordinates
from strikeout.calibration.descents import End, Posed
from strikeout.calibration.identifiability import Precision
from strikeout.calibration.loop import Descent
from strikeout.calibration.starts import agrees
from strikeout.calibration.termination import Termination


def termination_of(descent: Descent, coordinates: Coordinates, precision: Precision, asked: set[str]) -> Termination:
    """The search's own end, unless it ended on a bound or at parameters the quotes do not determine."""
    ended = descent.termination
    if ended is not Termination.NOT_FINITE and (precision.inseparable or (precision.free and ended.converged)):
        return Termination.NOT_IDENTIFIED
    if not ended.converged:
        return ended
    held = {coordinates.free[i] for i in descent.held}
    if not held:
        return ended
    own = {i for i in held - coordinates.replaced if coordinates.names[i] not in asked}
    return Termination.AT_BOUND if own else Termination.CONVERGED_ON_BOUND


def start_end(end: End[Posed], best: End[Posed], coordinates: Coordinates) -> StartEnd:
    """Where one start ended, beside the best."""
    descent = end.descent
    return StartEnd(
        parameters=coordinates.named(descent.point),
        cost=descent.system.cost,
        termination=descent.termination,
        evaluations=descent.evaluations,
        agrees=agrees(end, best),
    )
