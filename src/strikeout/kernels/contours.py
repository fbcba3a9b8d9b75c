"""Where in the complex plane to integrate a Heston slice: three bent contours, found from theta and T alone.

    otm(k) = -Re sum_j F_j exp(-i zeta_j k),    k = ln(K / forward),    zeta = z + i,
    z_j = i w + b sinh(j h + i omega),          F_j = (h / pi) b cosh(j h + i omega) cf(z_j) / (z_j^2 + i z_j)

is the out-of-the-money value over the discounted forward (a put for k < 0, a call for k >= 0): sinh-acceleration of
Boyarchenko and Levendorskii (2019). A contour crosses the imaginary axis on the out-of-the-money side and is bent
towards the side on which the phase of exp(-i z k) helps, which changes at k* = -rho (v0 + kappa vbar T) / sigma. So
there are three groups of log-strikes, cut at 0 and at k*: left (0), middle (1), right (2).

    symbol   meaning                                                       shape
    V        expected total variance; sd its root                          (slices,)
    g        how Gaussian the slice is: large for small sigma              (slices,)
    up, lo   opening angles of the sector in which cf stays bounded        (pairs,)
    s        half-width of the strip in which the moments stay small       (pairs,)

A pair is one (slice, group). Nothing here depends on which strikes are asked for: that is what makes a price
independent of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.heston_cf import Complexes, Floats, log_cf, log_mgf, total_variance

LOG_TOLERANCE = 27.5  # exp(-27.5) = 1e-12: the discretisation error aimed at, of the forward
MOMENT_CAP = 4.0  # ln of the moment allowed at the edge of the strip
MARGIN = 3.0  # terms are cut, and far wings called zero, this much below the tolerance
# The strip's half-width is one of these steps, in units of 2 / sd; heavy tails reach far down.
STRIP_STEPS = 2.0 ** np.r_[np.arange(-40.0, -4.0), np.arange(-4.0, 9.0, 0.25)]
MOST_NODES = 512
MIDDLE = 3.0  # added to the tolerance of the middle group, whose contour is the most confined
WING_STEPS = 16  # as is the slope of the Chernoff bound
WING_RATIO = 2.0**0.5
FAR = 4.0  # standard deviations within which no strike is so far out


@dataclass(frozen=True)
class Geometry:
    """What a slice looks like from theta and T alone; every field ``(slices,)``."""

    T: Floats
    sd: Floats
    kstar: Floats
    g: Floats
    widest: Floats  # width of the widest and of the narrowest cell of log-strike (see cells.py)
    doublings: NDArray[np.int32]  # widest = 2^doublings * narrowest


def geometry(T: Floats, theta: Floats) -> Geometry:
    kappa, vbar, sigma, rho, v0 = theta
    sd = np.sqrt(total_variance(T, theta))
    asymptote = (v0 + kappa * vbar * T) / sigma  # ln |cf(u)| ~ -asymptote sqrt(1 - rho^2) |u|
    g = 0.5 * sd * sd * ((1.0 / T + kappa) / sigma) ** 2
    spread = 1.0 - rho * rho
    core = asymptote * np.sqrt(spread) * (1.0 + g * spread)  # nearer to k* than this, bending the contour cannot help
    widest = np.minimum(sd, 1.0)  # wider, and 16 powers of x do not suffice
    doublings = np.clip(np.ceil(np.log2(8.0 * widest / core)), 0.0, 60.0).astype(np.int32)
    return Geometry(T=T, sd=sd, kstar=-rho * asymptote, g=g, widest=widest, doublings=doublings)


def wings(T: Floats, sd: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Log-strikes below the first and from the second on are worth nothing: Chernoff's bound on a few slopes."""
    slope = (0.5 / sd) * WING_RATIO ** (np.arange(WING_STEPS)[:, None] - 4.0)
    level = LOG_TOLERANCE + MARGIN
    high = np.min((log_mgf(1.0 + slope, T, theta) + level) / slope, axis=0)
    low = -np.min((log_mgf(-slope, T, theta) + level) / (1.0 + slope), axis=0)
    return np.minimum(low, -FAR * sd), np.maximum(high, FAR * sd)


def group_of(k: Floats, kstar: Floats) -> NDArray[np.intp]:
    """0 left, 1 middle, 2 right: cut at 0 and at k*."""
    return (k >= 0.0).astype(np.intp) + (k >= kstar)


def terms(
    slices: Geometry, pair_slice: NDArray[np.intp], pair_group: NDArray[np.intp], theta: Floats
) -> tuple[Complexes, Complexes]:
    """``zeta`` and ``F``, shapes ``(nodes, pairs)`` and ``(nodes, 6, pairs)``; F holds value and five derivatives.

    Nodes a pair does not need have F = 0.
    """
    kappa, vbar, sigma, rho, v0 = theta
    T, sd, g, kstar = (column[pair_slice] for column in (slices.T, slices.sd, slices.g, slices.kstar))
    middle = pair_group == 1
    cross = np.where(middle, np.where(kstar > 0.0, 1.0, -1.0), np.where(pair_group == 0, -1.0, 1.0))
    bend = np.where(middle, cross, -cross)

    main = 0.25 * np.pi + (1.3 - 0.25 * np.pi) / (1.0 + 4.0 * g * g)
    root = np.sqrt(1.0 - rho * rho)
    back = np.where(middle, 0.9 * np.minimum(main, np.arctan2(root, abs(rho))), 0.0)
    reach = np.minimum(np.abs(kstar) / sd, 6.0) + 1e-9  # of the middle group, in standard deviations
    t = 2.0 / (reach * reach)
    main = np.where(middle, np.minimum(main, np.arctan2(np.sqrt(t), np.sqrt(1.0 + t))), main)
    up, lo = np.where(bend > 0, main, back), np.where(bend > 0, -back, -main)

    s = strip(T, sd, cross, theta)
    b = s / (np.sin(up) - np.sin(lo))
    # z and zeta = z + i are small, and must be exact, on either side of the strip: each has its own offset.
    call = cross > 0
    offset = np.where(call, -b * np.sin(up), -b * np.sin(lo))
    omega = 0.5 * (up + lo)
    h = np.pi * (up - lo) / (LOG_TOLERANCE + MOMENT_CAP + np.where(middle, MIDDLE, 0.0))

    asymptote = (v0 + kappa * vbar * T) / sigma * root
    level = LOG_TOLERANCE + MARGIN
    longest = np.maximum(np.sqrt(2.0 * level) / sd, level / asymptote)  # Gaussian, then exponential decay of cf
    wanted = np.ceil(np.arcsinh(3.0 * longest / (b * np.cos(omega))) / h) + 1.0
    count = np.minimum(np.where(np.isfinite(wanted), wanted, 1.0), MOST_NODES)
    y = h * np.arange(int(count.max()))[:, None]
    grown = np.exp(y)
    shrunk = 1.0 / grown
    sinh, cosh = 0.5 * (grown - shrunk), 0.5 * (grown + shrunk)
    so, co = np.sin(omega), np.cos(omega)
    point = (b * co) * sinh + 1j * ((b * so) * cosh + offset)
    z, zeta = point - 1j * call, point + 1j * ~call
    q = z * zeta
    ln_cf, gradient = log_cf(z, q, T, theta)
    F = np.empty((len(y), 6, len(T)), complex)
    weight = (((h / np.pi) * b) * (co * cosh + 1j * (so * sinh))) / q
    cf = np.exp(ln_cf)
    F[:, 0] = value = weight * cf  # named operands: see log_cf
    for i, slope in enumerate(gradient):
        np.multiply(value, slope, out=F[:, i + 1])
    F[0] *= 0.5
    needed = (np.arange(len(y))[:, None] < count) & ~negligible(zeta, F, slices, pair_slice, pair_group)
    F[~np.broadcast_to(needed[:, None, :], F.shape)] = 0.0
    unfinished = (wanted > MOST_NODES) & needed[-1]  # then count is MOST_NODES, and so is the last node's number
    F[:, :, np.isnan(b) | unfinished] = np.nan  # no contour, no price
    zeta[~needed] = 0.0  # or the phase of a node that is not there could overflow
    used = int(np.max(np.flatnonzero(needed.any(axis=1)), initial=0)) + 1
    return zeta[:used], F[:used]


def negligible(
    zeta: Complexes, F: Complexes, slices: Geometry, pair_slice: NDArray[np.intp], pair_group: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which nodes add less than the tolerance at every strike of their group."""
    left, right = np.minimum(slices.kstar, 0.0)[pair_slice], np.maximum(slices.kstar, 0.0)[pair_slice]
    # A term is largest at the end of its group that is nearest to k*, or at the other end of the middle one.
    first, last = np.where(pair_group == 2, right, left), np.where(pair_group == 0, left, right)
    size = np.max(np.abs(F.view(float)), axis=1).reshape(*zeta.shape, 2).max(axis=2)
    growth = np.maximum(zeta.imag * first, zeta.imag * last)
    small: NDArray[np.bool_] = ~(np.log(size) + growth >= -(LOG_TOLERANCE + MARGIN))  # so that overflow counts
    return small


def strip(T: Floats, sd: Floats, cross: Floats, theta: Floats) -> Floats:
    """The largest step s with ``ln E[exp((1 + s) X)]`` (cross > 0) or ``ln E[exp(-s X)]`` below the cap, or NaN."""
    unit = 2.0 / sd

    def inside(step: Floats) -> NDArray[np.intp]:
        # ln E is convex and zero at s = 0 (by the martingale property also at p = 1): it rises with s, and the steps
        # below the cap are a run from the left.
        count: NDArray[np.intp] = np.sum(
            log_mgf(np.where(cross > 0, 1.0 + step, -step), T, theta) <= MOMENT_CAP, axis=0
        )
        return count

    stride = 8
    coarse = inside(unit * STRIP_STEPS[::stride, None])
    begin = stride * np.maximum(coarse - 1, 0)
    last = begin + inside(unit * STRIP_STEPS[begin + np.arange(stride)[:, None]]) - 1
    return np.where(coarse > 0, unit * STRIP_STEPS[last], np.nan)
