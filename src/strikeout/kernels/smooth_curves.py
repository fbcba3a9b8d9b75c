"""Residuals of smooth curves, slice by slice.

    symbol      meaning                                                 shape
    x           place of a row, ascending within its slice              (n,)
    offsets     slice j has the rows offsets[j] to offsets[j + 1]       (slices + 1,)
    r, w        residual, and the weight of its square                  (n,)

Per slice r is fitted by orthogonal polynomials in x (Forsythe, 1957), at most one for two different places. Sums have a
fixed order, so the answer follows from the rows; the compiled function and its twin agree to rounding.
"""

from __future__ import annotations

import numpy as np

from strikeout.kernels.arrays import Floats, Rows
from strikeout.kernels.compiled import native


def unexplained(x: Floats, offsets: Rows, r: Floats, w: Floats, most: int) -> tuple[float, int]:
    """Return the sum of w r^2 that polynomials in x leave, at most ``most`` per slice, and how many there are."""
    module = native()
    if module is None:
        return unexplained_twin(x, offsets, r, w, most)
    left, used = module.smooth_curves(x, offsets, r, w, most)
    return left, used


def unexplained_twin(x: Floats, offsets: Rows, r: Floats, w: Floats, most: int) -> tuple[float, int]:
    """``unexplained`` without compiled code."""
    begin, count = offsets[:-1], np.diff(offsets)
    of = np.repeat(np.arange(len(count)), count)  # slice of each row
    is_new = np.ones(len(x))
    is_new[1:] = (x[1:] != x[:-1]) | (of[1:] != of[:-1])
    terms = np.minimum(np.add.reduceat(is_new, begin) // 2.0, most)
    polynomial, last, last_norm = np.ones_like(x), np.zeros_like(x), np.ones(len(count))
    for degree in range(int(terms.max(initial=0.0))):
        weighted = w * polynomial
        norm = np.add.reduceat(weighted * polynomial, begin)
        is_used = (degree < terms) & (norm > 0.0)
        norm = np.where(is_used, norm, 1.0)
        share = np.where(is_used, np.add.reduceat(weighted * r, begin) / norm, 0.0)
        r = r - share[of] * polynomial
        centre = np.add.reduceat(weighted * polynomial * x, begin) / norm
        following = (x - centre[of]) * polynomial - (norm / last_norm)[of] * last
        following = np.where(is_used[of], following, 0.0)  # a slice with no term left stays out of the next ones
        polynomial, last, last_norm = following, polynomial, norm
    return float(np.add.reduce(w * r * r)), int(terms.sum())


LEAST = 1e-9  # of the norm of the first polynomial: below it, there are no more different places than polynomials


def explained(x: Floats, offsets: Rows, linear: Floats, quadratic: Floats, terms: Rows) -> tuple[float, int]:
    """Return the sum of w r^2 that polynomials in x explain, and how many there are, from sums over nodes.

    Args:
        linear: weights of nodes such that the sum of w r f over quotes is that of ``linear f`` over nodes.
        quadratic: the same for w f. Some may be negative.
        terms: polynomials per slice at most.
    """
    module = native()
    if module is None:
        return explained_twin(x, offsets, linear, quadratic, terms)
    total, used = module.smooth_sums(x, offsets, linear, quadratic, terms)
    return total, used


def explained_twin(x: Floats, offsets: Rows, linear: Floats, quadratic: Floats, terms: Rows) -> tuple[float, int]:
    """``explained`` without compiled code."""
    begin, of = offsets[:-1], np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # slice of each node
    polynomial, last, last_norm = np.ones_like(x), np.zeros_like(x), np.ones(len(begin))
    first, is_used = np.add.reduceat(quadratic, begin), np.ones(len(begin), bool)
    total, used = 0.0, 0
    for degree in range(int(terms.max(initial=0))):
        weighted = quadratic * polynomial
        norm = np.add.reduceat(weighted * polynomial, begin)
        is_used &= (degree < terms) & (norm > LEAST * first)
        norm = np.where(is_used, norm, 1.0)
        share = np.where(is_used, np.add.reduceat(linear * polynomial, begin) / norm, 0.0)
        total, used = total + float(np.add.reduce(share * share * norm)), used + int(np.count_nonzero(is_used))
        linear = linear - share[of] * weighted
        centre = np.add.reduceat(weighted * polynomial * x, begin) / norm
        following = (x - centre[of]) * polynomial - (norm / last_norm)[of] * last
        polynomial, last, last_norm = np.where(is_used[of], following, 0.0), polynomial, norm
    return total, used
