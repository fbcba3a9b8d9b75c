"""The paper's method as it describes it: a loop over quotes, Simpson's rule, central differences, plain floats.

For comparison only. Ridge, start, quadrature and reference are the paper's own. Rows of many quotes are computed at
once (`cache_of`), except when the loop itself is timed (`retrain_loop`).
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Step
from strikeout.kernels.symmetric import solve
from strikeout.paper.cache import Cache, retrain
from strikeout.paper.heston import Heston as PaperHeston
from strikeout.paper.sets import PAPER_SETS, PAPER_START
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.normal_equations import PAPER_RIDGE
from strikeout.statistics.shards import shard

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Size = Literal["small", "large"]

SIZES: tuple[Size, Size] = ("small", "large")
SHARD_DAYS = {"small": 10, "large": 30}  # the paper: "either 10 or 30 days"
SHORT = 2  # accepted steps of the paper's "short Levenberg-Marquardt loop"; how many is not given


def paper_book(size: Size, *, seed: int) -> Quotes:
    """Return one of the paper's two sets, priced with the paper's quadrature."""
    return paper_quotes(size, seed=seed, quadrature="paper")


def paper_reference(size: Size, *, seed: int, steps: int | None = None) -> Floats:
    """Return the paper's reference of a set: accepted Levenberg-Marquardt steps from its start, by its pricer.

    Args:
        steps: how many; all of them if not given.
    """
    history = _history(size, seed)
    return np.array(list(history[-1 if steps is None else min(steps, len(history) - 1)].parameters.values()))


@cache
def _history(size: Size, seed: int) -> tuple[Step, ...]:
    return calibrate(paper_book(size, seed=seed), paper_model(size), starts=[dict(PAPER_START)]).history


def paper_model(size: Size) -> PaperHeston:
    """Return Heston with the cut-off and the nodes the paper gives for this set."""
    return PaperHeston(PAPER_SETS[size].u_max, PAPER_SETS[size].nodes)


def cache_of(quotes: Quotes, reference: Floats, *, size: Size) -> Cache:
    """Return the paper's cache of one of its sets, in shards of the days it gives."""
    shards = shard(quotes, f"day:{SHARD_DAYS[size]}")
    return Cache(quotes, model=paper_model(size), theta_ref=reference, shards=shards)


def retrained(cache: Cache, kept: Places) -> Floats:
    """``paper.retrain`` from the cached rows: a row depends on its quote alone, so pricing again gives the same."""
    return solved(cache.theta_ref, np.add.reduce(cache.psi[kept], axis=0), np.add.reduce(cache.u[kept], axis=0))


def retrain_loop(quotes: Quotes, reference: Floats, *, size: Size) -> Floats:
    """Take one Gauss-Newton step from raw quotes by the paper's loop: 11 integrals of 2 (N_u + 1) points per quote."""
    return retrain(Cache(quotes, model=paper_model(size), theta_ref=reference), loop=True).theta


def solved(reference: Floats, H: Floats, G: Floats) -> Floats:
    """Return the reference and one step with the paper's ridge."""
    return np.asarray(reference + np.array(solve((H + PAPER_RIDGE * np.eye(len(G))).tolist(), G.tolist())))
