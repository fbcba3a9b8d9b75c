"""Operators that compute footprints again.

``recompute`` prices the touched shards alone, ``refine`` takes one step and then relinearizes over all retained quotes,
with an error estimate, and ``paper_step`` is the paper's step in exact sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, isnan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from strikeout.assurance.optimality import Question
from strikeout.calibration.calibration import Calibration
from strikeout.errors import ParameterError, RefusedError, UsageError
from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.evidence import free_parameters
from strikeout.kernels.arrays import Floats, Rows
from strikeout.kernels.arrow import ArrowBlocks
from strikeout.kernels.symmetric import length
from strikeout.models.model import Model
from strikeout.quotes.contracts import Features
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of, grid_in, normal_equations_of
from strikeout.statistics.normal_equations import NormalEquations, Ridge, Schema, refuse_mixing, schema_of
from strikeout.statistics.objective import RESIDUALS, RULES, Residual, Weighting, name_of
from strikeout.statistics.shards import Shards, one_shard, shard_states, shards_of, with_shards_replaced
from strikeout.statistics.system import WHOLE, FootprintBlocks, Group, OneStep, System
from strikeout.text import Argument


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
    """
    return OneStep(equations_in(retained, model, schema, weights=weights), ridge, free)


def equations_in(quotes: Quotes, model: Model, schema: Schema, *, weights: Weighting | None = None) -> NormalEquations:
    """Return the state of raw quotes in a schema."""
    residual, weights, grid = _means(model, schema, weights)
    own = schema_of(model, schema.reference, residual=residual, weights=name_of(weights), grid=grid)
    refuse_mixing(schema, own)
    return normal_equations_of(quotes, model, schema.reference, residual=residual, weights=weights, schema=schema)


def footprints_in(quotes: Quotes, model: Model, schema: Schema, *, weights: Weighting | None = None) -> Footprints:
    """Return the footprints of raw quotes in a schema."""
    residual, weights, grid = _means(model, schema, weights)
    footprints = footprints_of(quotes, model, schema.reference, residual=residual, weights=weights, grid=grid)
    refuse_mixing(schema, footprints.schema)
    return footprints.under(schema)


def _means(model: Model, schema: Schema, weights: Weighting | None) -> tuple[Residual, Weighting, int | None]:
    """Return residual, weights and grid that give footprints in this schema."""
    if weights is None:
        weights = next((rule for rule in RULES if rule == schema.weights), None)
        if weights is None:
            raise UsageError(f"The schema's weights are {schema.weights!r}: give them again, by id (weights={{...}}).")
    residual = next(kind for kind in RESIDUALS if kind == schema.residual)
    return residual, weights, grid_in(model, schema)


@dataclass(frozen=True, eq=False)
class Recomputed:
    """A step, and the states of all shards after it, which are summed when they are first asked for."""

    step: OneStep
    _states: Callable[[], Mapping[str, NormalEquations]]

    @cached_property
    def states(self) -> Mapping[str, NormalEquations]:
        """The state of every shard, by name; that of an emptied shard has no quotes."""
        return self._states()


def recompute(
    states: Mapping[str, NormalEquations],
    touched: Shards,
    left: Quotes,
    *,
    model: Model,
    weights: Weighting | None = None,
    ridge: Ridge = None,
    free: tuple[int, ...] | None = None,
) -> Recomputed:
    """Return the step of ``downdate``, bit for bit, without a footprint of what is struck out.

    It therefore also repairs: quotes whose footprints were lost, or never kept, are removed with their shard. All
    touched shards are priced in one pass, so the cost is that of the quotes in them and not of their number.

    Args:
        states: of every shard, by name.
        touched: the shards that contained a quote to strike out, without it; ``Shards.touched`` gives them. A name
            without members is a shard of which nothing is left.
        left: the retained quotes of the touched shards, in the order of ``touched.ids``.
    """
    again = set(touched.names)
    if not again <= states.keys() or not states:
        unknown = sorted(again - states.keys())
        raise UsageError(
            f"recompute: {len(unknown)} of the {len(touched)} touched shards are not among the {len(states)} known: "
            f"{', '.join(unknown[:3])}. Give the state of every shard.",
            shards=unknown,
        )
    if len(touched.ids) != len(left):  # ids are compared where the states by shard are summed, which many never ask for
        raise UsageError(
            f"recompute: the touched shards retain {len(touched.ids):,} quotes, and {len(left):,} are given. Use "
            "Shards.touched(ids)."
        )
    schema = next(iter(states.values())).schema
    fresh = equations_in(left, model, schema, weights=weights)
    kept = [state for name, state in states.items() if name not in again]
    total = NormalEquations.total([*kept, fresh]) if kept else fresh

    def states_after() -> Mapping[str, NormalEquations]:
        return {**states, **shard_states(footprints_in(left, model, schema, weights=weights), touched)}

    return Recomputed(OneStep(total, ridge, free), states_after)


def recompute_shards(
    calibration: Calibration,
    gone: Rows,
    *,
    shards: str | Sequence[str] | Shards | None = None,
    free: tuple[int, ...] | None = None,
) -> Recomputed:
    """Recompute a calibration's own footprints and quotes, cut into shards (by expiry if not given).

    A panel is cut by its groups. A quote that is too large for a footprint does not matter if it is struck out: its
    shard is rebuilt without it.

    Args:
        gone: row numbers of the quotes to strike out.
    """
    if calibration.panel is not None:
        return _recompute_groups(calibration, gone, shards, free)
    quotes = calibration.quotes
    if shards is None:
        cut = one_shard(quotes) if isinstance(quotes.contracts, Features) else shards_of(quotes, "expiry")
    else:
        cut = shards_of(quotes, shards)
    footprints = _countable(calibration, gone)
    touched, rows = cut.beside(gone)
    is_kept = np.ones(len(quotes), bool)
    is_kept[gone] = False
    schema = footprints.schema
    equations = calibration.equations_of(quotes, schema.reference, only=rows[is_kept[rows]], schema=schema)
    if len(footprints) < len(quotes):  # those too large for a footprint, all of them in touched shards
        is_kept[rows] = False
        equations = footprints.total(footprints.places(quotes.ids[is_kept])) + equations
    elif len(rows) < len(quotes):
        equations = with_shards_replaced(footprints, cut, touched, rows, equations)

    def states() -> Mapping[str, NormalEquations]:
        parts, rows = cut.touched(quotes.ids[gone])
        again = footprints_in(quotes[rows], calibration.model, footprints.schema, weights=calibration.settings.weights)
        return {**shard_states(footprints, cut), **shard_states(again, parts)}

    return Recomputed(OneStep(equations, None, free), states)


def _recompute_groups(calibration: Calibration, rows: Rows, shards: object, free: tuple[int, ...] | None) -> Recomputed:
    """Rebuild the groups of a panel that lose quotes; the blocks of the others are kept."""
    if shards is not None:
        raise UsageError(Argument("shards"), ": a panel is recomputed by its groups. Leave them out.")
    system, gone = calibration.footprints.system, calibration.quotes.ids[rows]
    blocks = dict(system.blocks)
    for group in calibration.latent:
        quotes = calibration.quotes_of(group)
        left = quotes[~np.isin(quotes.ids, gone)]
        if len(left) < len(quotes):
            blocks[group] = calibration.equations_of(left, calibration.references[group])
    after = System(blocks, system.latent, system.held)
    return Recomputed(after.step(free=free), lambda: {str(group): block for group, block in after.blocks.items()})


def _countable(calibration: Calibration, gone: Rows) -> Footprints:
    """Return the footprints of a calibration, without those that are too large to have one if they are struck out
    anyway."""
    try:
        return calibration.footprints.whole
    except RefusedError as refusal:
        lost = refusal.facts.get("ids", ())
        if not lost or not set(lost) <= set(calibration.quotes.ids[gone].tolist()):
            raise
        how = calibration.settings
        return footprints_of(
            calibration.quotes.without(lost),
            calibration.model,
            calibration.references[WHOLE],
            residual=how.residual,
            weights=how.weights,
        )


@dataclass(frozen=True)
class Refined:
    """Parameters after the last pass; ``errors`` are the lengths, in standard errors, of the step after each pass.

    The last of them is the error estimate: one more step predicts what is left (measured: within a sixth).
    """

    parameters: dict[str, float]
    latent: dict[Group, float]
    errors: tuple[float, ...]
    undetermined: tuple[str, ...]  # parameters that the retained quotes leave free at the end

    @property
    def error(self) -> float:
        return self.errors[-1]


def refine(calibration: Calibration, ids: ArrayLike, *, passes: int = 2) -> Refined:
    """Downdate, then take ``passes`` Gauss-Newton steps, each linearized over **all** retained quotes.

    Never over the touched shards alone: that mixes linearization points and made errors of 1.3 standard errors 51.
    """
    if passes < 0:
        raise UsageError(f"refine: passes={passes}. Give 0, for the downdate alone, or more.", passes=passes)
    if calibration.loss != "squared":
        raise UsageError(f"refine takes squared loss; this calibration has {calibration.loss}. Use recalibrate.")
    step = downdate(calibration.footprints, ids, free=free_parameters(calibration))
    parameters, latent, held = dict(step.parameters), dict(step.latent), step.system.held
    retained = calibration.quotes.without(ids)
    asked = Question.of(calibration, retained, groups=step.groups)
    moving = [name for name in parameters if name not in calibration.fixed]
    names = calibration.model.parameters.names
    order = [names.index(name) for name in (*moving, *([] if asked.latent is None else [asked.latent]))]
    is_held = np.array([group in held for group in asked.parts])
    errors = []
    for number in range(passes + 1):
        try:
            systems = asked.systems(parameters, latent)
        except ParameterError as error:
            raise RefusedError(
                f"refine: after {number} passes the step leads out of the model: {error.sentence} Use recalibrate.",
                passes=number,
            ) from error
        H = np.array([system.curvature for system in systems])[:, order][:, :, order]
        G = np.array([system.score for system in systems])[:, order]
        arrow = ArrowBlocks(H, is_held, asked.latent is not None)
        shared, latents = arrow.solve(G)
        count, cost = sum(system.count for system in systems), sum(system.cost for system in systems)
        freedom = count - len(moving) - (int(np.count_nonzero(~is_held)) if arrow.has_latent else 0)
        errors.append(_scaled(arrow, shared, sqrt(cost / freedom) if freedom > 0 and cost > 0.0 else 0.0))
        if number == passes:
            break
        if not all(map(isfinite, shared.tolist())):
            raise RefusedError(
                f"refine: the {len(retained):,} retained quotes do not determine the step. Use recalibrate.",
                passes=number,
            )
        for name, change in zip(moving, shared.tolist(), strict=True):
            parameters[name] += change
        for group, change, stays in zip(latent, latents.tolist(), is_held.tolist(), strict=False):
            latent[group] += 0.0 if stays else change
    found = asked.optimality(parameters, latent, held=held)
    return Refined(parameters, latent, tuple(errors), found.undetermined)


def _scaled(arrow: ArrowBlocks, shared: Floats, noise: float) -> float:
    """Return the length of the next step of the (shared) parameters in standard errors; infinite if undetermined."""
    whole = arrow.reduced()
    right = np.add.reduce(whole * shared, axis=1)
    reach = length(whole.tolist(), right.tolist())
    if isnan(reach):
        return inf
    return reach / noise if noise > 0.0 else (inf if reach else 0.0)


def paper_step(calibration: Calibration, ids: ArrayLike, *, free: tuple[int, ...] | None = None) -> OneStep:
    """Return one step from the calibrated parameters without these quotes, with 1e-6 on the diagonal of H.

        (H' + 1e-6 I) (theta' - theta) = G',    H' = H - sum over F of psi_i,    G' = G - sum over F of u_i

    ``strikeout.paper.fast`` with exact sums gives the same bits. The reference was fitted to the quotes that are struck
    out, so the step equals the paper's one-step "retrain" and not a refit.
    """
    footprints = paper_footprints(calibration, calibration.settings.weights)
    return downdate(FootprintBlocks.of(footprints), ids, ridge="paper", free=free)


def paper_footprints(calibration: Calibration, weights: Weighting) -> Footprints:
    """Return the footprints at the least-squares parameters, where the paper linearizes."""
    return footprints_of(
        calibration.quotes,
        calibration.model,
        calibration.parameters,
        residual=calibration.settings.residual,
        weights=weights,
    )
