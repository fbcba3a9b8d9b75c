"""The paper's method as it describes it: a loop over quotes, Simpson's rule, central differences, plain floats.

For comparison only. Ridge, start and quadrature are the paper's own; rows of many quotes are computed at once where
nothing is timed (`cache_of`), one by one where the loop itself is timed (`retrain_loop`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from strikeout.calibration.calibrate import calibrate
from strikeout.models.heston import Heston
from strikeout.paper import scheme
from strikeout.paper.heston import Heston as PaperHeston
from strikeout.paper.sets import PAPER_SETS, PAPER_START
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.normal_equations import PAPER_RIDGE

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Size = Literal["small", "large"]

SIZES: tuple[Size, Size] = ("small", "large")
SHARD_DAYS = {"small": 10, "large": 30}  # the paper: "either 10 or 30 days"
SHORT = 2  # accepted steps of the paper's "short Levenberg-Marquardt loop"; it does not say how many
FINITE_STEP = PaperHeston().step


@dataclass(frozen=True, eq=False)
class Cache:
    """What the paper keeps of every quote at its reference: ``psi = J J'`` and ``u = J r``, and their sums."""

    reference: Floats
    psi: Floats
    u: Floats
    H: Floats
    G: Floats


def paper_book(size: Size, *, seed: int) -> Quotes:
    """One of the paper's two sets, priced with the paper's quadrature."""
    return paper_quotes(size, seed=seed, quadrature="paper")


def paper_reference(quotes: Quotes, *, steps: int | None = None) -> Floats:
    """Where Levenberg-Marquardt is after some accepted steps from the paper's start; at its end where not given."""
    history = calibrate(quotes, Heston(), starts=[dict(PAPER_START)]).history
    return np.array(list(history[-1 if steps is None else min(steps, len(history) - 1)].parameters.values()))


def paper_model(size: Size) -> PaperHeston:
    """Heston with the cut-off and the nodes the paper gives for this set."""
    return PaperHeston(PAPER_SETS[size].u_max, PAPER_SETS[size].nodes)


def cache_of(quotes: Quotes, reference: Floats, *, size: Size) -> Cache:
    """The paper's cache, summed quote by quote in the order of the book."""
    price, J = paper_model(size).linearize(reference, quotes.contracts)
    psi, u = J[:, :, None] * J[:, None, :], J * (quotes.observed - price)[:, None]
    H, G = summed(psi, u, np.arange(len(quotes)))
    return Cache(reference, psi, u, H, G)


def summed(psi: Floats, u: Floats, places: Places) -> tuple[Floats, Floats]:
    """H and G of these quotes: one addition after the other, as the loop does it."""
    H, G = np.zeros(psi.shape[1:]), np.zeros(u.shape[1:])
    for place in places:
        H += psi[place]
        G += u[place]
    return H, G


def fast(cache: Cache, gone: Places) -> Floats:
    """The paper's fast refactor: one subtraction a forgotten quote, then one solve with 1e-6 I."""
    H, G = cache.H.copy(), cache.G.copy()
    for place in gone:
        H -= cache.psi[place]
        G -= cache.u[place]
    return solved(cache.reference, H, G)


def retrain(cache: Cache, kept: Places) -> Floats:
    """The paper's retrain from rows already computed: a row depends on its quote alone, so they are the same."""
    return solved(cache.reference, *summed(cache.psi, cache.u, kept))


def recompute(cache: Cache, shards: Sequence[Places], gone: Places) -> Floats:
    """The paper's sharded recompute: take the touched shards out of the sums, put what is kept of them back."""
    H, G = cache.H.copy(), cache.G.copy()
    for shard in shards:
        kept = np.setdiff1d(shard, gone, assume_unique=True)
        if len(kept) < len(shard):
            was, now = summed(cache.psi, cache.u, shard), summed(cache.psi, cache.u, kept)
            H, G = H - was[0] + now[0], G - was[1] + now[1]
    return solved(cache.reference, H, G)


def retrain_loop(quotes: Quotes, reference: Floats, *, size: Size) -> Floats:
    """One Gauss-Newton step from raw quotes by the paper's loop: eleven integrals of 2 (N_u + 1) points a quote."""
    made, c = PAPER_SETS[size], quotes.contracts
    H, G = np.zeros((5, 5)), np.zeros(5)
    columns = (c.forward.tolist(), c.strike.tolist(), c.expiry.tolist(), c.discount.tolist(), c.is_call.tolist())
    for *contract, observed in zip(*columns, quotes.observed.tolist(), strict=True):
        price, J = scheme.linearize_one(reference, *contract, u_max=made.u_max, nodes=made.nodes, step=FINITE_STEP)
        H += np.outer(J, J)
        G += J * (observed - price)
    return solved(reference, H, G)


def solved(reference: Floats, H: Floats, G: Floats) -> Floats:
    """The reference and one step with the paper's ridge."""
    return np.asarray(reference + np.linalg.solve(H + PAPER_RIDGE * np.eye(len(G)), G))
