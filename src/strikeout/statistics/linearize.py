"""Linearize quotes: the only place where curvature and score are computed.

From quotes to footprints: sensitivities and residuals at a reference, each rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import RefusedError, UnidentifiedError
from strikeout.kernels import black, exact
from strikeout.kernels.arrays import Floats, Rows
from strikeout.models.model import Model, Theta
from strikeout.quotes.contracts import Contracts
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.losses import Squared
from strikeout.statistics.normal_equations import NormalEquations, Schema, schema_of
from strikeout.statistics.objective import Objective, Residual, Weighting, name_of, objective_of, weights_for_residual
from strikeout.text import Advice

if TYPE_CHECKING:
    from strikeout.quotes.quotes import Quotes


# A price below this share of discount * forward is at the accuracy of the pricing kernels and has no volatility to
# speak of; it is read as this share, and moves with no parameter.
SMALLEST_PRICE = 1e-12


def linearize(objective: Objective, model: Model, theta: Sequence[float]) -> Linearization:
    """Return curvature, score and cost of the objective at theta. Not-a-number if the model has no price there.

    Prices under squared loss take the model's own fused pass, ``accumulate_scaled``, if it has one. Everything else
    goes row by row, summed pairwise in the canonical order (never with BLAS, whose blocking would show in the bits).
    """
    return linearizer(objective, model)(theta)


def linearizer(objective: Objective, model: Model) -> Callable[[Sequence[float]], Linearization]:
    """``linearize`` of one objective and one model: what a search calls again and again, with theta alone."""
    count = len(objective)
    if objective.residual == "price" and isinstance(objective.loss, Squared):
        fused = _fused(objective, model)
        if fused is not None:
            return lambda theta: Linearization(tuple(fused(np.array(theta)).tolist()), count)

    def by_rows(theta: Sequence[float]) -> Linearization:
        with np.errstate(over="ignore", invalid="ignore"):  # a cost that overflows is a point to step back from
            residual, jacobian = rows(objective, model, np.array(theta))
            return summed(objective, residual, jacobian)

    return by_rows


def _fused(objective: Objective, model: Model) -> Callable[[Floats], Floats] | None:
    """Return the model's own pass over the objective, with all that does not depend on theta prepared if possible."""
    ready = getattr(model, "accumulator", None)
    if ready is not None:
        found: Callable[[Floats], Floats] = ready(*objective.prepared)
        return found
    accumulate = getattr(model, "accumulate_scaled", None)
    return None if accumulate is None else lambda theta: accumulate(theta, *objective.prepared)


def rows(objective: Objective, model: Model, theta: Floats) -> tuple[Floats, Floats]:
    """Residuals (target - model) and the model's sensitivities, unweighted, in canonical order."""
    if objective.residual == "price":
        price, jacobian = model.linearize(theta, objective.contracts)
        return objective.target - price, jacobian
    price, jacobian = model.linearize(theta, objective.out_of_the_money)
    vol, slope = _volatilities(price, [objective])
    return objective.target - vol, jacobian * slope[:, None]


def residuals(objective: Objective, model: Model, theta: Floats) -> Floats:
    """``rows`` without the sensitivities."""
    if objective.residual == "price":
        return objective.target - model.price(theta, objective.contracts)
    return objective.target - _volatilities(model.price(theta, objective.out_of_the_money), [objective])[0]


def linearize_each(posed: Sequence[tuple[Objective, Sequence[float]]], model: Model) -> list[Linearization]:
    """``linearize`` of several objectives of one kind, each at its own theta: the same bits, in fewer calls.

    An implied volatility takes a millisecond or two, however few are asked for; here all of them are asked for at once.
    """
    first = posed[0][0]
    if first.residual == "price":
        return [linearize(objective, model, theta) for objective, theta in posed]
    found = [model.linearize(np.array(theta), objective.out_of_the_money) for objective, theta in posed]
    with np.errstate(over="ignore", invalid="ignore"):
        vol, slope = _volatilities(np.concatenate([price for price, _ in found]), [objective for objective, _ in posed])
        ends = np.cumsum([len(price) for price, _ in found])[:-1]
        parts = zip(posed, found, np.split(vol, ends), np.split(slope, ends), strict=True)
        return [
            summed(objective, objective.target - v, jacobian * s[:, None])
            for (objective, _), (_, jacobian), v, s in parts
        ]


def _volatilities(price: Floats, objectives: Sequence[Objective]) -> tuple[Floats, Floats]:
    """Implied volatilities of these prices of the out-of-the-money side, and the derivative of each by its price."""
    sides = [objective.out_of_the_money for objective in objectives]

    def column(name: str) -> NDArray[Any]:
        columns = [getattr(side, name) for side in sides]
        return columns[0] if len(columns) == 1 else np.concatenate(columns)

    forward, strike, expiry, discount = (column(name) for name in ("forward", "strike", "expiry", "discount"))
    floor = SMALLEST_PRICE * column("scale")
    vanishes = price <= floor
    price = np.where(vanishes, floor, price)
    vol = black.implied_volatility(price, forward, strike, expiry, discount, column("is_call"))
    vega = black.vega(forward, strike, expiry, vol, discount)
    slope = np.where(vanishes, 0.0, 1.0 / np.where(vega > 0.0, vega, np.inf))
    return vol, slope


def price_residuals(objective: Objective, model: Model, theta: Sequence[float]) -> Floats:
    """Observed less model price, in canonical order, whatever the objective weighs."""
    return objective.observed - model.price(np.array(theta), objective.contracts)


def summed(objective: Objective, residual: Floats, jacobian: Floats) -> Linearization:
    """Return curvature, score and cost from residuals and sensitivities in canonical order."""
    e = objective.root_weight * residual
    columns = [np.ascontiguousarray(column) * objective.root_weight for column in jacobian.T]
    pull, stiffness = objective.loss.pull(e), objective.loss.stiffness(e)
    sums: list[float] = []
    for i, column in enumerate(columns):
        stiff = column * stiffness
        sums.extend(float(np.add.reduce(stiff * other)) for other in columns[i:])
        sums.append(float(np.add.reduce(column * pull)))
    sums.append(float(np.add.reduce(objective.loss.cost(e))))
    return Linearization(tuple(sums), len(objective))


READY = ("given", "none")  # weights that take no time to find
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
    quotes: Quotes,
    model: Model,
    reference: Theta,
    *,
    residual: Residual = "price",
    weights: Weighting = "given",
    only: Rows | None = None,
    schema: Schema | None = None,
) -> NormalEquations:
    """Return ``footprints_of(...).total()`` without keeping a footprint: the same bits in a third of the time.

    Args:
        only: distinct row numbers of the quotes to sum; all if not given. Costs what these quotes cost.
        schema: theirs, if it is known.
    """

    def by_rows() -> NormalEquations:
        own = weights if only is None or isinstance(weights, str | Mapping) else np.asarray(weights)[only]
        picked = quotes if only is None else quotes[only]
        grid = None if schema is None else grid_in(model, schema)
        return footprints_of(picked, model, reference, residual=residual, weights=own, grid=grid).total()

    if residual != "price" or not hasattr(model, "kernel") or not isinstance(quotes.contracts, Contracts):
        return by_rows()  # only prices of our own kernels are known not to depend on the order of the rows
    if only is not None and (isinstance(weights, Mapping) or (isinstance(weights, str) and weights not in READY)):
        return normal_equations_of(quotes[only], model, reference, weights=weights, schema=schema)
    weight, rule = weights_for_residual(quotes, residual, weights)
    if schema is None:
        schema = schema_of(model, reference, residual=residual, weights=rule)
    counts = np.flatnonzero(weight) if only is None else only[weight.take(only) != 0.0]  # zero leaves nothing behind
    theta, state, total = np.array(schema.reference), None, 0
    for rows_of, part in quotes.contracts.runs(RUN, None if len(counts) == len(weight) else counts):
        price, jacobian = model.linearize(theta, part)
        columns, difference = np.ascontiguousarray(jacobian.T), quotes.observed.take(rows_of) - price
        root = np.sqrt(weight.take(rows_of))
        words, counted, unfit = exact.footprint_sums(columns, difference, root, schema.grid)
        if unfit:
            return by_rows()  # names them
        state, total = words if state is None else exact.total(np.stack([state, words])), total + counted
    return NormalEquations(schema, exact.zero(schema.columns) if state is None else state, total)


def grid_in(model: Model, schema: Schema) -> int | None:
    """Return the grid of residuals that gives a schema; None if it is the model's own."""
    return None if getattr(model, "exponents", None) == schema.exponents else schema.exponents[-1]


def _refuse(quotes: Quotes, schema: Schema, unfit: Rows, first: Floats) -> None:
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
