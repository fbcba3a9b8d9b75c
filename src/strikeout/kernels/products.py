"""Products and weighted sums in a fixed order, without BLAS.

Products of matrices, added in one fixed order: the same bits on every processor.

BLAS and einsum choose the order of their sums, and whether a product and a sum are rounded once or twice, by the
processor. Here every product is rounded, then added: along a short axis from the first to the last, along rows in pairs
(``np.add.reduce``, which has no other order).

Sums over weighted nodes: what a calibration from moments needs of a model, from its rows.

symbol      meaning                                                  shape
d           model less the centre at the nodes                       (n,)
J           its derivatives                                          (p, n)
quadratic   weights of products of two of them; of any sign          (n,)
linear      weights of one of them                                   (n,)
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from strikeout.kernels.arrays import Floats


def inner(a: Floats, b: Floats) -> Floats:
    """Return the sum of ``a b`` along the last axis, which is short; the other axes are broadcast.

    >>> inner(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 1.0])).tolist()
    [12.0, 34.0]
    """
    total = np.zeros(np.broadcast_shapes(a.shape[:-1], b.shape[:-1]))
    part = np.empty(total.shape)
    for k in range(a.shape[-1]):
        np.multiply(a[..., k], b[..., k], out=part)
        total += part
    return total


def product(A: Floats, B: Floats) -> Floats:
    """Return ``A B`` of matrices with few inner columns; axes before the last two are broadcast.

    >>> product(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [[13.0, 16.0]]
    """
    return inner(A[..., :, None, :], np.swapaxes(B, -1, -2)[..., None, :, :])


def gram(X: Floats, Y: Floats) -> Floats:
    """Return ``X' Y``, summed over rows, of which there may be many.

    >>> gram(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    left, right = np.ascontiguousarray(X.T), np.ascontiguousarray(Y.T)
    return np.array([np.add.reduce(row * right, axis=-1) for row in left]).reshape(len(left), len(right))


def norm(v: Floats) -> float:
    """Return the length of a vector.

    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    return sqrt(float(np.add.reduce(np.ascontiguousarray(v) * v)))


def weighed(d: Floats, J: Floats, quadratic: Floats, linear: Floats) -> Floats:
    """Return the sums of ``quadratic J J'`` and ``(linear - quadratic d) J``, the upper triangle row by row as in a
    linearization, then those of ``linear d`` and ``quadratic d d``.
    """
    p = len(J)
    rows = np.concatenate([J, d[None]])
    products = gram(rows.T, np.concatenate([quadratic * rows, linear[None]]).T).tolist()
    triangle = [number for i in range(p) for number in (*products[i][i:p], products[i][-1] - products[i][p])]
    return np.array([*triangle, products[p][-1], products[p][p]])
