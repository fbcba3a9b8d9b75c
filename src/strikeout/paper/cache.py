"""The paper's cache and its operators, in its symbols.

    symbol       meaning                                                          shape
    theta_ref    reference parameters                                             (p,)
    r_i          y_i - m(x_i; theta_ref), observed price less model price         1
    J_i          gradient of the model price with respect to theta                (p,)
    u_i          J_i' r_i                                                         (p,)
    psi_i        J_i' J_i                                                         (p, p)
    H, G         sums of psi_i and of u_i over all quotes D                       (p, p), (p,)
    H_k, G_k     the same over the quotes D_k of shard k
    F            the quotes to forget
    K(F)         the shards that hold a quote of F
    lambda       the ridge, on the diagonal of H

    (H' + lambda I) (theta' - theta_ref) = G'

The paper prints theta_fast = (H' + lambda I)^-1 G', without theta_ref; every operator here adds it.

Source: "Selective Forgetting in Option Calibration", sections "Sharded recompute operator" and "Fast refactor
operator".
By default sums are floating-point additions in the order of the quotes, as published. With ``exact=True`` they are the
exact integers of ``strikeout.states``, so that forgetting equals never having added, bit for bit.

For comparison only. Functions that take a ``size`` use the paper's own ridge, start, quadrature and reference. Rows of
many quotes are computed at once, except if the paper's loop over quotes is timed (``retrain_loop``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Step
from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats, Rows
from strikeout.kernels.symmetric import solve
from strikeout.models.model import Model, Theta
from strikeout.paper import heston
from strikeout.paper.heston import Heston
from strikeout.paper.sets import PAPER_SETS, PAPER_START
from strikeout.paper.sets import quotes as paper_quotes
from strikeout.quotes.quotes import Quotes
from strikeout.statistics.footprints import Footprints
from strikeout.statistics.linearize import footprints_of
from strikeout.statistics.normal_equations import PAPER_RIDGE, NormalEquations
from strikeout.statistics.objective import Weighting
from strikeout.statistics.shards import Shards, one_shard, shard, shards_of

Forget = str | Sequence[str] | ArrayLike
Sums = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class Update:
    """The parameters after an operator, and the sums they were solved from. ``theta`` has the order of the model."""

    parameters: dict[str, float]
    theta: Floats
    H: Floats
    G: Floats

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.array(self.theta, dtype=dtype)


class Cache:
    """Everything the paper keeps per quote at a reference, and the sums over quotes and shards.

    Args:
        quotes: the quotes D.
        model: the pricing map m; the paper's own scheme if not given.
        theta_ref: the reference, by name or as a vector; by default the least-squares parameters of these quotes under
            this model, from the paper's start.
        ridge: lambda.
        shards: a label or several to group quotes by, as ``states.shard`` takes them, or its ``Shards``; by default one
            shard holds all quotes.
        exact: sum in exact integers instead of floating point.
        weights: w_i per quote, for a robust loss: u_i = w_i J_i' r_i and psi_i = w_i J_i' J_i. They stay as they are,
            whatever is forgotten.

    Raises:
        UsageError: an unknown label, a ridge below zero, or other than one weight of at least 0 per quote.
        ParameterError: a reference that is not a point of the model.

    >>> from strikeout import paper
    >>> quotes = paper.quotes("small")
    >>> cache = paper.Cache(quotes, model=paper.Heston(U_max=50, N_u=180), theta_ref=paper.TRUTH, shards="date")
    >>> cache.H.shape, len(cache.H_k), cache.K(quotes.ids[:8])
    ((5, 5), 90, ('2024-01-02', '2024-01-03'))
    >>> gone = quotes.ids[:8]
    >>> bool(np.allclose(paper.fast(cache, gone), paper.retrain(cache, gone), rtol=1e-9))
    True
    """

    def __init__(
        self,
        quotes: Quotes,
        *,
        model: Model | None = None,
        theta_ref: Theta | None = None,
        ridge: float = PAPER_RIDGE,
        shards: str | Sequence[str] | Shards | None = None,
        exact: bool = False,
        weights: ArrayLike | None = None,
    ) -> None:
        if not ridge >= 0.0:
            raise UsageError(f"paper.Cache: ridge is {ridge}; expected a number of at least 0, such as 1e-6.")
        self.quotes, self.model, self.ridge, self.exact = quotes, model if model is not None else Heston(), ridge, exact
        reference = reference_of(quotes, self.model) if theta_ref is None else theta_ref
        self.theta_ref: Floats = self.model.parameters.vector(reference)
        self.shards = shards_of(quotes, shards) if shards is not None else one_shard(quotes)
        self.weights: Floats = np.ones(len(quotes)) if weights is None else np.asarray(weights, float)
        if self.weights.shape != (len(quotes),) or not (self.weights >= 0.0).all():
            raise UsageError(f"paper.Cache: {len(quotes):,} quotes need one weight of at least 0 each.")
        self.u, self.psi = self._at(self.theta_ref, np.arange(len(quotes)))

    @cached_property
    def H(self) -> Floats:
        """Curvature of all quotes."""
        return self._sums(np.arange(len(self.quotes)))[0]

    @cached_property
    def G(self) -> Floats:
        """Score of all quotes."""
        return self._sums(np.arange(len(self.quotes)))[1]

    @cached_property
    def _by_shard(self) -> Sums:
        """H_k and G_k of all shards, in the order of their names."""
        found = [self._sums(self.members(name)) for name in self.shards.names]
        return np.array([H for H, _ in found]), np.array([G for _, G in found])

    @property
    def H_k(self) -> dict[str, Floats]:
        """Curvature per shard, by the name of the shard."""
        return dict(zip(self.shards.names, self._by_shard[0], strict=True))

    @property
    def G_k(self) -> dict[str, Floats]:
        """Score per shard."""
        return dict(zip(self.shards.names, self._by_shard[1], strict=True))

    def K(self, F: Forget) -> tuple[str, ...]:
        """Return the shards that hold a quote of F."""
        touched = np.unique(self.shards.codes[self.rows(F)])
        return tuple(self.shards.names[code] for code in touched)

    def members(self, name: str) -> Rows:
        """Return the row numbers of the quotes of one shard."""
        return np.flatnonzero(self.shards.codes == self.shards.names.index(name))

    def rows(self, F: Forget) -> Rows:
        """Return the row numbers of F: ids, row numbers, a mask, or a condition in SQL (``"date < '2024-02-01'"``).

        Raises:
            UnknownIdError: an id that no quote has, or one given twice.
            UsageError: a condition that cannot be read, or rows that are not there.
        """
        if isinstance(F, str):
            from strikeout.quotes.selection import select

            return np.sort(self.quotes.places(select(self.quotes, F)))
        given = np.asarray(F if isinstance(F, np.ndarray) else list(F))  # type: ignore[arg-type]
        if given.dtype == bool and given.shape == (len(self.quotes),):
            return np.flatnonzero(given)
        if not given.size:
            return np.empty(0, np.intp)
        if given.dtype.kind in "iu":
            if len(np.unique(given)) < len(given) or given.min() < 0 or given.max() >= len(self.quotes):
                raise UsageError(
                    "paper: F has row numbers that are repeated or not there; expected distinct numbers from 0 to "
                    f"{len(self.quotes) - 1}."
                )
            return np.sort(given.astype(np.intp))
        return np.sort(self.quotes.places(given))

    def kept(self, F: Forget) -> Rows:
        """Return the row numbers of the quotes that are not in F."""
        is_kept = np.ones(len(self.quotes), bool)
        is_kept[self.rows(F)] = False
        return np.flatnonzero(is_kept)

    @cached_property
    def footprints(self) -> Footprints:
        """u_i and psi_i of every quote as exact integers."""
        return self._footprints_of(np.arange(len(self.quotes)))

    def _footprints_of(self, rows: Rows) -> Footprints:
        weights: Weighting = "none" if (self.weights == 1.0).all() else self.weights[rows]
        reference = self.model.parameters.named(self.theta_ref)
        return footprints_of(self.quotes[rows], self.model, reference, weights=weights)

    def _at(self, theta: Floats, rows: Rows) -> Sums:
        """Return u_i and psi_i of these quotes at theta."""
        price, J = self.model.linearize(theta, self.quotes.contracts[rows])
        J = np.ascontiguousarray(J)  # row by row: sums over quotes then add one after the other
        weighted = self.weights[rows, None] * J
        return weighted * (self.quotes.observed[rows] - price)[:, None], weighted[:, :, None] * J[:, None, :]

    def _sums(self, rows: Rows) -> Sums:
        if self.exact:
            return _read(self.footprints.total(rows.astype(np.int64)))
        return _added(self.u[rows], self.psi[rows])

    def __repr__(self) -> str:
        sums = "exact" if self.exact else "floating-point"
        return (
            f"<paper.Cache: {len(self.quotes):,} quotes in {len(self.shards):,} shards, {sums} sums, {self.model.name}>"
        )


def fast(cache: Cache, F: Forget) -> Update:
    """Solve without F by subtracting its cached statistics, one quote after the other: H' = H - sum of psi_i over F.

    No quote is read and no price computed.
    """
    gone = cache.rows(F)
    if cache.exact:
        return _solved(cache, _read(cache.footprints.total() - cache.footprints.total(gone.astype(np.int64))))
    H = np.subtract.reduce(np.concatenate([cache.H[None], cache.psi[gone]]), axis=0)
    G = np.subtract.reduce(np.concatenate([cache.G[None], cache.u[gone]]), axis=0)
    return _solved(cache, (H, G))


def recompute(cache: Cache, F: Forget) -> Update:
    """Solve without F by pricing the retained quotes of the shards K(F) again; other shards keep their sums.

    All touched quotes are priced in one pass.
    """
    gone, codes = cache.rows(F), cache.shards.codes
    is_touched = np.zeros(len(cache.shards), bool)
    is_touched[codes[gone]] = True
    is_again = is_touched[codes]
    is_again[gone] = False
    again = np.flatnonzero(is_again)
    if cache.exact:
        left = cache.footprints.total(np.flatnonzero(~is_touched[codes]))
        return _solved(cache, _read(left + cache._footprints_of(again).total() if len(again) else left))
    again = again[np.argsort(codes[again], kind="stable")]  # shard by shard, in the order of the quotes
    u, psi = cache._at(cache.theta_ref, again)
    H_k, G_k = (sums.copy() for sums in cache._by_shard)
    ends = np.searchsorted(codes[again], np.arange(len(cache.shards) + 1)).tolist()
    for code in np.flatnonzero(is_touched).tolist():  # not reduceat, which adds pairwise
        own = slice(ends[code], ends[code + 1])
        H_k[code], G_k[code] = _added(u[own], psi[own])
    return _solved(cache, _added(G_k, H_k))


def retrain(cache: Cache, F: Forget = (), *, loop: bool = False) -> Update:
    """Solve without F by pricing every retained quote again at the reference.

    Args:
        loop: price one quote at a time, as the paper's program does: eleven integrals per quote.

    Raises:
        UsageError: ``loop`` with another model than ``paper.Heston``, or with exact sums.
    """
    kept = cache.kept(F)
    if loop:
        if not isinstance(cache.model, Heston) or cache.exact:
            raise UsageError("paper.retrain: loop=True needs model=paper.Heston(...) and floating-point sums.")
        return _solved(cache, _looped(cache, cache.model, kept))
    if cache.exact:
        return _solved(cache, _read(cache._footprints_of(kept).total()))
    return _solved(cache, _added(*cache._at(cache.theta_ref, kept)))


def relinearize(cache: Cache, F: Forget, *, rounds: int = 1, affected_only: bool = False) -> Update:
    """Solve without F, then linearize at the answer and solve again, ``rounds`` times.

    Args:
        affected_only: linearize the shards K(F) alone and keep the sums of the others at theta_ref. The paper
            suggests it; the sum is then of two linearizations and is the linearization of neither. If F is whole
            shards, nothing is linearized again and the first step is taken twice.

    Raises:
        ParameterError: a step leads out of the model.
    """
    found, kept = fast(cache, F), cache.kept(F)
    names = np.array([cache.shards.names.index(name) for name in cache.K(F)], np.intp)
    moved = kept[np.isin(cache.shards.codes[kept], names)] if affected_only else kept
    still = np.setdiff1d(kept, moved, assume_unique=True)
    for _ in range(rounds):
        H, G = _added(*cache._at(found.theta, moved))
        if len(still):
            H_still, G_still = _added(cache.u[still], cache.psi[still])
            H, G = H + H_still, G + G_still
        found = _solved(cache, (H, G), at=found.theta)
    return found


def reference_of(quotes: Quotes, model: Model) -> Mapping[str, float]:
    """Return the paper's reference: least squares under this model, from the paper's start."""
    return calibrate(quotes, model, starts=[dict(PAPER_START)]).parameters


def _added(u: Floats, psi: Floats) -> Sums:
    """Return H and G: a reduction along the first axis adds one quote after the other, as a loop does."""
    return np.add.reduce(psi, axis=0), np.add.reduce(u, axis=0)


def _read(equations: NormalEquations) -> Sums:
    """Return H and G, each number the double nearest to the exact sum."""
    whole = np.array(equations.system().rows)
    return whole[:-1, :-1], whole[-1, :-1]


def _looped(cache: Cache, model: Heston, rows: Rows) -> Sums:
    theta, quotes = cache.theta_ref, cache.quotes[rows]
    c = quotes.contracts
    H, G = np.zeros((len(theta), len(theta))), np.zeros(len(theta))
    columns = (c.forward.tolist(), c.strike.tolist(), c.expiry.tolist(), c.discount.tolist(), c.is_call.tolist())
    for *contract, observed, w in zip(*columns, quotes.observed.tolist(), cache.weights[rows].tolist(), strict=True):
        price, J = heston.linearize_one(theta, *contract, u_max=model.U_max, nodes=model.N_u, step=model.step)
        H += w * np.outer(J, J)
        G += w * J * (observed - price)
    return H, G


def _solved(cache: Cache, sums: Sums, *, at: Floats | None = None) -> Update:
    H, G = sums
    start = cache.theta_ref if at is None else at
    theta = start + np.array(solve((H + cache.ridge * np.eye(len(G))).tolist(), G.tolist()))
    return Update(cache.model.parameters.named(theta), theta, H, G)


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


def paper_model(size: Size) -> Heston:
    """Return Heston with the cut-off and the nodes the paper gives for this set."""
    return Heston(PAPER_SETS[size].u_max, PAPER_SETS[size].nodes)


def cache_of(quotes: Quotes, reference: Floats, *, size: Size) -> Cache:
    """Return the paper's cache of one of its sets, in shards of the days it gives."""
    shards = shard(quotes, f"day:{SHARD_DAYS[size]}")
    return Cache(quotes, model=paper_model(size), theta_ref=reference, shards=shards)


def retrained(cache: Cache, kept: Rows) -> Floats:
    """``paper.retrain`` from the cached rows: a row depends on its quote alone, so pricing again gives the same."""
    return solved(cache.theta_ref, np.add.reduce(cache.psi[kept], axis=0), np.add.reduce(cache.u[kept], axis=0))


def retrain_loop(quotes: Quotes, reference: Floats, *, size: Size) -> Floats:
    """Take one Gauss-Newton step from raw quotes by the paper's loop: 11 integrals of 2 (N_u + 1) points per quote."""
    return retrain(Cache(quotes, model=paper_model(size), theta_ref=reference), loop=True).theta


def solved(reference: Floats, H: Floats, G: Floats) -> Floats:
    """Return the reference and one step with the paper's ridge."""
    return np.asarray(reference + np.array(solve((H + PAPER_RIDGE * np.eye(len(G))).tolist(), G.tolist())))
