"""Where in the complex plane to integrate a Heston slice: three bent contours, found from theta and T alone.

    otm(k) = -Re sum_j F_j exp(-i zeta_j k),    k = ln(K / forward),    zeta = z + i,
    z_j = i w + b sinh(j h + i omega),          F_j = (h / pi) b cosh(j h + i omega) cf(z_j) / (z_j^2 + i z_j)

is the out-of-the-money value over the discounted forward (a put for k < 0, a call for k >= 0): sinh-acceleration of
Boyarchenko and Levendorskii (2019). A contour crosses the imaginary axis on the out-of-the-money side and is bent
towards the side on which the phase of exp(-i z k) helps, which changes at k* = -rho (v0 + kappa vbar T) / sigma. So
there are three groups of log-strikes, cut at 0 and at k*: left (0), middle (1), right (2).

    symbol   meaning                                                       shape
    sd       root of the expected total variance                           (slices,)
    g        how Gaussian the slice is: large for small sigma              (slices,)
    up, lo   opening angles of the sector in which cf stays bounded        (pairs,)
    s        half-width of the strip in which the moments stay small       (pairs,)

A pair is one (slice, group). Nothing here depends on which strikes are asked for: that is what makes a price
independent of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import asinh, atan2, ceil, cos, expm1, ldexp, pi, sin, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.heston_cf import Complexes, Floats, log_cf, log_mgf

LOG_TOLERANCE = 27.5  # exp(-27.5) = 1e-12: the discretisation error aimed at, of the forward
MOMENT_CAP = 4.0  # ln of the moment allowed at the edge of the strip
MARGIN = 3.0  # terms are cut, and far wings called zero, this much below the tolerance
LEVEL = LOG_TOLERANCE + MARGIN
# The strip's half-width is one of these steps, in units of 2 / sd. Heavy tails reach far down, a Gaussian slice takes
# about 1.4; so the usual steps, 2^-4 ... 2^3.75, are looked at first. Chernoff's bound takes every second as a slope.
STRIP_STEPS = 2.0 ** np.r_[np.arange(-40.0, -4.0), np.arange(-4.0, 9.0, 0.25)]
USUAL_STEPS = STRIP_STEPS[36:68]
MOST_NODES = 512
MOST_DOUBLINGS = 60
NODES_A_TURN = 16  # contours end in zeros, up to a multiple of this: cells whose contours are as long go together
USUAL_SHARE = 0.66  # of the nodes that could matter do as a rule; more are evaluated if these were too few
MIDDLE = 3.0  # added to the tolerance of the middle group, whose contour is the most confined
PUT_ONE = np.array([[1.0], [0.0]])  # a put falls by a power of K more than its moment
FAR = 4.0  # standard deviations within which no strike is so far out


@dataclass(frozen=True)
class Geometry:
    """What a slice looks like from theta and T alone; every field ``(slices,)``."""

    T: Floats
    sd: Floats
    kstar: Floats
    g: Floats
    asymptote: Floats  # ln |cf(u)| ~ -asymptote sqrt(1 - rho^2) |u|
    widest: Floats  # width of the widest cell of log-strike (see cells.py)
    doublings: Floats  # whole numbers: widest = 2^doublings * narrowest


@dataclass(frozen=True)
class Moments:
    """``ln E[exp(-s X)]`` (0, the put's side) and ``ln E[exp((1 + s) X)]`` (1, the call's) at the usual steps s."""

    step: Floats  # (slices, steps)
    value: Floats  # (slices, 2, steps)


def geometry(T: Floats, theta: Floats) -> Geometry:
    # Number by number, here and in `contours`: for the few slices of a book that costs less than arrays.
    numbers = tuple(theta.tolist())
    return Geometry(*np.array([_shape(t, numbers) for t in T.tolist()]).T)


def _shape(t: float, theta: tuple[float, ...]) -> tuple[float, ...]:
    """Return the fields of ``Geometry``, of one slice."""
    variance, asymptote = scales(t, theta)
    kappa, _, sigma, rho, _ = theta
    sd, spread = sqrt(variance), 1.0 - rho * rho
    rate = (1.0 / t + kappa) / sigma
    g = 0.5 * variance * rate * rate
    core = asymptote * sqrt(spread) * (1.0 + g * spread)  # nearer to k* than this, second_order the contour cannot help
    # Wider, and 16 powers of x do not suffice; what they miss grows with sd, as prices do.
    widest = min(0.9 * sd, 0.03 + 0.7 * sd, 1.0)
    doublings = 0
    while doublings < MOST_DOUBLINGS and ldexp(core, doublings) < 8.0 * min(sd, 1.0):
        doublings += 1
    return t, sd, -rho * asymptote, g, asymptote, widest, doublings


def scales(t: float, theta: tuple[float, ...]) -> tuple[float, float]:
    """Return the expected total variance, and the asymptote: see ``Geometry``."""
    kappa, vbar, sigma, _, v0 = theta
    variance = vbar * t - (v0 - vbar) * expm1(-kappa * t) / kappa
    # Nothing then divides by zero or takes the root of less.
    return min(max(variance, 1e-300), 1e300), (v0 + kappa * vbar * t) / sigma


def moments(slices: Geometry, theta: Floats) -> Moments:
    step = (2.0 / slices.sd)[:, None] * USUAL_STEPS
    p = np.concatenate([-step, 1.0 + step], axis=1)
    return Moments(step, log_mgf(p, slices.T[:, None], theta).reshape(len(p), 2, -1))


def strips(slices: Geometry, known: Moments, theta: Floats) -> Floats:
    """Return the largest step at which the moment is below the cap, or NaN: ``(slices, 2)``, sides as in ``Moments``.

    ln E is convex and zero at s = 0 (by the martingale property on either side): it rises with s, and the steps below
    the cap are a run from the left.
    """
    last = _count(known.value <= MOMENT_CAP) - 1
    unit = (2.0 / slices.sd)[:, None]
    out: Floats = unit * USUAL_STEPS[last]
    unusual = (last < 0) | (last == len(USUAL_STEPS) - 1)
    if unusual.any():
        at, side = np.nonzero(unusual)
        step = unit[at] * STRIP_STEPS
        p = np.where(side[:, None] == 1, 1.0 + step, -step)
        last = _count(log_mgf(p, slices.T[at, None], theta) <= MOMENT_CAP) - 1
        out[at, side] = np.where(last < 0, np.nan, unit[at, 0] * STRIP_STEPS[last])
    return out


def _count(holds: NDArray[np.bool_]) -> NDArray[np.intp]:
    count: NDArray[np.intp] = np.add.reduce(holds, axis=-1, dtype=np.intp)
    return count


def wings(slices: Geometry, known: Moments, strip: Floats) -> tuple[Floats, Floats]:
    """Log-strikes below the first and from the second on are worth nothing: Chernoff's bound on a few slopes.

    The strip's own step is one of them, for tails so heavy that E[exp(p X)] is infinite at every usual step.
    """
    slope = known.step[:, None, ::2] + PUT_ONE
    bound = np.minimum.reduce((known.value[:, :, ::2] + LEVEL) / slope, axis=2)
    bound = np.fmin(bound, (MOMENT_CAP + LEVEL) / (strip + PUT_ONE[:, 0]))
    bound = np.maximum(bound, (FAR * slices.sd)[:, None])
    return -bound[:, 0], bound[:, 1]


def group_of(k: Floats, kstar: Floats) -> NDArray[np.intp]:
    """0 left, 1 middle, 2 right: cut at 0 and at k*."""
    return (k >= 0.0).astype(np.intp) + (k >= kstar)


@dataclass(frozen=True)
class Contours:
    """Where the contours of some pairs run; every field ``(pairs, 1)``, so that it meets nodes along the last axis."""

    T: Floats
    b: Floats
    h: Floats
    sine: Floats  # of omega
    cosine: Floats
    offset: Floats
    call: Floats  # 1 where the contour crosses the imaginary axis on the call's side, else 0
    count: Floats  # of nodes that could matter
    first: Floats  # A term is largest at the end of its group that is nearest to k*,
    last: Floats  # or at the other end of the middle one.


def contours(
    slices: Geometry, strip: Floats, pair_slice: NDArray[np.intp], pair_group: NDArray[np.intp], theta: Floats
) -> Contours:
    """Return the contours of some slices' groups; b is not-a-number if there is no strip, and so no contour."""
    rho = theta.tolist()[3]
    root = sqrt(1.0 - rho * rho)
    limit = atan2(root, abs(rho))
    columns = (slices.T, slices.sd, slices.kstar, slices.g, slices.asymptote, strip)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    found = []
    for at, group in zip(pair_slice.tolist(), pair_group.tolist(), strict=True):
        T, sd, kstar, g, asymptote, widths = rows[at]
        is_call = group == 2 or (group == 1 and kstar > 0.0)
        # Along a ray at the first of these angles a Gaussian cf of total variance V grows to exp(MOMENT_CAP) at most:
        # its phase grows like exp(V |z| sin / 2), it falls like exp(-V |z|^2 cos(2 angle) / 2). For small V, pi / 4.
        most = 8.0 * MOMENT_CAP / (sd * sd)
        main = atan2(sqrt(most), sqrt(1.0 + most)) + (1.3 - 0.25 * pi) / (1.0 + 4.0 * g * g)
        back, tolerance = 0.0, LOG_TOLERANCE + MOMENT_CAP
        if group == 1:
            back, tolerance = 0.9 * min(main, limit), tolerance + MIDDLE
            reach = min(abs(kstar) / sd, 6.0) + 1e-9  # of the group, in standard deviations
            t = 2.0 / (reach * reach)
            main = min(main, atan2(sqrt(t), sqrt(1.0 + t)))
        # Bent to the side on which the phase of exp(-i z k) helps.
        up, lo = (main, -back) if is_call == (group == 1) else (back, -main)
        omega, h = 0.5 * (up + lo), pi * (up - lo) / tolerance
        sine, cosine = sin(omega), cos(omega)
        b = widths[is_call] / (sin(up) - sin(lo))
        # z and zeta = z + i are small, and must be exact, on either side of the strip: each has its own offset.
        offset = -b * sin(up if is_call else lo)
        decay = max(asymptote * root, 1e-300)
        longest = max(sqrt(2.0 * LEVEL) / sd, LEVEL / decay)  # Gaussian, then exponential decay of cf
        count = asinh(3.0 * longest / (b * cosine)) / h + 1.0
        left, right = min(kstar, 0.0), max(kstar, 0.0)
        first, last = right if group == 2 else left, left if group == 0 else right
        found.append((T, b, h, sine, cosine, offset, is_call, count, first, last))
    return Contours(*np.array(found).T[:, :, None])


@dataclass(frozen=True)
class Terms:
    """Terms of the contour sums, value and five derivatives; a contour ends before its first negligible node.

    Behind its end a contour is zero, up to a common number of nodes, a multiple of ``NODES_A_TURN``.
    """

    zeta: Complexes  # (pairs, nodes)
    F: Complexes  # (6, pairs, nodes), not-a-number for a pair without a contour
    turns: NDArray[np.intp]  # (pairs,) how often NODES_A_TURN nodes hold a whole contour

    def of(self, functions: int) -> Terms:
        """Return the first functions alone; where a contour ends is decided by all six."""
        return Terms(self.zeta, self.F[:functions], self.turns)


def terms(along: Contours, theta: Floats) -> Terms:
    longest = min(float(MOST_NODES), np.fmax.reduce(along.count, axis=None))
    nodes = NODES_A_TURN * ceil(USUAL_SHARE * longest / NODES_A_TURN)
    zeta, F, needed = _terms(along, np.arange(nodes, dtype=float), theta)
    rest = np.flatnonzero(needed[:, -1])
    while len(rest) and nodes < MOST_NODES:
        more = Contours(*(getattr(along, field.name)[rest] for field in fields(along)))
        parts = _terms(more, np.arange(nodes, nodes + NODES_A_TURN, dtype=float), theta)
        zeta, F, needed = (_longer(*pair, rest) for pair in zip((zeta, F, needed), parts, strict=True))
        rest = rest[parts[2][:, -1]]
        nodes += NODES_A_TURN
    spare = ~needed
    np.copyto(F, 0.0, where=spare)
    np.copyto(zeta, 0.0, where=spare)  # or the phase of a node that is not there could overflow
    turns = np.maximum(-(-_count(needed) // NODES_A_TURN), 1)
    nowhere = np.isnan(along.b[:, 0])
    nowhere[rest] = True
    if nowhere.any():
        F[:, nowhere, 0] = np.nan  # no contour, no price
    return Terms(zeta, F, turns)


def _longer(old: NDArray[Any], new: NDArray[Any], rest: NDArray[np.intp]) -> NDArray[Any]:
    """More nodes for the rest of the pairs, zeros for the others."""
    nodes = old.shape[-1]
    out = np.zeros((*old.shape[:-1], nodes + new.shape[-1]), old.dtype)
    out[..., :nodes] = old
    out[..., rest, nodes:] = new
    return out


def _terms(along: Contours, number: Floats, theta: Floats) -> tuple[Complexes, Complexes, NDArray[np.bool_]]:
    """Terms of these nodes, and which stand before the first that adds less than the tolerance at every strike."""
    b, h, sine, cosine = along.b, along.h, along.sine, along.cosine
    grown = np.exp(h * number)
    shrunk = 1.0 / grown
    sinh, cosh = 0.5 * (grown - shrunk), 0.5 * (grown + shrunk)
    z, zeta, slope, T = np.empty((4, *grown.shape), complex)
    z.real = zeta.real = (b * cosine) * sinh
    height = (b * sine) * cosh + along.offset
    z.imag, zeta.imag = height - along.call, height + (1.0 - along.call)
    weight = (h / pi) * b
    slope.real, slope.imag = (weight * cosine) * cosh, (weight * sine) * sinh
    T[:] = along.T
    q = z * zeta
    ln_cf, gradient = log_cf(z, q, T, theta)
    F = np.empty((6, *z.shape), complex)
    per_q, cf = slope / q, np.exp(ln_cf)
    value = np.multiply(per_q, cf, out=F[0])
    if number[0] == 0.0:
        value[:, 0] *= 0.5
    np.multiply(value, gradient, out=F[1:])
    size = np.maximum.reduce(np.abs(F), axis=0)
    height = zeta.imag
    growth = np.maximum(height * along.first, height * along.last)
    needed = (np.log(size) + growth >= -LEVEL) & (number < along.count)  # what overflowed compares false: not needed
    return zeta, F, np.logical_and.accumulate(needed, axis=1)
