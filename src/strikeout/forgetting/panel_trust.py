"""Whether one step of a panel may stand for its optimum: every shared and every latent parameter has a say.

    symbol      meaning                                                            shape
    H, S, T     curvature and bending of a group (see ``statistics.bending``)      q x q, q x q, q x q x q
    d           the step: the shared parameters', then the group's latent one's    q = p + 1
    B           H - S_d: the curvature around the optimum, S_d = S - T . d         q x q a group
    m           S_d d - T(d, d) / 2: what the step leaves out                      q a group

The second-order error e of the whole panel solves ``B e = m``, whose shape is the arrow's: with the latent row of every
group eliminated, what is left is a sum over groups of p x p systems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.assurance.indicator import Indicator, indicator
from strikeout.assurance.panel_arrow import arrow_errors, arrow_solve
from strikeout.calibration.identifiability import INFLATION
from strikeout.calibration.panel_calibration import PanelCalibration
from strikeout.calibration.panel_groups import shared_space
from strikeout.errors import ParameterError
from strikeout.forgetting.trust import FAR, Trust, determined_to, outside_bounds
from strikeout.kernels.step_check import Judged
from strikeout.kernels.symmetric import dot
from strikeout.statistics.bending import Bending, bending_of, second_order
from strikeout.statistics.linearization import Linearization
from strikeout.statistics.system import Group, OneStep

Floats = NDArray[np.float64]

# Over 330 clean and corrupt panels no prediction below this many standard errors read more than a fifth too low;
# beyond, some read twelve times too low, so nothing is said.
FARTHEST = 10.0


def panel_trust(step: OneStep, calibration: PanelCalibration, gone: Mapping[Group, ArrayLike]) -> Trust:
    """Judges the step of a panel once these quotes are struck out of these groups.

    ``standard_errors`` are of the shared parameters; ``missed`` is the worst of all, latent ones included.

    Raises:
        UnknownIdError: an id that no quote has, or one given twice.
    """
    state = step.system
    schema, space = state.schema, shared_space(calibration.model)
    kept = tuple(range(len(schema.parameters))) if step.free is None else step.free
    moving = [group not in state.held for group in state.groups]
    whole = step.equations.system()
    system = Linearization(whole.triangle, whole.count - sum(moving))  # a quote a group goes into its latent parameter
    change = [float(step.change[i]) for i in kept]
    judged = _with_latents(
        indicator(system, space, reference=schema.reference, step=change, free=kept),
        step.latent_changes,
        step.latent_references,
    )
    near = judged.relative <= FAR
    rest = system.cost - dot([system.rows[-1][i] for i in kept], change)
    errors, free = determined_to(
        system,
        space,
        at=schema.reference,
        kept=kept,
        step=step.change if near else None,
        inflation=getattr(calibration.model, "inflation", INFLATION),
    )
    outside = (*outside_bounds(step.parameters, calibration), *_latents_outside(step, calibration))
    known, freedom = tuple(errors), system.count - len(kept)
    return Trust(
        Judged(
            change,
            list(errors.values()),
            near,
            [known.index(name) for name in free],
            list(range(len(known), len(known) + len(outside))),
        ),
        (*known, *outside),
        lambda _: (_missed(step, calibration, gone, kept, sqrt(max(rest, 0.0) / freedom)), inf),
        lambda: judged,
    )


def _with_latents(judged: Indicator, steps: Floats, references: Floats) -> Indicator:
    """The indicator where a latent parameter may be the one that goes farthest."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.abs(np.where(steps == 0.0, 0.0, steps / references))
    farthest = float(np.max(shares, initial=0.0))
    relative = max(judged.relative, farthest if farthest == farthest else inf)
    product = judged.standard_errors * relative if judged.standard_errors and relative else 0.0
    return replace(judged, value=product, relative=relative)


def _latents_outside(step: OneStep, calibration: PanelCalibration) -> tuple[str, ...]:
    name, space = calibration.latent_name, calibration.model.parameters
    k = space.names.index(name)
    low, high = (calibration.settings.bounds or {}).get(name, (float(space.lower[k]), float(space.upper[k])))
    held = step.system.held
    return tuple(
        f"{name} of {group}" for group, value in step.latent.items() if group not in held and not low < value < high
    )


def _missed(
    step: OneStep,
    calibration: PanelCalibration,
    gone: Mapping[Group, ArrayLike],
    kept: tuple[int, ...],
    noise: float,
) -> float:
    """The worst parameter's predicted error over its standard error; infinite where nothing can be predicted."""
    try:
        bending = _bending(step, calibration, gone)
    except ParameterError:  # the parameters are where the model ends
        return inf
    space, k = calibration.model.parameters, calibration.model.parameters.names.index(calibration.latent_name)
    order = [*([i for i in range(len(space)) if i != k][n] for n in kept), k]
    pick = np.ix_(range(len(bending)), order, order)
    H = np.array([part.system().curvature for part in step.system.blocks.values()])[pick]
    S = np.array([bent.residual for bent in bending])[pick]
    T = np.array([bent.sensitivity for bent in bending])[np.ix_(range(len(bending)), order, order, order)]
    held = np.array([group in step.system.held for group in step.system.groups])
    latents = np.where(held, 0.0, step.latent_changes)
    d = np.column_stack([np.tile(step.change[list(kept)], (len(bending), 1)), latents])
    after, out = second_order(S, T, d)
    missed, errors = arrow_solve(H - after, out, held), arrow_errors(H, held, noise)
    apart = np.abs(np.concatenate([missed[0], missed[1][~held]]))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(apart == 0.0, 0.0, apart / np.concatenate([errors[0], errors[1][~held]]))
    worst = float(np.max(np.where(np.isnan(shares), inf, shares), initial=0.0))
    return worst if worst <= FARTHEST else inf


def _bending(step: OneStep, calibration: PanelCalibration, gone: Mapping[Group, ArrayLike]) -> list[Bending]:
    """Of what is left of every group: only those that lose quotes are computed."""
    how, model = calibration.settings, calibration.model

    def of(group: Group, ids: ArrayLike) -> Bending:
        struck = calibration.quotes.only(ids)
        return bending_of(struck, model, calibration.theta(group), residual=how.residual, weights=how.weights)

    whole = calibration.bending
    return [whole[g] - of(g, gone[g]) if g in gone else whole[g] for g in step.system.groups]
