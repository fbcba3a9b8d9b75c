"""Heston by Fourier inversion, in NumPy: the definition of the compiled kernel, its oracle and its fallback."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import cells, contours
from strikeout.kernels.heston_cf import Floats

CHUNK = 512  # slices, or expiries of panels, at a time; bounds the memory, changes no bit
NODES = 8  # expiries at which a panel's polynomials are found


class Parts(NamedTuple):
    """Strikes in parts: part j holds ``k[offsets[j]:offsets[j + 1]]``, ascending.

    Slices: ``expiries[j]`` is the expiry of them all and ``k = ln(K / F)``. Panels, for books in which hardly two
    quotes share an expiry: ``expiries[j]`` is the middle of a panel of ln T, ``k = ln(K / F) / sqrt(T)`` and
    ``t = (ln T - middle) / half``.
    """

    expiries: Floats
    offsets: NDArray[np.intp]
    k: Floats
    t: Floats | None = None
    half: float = 0.0


def rows(theta: Floats, parts: Parts) -> Floats:
    """Out-of-the-money value over the discounted forward and its derivatives by the five parameters, ``(6, n)``."""
    expiries, offsets, k, t, half = parts
    out = np.empty((6, len(k)))
    at_once = CHUNK if t is None else CHUNK // NODES
    for begin in range(0, len(expiries), at_once):
        end = min(begin + at_once, len(expiries))
        these = slice(offsets[begin], offsets[end])
        part_of = np.repeat(np.arange(end - begin), np.diff(offsets[begin : end + 1]))
        with np.errstate(all="ignore"):
            if t is None:
                out[:, these] = _slices(theta, expiries[begin:end], part_of, k[these])
            else:
                out[:, these] = _panels(theta, expiries[begin:end], half, part_of, k[these], t[these])
    return out


def sums(theta: Floats, parts: Parts, scale: Floats, target: Floats) -> Floats:
    """The 21 sums of ``a a'``, ``a = (scale * derivatives, target - scale * value)``: upper triangle, row by row."""
    values = rows(theta, parts)
    a = np.concatenate([values[1:] * scale, (target - scale * values[0])[None]])
    # One dot product a pair, in einsum's own loop: a fixed order for a given length, and no BLAS.
    return np.array([np.einsum("n,n->", a[i], a[j]) for i in range(6) for j in range(i, 6)])


def _slices(theta: Floats, expiries: Floats, slice_of: NDArray[np.intp], k: Floats) -> Floats:
    slices = contours.geometry(expiries, theta)
    sd = slices.sd[slice_of]
    far = np.flatnonzero(np.abs(k) > contours.FAR * sd)
    if not len(far):
        return _slice_values(theta, slices, slice_of, k)
    at, back = np.unique(slice_of[far], return_inverse=True)
    low, high = contours.wings(expiries[at], slices.sd[at], theta)
    worth = np.ones(len(k), bool)
    worth[far] = (k[far] >= low[back]) & (k[far] < high[back])
    out = np.zeros((6, len(k)))
    out[:, worth] = _slice_values(theta, slices, slice_of[worth], k[worth])
    return out


def _slice_values(theta: Floats, slices: contours.Geometry, slice_of: NDArray[np.intp], k: Floats) -> Floats:
    if not len(k):
        return np.zeros((6, 0))
    kstar = slices.kstar[slice_of]
    group = contours.group_of(k, kstar)
    centre, half = cells.cell_of(k, kstar, slices.widest[slice_of], slices.doublings[slice_of])
    start = _runs(3 * slice_of + group, centre)
    coefficients = _coefficients(theta, slices, slice_of[start], group[start], centre[start], half[start])
    return cells.evaluate(coefficients, start, cells.powers((k - centre) / half))


def _panels(theta: Floats, middles: Floats, half: float, panel_of: NDArray[np.intp], k: Floats, t: Floats) -> Floats:
    points, to_powers = _interpolation()
    nodes = contours.geometry(np.exp(middles[:, None] + half * points).ravel(), theta)
    centres = contours.geometry(np.exp(middles), theta)
    root, node_root = np.sqrt(centres.T), np.sqrt(nodes.T)

    near = 1.25 * contours.FAR * centres.sd / root
    first, last = np.arange(len(middles)) * NODES, np.arange(len(middles)) * NODES + NODES - 1
    low, high = contours.wings(nodes.T, nodes.sd, theta)
    low, high = low / node_root, high / node_root
    k_low = 1.1 * np.minimum(np.minimum(low[first], low[last]), -near)
    k_high = 1.1 * np.maximum(np.maximum(high[first], high[last]), near)
    far = np.abs(k) > near[panel_of]
    worth = ~far | ((k >= k_low[panel_of]) & (k < k_high[panel_of]))

    out = np.zeros((6, len(k)))
    k, t, panel_of = k[worth], t[worth], panel_of[worth]
    if not len(k):
        return out
    # A panel's cells are those of the slice in its middle, a little narrower: no node's is wider than a slice's own.
    centre, width = cells.cell_of(
        k, (centres.kstar / root)[panel_of], (0.95 * centres.widest / root)[panel_of], centres.doublings[panel_of]
    )
    call = (k >= 0.0).astype(np.intp)
    start = _runs(2 * panel_of + call, centre)
    node = (panel_of[start] * NODES)[:, None] + np.arange(NODES)
    at = centre[start][:, None] * node_root[node]
    group = call[start][:, None] + (at >= nodes.kstar[node])
    coefficients = _coefficients(
        theta, nodes, node.ravel(), group.ravel(), at.ravel(), (width[start][:, None] * node_root[node]).ravel()
    ).reshape(cells.DEGREE, 6, len(start), NODES)
    # Leading-axis sums again: over the nodes, one after the other.
    by_node = np.moveaxis(coefficients, 3, 0)
    in_t = np.stack([np.add.reduce(row[:, None, None, None] * by_node, axis=0) for row in to_powers])
    both = in_t.reshape(NODES * cells.DEGREE, 6, len(start))
    x, powers_of_t = cells.powers((k - centre) / width), cells.powers(t)[:NODES]
    grid = (powers_of_t[:, None, :] * x[None]).reshape(len(both), -1)
    out[:, worth] = cells.evaluate(both, start, grid)
    return out


def _coefficients(
    theta: Floats,
    slices: contours.Geometry,
    slice_of: NDArray[np.intp],
    group: NDArray[np.intp],
    centre: Floats,
    half: Floats,
) -> Floats:
    """Polynomials of cells, each on one slice and one of its groups of strikes; each contour is found once.

    NumPy multiplies complex numbers with fused operations along a contiguous axis and without them elsewhere. The
    axis of cells is kept last, contiguous and longer than one, so that a cell's bits do not depend on the others.
    """
    if len(centre) == 1:
        return _coefficients(theta, slices, slice_of.repeat(2), group.repeat(2), centre.repeat(2), half.repeat(2))[
            :, :, :1
        ]
    pairs, pair_of = np.unique(3 * slice_of + group, return_inverse=True)
    if len(pairs) == 1:
        pairs = np.repeat(pairs, 2)
    zeta, F = contours.terms(slices, pairs // 3, pairs % 3, theta)
    return cells.coefficients(np.take(zeta, pair_of, axis=1), np.take(F, pair_of, axis=2), centre, half)


def _runs(part: NDArray[np.intp], centre: Floats) -> NDArray[np.intp]:
    """Strikes of one cell stand together: the first strike of each cell."""
    begins = np.ones(len(part), bool)
    begins[1:] = (part[1:] != part[:-1]) | (centre[1:] != centre[:-1])
    return np.flatnonzero(begins)


def _interpolation() -> tuple[Floats, Floats]:
    """Chebyshev points of [-1, 1], and the matrix from values there to coefficients of 1, t, ..., t^7."""
    points = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    chebyshev = np.polynomial.chebyshev.chebvander(points, NODES - 1).T * (2.0 / NODES)
    chebyshev[0] *= 0.5
    monomial = np.array(
        [np.r_[c := np.polynomial.chebyshev.cheb2poly(unit), np.zeros(NODES - len(c))] for unit in np.eye(NODES)]
    )
    return points, np.add.reduce(monomial[:, :, None] * chebyshev[:, None, :], axis=0)
