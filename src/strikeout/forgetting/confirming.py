"""What the retained quotes say of one step, asked at the answer: more than the state at the reference can know."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from strikeout.assurance.optimality import Optimality, optimality
from strikeout.assurance.panel_optimality import panel_optimality, systems_at
from strikeout.calibration.calibration import Calibration
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_groups import grouped
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.objective import objective_of
from strikeout.statistics.system import Group


def measured(calibration: Calibration, gone: ArrayLike, parameters: Mapping[str, float]) -> Optimality:
    """Return what the quotes of a calibration, less those that go, say of the parameters of a step.

    Args:
        gone: ids of quotes that count.

    Raises:
        ParameterError: the parameters are no point of the model.
    """
    how = calibration.settings
    objective, _ = objective_of(calibration.quotes.without(gone), residual=how.residual, weights=how.weights)
    theta = [parameters[name] for name in calibration.model.parameters.names]
    return optimality(
        objective, calibration.model, theta, fixed=calibration.fixed, on_bound=(), bounds=how.bounds or {}
    )


def measured_panel(
    calibration: PanelCalibration,
    retained: Quotes,
    parameters: Mapping[str, float],
    latent: Mapping[Group, float],
    held: frozenset[Group],
) -> Optimality:
    """Return the same of a panel.

    Args:
        retained: those that count.
        held: groups whose latent parameter the step does not move.

    Raises:
        ParameterError: the parameters are no point of the model.
    """
    how, rows = calibration.settings, grouped(retained, calibration.panel)
    systems = systems_at(
        retained, rows, calibration.model, parameters, latent, residual=how.residual, weights=how.weights
    )
    return panel_optimality(
        systems,
        calibration.model,
        parameters,
        latent,
        fixed=calibration.fixed,
        on_bound=(),
        held=held,
        bounds=how.bounds or {},
    )


def unconfirmed(found: Optimality, tolerance: float) -> str | None:
    """Why a step is not confirmed to be within a tolerance of an optimum, as a clause; None if it is."""
    if found.is_certain(tolerance):
        return None
    if found.undetermined or found.is_within(tolerance):
        named = ", ".join(found.undetermined) or "every parameter by enough"
        return f"where it leads, the retained quotes do not determine {named}"
    return f"where it leads, the next step is {found.apart:.2g} standard errors"
