"""Times of the paper's loop, of our operators and of NumPy, by quotes and nodes.

The honest opponent: one Gauss-Newton pass over raw quotes as a good quant writes it in NumPy, analytic gradient.

Lewis' single integral on Im z = -1/2 with Gauss-Legendre nodes, the characteristic function once an expiry, one matrix
product for all strikes of it:

    call = Black - D sqrt(F K) / pi int_0^U Re[exp(-i u k) (phi(u - i/2) - gauss(u))] / (u^2 + 1/4) du,  k = ln(K / F)

with Black's price and gauss(u) = exp(-s^2 T (u^2 + 1/4) / 2) at one fixed volatility s, which takes the peak at u = 0
away. Calls on few expiries, ordinary parameters; exact to about 1e-9 there. For anything else, `strikeout.Heston`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strikeout.forgetting.downdate import downdate
from strikeout.forgetting.recompute import recompute, restep
from strikeout.kernels import black
from strikeout.kernels.arrays import Floats
from strikeout.kernels.heston_cf import log_cf
from strikeout.kernels.symmetric import solve
from strikeout.models.heston import Heston
from strikeout.paper import heston as paper_scheme
from strikeout.paper.cache import solved
from strikeout.paper.experiments.measuring import Slope, fresh, slope_of, timed
from strikeout.quotes.contracts import Contracts
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.shards import Shards, shard_states
from strikeout.statistics.system import FootprintBlocks
from strikeout.synthetic.heston_quotes import TRUTH, random_quotes

NODES, REACH = 48, 60.0  # the integral is cut at REACH / sqrt(T)
CONTROL = 0.24  # volatility of Black's price that the integral corrects
X, WEIGHT = np.polynomial.legendre.leggauss(NODES)


def numpy_linearize(contracts: Contracts, theta: Floats) -> tuple[Floats, Floats]:
    """Return prices ``(n,)`` and sensitivities ``(n, 5)`` of calls."""
    out = np.empty((len(contracts), 6))
    forward, strike, discount = contracts.forward, contracts.strike, contracts.discount
    k = np.log(strike / forward)
    front = -discount * np.sqrt(forward * strike) / np.pi
    for T in np.unique(contracts.expiry).tolist():
        rows = np.flatnonzero(contracts.expiry == T)
        half = 0.5 * REACH / np.sqrt(T)
        u = half * (X + 1.0)
        z = u - 0.5j
        exponent, gradient = log_cf(z, z * z + 1j * z, T, theta)
        weight = half * WEIGHT / (u * u + 0.25)
        phi = np.exp(exponent) * weight
        gauss = np.exp(-0.5 * CONTROL**2 * T * (u * u + 0.25)) * weight
        terms = np.stack([phi - gauss, *(phi * part for part in gradient)])
        angle = np.multiply.outer(k[rows], u)
        out[rows] = (np.cos(angle) @ terms.real.T + np.sin(angle) @ terms.imag.T) * front[rows, None]
    out[:, 0] += black.price(forward, strike, contracts.expiry, CONTROL, discount, True)
    return out[:, 0], out[:, 1:]


def numpy_restep(quotes: Quotes, reference: Floats) -> Floats:
    """Take one Gauss-Newton step from raw quotes, vectorised: what a well-written retrain costs."""
    price, J = numpy_linearize(quotes.contracts, reference)
    return solved(reference, J.T @ J, J.T @ (quotes.observed - price))


@dataclass(frozen=True, eq=False)
class Growth:
    """Seconds per call at several sizes, and the fitted exponent; ``expected`` is that of the proposition.

    ``seconds`` are lower quartiles over the runs: what else a machine does only ever makes a call longer.
    Sizes are large enough for what does not grow (a call, a 5 x 5 solve) to be small beside what does.
    """

    what: str
    against: str
    expected: float
    sizes: Floats
    seconds: Floats
    slope: Slope


def growths(*, sizes: Sequence[int], repeats: int, seed: int) -> list[Growth]:
    """Time the paper's loop against quotes and nodes, our retrain against quotes, recompute against N_eff, a downdate
    against |F| and against N, and subtraction and solution against p.

    Args:
        sizes: of the books ours is timed on; the paper's loop takes a few quotes of the largest.
    """
    model, theta = Heston(), np.array(list(TRUTH.values()))
    books = {size: random_quotes(size, seed=seed) for size in sizes}
    largest = books[max(sizes)]

    def retrain(size: int) -> Callable[[], object]:
        return lambda: restep(fresh(books[size]), model, cached[size].schema).change

    cached = {size: footprints_of(book, model, theta) for size, book in books.items()}

    def strike(size: int, count: int) -> Callable[[], object]:
        footprints = FootprintBlocks.of(cached[size])
        ids = cached[size].ids[:count].tolist()
        downdate(footprints, ids)  # the sum and the index of names are built once
        return lambda: downdate(footprints, ids).change

    def rebuilt(count: int) -> Callable[[], object]:
        """Time sharded recompute of the largest book, with ``count`` quotes in the touched shards."""
        footprints = cached[max(sizes)]
        shards = Shards(largest.ids, (np.arange(len(largest)) >= count).astype(np.intp), ("touched", "others"))
        states, (touched, left) = shard_states(footprints, shards), shards.touched(largest.ids[:1])
        quotes = largest[left]

        def run() -> object:
            return recompute(states, touched, fresh(quotes), model=model).step.change

        return run

    rng = np.random.default_rng(seed)

    def subtraction(p: int) -> Callable[[], object]:
        J = rng.standard_normal((675, p))
        psi, H = J[:, :, None] * J[:, None, :], 1e4 * np.eye(p)
        return lambda: np.subtract.reduce(np.concatenate([H[None], psi]), axis=0)

    def solution(p: int) -> Callable[[], object]:
        J = rng.standard_normal((2 * p, p))
        H, G = (J.T @ J + np.eye(p)).tolist(), np.ones(p).tolist()
        return lambda: solve(H, G)

    few = [4, 8, 16, 32]
    nodes = [1000, 2000, 4000, 8000]
    forgotten = [count for count in (100 * 2**n for n in range(8)) if count < max(sizes)]
    return [
        _growth("the paper's loop", "quotes", 1.0, few, lambda n: loop(largest, n, 400), repeats),
        _growth("the paper's loop", "nodes", 1.0, nodes, lambda n: loop(largest, 1, n), repeats),
        _growth("our retrain", "quotes", 1.0, sizes, retrain, repeats),
        _growth("downdate of 27 quotes", "quotes in the book", 0.0, sizes, lambda n: strike(n, 27), repeats),
        _growth("sharded recompute", "quotes of the touched shards", 1.0, sizes, rebuilt, repeats),
        _growth("downdate", "forgotten quotes", 1.0, forgotten, lambda n: strike(max(sizes), n), repeats),
        _growth("the paper's subtraction", "parameters", 2.0, [5, 10, 20, 40], subtraction, repeats),
        _growth("the solution", "parameters", 3.0, [40, 80, 160, 320], solution, repeats),
    ]


def loop(book: Quotes, count: int, nodes: int) -> Callable[[], object]:
    """Return the paper's Gauss-Newton pass over the first quotes: one by one, Simpson's rule, central differences."""
    theta, c = np.array(list(TRUTH.values())), book.contracts

    def run() -> None:
        for i in range(count):
            paper_scheme.linearize_one(
                theta,
                float(c.forward[i]),
                float(c.strike[i]),
                float(c.expiry[i]),
                float(c.discount[i]),
                bool(c.is_call[i]),
                u_max=120.0,
                nodes=nodes,
                step=1e-4,
            )

    return run


def _growth(
    what: str,
    against: str,
    expected: float,
    sizes: Sequence[int],
    made: Callable[[int], Callable[[], object]],
    repeats: int,
) -> Growth:
    seconds = np.array([timed(made(size), runs=repeats).low for size in sizes])
    return Growth(what, against, expected, np.array(sizes, float), seconds, slope_of(sizes, seconds))
