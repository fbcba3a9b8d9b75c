"""Heston prices and sensitivities: the compiled kernel if it is installed, else its NumPy twin.

Both take strikes in ``Parts``, agree to rounding, and treat every strike on its own: its bits depend on theta, its
expiry and its k, never on its neighbours, the number of threads or the size of the batch. theta is (kappa, vbar,
sigma, rho, v0), see heston_cf.py. Sums over a book lead a search: those of the twin multiply matrices, see
fourier_series.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from strikeout.kernels import elementary, fourier_series, heston_twin, products
from strikeout.kernels.arrays import Floats, Mask
from strikeout.kernels.compiled import compiled, default_kernel, threads
from strikeout.kernels.heston_twin import NODES, Parts

WORTH_THREADS = 50_000  # strikes, of which more than one thread makes short work
EXPIRY = 300  # strikes: what the contours of a slice, or of a node of a panel, cost about as much as


def threads_for(part: Parts) -> int:
    """Return how many threads these strikes are worth; the kernel takes no more, and fewer where the system has none
    left."""
    expiries = part.expiries.size if part.t is None else NODES * part.expiries.size
    return 1 if part.k.size + EXPIRY * expiries < WORTH_THREADS else threads()


@lru_cache(maxsize=8)
def kept_at(theta: bytes) -> Any:  # noqa: ARG001 - its key
    """Return where the compiled kernel keeps polynomials at one theta from book to book: no bit depends on it."""
    return compiled().HestonKept()


def rows(kernel: str, theta: Floats, part: Parts, kept: Any = None) -> Floats:
    """Return out-of-the-money value over the discounted forward, and its five derivatives: ``(6, n)``.

    Args:
        kept: as ``kept_at`` returns it, for a theta that many books are asked for.
    """
    if kernel == "numpy":
        return heston_twin.rows(theta, part)
    found: Floats = compiled().heston_rows(theta, *part, threads_for(part), kept)
    return found


def values(kernel: str, theta: Floats, part: Parts) -> Floats:
    """Return the first of the rows alone, ``(n,)``, the same bits."""
    found = heston_twin.rows(theta, part, 1) if kernel == "numpy" else rows(kernel, theta, part)
    value: Floats = found[0]
    return value


def accumulator(kernel: str, part: Parts, scale: Floats, target: Floats) -> Callable[..., Floats]:
    """From theta to the 21 sums of ``a a'``, ``a = (scale * derivatives, target - scale * value)``.

    The upper triangle, row by row. The order of summation follows from the strikes alone, not from threads, batches or
    what was asked for before. A second argument is what ``kept_at`` returns.
    """
    if kernel == "numpy":
        if part.t is None:
            sums = fourier_series.Sums(part, scale, target)
            return lambda theta, _=None: sums(theta)
        return lambda theta, _=None: fourier_series.sums_of_rows(heston_twin.rows(theta, part), scale, target)
    at = compiled().HestonSums(*part, scale, target, threads_for(part)).at

    def found(theta: Floats, kept: Any = None) -> Floats:
        total = np.empty(21)
        at(theta, total, kept)
        return total

    return found


def searcher(kernel: str, part: Parts, scale: Floats, target: Floats) -> Callable[..., Any] | None:
    """Return the compiled search for the least of the sums of ``accumulator``; None without one.

    None also for a book that is worth several threads: its evaluations take so long that the interpreter between
    them is nothing, and can be interrupted.
    """
    if kernel == "numpy" or part.k.size + EXPIRY * part.expiries.size >= WORTH_THREADS:
        return None
    found: Callable[..., Any] = compiled().HestonSums(*part, scale, target, 1).descend
    return found


def weighed(kernel: str, theta: Floats, part: Parts, quadratic: Floats, linear: Floats, centre: Floats) -> Floats:
    """Return the sums of ``products.weighed`` over slices of nodes, ``d`` the value less the centre."""
    if kernel == "numpy":
        found = heston_twin.rows(theta, part)
        return products.weighed(found[0] - centre, found[1:], quadratic, linear)
    total = np.empty(22)
    compiled().heston_weighed(theta, part.expiries, part.offsets, part.k, quadratic, linear, centre, total)
    return total


def price(theta: Floats, forward: Floats, strike: Floats, expiry: Floats, discount: Floats, is_call: Mask) -> Floats:
    """Return prices of contracts in any order."""
    k = elementary.log(strike / forward)
    order = np.lexsort((k, expiry))
    sorted_expiry = expiry[order]
    starts = np.flatnonzero(np.r_[True, sorted_expiry[1:] != sorted_expiry[:-1]])
    part = Parts(sorted_expiry[starts], np.r_[starts, len(order)].astype(np.intp), k[order])
    out = np.empty(len(k))
    out[order] = values(default_kernel(), theta, part)
    intrinsic = np.maximum(np.where(is_call, forward - strike, strike - forward), 0.0)
    return discount * (forward * out + intrinsic)
