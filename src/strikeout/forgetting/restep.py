"""The same step rebuilt from the retained quotes: the paper's one-step "retrain", and the convergence of `downdate`."""

from __future__ import annotations

import numpy as np

from strikeout.errors import UsageError
from strikeout.models.model import Model
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprinting import footprints_of
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.normal_equations import Ridge, refuse_mixing
from strikeout.statistics.objective import RESIDUALS
from strikeout.statistics.schema import Schema
from strikeout.statistics.system import OneStep
from strikeout.statistics.weights import RULES, Weighting


def restep(
    retained: Quotes,
    model: Model,
    schema: Schema,
    *,
    weights: Weighting | None = None,
    ridge: Ridge = None,
    free: tuple[int, ...] | None = None,
) -> OneStep:
    """Return one Gauss-Newton step at the schema's reference from raw quotes; equals ``downdate`` bit for bit.

    Args:
        weights: needed where the schema's own are not one of the rules: by id or in the order of the quotes.

    Raises:
        UsageError: the model or the weights are not those of the schema.
        RefusedError: a quote cannot be counted exactly.
    """
    return OneStep(footprints_in(retained, model, schema, weights=weights).total(), ridge, free)


def footprints_in(quotes: Quotes, model: Model, schema: Schema, *, weights: Weighting | None = None) -> Footprints:
    """Return the footprints of raw quotes in a schema.

    Raises:
        UsageError: the model or the weights are not those of the schema.
        RefusedError: a quote cannot be counted exactly.
    """
    if not len(quotes):
        return Footprints(schema, quotes.ids, np.zeros((0, schema.columns), np.int64))
    if weights is None:
        weights = next((rule for rule in RULES if rule == schema.weights), None)
        if weights is None:
            raise UsageError(f"The schema's weights are {schema.weights!r}: give them again, by id (weights={{...}}).")
    residual = next(kind for kind in RESIDUALS if kind == schema.residual)
    footprints = footprints_of(
        quotes, model, schema.reference, residual=residual, weights=weights, grid=schema.exponents[-1]
    )
    refuse_mixing(schema, footprints.schema)
    return footprints.under(schema)
