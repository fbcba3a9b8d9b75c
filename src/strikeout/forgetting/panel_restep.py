"""The same step of a panel rebuilt from the retained quotes: the yardstick of `panel_downdate`."""

from __future__ import annotations

from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_groups import grouped
from strikeout.forgetting.panel_downdate import PanelStep
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.panel_state import PanelState


def panel_restep(calibration: PanelCalibration, retained: Quotes, *, free: tuple[int, ...] | None = None) -> PanelStep:
    """One Gauss-Newton step from the parameters of a calibration, on raw quotes; equals ``panel_downdate`` bit for bit.

    Raises:
        RefusedError: a quote cannot be counted exactly.
    """
    how, model = calibration.settings, calibration.model
    parts = {
        group: footprints_of(
            retained[rows], model, calibration.theta(group), residual=how.residual, weights=how.weights
        ).total()
        for group, rows in grouped(retained, calibration.panel).items()
        if group in calibration.latent
    }
    held = frozenset(calibration.latent_on_bound)
    return PanelStep(PanelState(calibration.latent_name, parts, held), free)
