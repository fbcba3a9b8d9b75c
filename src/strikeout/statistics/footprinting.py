"""From quotes to footprints: sensitivities and residuals at a reference, each rounded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.kernels import exact
from strikeout.models.model import Model, Theta
from strikeout.quotes.contracts import Contracts
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import rows
from strikeout.statistics.normal_equations import NormalEquations, Schema, schema_of
from strikeout.statistics.objective import Residual, objective_of, weights_for_residual
from strikeout.statistics.weights import Weighting, name_of
from strikeout.text import Advice

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes

Floats = NDArray[np.float64]

RUN = 16_384  # quotes that are counted together: their sensitivities then stay in the cache


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


def normal_equations_of(
    quotes: Quotes, model: Model, reference: Theta, *, residual: Residual = "price", weights: Weighting = "given"
) -> NormalEquations:
    """Return ``footprints_of(...).total()`` without keeping a footprint: the same bits in a third of the time.

    Raises:
        StrikeoutError: as ``footprints_of``.
    """
    if residual != "price" or not hasattr(model, "kernel") or not isinstance(quotes.contracts, Contracts):
        # Only prices of our own kernels are known not to depend on the order of the rows.
        return footprints_of(quotes, model, reference, residual=residual, weights=weights).total()
    weight, rule = weights_for_residual(quotes, residual, weights)
    schema = schema_of(model, reference, residual=residual, weights=rule)
    counts = np.flatnonzero(weight) if not weight.all() else None  # a weight of zero leaves nothing behind
    contracts, observed, root = quotes.contracts, quotes.observed + 0.0, np.sqrt(weight)
    if counts is not None:
        contracts, observed, root = contracts[counts], observed[counts], root[counts]
    theta, state, total = np.array(schema.reference), exact.zero(schema.columns), 0
    for rows_of, part in contracts.runs(RUN):
        price, jacobian = model.linearize(theta, part)
        columns, difference = np.ascontiguousarray(jacobian.T), observed[rows_of] - price
        words, counted, unfit = exact.footprint_sums(columns, difference, root[rows_of], schema.grid)
        if unfit:
            return footprints_of(quotes, model, reference, residual=residual, weights=weights).total()  # names them
        state, total = exact.total(np.stack([state, words])), total + counted
    return NormalEquations(schema, state, total)


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
