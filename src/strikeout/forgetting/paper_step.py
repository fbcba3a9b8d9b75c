"""The fast operator of "Selective Forgetting in Option Calibration", as published, for comparison."""

from __future__ import annotations

from numpy.typing import ArrayLike

from strikeout.calibration.calibration import Calibration
from strikeout.forgetting.downdate import downdate
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.system import FootprintBlocks, OneStep
from strikeout.statistics.weights import Weighting


def paper_step(calibration: Calibration, ids: ArrayLike, *, free: tuple[int, ...] | None = None) -> OneStep:
    """Return one step from the calibrated parameters without these quotes, with 1e-6 on the diagonal of H.

        (H' + 1e-6 I) (theta' - theta) = G',    H' = H - sum over F of psi_i,    G' = G - sum over F of u_i

    ``strikeout.paper.fast`` with exact sums gives the same bits. The reference was fitted to the quotes that are struck
    out, so the step equals the paper's one-step "retrain" and not a refit.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
        RefusedError: a quote is too large to be counted exactly.
    """
    footprints = paper_footprints(calibration, calibration.settings.weights)
    return downdate(FootprintBlocks.of(footprints), ids, ridge="paper", free=free)


def paper_footprints(calibration: Calibration, weights: Weighting) -> Footprints:
    """Return the footprints at the least-squares parameters, where the paper linearizes.

    Raises:
        RefusedError: a quote is too large to be counted exactly.
    """
    return footprints_of(
        calibration.quotes,
        calibration.model,
        calibration.parameters,
        residual=calibration.settings.residual,
        weights=weights,
    )
