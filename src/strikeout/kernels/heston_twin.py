"""Heston slices by Fourier inversion, in NumPy: the definition of the compiled kernel, its oracle and its fallback."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import cells, contours
from strikeout.kernels.heston_cf import Floats

CHUNK = 2048  # pairs at a time; bounds the memory, changes no bit


def rows(theta: Floats, expiries: Floats, offsets: NDArray[np.intp], k: Floats) -> Floats:
    """Out-of-the-money value over the discounted forward and its derivatives by the five parameters, ``(6, n)``.

    Args:
        offsets: slice j holds the log-strikes ``k[offsets[j]:offsets[j + 1]]``, ascending.
    """
    out = np.empty((6, len(k)))
    slices_at_once = max(CHUNK // 3, 1)
    for begin in range(0, len(expiries), slices_at_once):
        end = min(begin + slices_at_once, len(expiries))
        rows = slice(offsets[begin], offsets[end])
        with np.errstate(all="ignore"):
            out[:, rows] = _rows(theta, expiries[begin:end], offsets[begin : end + 1] - offsets[begin], k[rows])
    return out


def _rows(theta: Floats, expiries: Floats, offsets: NDArray[np.intp], k: Floats) -> Floats:
    slices = contours.geometry(expiries, theta)
    slice_of = np.repeat(np.arange(len(expiries)), np.diff(offsets))
    sd = slices.sd[slice_of]
    far = np.flatnonzero(np.abs(k) > contours.FAR * sd)
    if not len(far):
        return _values(theta, slices, slice_of, k)
    at, back = np.unique(slice_of[far], return_inverse=True)
    low, high = contours.wings(expiries[at], slices.sd[at], theta)
    lost = far[(k[far] < low[back]) | (k[far] >= high[back])]
    worth = np.ones(len(k), bool)
    worth[lost] = False
    out = np.zeros((6, len(k)))
    out[:, worth] = _values(theta, slices, slice_of[worth], k[worth])
    return out


def _values(theta: Floats, slices: contours.Geometry, slice_of: NDArray[np.intp], k: Floats) -> Floats:
    kstar = slices.kstar[slice_of]
    pair = 3 * slice_of + contours.group_of(k, kstar)
    centre, half = cells.cell_of(k, kstar, slices.widest[slice_of], slices.doublings[slice_of])
    begins = np.r_[True, (pair[1:] != pair[:-1]) | (centre[1:] != centre[:-1])][: len(k)]
    start = np.flatnonzero(begins)
    cell = np.cumsum(begins) - 1
    pairs, pair_of_cell = np.unique(pair[start], return_inverse=True)
    zeta, F = contours.terms(slices, pairs // 3, pairs % 3, theta)
    coefficients = cells.coefficients(zeta[:, pair_of_cell], F[:, :, pair_of_cell], centre[start], half[start])
    return cells.evaluate(coefficients, cell, start, (k - centre) / half)


def sums(theta: Floats, expiries: Floats, offsets: NDArray[np.intp], k: Floats, scale: Floats, target: Floats) -> Floats:
    """The 21 sums of ``a a'`` over the strikes, ``a = (scale * derivatives, target - scale * value)``: upper triangle, row by row."""
    values = rows(theta, expiries, offsets, k)
    a = np.concatenate([values[1:] * scale, (target - scale * values[0])[None]])
    # One dot product a pair, in einsum's own loop: fixed order for a given length, and no BLAS.
    return np.array([np.einsum("n,n->", a[i], a[j]) for i in range(6) for j in range(i, 6)])
