"""Footprints with noise on them, and how far that can move the parameters: the paper's remedy for sensitive rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strikeout.assurance.bounds import Bound, stability
from strikeout.errors import UsageError
from strikeout.kernels.arrays import Integers, Mask
from strikeout.kernels.exact import LARGEST
from strikeout.statistics.footprints import Footprints
from strikeout.text import Argument


@dataclass(frozen=True, eq=False)
class Perturbation:
    """Noisy footprints, and what the noise does to the step: its change by parameter, and the bound on its norm."""

    footprints: Footprints
    moved: Mapping[str, float]  # step from the noisy footprints less that from the true ones, in the parameters' units
    drift: Bound  # in the parameters times sqrt(H_aa), which have no units


def perturb(footprints: Footprints, share: float, *, draw: np.random.Generator) -> Perturbation:
    """Add independent normal noise to every number of every footprint, and bounds the drift of the parameters.

        a_c  ->  rint(a_c + share * rms_c * z),    z standard normal, rms_c the root mean square of column c

    The drift is the paper's stability bound with H' and G' those of the noisy rows:
    ``||d' - d|| <= ||H'^-1|| (||G' - G|| + ||H' - H|| ||d||)``. Rows of zeros, which count for nothing, stay.

    Whatever is later forgotten from the noisy footprints is forgotten exactly, with respect to them. It is nott
    differential privacy: the noise is not calibrated to any guarantee.

    Args:
        share: the standard deviation of the noise, in units of each column's root mean square.
        draw: where the noise comes from. Who can repeat it can take it away: seed it with nothing that can be guessed.
    """
    if not 0.0 <= share < np.inf:
        raise UsageError(Argument("share", share), ": give a number from 0 on, such as 1e-3.")
    noisy = Footprints(footprints.schema, footprints.ids, with_noise(footprints.rows, share, draw))
    before, after = footprints.total(), noisy.total()
    change = (after.step() - before.step()).tolist()
    return Perturbation(
        noisy,
        dict(zip(footprints.schema.parameters, change, strict=True)),
        stability(before.system(), after.system(), scaled=True),
    )


def with_noise(rows: Integers, share: float, draw: np.random.Generator) -> Integers:
    """Return these rows with the noise of ``perturb``."""
    counted: Mask = np.logical_or.reduce(rows != 0, axis=1)
    values = rows.astype(float)
    spread = share * np.sqrt(np.mean(np.square(values[counted]), axis=0)) if counted.any() else np.zeros(rows.shape[1])
    # The noise alone is rounded, and added to integers: a row of more than 53 bits keeps its last ones.
    noise = np.rint(draw.standard_normal(rows.shape) * spread) * counted[:, None]
    if not (np.abs(values) + np.abs(noise) < LARGEST).all():
        raise UsageError(
            Argument("share", share), ": with noise of that size a row leaves the grid of its footprints. Use less."
        )
    noisy: Integers = rows + noise.astype(np.int64)
    return noisy
