"""From quotes to footprints: sensitivities and residuals at a reference, each rounded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.kernels import exact
from strikeout.models.model import Model, Theta
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import rows
from strikeout.statistics.normal_equations import Schema, schema_of
from strikeout.statistics.objective import Residual, objective_of
from strikeout.statistics.weights import Weighting, name_of
from strikeout.text import Advice

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]


def footprints_of(
    quotes: Quotes,
    model: Model,
    reference: Theta,
    *,
    residual: Residual = "price",
    weights: Weighting = "given",
    grid: int | None = None,
) -> Footprints:
    """Return the footprint of every quote at the reference, in the order of the quotes. All of them, or none.

    A row depends on its own quote alone, to the last bit.

    Args:
        grid: residuals are rounded to ``2^-grid``; see ``schema_of``.

    Raises:
        ParameterError: the reference is not a point of the model.
        UsageError: an unknown residual or weighting.
        RefusedError: a quote lacks what the residual or the weighting needs, or a row is not finite or too large for
            the grid.
    """
    try:
        objective, rule = objective_of(quotes, residual=residual, weights=weights)
    except UnidentifiedError:  # no quote, or none that counts: nothing to calibrate to, and nothing left behind
        schema = schema_of(model, reference, residual=residual, weights=name_of(weights), grid=grid)
        return Footprints(schema, quotes.ids, np.zeros((len(quotes), schema.columns), np.int64))
    schema = schema_of(model, reference, residual=residual, weights=rule, grid=grid)
    difference, jacobian = rows(objective, model, np.array(schema.reference))
    values = np.empty((len(objective), schema.columns))
    np.multiply(objective.root_weight[:, None], jacobian, out=values[:, :-1])
    np.multiply(objective.root_weight, difference, out=values[:, -1])
    quantised, fit = exact.quantise(values, schema.grid)
    if not fit.all():
        unfit = np.argsort(objective.order)
        unfit = unfit[~fit[unfit]]
        _refuse(quotes, schema, objective.order[unfit], values[unfit[0]])
    integers = np.zeros((len(quotes), schema.columns), np.int64)  # a quote of weight zero is not in the objective
    integers[objective.order] = quantised
    return Footprints._trusted(schema, quotes.ids, integers)


def _refuse(quotes: Quotes, schema: Schema, unfit: NDArray[np.intp], first: Floats) -> None:
    largest = np.ldexp(exact.LARGEST, -schema.grid)
    column = int(np.argmin(np.abs(first) < largest))  # the first that is not below, or not a number
    name = (*schema.parameters, "residual")[column]
    ids = quotes.ids[unfit].tolist()
    named = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
    raise RefusedError(
        f"{len(ids):,} of {len(quotes):,} quotes cannot be counted exactly: {named}. The {name} column of {ids[0]} is "
        f"{first[column]:g}; the grid of 2^-{schema.exponents[column]} holds less than {largest[column]:.3g}. Nothing "
        "was changed. Strike them out (",
        Advice.STRIKE_OUT,
        "), weigh them less, or take a coarser grid (grid=; custom_model: ranges=).",
        ids=ids,
        column=name,
        value=float(first[column]),
        largest=float(largest[column]),
    )
