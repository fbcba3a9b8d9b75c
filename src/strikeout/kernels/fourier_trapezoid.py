"""Any characteristic function to prices: the trapezoid rule on one line, found from theta and T alone.

    otm(k) = min(1, e^k) + (1 + e^k) / (e^(L/2) - 1) - Re sum_j F_j exp(-i zeta_j k) + images,    zeta_j = u_j + i/2,
    u_j = j h,    h = 2 pi / L,    F_j = (h / pi) cf(u_j - i/2) / (u_j^2 + 1/4),    F_0 halved

is the out-of-the-money value over the discounted forward, k = ln(K / forward). Sampling with step h repeats the
covered call with period L; the second term takes its far ends away exactly, and what is left of the images are
out-of-the-money values at k +- L, which Chernoff's bound makes as small as asked. Nodes are equally far apart, so

    exp(-i zeta_j k) = e^(k/2) w^j,    w = exp(-i h k)

and the sum is a polynomial in w: blocks of nodes by their powers, the blocks by Horner's scheme. No exponential but a
block's for each strike.

How many nodes there must be is asked of a bound on |cf| that never rises with u, where one is known (``Known``): what
is left out is then below exp(-LEVEL) whatever cf does. A user's own function has no known bound, and its decay
proves nothing: jumps of nearly one size make |cf| almost periodic, and it comes back after falling to exp(-2 n), n the
expected number of jumps. So the rule looks beyond the end it found, ``REACH`` times as far. Jumps of one size that fall
to exp(-LEVEL) by u are back at 0.8 sqrt(n) u or before, in a lobe about as wide as the first one: probes a quarter of
it apart see every lobe of up to (REACH / 0.8)^2 = 6,400 expected jumps. Where cf has come back, the nodes go on.

    symbol   meaning                                              shape
    z        complex frequency, on the line Im z = -1/2           (nodes,)
    s        how far beyond 0 and 1 E[exp(p X)] is probed           (2, probes)
    L        period; the step is 2 pi / L                         -

Source of the line: Lewis (2001). The rule never looks at the strikes: that is what makes a price independent of its
neighbours. native/line.hpp is this rule for the models of affine.py, and the sum for any terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from strikeout.kernels.arrays import Complexes, Floats, Mask, Rows
from strikeout.kernels.compiled import compiled

# ln E[exp(i z X)] of X = ln(S_T / forward) and its derivatives by each parameter, at frequencies z, for one T.
LogCf = Callable[[Complexes, float, Floats], tuple[Complexes, Sequence[Complexes]]]

LEVEL = 31.0  # exp(-31) = 3e-14: what each cut may cost, of the forward
PROBES = 2.0 ** np.arange(-6.0, 22.0, 0.5)  # a Gaussian's best is 8 / sd; half a doubling between loses 2 %
INSIDE = 1e-8  # how far inside the strip a formula is probed that has no value on its edge
FARTHEST = 12.0  # |k| beyond which no price is given, however fat the tails: exp(k / 2) would amplify rounding
FIRST_NODES = 128  # tried at first; then twice as many, until the last quarter is negligible
MOST_NODES = 1 << 14
CANDIDATES = np.unique(np.geomspace(1.0, MOST_NODES, 160).astype(np.intp))  # numbers of nodes a bound is asked for
SLOPES = 30.0  # ln of how much larger than a value its derivatives may be, where the function is looked at alone
REACH = 64  # times as far as the nodes go, a function without a known bound is looked at
BLOCK = 32  # nodes, whose powers of w are exponentials of their own
AT_ONCE = 1 << 13  # strikes; bounds the memory, changes no bit


@dataclass(frozen=True, eq=False)
class Line:
    """The terms of one slice, and what they are good for."""

    h: float  # the step between nodes
    F: Complexes  # (nodes, 1 + p): value and derivatives
    image: float  # 1 / (e^(L/2) - 1)
    low: float  # below and from high on, an option is worth nothing
    high: float
    defect: float  # how far cf(0) and cf(-i) are from one
    far: Floats | None = None  # (1 + p, 2): E[e^X] and P of some of the paths, and their derivatives; by default of all


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a distribution at one T besides its characteristic function."""

    log_mgf: Callable[[Floats], Floats]  # ln E[exp(p X)] for real p, +inf if it is infinite
    bound: Callable[[Floats], tuple[Floats, Floats]]  # on ln |cf(u - i/2)|, never rising; on its derivatives' sizes
    terms: Callable[[Floats, float], Complexes] | None = None  # F at u for a step h, if not all paths are summed


def rule(
    log_cf: LogCf,
    T: float,
    theta: Floats,
    known: Known | None = None,
    *,
    logarithm: LogCf | None = None,
    level: float = LEVEL,
    reach: int = REACH,
) -> Line:
    """Return the line for one slice. Its terms are not-a-number if the characteristic function decays too slowly.

    ``logarithm`` is the function without its derivatives, if that is faster: the moments need none.

    With a higher level and a longer reach the line is finer and longer than it need be: what ``check_model`` holds the
    usual one against.
    """
    with np.errstate(all="ignore"):
        if known is None:
            rising, falling, defect = moments(logarithm or log_cf, T, theta)
        else:
            defect = 0.0
            rising, falling = (np.r_[0.0, known.log_mgf(p)] for p in (1.0 + PROBES, -PROBES))
        s = np.r_[0.0, PROBES]
        high = float(np.min((rising[1:] + level) / PROBES))
        low = -float(np.min((falling + level) / (1.0 + s)))
        lowest, highest = max(low, -FARTHEST), min(high, FARTHEST)
        period = max(
            float(np.min((rising + level - s * lowest) / (s + 0.5))),  # the image at k + L, worst at the lowest k
            float(np.min((falling + level + (1.0 + s) * highest) / (s + 0.5))),  # at k - L, worst at the highest
        )
        growth = 0.5 * highest  # ln of what a term is multiplied by, at the highest k
        h = 2.0 * np.pi / period
        cut = level + growth
        if known is None:
            F = _found(log_cf, logarithm or log_cf, T, theta, h=h, cut=cut, reach=reach)
        else:
            F = _bounded(log_cf, T, theta, h, cut, known)
        return Line(h, F, 1.0 / float(np.expm1(0.5 * period)), low, high, defect)


def moments(log_cf: LogCf, T: float, theta: Floats) -> tuple[Floats, Floats, float]:
    """``ln E[exp((1 + s) X)]`` and ``ln E[exp(-s X)]`` at s = 0 and the probes, and the defect.

    +inf if it does not exist. Beyond an explosion the formula still gives a number, but another one: it turns complex,
    or falls, or bends downwards.
    """
    p = np.concatenate([[0.0, 1.0, INSIDE, 1.0 - INSIDE], 1.0 + PROBES, -PROBES])
    value = np.asarray(log_cf(-1j * p, T, theta)[0])
    at, inside, sides = np.abs(value[:2]), np.abs(value[2:4]), value[4:].reshape(2, -1)
    # A formula may be 0 / 0 at the point itself. Just inside the strip ln cf is as small as INSIDE E[X e^X]: that
    # distinguishes a missing drift from a formula's weakness, but no more.
    defect = float(np.max(np.where(np.isfinite(at), at, np.maximum(inside - 1e-4, 0.0))))
    real = np.isfinite(sides.real) & (np.abs(sides.imag) <= 1e-8 * (1.0 + np.abs(sides.real)))
    grown = np.concatenate([np.zeros((2, 1)), sides.real], axis=1)
    slope = np.diff(grown, axis=1) / np.diff(np.r_[0.0, PROBES])
    convex = np.diff(slope, axis=1, prepend=slope[:, :1]) >= -1e-6 * (1.0 + np.abs(slope))
    # A slope may begin below zero (at s = 0 the derivative is E[X e^X] or -E[X]) only by rounding.
    exists = np.logical_and.accumulate(real & convex & (sides.real >= -1e-9), axis=1)
    grown[:, 1:] = np.where(exists, sides.real, np.inf)
    return grown[0], grown[1], defect


def _bounded(log_cf: LogCf, T: float, theta: Floats, h: float, cut: float, known: Known) -> Complexes:
    """``F`` at as many nodes as the bound asks for, without the last ones if they matter at no strike."""
    count = count_of(known, h, cut)
    if count > MOST_NODES:
        return _none(theta)
    u = h * np.arange(count, dtype=float)
    F = _terms(log_cf, T, theta, u, h) if known.terms is None else known.terms(u, h)
    F[0] *= 0.5
    mass = np.max(np.abs(F.real) + np.abs(F.imag), axis=1)
    if not np.isfinite(mass).all():
        return _none(theta)
    dropped = int(np.count_nonzero(np.cumsum(mass[::-1]) < np.exp(-cut)))
    return F[: max(count - dropped, 1)]


def count_of(known: Known, h: float, cut: float) -> int:
    """Return how many nodes leave less than exp(-cut) behind them; more than MOST_NODES if those do not.

    Behind node N, |F| is at most (h / pi) exp(bound) / u^2, which sums to exp(bound) / u. A derivative's terms have a
    slope more, which grows like u^3 at most: if the bound falls by ``fall`` from u to 2 u, that is at most
    (1 + 1 / fall)^2 times the slope at u.
    """

    def first(candidates: Rows) -> int:
        u: Floats = h * candidates.astype(float)
        size, slope = known.bound(u)
        fall = np.maximum(size - known.bound(2.0 * u)[0], 1e-300)
        excess = size + np.log(np.maximum(slope, 1.0) / u) + 2.0 * np.log(1.0 + 1.0 / fall) + cut
        holds = np.flatnonzero(excess <= 0.0)
        return int(holds[0]) if len(holds) else len(candidates)

    at = first(CANDIDATES)
    if at == len(CANDIDATES):
        return MOST_NODES + 1
    between = np.arange(CANDIDATES[at - 1] if at else 0, CANDIDATES[at]) + 1
    return int(between[min(first(between), len(between) - 1)])


def _found(log_cf: LogCf, logarithm: LogCf, T: float, theta: Floats, *, h: float, cut: float, reach: int) -> Complexes:
    """``F`` at as many nodes as matter at some strike, for a function that has no known bound."""
    count = FIRST_NODES
    F: Complexes = _terms(log_cf, T, theta, h * np.arange(count, dtype=float), h)
    while True:
        if not np.isfinite(F).all():
            return _none(theta)
        matters = _matters(F, np.arange(count, dtype=float), cut)
        wanted = 2 * count
        if not matters[-(count // 4) :].any():
            used = int(np.max(np.flatnonzero(matters), initial=0)) + 1
            farther = used * np.arange(1.0, reach + 0.25, 0.25)
            farther = farther[farther > count - 1]  # up to the last node, no term matters
            seen = np.abs(_terms(logarithm, T, theta, h * farther, h)[:, 0]) * farther > np.exp(-cut - SLOPES)
            back = _seen_again(log_cf, T, theta, h, cut, farther[seen]) if seen.any() else 0.0
            if back == 0.0:
                F = F[:used]
                F[0] *= 0.5
                return F
            while 3 * wanted < 4 * back:
                wanted *= 2
        if wanted > MOST_NODES:
            return _none(theta)
        F = np.concatenate([F, _terms(log_cf, T, theta, h * np.arange(count, wanted, dtype=float), h)])
        count = wanted


def _seen_again(log_cf: LogCf, T: float, theta: Floats, h: float, cut: float, number: Floats) -> float:
    """Return the last of these numbers of nodes, whole or not, at which a term would matter; 0 if there is none.

    What is not finite that far out is not seen: formulas overflow there on their way to zero.
    """
    F = _terms(log_cf, T, theta, h * number, h)
    seen = _matters(F, number, cut) & np.isfinite(F).all(axis=1)
    return float(np.max(number[seen], initial=0.0))


def _none(theta: Floats) -> Complexes:
    return np.full((1, 1 + len(theta)), np.nan, complex)


def _terms(log_cf: LogCf, T: float, theta: Floats, u: Floats, h: float) -> Complexes:
    value, gradient = log_cf(np.asarray(u - 0.5j, np.complex128), T, theta)
    F = np.empty((len(u), 1 + len(gradient)), complex)
    F[:, 0] = first = np.exp(value) * ((h / np.pi) / (u * u + 0.25))
    for i, slope in enumerate(gradient):
        F[:, i + 1] = first * slope
    return F


def _matters(F: Complexes, number: Floats, cut: float) -> Mask:
    # From a node on, a tail that falls like a power of u sums to the term there times its number, or less.
    tail: Floats = np.max(np.abs(F), axis=1) * np.maximum(number, 1.0)
    return np.asarray(~(tail < np.exp(-cut)))


def values(line: Line, k: Floats, kernel: str) -> Floats:
    """Return out-of-the-money value over the discounted forward and its derivatives, ``(1 + p, n)``, at ascending
    ``k``.

    Not-a-number farther out than ``FARTHEST`` where the value is not negligible. The compiled sum and NumPy's agree to
    rounding.
    """
    if kernel == "native" and np.isfinite(line.F).all():
        found: Floats = compiled().line_rows(line.F, line.h, line.image, line.low, line.high, k)
        return found
    begin, end = np.searchsorted(k, [line.low, line.high]).tolist()
    here = near(line, k)
    out = np.zeros((line.F.shape[1], len(k)))
    out[:, begin:end] = np.nan
    out[:, here] = _near(line, k[here])
    return out


def near(line: Line, k: Floats) -> slice:
    """Return the strikes that are neither worthless nor farther out than ``FARTHEST``."""
    begin, end = np.searchsorted(k, [line.low, line.high]).tolist()
    first, last = np.searchsorted(k, [-FARTHEST, FARTHEST]).clip(begin, end).tolist()
    return slice(first, last)


def _near(line: Line, k: Floats) -> Floats:
    if not np.isfinite(line.F).all():
        return np.full((line.F.shape[1], len(k)), np.nan)
    parts = [_summed(line, k[i : i + AT_ONCE]) for i in range(0, len(k), AT_ONCE)]
    sums = np.concatenate([np.zeros((line.F.shape[1], 0)), *parts], axis=1)
    growth = np.exp(k)
    out: Floats = -np.exp(0.5 * k) * sums
    out[0] += np.minimum(growth, 1.0)
    if line.far is None:
        out[0] += (1.0 + growth) * line.image
    else:
        out += (line.far[:, :1] + line.far[:, 1:] * growth) * line.image
    return out


def _summed(line: Line, k: Floats) -> Floats:
    """``Re sum_j F_j w^j``, ``(1 + p, n)``.

    Added one node after the other whatever the number of strikes. Not `@`: BLAS blocks by the number of columns, and
    then a price depends on its neighbours. einsum's own loop runs along the contiguous axis of strikes, and so adds
    node by node, as long as there are at least two: a single strike is taken twice.
    """
    n, functions = len(k), line.F.shape[1]
    phase = -line.h * (k if n > 1 else np.repeat(k, 2))
    blocks = -(-len(line.F) // BLOCK)
    padded = np.zeros((blocks * BLOCK, functions), complex)
    padded[: len(line.F)] = line.F
    F = padded.reshape(blocks, BLOCK, functions)
    # (a + ib)(c + id): the real parts below the first functions, the imaginary ones below the others
    weights = np.concatenate(
        [np.concatenate([F.real, F.imag], axis=2), np.concatenate([-F.imag, F.real], axis=2)], axis=1
    )
    angle = np.arange(float(BLOCK))[:, None] * phase
    powers = np.concatenate([np.cos(angle), np.sin(angle)])
    c, s = np.cos(BLOCK * phase), np.sin(BLOCK * phase)
    real, imaginary = np.zeros((2, functions, len(phase)))
    for weight in weights[::-1]:
        here = np.einsum("jf,jn->fn", np.ascontiguousarray(weight), powers)
        real, imaginary = real * c - imaginary * s + here[:functions], real * s + imaginary * c + here[functions:]
    return real[:, :n]
