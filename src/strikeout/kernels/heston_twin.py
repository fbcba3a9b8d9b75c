"""Heston by Fourier inversion, in NumPy: the definition of the compiled kernel, its oracle and its fallback."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from strikeout.kernels import contours, taylor_cells
from strikeout.kernels.arrays import Floats, Mask, Rows

CHUNK = 64  # slices, or expiries of panels, at a time; bounds the memory, changes no bit
NODES = 8  # expiries at which a panel's polynomials are found
UNRESOLVED, UNRESOLVED_SLOPE = 1e-12, 3e-11  # what a value, and a derivative, may lack in a panel
TERMS_AT_ONCE = 2048  # of contour sums; as many as stay in the cache with their powers


class Parts(NamedTuple):
    """Strikes in parts: part j holds ``k[offsets[j]:offsets[j + 1]]``, ascending.

    Slices: ``expiries[j]`` is the expiry of them all and ``k = ln(K / F)``. Panels, for books in which hardly two
    quotes share an expiry: ``expiries[j]`` is the middle of a panel of ln T, ``k = ln(K / F) / sqrt(T)`` and
    ``t = (ln T - middle) / half``.
    """

    expiries: Floats
    offsets: Rows
    k: Floats
    t: Floats | None = None
    half: float = 0.0


def rows_and_slope(theta: Floats, parts: Parts) -> Floats:
    """Return the rows of slices, and the derivative of the value by log-moneyness as the seventh, ``(7, n)``."""
    return _rows(contours.Heston(theta), parts, 6, has_slope=True)


def rows(theta: Floats, parts: Parts, functions: int = 6) -> Floats:
    """Return out-of-the-money value over the discounted forward and its derivatives by the five parameters, ``(6, n)``.

    With ``functions = 1`` the value alone, ``(1, n)``, the same bits.
    """
    return rows_of(contours.Heston(theta), parts, functions)


def rows_of(law: contours.Law, parts: Parts, functions: int) -> Floats:
    """Return the first functions of a law's rows, ``(functions, n)``: value and derivatives, not-a-number if there is
    no contour."""
    at_once = CHUNK if parts.t is None else CHUNK // NODES
    if len(parts.expiries) <= at_once:
        return _rows(law, parts, functions)
    out = np.empty((functions, len(parts.k)))
    for begin in range(0, len(parts.expiries), at_once):
        offsets = parts.offsets[begin : begin + at_once + 1]
        these = slice(offsets[0], offsets[-1])
        out[:, these] = _rows(
            law,
            Parts(
                parts.expiries[begin : begin + at_once],
                offsets - offsets[0],
                parts.k[these],
                None if parts.t is None else parts.t[these],
                parts.half,
            ),
            functions,
        )
    return out


def _rows(law: contours.Law, parts: Parts, functions: int, *, has_slope: bool = False) -> Floats:
    if not len(parts.k):
        return np.zeros((functions + has_slope, 0))
    with np.errstate(all="ignore"):
        if parts.t is None:
            return _slices(law, parts, functions, has_slope=has_slope)
        return _panels(law, parts, functions)


def _slices(law: contours.Law, parts: Parts, functions: int, *, has_slope: bool) -> Floats:
    slices = contours.geometry(parts.expiries, law)
    moments = contours.moments(slices, law)
    strips = contours.strips(slices, moments, law)
    lowest, highest = _ends(parts)
    far = contours.FAR * slices.sd
    if (lowest < -far).any() or (highest > far).any():
        low, high = contours.wings(slices, moments, strips)
        if (lowest < low).any() or (highest >= high).any():
            return _within(low, high, parts, lambda inside: _rows(law, inside, functions, has_slope=has_slope))

    found = taylor_cells.occupied(parts.k, parts.offsets, slices.kstar, slices.widest, slices.doublings)
    group = contours.group_of(found.centre, slices.kstar[found.part])
    pair = 3 * found.part + group
    is_first = np.ones(len(pair), bool)
    np.not_equal(pair[1:], pair[:-1], out=is_first[1:])
    along = contours.contours(slices, strips, found.part[is_first], group[is_first])
    terms = contours.terms(along, law).of(functions)
    coefficients = _coefficients(terms, is_first.cumsum() - 1, found.centre - slices.shift[found.part], found.half)
    if has_slope:
        slope = np.zeros_like(coefficients[:, :1])
        slope[:-1] = coefficients[1:, :1] * (np.arange(1.0, len(coefficients))[:, None, None] / found.half)
        coefficients = np.concatenate([coefficients, slope], axis=1)

    x = (parts.k - found.centre.repeat(found.size)) / found.half.repeat(found.size)
    return taylor_cells.evaluate(coefficients, found.size, taylor_cells.powers(x))


def _panels(law: contours.Law, parts: Parts, functions: int) -> Floats:
    points, to_powers = _interpolation()
    middles, half, k, t = parts.expiries, parts.half, parts.k, parts.t
    assert t is not None
    nodes = contours.geometry(np.exp(middles[:, None] + half * points).ravel(), law)
    centres = contours.geometry(np.exp(middles), law)
    root, node_root = np.sqrt(centres.T), np.sqrt(nodes.T)
    moments = contours.moments(nodes, law)
    strips = contours.strips(nodes, moments, law)

    near = 1.25 * contours.FAR * centres.sd / root
    lowest, highest = _ends(parts)
    if (lowest < -near).any() or (highest > near).any():
        ends = [0, NODES - 1]
        low, high = (side.reshape(-1, NODES)[:, ends] for side in contours.wings(nodes, moments, strips))
        end_root = node_root.reshape(-1, NODES)[:, ends]
        low = 1.1 * np.minimum(np.min(low / end_root, axis=1), -near)
        high = 1.1 * np.maximum(np.max(high / end_root, axis=1), near)
        if (lowest < low).any() or (highest >= high).any():
            return _within(low, high, parts, lambda inside: _rows(law, inside, functions))

    # A panel's cells are those of the slice in its middle, a little narrower: no node's is wider than a slice's own.
    found = taylor_cells.occupied(
        k, parts.offsets, centres.kstar / root, 0.95 * centres.widest / root, centres.doublings
    )
    node = (found.part * NODES)[:, None] + np.arange(NODES)
    at = found.centre[:, None] * node_root[node]
    group = (found.centre >= 0.0).astype(np.intp)[:, None] + (at >= nodes.kstar[node])
    pairs, pair_of = np.unique((3 * node + group).ravel(), return_inverse=True)
    along = contours.contours(nodes, strips, pairs // 3, pairs % 3)
    wide = found.half[:, None] * node_root[node]
    coefficients = _coefficients(contours.terms(along, law), pair_of, at.ravel(), wide.ravel())
    # Always all six functions, because all of them decide which cells are accurate enough. Sums over nodes are
    # added one after the other because nodes are the leading axis.
    by_node = np.ascontiguousarray(np.moveaxis(coefficients.reshape(taylor_cells.DEGREE, 6, -1, NODES), 3, 0))
    in_t = np.stack([np.add.reduce(row[:, None, None, None] * by_node, axis=0) for row in to_powers])
    x = (k - found.centre.repeat(found.size)) / found.half.repeat(found.size)
    basis = (taylor_cells.powers(t, NODES)[:, None] * taylor_cells.powers(x)).reshape(NODES * taylor_cells.DEGREE, -1)
    out = taylor_cells.evaluate(in_t.reshape(NODES * taylor_cells.DEGREE, 6, -1), found.size, basis)[:functions]
    alone = np.flatnonzero(~_resolved(in_t).repeat(found.size))
    if len(alone):
        T = np.exp(middles[found.part].repeat(found.size)[alone] + half * t[alone])
        out[:, alone] = rows_of(law, Parts(T, np.arange(len(T) + 1), k[alone] * np.sqrt(T)), functions)
    return out


def _resolved(a: Floats) -> Mask:
    """Return the cells, of coefficients of t^q x^p ``(NODES, DEGREE, functions, cells)``, for which eight expiries are
    enough.

    With a correlation near one the surface has a kink at k*, which moves within a panel. The last four coefficients by
    Chebyshev's polynomials of t, two and two, fall as fast as the next two will. Where those would add too much, every
    quote of the cell is priced at its own expiry.
    """
    c7, c6 = a[7] / 64.0, a[6] / 32.0
    c5, c4 = (a[5] + 112.0 * c7) / 16.0, (a[4] + 48.0 * c6) / 8.0
    c4, c5, c6, c7 = (np.add.reduce(np.abs(c), axis=0) for c in (c4, c5, c6, c7))
    before, last = np.maximum(c4, c5), np.maximum(c6, c7)
    next_two = np.where(last < before, last * (last / before), last)
    most = np.where(np.arange(len(last)) == 0, UNRESOLVED, UNRESOLVED_SLOPE)
    return np.asarray(np.all(next_two <= most[:, None], axis=0))


def _ends(parts: Parts) -> tuple[Floats, Floats]:
    """Return the lowest and the highest strike of each part."""
    return parts.k[np.minimum(parts.offsets[:-1], len(parts.k) - 1)], parts.k[parts.offsets[1:] - 1]


def _within(low: Floats, high: Floats, parts: Parts, values: Callable[[Parts], Floats]) -> Floats:
    """Return values of the strikes between low and high; the others are worth nothing."""
    part = np.repeat(np.arange(len(low)), np.diff(parts.offsets))
    worth = ~((parts.k < low[part]) | (parts.k >= high[part]))
    kept = np.bincount(part[worth], minlength=len(low))
    some = np.flatnonzero(kept)
    offsets = np.concatenate([[0], np.cumsum(kept[some])])
    t = None if parts.t is None else parts.t[worth]
    inside = values(Parts(parts.expiries[some], offsets, parts.k[worth], t, parts.half))
    out = np.zeros((len(inside), len(worth)))
    out[:, worth] = inside
    return out


def _coefficients(terms: contours.Terms, pair_of: Rows, centre: Floats, half: Floats) -> Floats:
    """Return polynomials of cells on the contours of their pairs; some dozens of cells at a time, contours of one
    length."""
    zeta, F, turns = terms.zeta, np.conj(terms.F), terms.turns[pair_of]

    def made(some: Rows | slice, nodes: int) -> Floats:
        pair = pair_of[some]
        return taylor_cells.coefficients(zeta[pair, :nodes], F[:, pair, :nodes], centre[some], half[some])

    lengths = [turn * contours.NODES_A_TURN for turn in set(turns.tolist())]
    if len(lengths) == 1 and len(centre) * lengths[0] <= TERMS_AT_ONCE:
        return made(slice(None), lengths[0])
    out = np.empty((taylor_cells.DEGREE, len(F), len(centre)))
    for nodes in lengths:
        these = np.flatnonzero(turns * contours.NODES_A_TURN == nodes)
        at_once = max(1, TERMS_AT_ONCE // nodes)
        for begin in range(0, len(these), at_once):
            some = these[begin : begin + at_once]
            out[:, :, some] = made(some, nodes)
    return out


@cache
def _interpolation() -> tuple[Floats, Floats]:
    """Chebyshev points of [-1, 1], and the matrix from values there to coefficients of 1, t, ..., t^7."""
    points = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    chebyshev = np.polynomial.chebyshev.chebvander(points, NODES - 1).T * (2.0 / NODES)
    chebyshev[0] *= 0.5
    monomial = np.array(
        [np.r_[c := np.polynomial.chebyshev.cheb2poly(unit), np.zeros(NODES - len(c))] for unit in np.eye(NODES)]
    )
    return points, np.add.reduce(monomial[:, :, None] * chebyshev[:, None, :], axis=0)
