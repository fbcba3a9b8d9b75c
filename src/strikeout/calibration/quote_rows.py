"""The quotes of a calibration as weighted rows at its parameters: what deletions and standard errors are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from strikeout.calibration.deletions import PanelRows, QuoteRows
from strikeout.calibration.identifiability import INFLATION
from strikeout.calibration.latent_prior import refuse_prior
from strikeout.calibration.latent_problem import parts_of
from strikeout.kernels.arrays import Floats, Mask, Rows
from strikeout.statistics.linearize import rows
from strikeout.statistics.losses import Loss, Squared, loss_with, noise_variance
from strikeout.statistics.objective import objective_of

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration


PLAIN_ROWS = ("X", "pull", "stiffness", "cost", "counted")  # arrays with one entry per quote
PANEL_ROWS = ("rows", "day", "counted", "pull", "stiffness", "cost")


def free_names(calibration: Calibration) -> list[str]:
    """Return the (shared) parameters that were estimated: neither fixed nor on a bound."""
    held = {*calibration.fixed, *calibration.on_bound}
    return [name for name in calibration.parameters if name not in held]


def loss_of(calibration: Calibration) -> Loss:
    """Return the loss a calibration ended with, its threshold included."""
    return loss_with(calibration.loss, calibration.threshold)


def quote_rows(calibration: Calibration) -> tuple[QuoteRows, list[int]]:
    """Return the quotes of a plain calibration as rows at its parameters, in their order, and the free parameters.

    A quote of weight zero is a row of zeros.
    """
    how, model, loss = calibration.settings, calibration.model, loss_of(calibration)
    objective, _ = objective_of(calibration.quotes, residual=how.residual, weights=how.weights)
    difference, jacobian = rows(objective, model, model.parameters.vector(calibration.parameters))
    free = [model.parameters.names.index(name) for name in free_names(calibration)]
    e = objective.root_weight * difference
    noise = None if isinstance(loss, Squared) else noise_variance(loss, e, len(free))

    def placed(values: Floats) -> Floats:
        whole = np.zeros((len(calibration.quotes), *values.shape[1:]))
        whole[objective.order] = values
        return whole

    X = placed(objective.root_weight[:, None] * jacobian[:, free])
    charged = placed(loss.pull(e)), placed(loss.stiffness(e)), placed(loss.cost(e)), placed(np.ones(len(e)))
    return QuoteRows(X, *charged, noise=noise, inflation=getattr(model, "inflation", INFLATION)), free


def panel_rows(calibration: Calibration) -> PanelRows:
    """Return the quotes of a panel as weighted rows at its parameters, in their order.

    A latent parameter on a bound is held: its column is zero.
    """
    refuse_prior(calibration, "influence of quotes")
    model, quotes, loss, how = calibration.model, calibration.quotes, loss_of(calibration), calibration.settings
    space, latent = model.parameters, calibration.latent_name
    columns = [space.names.index(name) for name in (*free_names(calibration), str(latent))]
    weighted = np.zeros((len(quotes), len(columns) + 1))
    day = np.zeros(len(quotes), np.intp)
    for number, places in enumerate(calibration.rows.values()):
        day[places] = number
    whole, _ = objective_of(quotes, residual=how.residual, weights=how.weights)
    for group, objective in parts_of(whole, calibration.rows).items():
        difference, jacobian = rows(objective, model, space.vector(calibration.theta(group)))
        at = calibration.rows[group][objective.order]
        weighted[at, :-1] = objective.root_weight[:, None] * jacobian[:, columns]
        weighted[at, -1] = objective.root_weight * difference
        if group in calibration.latent_on_bound:
            weighted[at, -2] = 0.0
    inflation = getattr(model, "inflation", INFLATION)
    counted = np.asarray(np.any(weighted != 0.0, axis=1), float)
    if isinstance(loss, Squared):
        return PanelRows(weighted, day, len(calibration.rows), counted, inflation=inflation)
    e = weighted[:, -1]
    moving = len(columns) - 1 + len(calibration.latent) - len(calibration.latent_on_bound)
    noise = noise_variance(loss, e[counted > 0.0], moving)
    charged = loss.pull(e), loss.stiffness(e), loss.cost(e)
    return PanelRows(weighted, day, len(calibration.rows), counted, *charged, noise=noise, inflation=inflation)


def in_canonical_order(calibration: Calibration) -> tuple[QuoteRows | PanelRows, Rows]:
    """Return the rows of the quotes that count in an order that the order of the book cannot change, and that order.

    Groups of a panel follow each other: two dates may have the same contract at the same price.
    """
    how = calibration.settings
    objective, _ = objective_of(calibration.quotes, residual=how.residual, weights=how.weights)
    if calibration.panel is None:
        evidence, _ = quote_rows(calibration)
        order = objective.order
        return replace(evidence, **taken(evidence, PLAIN_ROWS, order)), order
    panel = panel_rows(calibration)
    order = objective.order[np.argsort(panel.day[objective.order], kind="stable")]
    return replace(panel, **taken(panel, PANEL_ROWS, order)), order


def taken(evidence: QuoteRows | PanelRows, names: tuple[str, ...], order: Rows | Mask) -> dict[str, Any]:
    """Return these columns of some rows, by name."""
    columns = {name: getattr(evidence, name) for name in names}
    return {name: None if column is None else column[order] for name, column in columns.items()}
