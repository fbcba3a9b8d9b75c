"""The opponent: a Heston pricer with analytic gradient as a good quant would write it in NumPy, made as fast as we can.

What it does to be fast, all of it honest and none of it ours:

- Lewis' single integral on Im z = -1/2, 48 Gauss-Legendre nodes on (0, 90 / sqrt(T)), a Black-Scholes control variate.
- The nodes depend on the expiry alone, so exp(-i u k), its weights and the prefactor are tabulated once per book.
- The control variate has a fixed variance, so that it, too, collapses into one tabulated number per quote. A variance
  that follows theta was tried: the same accuracy, and a Black-Scholes formula more in every pass.
- The characteristic function and its five derivatives share every transcendental, are evaluated once per expiry and in
  one vectorised call; real and imaginary parts stay interleaved, so that the sum over nodes is one real matrix product.
- Normal equations are accumulated group by group while the rows are still in the cache.
- Where every expiry is its own group, blocks of them are evaluated at once and complex exp, log and sqrt are built from
  real ones, which NumPy vectorises.

What it leaves out: it prices every quote in every pass. Summarising the book so that a pass no longer sees the quotes
would be another method (ours, see the moments), not a faster pricer. Rows depend on their batch in the last bits, as
matrix products do. Accuracy is that of a fixed mesh: near rounding for ordinary parameters, far from it in the corners
(`benchmarks pass` prints it beside the speed).

One BLAS thread: `python -m benchmarks` sets it before NumPy is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

NODES = 48
REACH = 90.0  # the integral is cut at REACH / sqrt(T)
CONTROL_VARIANCE = 0.04
ROWS_A_GROUP = 8192  # splits very large expiries, so that a group's rows stay in the second-level cache
EXPIRIES_A_BLOCK = 128  # characteristic functions evaluated at once; best of 16 .. 256
ROWS_OF_TERMS = 8  # phi, five derivatives and two idle rows: OpenBLAS multiplies 8 rows faster than 6


@dataclass(frozen=True, eq=False)
class Book:
    """What does not depend on theta, tabulated once: 768 bytes per quote."""

    order: NDArray[np.intp]  # rows sorted by expiry
    expiries: Floats  # (m,) one per group
    starts: NDArray[np.intp]  # (m + 1,)
    z: Complexes  # (m, 48)
    weight: Floats  # (m, 48) quadrature weight over u^2 + 1/4
    phases: Floats  # group after group, each (96, quotes): cos, sin interleaved, times the prefactor
    offset: Floats  # (n,) control variate, and parity for puts
    target: Floats  # (n,) observed less offset, sorted
    root_weight: Floats | None  # (n,) sorted


def prepare(contracts: Any, observed: ArrayLike | None = None, weight: ArrayLike | None = None) -> Book:
    """Tabulates a book. `contracts` has forward, strike, expiry, discount and is_call arrays."""
    from scipy.special import ndtr

    order = np.argsort(contracts.expiry, kind="stable")
    F, K, T, D, is_call = (
        getattr(contracts, name)[order] for name in ("forward", "strike", "expiry", "discount", "is_call")
    )
    changes = np.flatnonzero(np.diff(T)) + 1
    edges = np.concatenate([[0], changes, [len(T)]])
    starts = np.concatenate([*(np.arange(a, b, ROWS_A_GROUP) for a, b in pairwise(edges)), edges[-1:]])
    expiries = T[starts[:-1]]
    x, w = _legendre()
    half = 0.5 * REACH / np.sqrt(expiries)[:, None]
    u = half * (x + 1.0)
    node_weight = half * w / (u * u + 0.25)
    k = np.log(K / F)
    prefactor = -D * np.sqrt(F * K) / np.pi
    phases = np.empty(2 * NODES * len(T))
    gaussian = np.exp(-0.5 * CONTROL_VARIANCE * expiries[:, None] * (u * u + 0.25)) * node_weight
    quadrature = np.empty(len(T))
    for group, (a, b) in enumerate(pairwise(starts)):
        table = phases[2 * NODES * a : 2 * NODES * b].reshape(2 * NODES, b - a)
        _tabulate(table, half[group] * k[a:b], prefactor[a:b])
        quadrature[a:b] = gaussian[group] @ table[0::2]
    deviation = np.sqrt(CONTROL_VARIANCE * T)
    d1 = -k / deviation + 0.5 * deviation
    control = D * (F * ndtr(d1) - K * ndtr(d1 - deviation))
    offset = control - quadrature - np.where(is_call, 0.0, D * (F - K))
    return Book(
        order=order,
        expiries=expiries,
        starts=starts,
        z=u - 0.5j,
        weight=node_weight,
        phases=phases,
        offset=offset,
        target=(0.0 if observed is None else np.asarray(observed, float)[order]) - offset,
        root_weight=None if weight is None else np.sqrt(np.asarray(weight, float)[order]),
    )


def _tabulate(table: Floats, angle: Floats, prefactor: Floats) -> None:
    """Cosines and sines of (1 + x) angle for all nodes x, times the prefactor, from those of half of the nodes.

    Gauss-Legendre nodes come in pairs -x, x: the addition theorem makes two nodes of every pair of transcendentals.
    """
    x, _ = _legendre()
    inner = -x[: NODES // 2, None] * angle
    cosine, sine = np.cos(inner), np.sin(inner)
    c, s = np.cos(angle) * prefactor, np.sin(angle) * prefactor
    cc, ss, sc, cs = c * cosine, s * sine, s * cosine, c * sine
    low, high = table[:NODES], table[: NODES - 1 : -1]
    np.add(cc, ss, out=low[0::2])
    np.subtract(sc, cs, out=low[1::2])
    np.add(sc, cs, out=high[0::2])
    np.subtract(cc, ss, out=high[1::2])


@cache
def _legendre() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(NODES)


def price(theta: ArrayLike, book: Book) -> Floats:
    """Prices in the order the contracts were given."""
    out = np.empty(len(book.order))
    for block, stop in _blocks(book):
        terms = _exp(_exponent(theta, book.z[block:stop], book.expiries[block:stop, None]))
        terms *= book.weight[block:stop]
        for a, b, rows in _sums(terms[None], book, block, stop):
            np.add(rows[0], book.offset[a:b], out=out[a:b])
    return _unsorted(out, book)


def linearize(theta: ArrayLike, book: Book) -> tuple[Floats, Floats]:
    """Prices ``(n,)`` and sensitivities ``(n, 5)`` in the order the contracts were given."""
    out = np.empty((len(book.order), 6))
    for block, stop in _blocks(book):
        for a, b, rows in _sums(_terms(theta, book, block, stop), book, block, stop):
            rows[0] += book.offset[a:b]
            out[a:b] = rows.T
    values = _unsorted(out, book)
    return values[:, 0], values[:, 1:]


def accumulate(theta: ArrayLike, book: Book) -> Floats:
    """One Gauss-Newton pass: the 6x6 matrix of sums over (residual, five sensitivities), weighted.

    Entry (0, 0) is the cost, row 0 the score G, the lower right block the curvature H.
    """
    total = np.zeros((6, 6))
    for block, stop in _blocks(book):
        for a, b, rows in _sums(_terms(theta, book, block, stop), book, block, stop):
            np.subtract(book.target[a:b], rows[0], out=rows[0])
            if book.root_weight is not None:
                rows *= book.root_weight[a:b]
            total += rows @ rows.T
    return total


def _blocks(book: Book) -> list[tuple[int, int]]:
    count = len(book.expiries)
    return [(block, min(block + EXPIRIES_A_BLOCK, count)) for block in range(0, count, EXPIRIES_A_BLOCK)]


def _sums(terms: Complexes, book: Book, block: int, stop: int) -> Iterator[tuple[int, int, Floats]]:
    """Sums over the nodes, group by group: Re[exp(-i u k) c] = cos Re c + sin Im c, a real product.

    Yields the range of sorted quotes and their rows ``(6, quotes)`` (one row if only phi was given).
    """
    flat = terms.view(float)
    first, last = book.starts[block], book.starts[stop]
    wanted = min(len(flat), 6)
    if last - first == stop - block:  # every group is one quote: a product group by group would be all overhead
        table = book.phases[2 * NODES * first : 2 * NODES * last].reshape(last - first, 2 * NODES)
        yield first, last, np.einsum("cgj,gj->cg", flat[:wanted], table)
        return
    for group in range(block, stop):
        a, b = book.starts[group], book.starts[group + 1]
        table = book.phases[2 * NODES * a : 2 * NODES * b].reshape(2 * NODES, b - a)
        yield a, b, (flat[:, group - block] @ table)[:wanted]


def _unsorted(values: Floats, book: Book) -> Floats:
    out = np.empty_like(values)
    out[book.order] = values
    return out


def _exponent(theta: ArrayLike, z: Complexes, T: Floats) -> Complexes:
    """ln E exp(i z ln(S_T / F)), in the form that never subtracts d from xi."""
    kappa, vbar, sigma, rho, v0 = np.asarray(theta, float)
    a = 1j * z
    q = z * z + a
    xi = kappa - (rho * sigma) * a
    d = _sqrt(xi * xi + (sigma * sigma) * q)
    E = _exp(d * -T)
    plus = xi + d
    P = plus + (d - xi) * E
    return np.asarray(-(kappa * vbar) * (q * T / plus + (2 / sigma**2) * _log(P / (2 * d))) - v0 * q * (1 - E) / P)


def _terms(theta: ArrayLike, book: Book, block: int, stop: int) -> Complexes:
    """Quadrature weight times phi and its derivatives, ``(8, expiries, 48)``: every transcendental shared.

    L = kappa vbar A(xi, d, sigma) + v0 B(xi, d) and d^2 = xi^2 + sigma^2 q; the chain rule through xi and d.
    """
    kappa, vbar, sigma, rho, v0 = np.asarray(theta, float)
    z, T = book.z[block:stop], book.expiries[block:stop, None]
    level, curb = kappa * vbar, 2.0 / sigma**2
    a = 1j * z
    q = z * z + a
    xi = kappa - (rho * sigma) * a
    d = _sqrt(xi * xi + (sigma * sigma) * q)
    E = _exp(d * -T)
    m = 1.0 - E
    minus = d - xi
    P = d + xi + minus * E
    one_over_P, one_over_d, one_over_plus = 1.0 / P, 1.0 / d, 1.0 / (xi + d)
    log_P = _log(0.5 * P * one_over_d)
    slope = q * T * one_over_plus
    A = -slope - curb * log_P
    m_over_P = m * one_over_P
    B = -q * m_over_P
    P_d = 1.0 + E - T * E * minus
    slope *= one_over_plus
    L_d = level * (slope - curb * (P_d * one_over_P - one_over_d)) - (v0 * one_over_P) * (q * (T * E) + B * P_d)
    L_xi = level * (slope - curb * m_over_P) - v0 * B * m_over_P + L_d * xi * one_over_d
    out = np.zeros((ROWS_OF_TERMS, *z.shape), complex)
    phi = np.multiply(_exp(level * A + v0 * B), book.weight[block:stop], out=out[0])
    a_L_xi = a * L_xi
    np.multiply(vbar * A + L_xi, phi, out=out[1])
    np.multiply(kappa * A, phi, out=out[2])
    np.multiply(sigma * L_d * q * one_over_d + (2 * level * curb / sigma) * log_P - rho * a_L_xi, phi, out=out[3])
    np.multiply(-sigma * a_L_xi, phi, out=out[4])
    np.multiply(B, phi, out=out[5])
    return out


SMALL = 1024  # below this many points NumPy's complex functions cost less than the extra calls


def _exp(x: Complexes) -> Complexes:
    if x.size < SMALL:
        return np.exp(x)
    out = np.empty(x.shape, complex)
    size = np.exp(x.real)
    imaginary = np.ascontiguousarray(x.imag)
    np.multiply(size, np.cos(imaginary), out=out.real)
    np.multiply(size, np.sin(imaginary), out=out.imag)
    return out


def _log(x: Complexes) -> Complexes:
    if x.size < SMALL:
        return np.log(x)
    out = np.empty(x.shape, complex)
    re, im = np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag)
    np.multiply(0.5, np.log(re * re + im * im), out=out.real)
    np.arctan2(im, re, out=out.imag)
    return out


def _sqrt(x: Complexes) -> Complexes:
    """The root with positive real part; the arguments here are never negative real."""
    if x.size < SMALL:
        return np.sqrt(x)
    out = np.empty(x.shape, complex)
    re, im = np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag)
    root = np.sqrt(0.5 * (np.sqrt(re * re + im * im) + re))
    out.real = root
    np.multiply(0.5, im / root, out=out.imag)
    return out
