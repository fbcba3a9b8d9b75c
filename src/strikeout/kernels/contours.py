"""Where in the complex plane to integrate a slice: three bent contours, found from theta and T alone.

    otm(k) = -Re sum_j F_j exp(-i zeta_j k),    k = ln(K / forward),    zeta = z + i,
    z_j = i w + b sinh(j h + i omega),          F_j = (h / pi) b cosh(j h + i omega) cf(z_j) / (z_j^2 + i z_j)

is the out-of-the-money value over the discounted forward (a put for k < 0, a call for k >= 0): sinh-acceleration of
Boyarchenko and Levendorskii (2019). A contour crosses the imaginary axis on the out-of-the-money side and is bent
towards the side on which the phase of exp(-i z k) helps, which changes at k*; Heston's is -rho (v0 + kappa vbar T) /
sigma. So there are three groups of log-strikes, cut at 0 and at k*: left (0), middle (1), right (2).

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
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels import heston_cf
from strikeout.kernels.arrays import Complexes, Floats, Mask, Rows

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


class Shape(NamedTuple):
    """What one slice looks like from theta and T alone."""

    T: float
    sd: float
    kstar: float
    bend: float  # by how much more than a Gaussian's the contours may be bent, in radians
    decay: float  # ln |cf(u)| ~ -decay |u|
    limit: float  # the largest angle on the side of k* on which the phase does not help
    widest: float  # width of the widest cell of log-strike (see taylor_cells.py)
    doublings: float  # a whole number: widest = 2^doublings * narrowest
    shift: float = 0.0  # log_cf is that of X less this; what is at its phase's end then neither grows nor overflows
    finer: float = 0.0  # added to the tolerance


class Law(Protocol):
    """A distribution of X = ln(S_T / forward) that is priced on bent contours."""

    def shape(self, t: float) -> Shape:
        """Return what the slice of one expiry looks like."""

    def log_mgf(self, p: Floats, T: Floats) -> Floats:
        """Return ``ln E[exp(p X)]`` for real p, +inf if it is infinite."""

    def log_cf(self, z: Complexes, q: Complexes, T: Complexes) -> tuple[Complexes, Complexes]:
        """Return ``ln E[exp(i z (X - shift))]``, q = z^2 + i z, and derivatives of ``ln E[exp(i z X)]`` along a first
        axis."""


@dataclass(frozen=True)
class Geometry:
    """The shapes of some slices; every field ``(slices,)``."""

    T: Floats
    sd: Floats
    kstar: Floats
    bend: Floats
    decay: Floats
    limit: Floats
    widest: Floats
    doublings: Floats
    shift: Floats
    finer: Floats


@dataclass(frozen=True, eq=False)
class Heston:
    """Heston's law; theta as in heston_cf.py."""

    theta: Floats

    def shape(self, t: float) -> Shape:
        return shape_of(t, heston_part(t, tuple(self.theta.tolist())))

    def log_mgf(self, p: Floats, T: Floats) -> Floats:
        return heston_cf.log_mgf(p, T, self.theta)

    def log_cf(self, z: Complexes, q: Complexes, T: Complexes) -> tuple[Complexes, Complexes]:
        return heston_cf.log_cf(z, q, T, self.theta)


@dataclass(frozen=True)
class Moments:
    """``ln E[exp(-s X)]`` (0, the put's side) and ``ln E[exp((1 + s) X)]`` (1, the call's) at the usual steps s."""

    step: Floats  # (slices, steps)
    value: Floats  # (slices, 2, steps)


def geometry(T: Floats, law: Law) -> Geometry:
    # Number by number, here and in `contours`: for the few slices of a book that costs less than arrays.
    return Geometry(*np.array([law.shape(t) for t in T.tolist()]).T)


class Part(NamedTuple):
    """What a variance of Heston's adds to the shape of a slice."""

    variance: float
    rate: float  # the frequency up to which it is Gaussian
    rho: float
    kstar: float
    g: float
    decay: float
    core: float  # closer to k* than this, bending the contour does not help


def heston_part(t: float, theta: tuple[float, ...]) -> Part:
    """Return the part of one variance."""
    variance, asymptote = scales(t, theta)
    kappa, _, sigma, rho, _ = theta
    spread = 1.0 - rho * rho
    root = sqrt(spread)
    rate = (1.0 / t + kappa) / sigma
    g = 0.5 * variance * rate * rate
    return Part(variance, rate, rho, -rho * asymptote, g, asymptote * root, asymptote * root * (1.0 + g * spread))


def shape_of(t: float, part: Part) -> Shape:
    """Return the shape of a slice of this part alone."""
    sd = sqrt(part.variance)
    doublings = 0
    while doublings < MOST_DOUBLINGS and ldexp(part.core, doublings) < 8.0 * min(sd, 1.0):
        doublings += 1
    return Shape(
        T=t,
        sd=sd,
        kstar=part.kstar,
        bend=(1.3 - 0.25 * pi) / (1.0 + 4.0 * part.g * part.g),
        decay=part.decay,
        limit=atan2(sqrt(1.0 - part.rho * part.rho), abs(part.rho)),
        widest=widest_cell(sd),
        doublings=doublings,
    )


def widest_cell(sd: float) -> float:
    """Return a width; in wider cells 16 powers of x do not suffice, and what they miss grows with sd, as prices do."""
    return min(0.9 * sd, 0.03 + 0.7 * sd, 1.0)


def scales(t: float, theta: tuple[float, ...]) -> tuple[float, float]:
    """Return the expected total variance, and the asymptote: see ``Geometry``."""
    kappa, vbar, sigma, _, v0 = theta
    variance = vbar * t - (v0 - vbar) * expm1(-kappa * t) / kappa
    # Nothing then divides by zero or takes the root of less.
    return min(max(variance, 1e-300), 1e300), (v0 + kappa * vbar * t) / sigma


def moments(slices: Geometry, law: Law) -> Moments:
    step = (2.0 / slices.sd)[:, None] * USUAL_STEPS
    p = np.concatenate([-step, 1.0 + step], axis=1)
    return Moments(step, law.log_mgf(p, slices.T[:, None]).reshape(len(p), 2, -1))


def strips(slices: Geometry, known: Moments, law: Law) -> Floats:
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
        last = _count(law.log_mgf(p, slices.T[at, None]) <= MOMENT_CAP) - 1
        out[at, side] = np.where(last < 0, np.nan, unit[at, 0] * STRIP_STEPS[last])
    return out


def _count(holds: Mask) -> Rows:
    count: Rows = np.add.reduce(holds, axis=-1, dtype=np.intp)
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


def group_of(k: Floats, kstar: Floats) -> Rows:
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
    last: Floats  # or at the other end of the middle one; both less the shift.


def contours(slices: Geometry, strip: Floats, pair_slice: Rows, pair_group: Rows) -> Contours:
    """Return the contours of some slices' groups; b is not-a-number if there is no strip, and so no contour."""
    columns = (
        slices.T,
        slices.sd,
        slices.kstar,
        slices.bend,
        slices.decay,
        slices.limit,
        slices.shift,
        slices.finer,
        strip,
    )
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    found = []
    for at, group in zip(pair_slice.tolist(), pair_group.tolist(), strict=True):
        T, sd, kstar, bend, decay, limit, shift, finer, widths = rows[at]
        is_call = group == 2 or (group == 1 and kstar > 0.0)
        # Along a ray at the first of these angles a Gaussian cf of total variance V grows to exp(MOMENT_CAP) at most:
        # its phase grows like exp(V |z| sin / 2), it falls like exp(-V |z|^2 cos(2 angle) / 2). For small V, pi / 4.
        most = 8.0 * MOMENT_CAP / (sd * sd)
        main = atan2(sqrt(most), sqrt(1.0 + most)) + bend
        back, tolerance = 0.0, LOG_TOLERANCE + MOMENT_CAP + finer
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
        longest = max(sqrt(2.0 * LEVEL) / sd, LEVEL / max(decay, 1e-300))  # Gaussian, then exponential decay of cf
        count = asinh(3.0 * longest / (b * cosine)) / h + 1.0
        left, right = min(kstar, 0.0), max(kstar, 0.0)
        first, last = right if group == 2 else left, left if group == 0 else right
        found.append((T, b, h, sine, cosine, offset, is_call, count, first - shift, last - shift))
    return Contours(*np.array(found).T[:, :, None])


@dataclass(frozen=True)
class Terms:
    """Terms of the contour sums, value and derivatives; a contour ends before its first negligible node.

    Behind its end a contour is zero, up to a common number of nodes, a multiple of ``NODES_A_TURN``.
    """

    zeta: Complexes  # (pairs, nodes)
    F: Complexes  # (functions, pairs, nodes), not-a-number for a pair without a contour
    turns: Rows  # (pairs,) how often NODES_A_TURN nodes hold a whole contour

    def of(self, functions: int) -> Terms:
        """Return the first functions alone; where a contour ends is decided by all of them."""
        return Terms(self.zeta, self.F[:functions], self.turns)


def terms(along: Contours, law: Law) -> Terms:
    longest = min(float(MOST_NODES), np.fmax.reduce(along.count, axis=None))
    nodes = NODES_A_TURN * ceil(USUAL_SHARE * longest / NODES_A_TURN)
    zeta, F, needed = _terms(along, np.arange(nodes, dtype=float), law)
    rest = np.flatnonzero(needed[:, -1])
    while len(rest) and nodes < MOST_NODES:
        more = Contours(*(getattr(along, field.name)[rest] for field in fields(along)))
        parts = _terms(more, np.arange(nodes, nodes + NODES_A_TURN, dtype=float), law)
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


def _longer(old: NDArray[Any], new: NDArray[Any], rest: Rows) -> NDArray[Any]:
    """More nodes for the rest of the pairs, zeros for the others."""
    nodes = old.shape[-1]
    out = np.zeros((*old.shape[:-1], nodes + new.shape[-1]), old.dtype)
    out[..., :nodes] = old
    out[..., rest, nodes:] = new
    return out


def _terms(along: Contours, number: Floats, law: Law) -> tuple[Complexes, Complexes, Mask]:
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
    ln_cf, gradient = law.log_cf(z, q, T)
    F = np.empty((1 + len(gradient), *z.shape), complex)
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
