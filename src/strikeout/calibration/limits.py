"""How a search walks: briskly where a model's bounds and starts are known to be good, else patiently."""

from __future__ import annotations

from dataclasses import dataclass

from strikeout.calibration.convergence import TOLERANCE
from strikeout.calibration.damping import Damping, WaryDamping


@dataclass(frozen=True)
class Limits:
    """What a search may spend, and how wary it is.

    Args:
        cap: evaluations of the model.
        damping: of the first step.
        keeps_scale: damping is relative to the largest curvature met so far in each coordinate (More, 1978), not to the
            one at hand: a coordinate that does not matter for the moment does not run away.
        tolerance: in standard errors.
    """

    cap: int
    damping: Damping | WaryDamping
    keeps_scale: bool
    tolerance: float


# Runs from canonical starts inside bounds take 6 to 60 evaluations.
BUILTIN = Limits(cap=200, damping=Damping(), keeps_scale=False, tolerance=TOLERANCE)
# Curves with flat valleys, of one expiry each: cheap evaluations, of which some take many.
CURVE = Limits(cap=2000, damping=Damping(), keeps_scale=False, tolerance=TOLERANCE)
# An author's start may be anywhere, and nothing holds a step back: NIST's hardest takes 1,040 evaluations.
CUSTOM = Limits(cap=3000, damping=WaryDamping(), keeps_scale=True, tolerance=1e-10)
