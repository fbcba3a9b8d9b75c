"""Variance gamma prices: on bent contours, and next to the kink Black's formula averaged over a gamma-distributed time.

    X = ln(S_T / forward) = omega T + theta g + sigma W(g),    g ~ Gamma(a, scale nu),    a = T / nu

    symbol   meaning                                                   name outside the kernels
    sigma    volatility of the Brownian motion                         volatility
    nu       variance of the gamma time, a year                        variance_rate
    theta    drift of the Brownian motion                              drift
    left     1 - theta nu - sigma^2 nu / 2, above zero                 -
    omega    ln(left) / nu, which makes E[S_T] the forward             -
    x        ln(g / (T + nu)), on a grid of step h                     -
    w        probability of a node                                     -
    s, f     sigma sqrt(g); ln of the forward given g                  -
    haste    nu theta^2 / sigma^2: how steep a price is in x           -

On contours (contours.py). The characteristic function is

    ln cf(z) = i z omega T - a ln P(z),    P(z) = 1 - nu w,    w = i z theta - sigma^2 z^2 / 2

It has cuts on the imaginary axis alone, so contours may be bent as far as |P|^-a stays below exp(MOMENT_CAP): |P| falls
by no more than the cosine of the angle. It decays like u^(-2a) only, and with a below one the price has a kink at
k* = omega T. A bent contour does not need the decay: away from the kink exp(i z (k* - k)) falls exponentially. The
nearer to it, the longer the contour, by some nodes per halving; closer than ``8 / 2^DOUBLINGS`` cells the clock takes
over. To keep the phase from overflowing that far out, strikes are counted from k*: cf is that of X - omega T, times
exp(omega T).

On the clock. Given g an option is Black's, with total volatility s and forward e^f. The integrand is positive and
analytic in x, and the trapezoid rule gains a digit with every few nodes. How far into the complex plane it is tame,
and so how fine the grid must be, follows from a and the haste: where the drift is large beside the volatility, a price
turns from nothing to intrinsic within a small part of the clock's range.

    w = h a / (a + 1) exp((a + 1) (x - (e^x - 1)) - x) / (the same of shape a + 1, summed)

x is counted from the peak of the density of shape a + 1, so that nothing large is subtracted from something large, and
the derivative by nu, at fixed x, has no large terms that cancel. As g vanishes w falls like e^(a x) only, which at a
day is hardly at all; but the price is then that of g = 0, P_0, and the weights of the nodes left out are a geometric
series. All terms of a price are positive, and sum to one at most: no digit is lost, however large e^(omega T) is.

Madan, Carr and Chang (1998). The nodes follow from theta and T alone, so a price does not depend on its neighbours.
Over 600 draws from the bounds, contours and the clock agree to 4e-14 of the forward. native/clock.hpp is the same,
compiled; the two agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, ldexp, pi, sqrt

import numpy as np

from strikeout.kernels import contours, heston_cf, heston_twin
from strikeout.kernels.arrays import Complexes, Floats
from strikeout.kernels.compiled import compiled, threads
from strikeout.kernels.elementary import atan2, cos, exp, expm1, log, log1p, sin
from strikeout.kernels.heston_twin import Parts
from strikeout.kernels.normal import CENTRE, COEFFICIENTS, cdf, density

FEWEST_STEPS, MOST_STEPS = 1e-4, 1e4  # shapes a that are priced on contours
LEAST_VARIANCE, MOST_VARIANCE = 1e-12, 1e2  # of X, likewise
DOUBLINGS = 20  # of cells, from the narrowest next to the kink
FINER = 5.0  # than Heston's contours: the step of the nodes then adds less than rounding
INNER = 8.0  # narrowest cells on each side of the kink: no contour there
LEVEL = 37.0  # exp(-37) = 9e-17: what each cut may cost
MEMORY = 1 << 18  # numbers at a time; bounds the memory, changes no bit
MOST_NODES = 1 << 15  # beyond, hardly anything but the drift moves the price: no price is given
SMALLEST, LARGEST = 1e-15, 1e12  # shapes: beyond, the clock hardly runs, or hardly varies, and no price is given
ANGLES = exp(np.linspace(log(1e-6), log(0.995), 400))  # shares of the largest angle, among which the best is sought
ERFCX = np.array(COEFFICIENTS)
WORTH_THREADS = 50_000  # strikes, each as dear as one of Heston's; an expiry counts as
EXPIRY = 300


@dataclass(frozen=True, eq=False)
class Nodes:
    """The gamma times of one expiry, their probabilities, and how these change with the shape a at fixed x."""

    clock: Floats  # e^x: g over T + nu
    w: Floats
    by_shape: Floats  # dw / da
    rest: float  # the probability of what lies before the first node, as the rule has it
    rest_by_shape: float


def rows(kernel: str, theta: Floats, part: Parts) -> Floats:
    """Return out-of-the-money value over the discounted forward and its derivatives by sigma, nu, theta: ``(4, n)``.

    Not-a-number if E[S_T] does not exist, or the haste asks for too many nodes.
    """
    if kernel == "native":
        count = threads() if part.k.size + EXPIRY * part.expiries.size >= WORTH_THREADS else 1
        columns = (theta, part.expiries, part.offsets, part.k)
        found: Floats = compiled().variance_gamma_rows(*columns, ERFCX, CENTRE, count)
        return found
    out = np.empty((4, len(part.k)))
    for j, T in enumerate(part.expiries.tolist()):
        here = slice(part.offsets[j], part.offsets[j + 1])
        out[:, here] = _bent(theta, T, part.k[here])
        on_clock = part.offsets[j] + np.flatnonzero(~np.isfinite(out[0, here]))
        if len(on_clock):
            out[:, on_clock] = values(theta, T, part.k[on_clock])
    return out


def _bent(theta: Floats, T: float, k: Floats) -> Floats:
    """``rows`` of one expiry on contours, not-a-number where those are not used."""
    out = np.full((4, len(k)), np.nan)
    sigma, nu, mean = theta.tolist()
    with np.errstate(all="ignore"):
        a = float(np.divide(T, nu))
        law = VarianceGamma(sigma, nu, mean)
        exists = sigma > 0.0 and 1.0 - nu * law.slope > 0.0
        is_usual = FEWEST_STEPS <= a <= MOST_STEPS and LEAST_VARIANCE <= law.variance(T) <= MOST_VARIANCE
        if not (exists and is_usual):
            return out
        shape = law.shape(T)
        far = np.flatnonzero(np.abs(k - shape.kstar) >= INNER * ldexp(shape.widest, -DOUBLINGS))
        out[:, far] = heston_twin.rows_of(law, Parts(np.array([T]), np.array([0, len(far)]), k[far]), 4)
    return out


@dataclass(frozen=True)
class VarianceGamma:
    """The law on contours; ``left`` is above zero."""

    sigma: float
    nu: float
    mean: float

    @property
    def slope(self) -> float:
        """The rate at which the clock moves ln of the forward given g."""
        return self.mean + 0.5 * (self.sigma * self.sigma)

    @property
    def omega(self) -> float:
        """What makes E[S_T] the forward."""
        return float(log1p(-self.nu * self.slope)) / self.nu

    def variance(self, t: float) -> float:
        """Return the variance of X."""
        return (self.sigma * self.sigma + self.nu * (self.mean * self.mean)) * t

    def shape(self, t: float) -> contours.Shape:
        sd = sqrt(self.variance(t))
        widest = contours.widest_cell(sd)
        cosine = float(exp(-contours.MOMENT_CAP * self.nu / t))
        angle = float(atan2(sqrt((1.0 - cosine) * (1.0 + cosine)), cosine))
        return contours.Shape(
            T=t,
            sd=sd,
            kstar=self.omega * t,
            bend=min(max(angle, 0.25 * pi), 1.3) - 0.25 * pi,
            decay=0.5 * INNER * ldexp(widest, -DOUBLINGS),
            limit=0.0,
            widest=widest,
            doublings=DOUBLINGS,
            shift=self.omega * t,
            finer=FINER,
        )

    def log_mgf(self, p: Floats, T: Floats) -> Floats:
        lack = (self.nu * p) * (0.5 * (self.sigma * self.sigma) * p + self.mean)
        exists = lack < 1.0
        value = (self.omega * T) * p - (T / self.nu) * log1p(-np.where(exists, lack, 0.0))
        return np.where(exists, value, inf)

    def log_cf(self, z: Complexes, _: Complexes, T: Complexes) -> tuple[Complexes, Complexes]:
        left, omega = 1.0 - self.nu * self.slope, self.omega
        iz = 1j * z
        w = iz * (0.5 * (self.sigma * self.sigma) * iz + self.mean)
        lack = self.nu * w
        P = 1.0 - lack
        ln, over = heston_cf.log_near_one(P, lack), 1.0 / P
        a, T_iz, w_over, iz_over = T / self.nu, T * iz, w * over, iz * over
        gradient = np.empty((3, *z.shape), complex)
        np.multiply(self.sigma * T_iz, iz_over - 1.0 / left, out=gradient[0])
        ln_nu = ln / self.nu + w_over
        np.multiply(a, ln_nu, out=gradient[1])
        gradient[1] += (-(self.slope / left + omega) / self.nu) * T_iz
        np.multiply(T_iz, over - 1.0 / left, out=gradient[2])
        return omega * T - a * ln, gradient


def values(theta: Floats, T: float, k: Floats) -> Floats:
    """``rows`` of one expiry on the clock alone, in NumPy."""
    out = np.full((4, len(k)), np.nan)
    with np.errstate(all="ignore"):
        sigma, nu, mean = theta.tolist()
        left = 1.0 - nu * (mean + 0.5 * sigma * sigma)
        # Of the two halves of Black's formula; that of the forward sees a clock of rate ``left``.
        more = mean + sigma * sigma
        haste = float(np.max([mean * mean, np.divide(more * more, left)]) * nu / np.float64(sigma * sigma))
        a = float(np.divide(T, nu))
        is_sound = left > 0.0 and sigma > 0.0 and nu > 0.0 and SMALLEST < a < LARGEST and isfinite(haste)
        nodes = nodes_of(a, left, haste) if is_sound else None
        if nodes is None:
            return out
        for begin in range(0, len(k), max(MEMORY // len(nodes.w), 1)):
            some = slice(begin, begin + max(MEMORY // len(nodes.w), 1))
            out[:, some] = _averaged(nodes, (sigma, nu, mean), T, left, np.ascontiguousarray(k[some]))
    return out


def nodes_of(a: float, left: float, haste: float) -> Nodes | None:
    """Return the rule for a gamma time of shape a, whose density the forward may tilt to the rate ``left``; None if it
    has too many nodes."""
    tilt, b = float(log(left)), a + 1.0
    # The integral over x of exp(b (x - (e^x - 1))) is sqrt(2 pi / b), to 8 % or better: near enough for a cut.
    constant = float(log(a / b * sqrt(b / (2.0 * pi))))
    low = _root(lambda x: b * (x - float(expm1(x))) - 0.5 * x + constant, a, b, from_below=True) - max(tilt, 0.0)
    high = _root(lambda x: b * (x - float(expm1(x))) - x + constant, a, b, from_below=False) - min(tilt, 0.0)
    h = 2.0 * pi / _frequency(b, haste)
    if not (high - low) / h < MOST_NODES - 2:
        return None
    x: Floats = low + h * np.arange(int((high - low) / h) + 2, dtype=float)
    bent = x - expm1(x)
    clock = exp(x)
    longer = exp(b * bent)  # of shape a + 1, whose left tail is short at every a
    total = float(np.add.reduce(longer))
    w = exp(b * bent - x) * (a / b / total)
    mean = float(np.add.reduce(longer * bent)) / total - 1.0 / (a * b)
    falls = float(-expm1(-a * h))  # 1 - e^(-a h): one less what a node has of the one after it
    rest = float(w[0]) * (1.0 - falls) / falls
    return Nodes(clock, w, w * (bent - mean), rest, rest * (float(bent[0]) - mean - h / falls))


def _averaged(nodes: Nodes, theta: tuple[float, float, float], T: float, left: float, k: Floats) -> Floats:
    sigma, nu, mean = theta
    slope = mean + 0.5 * sigma * sigma
    omega = float(log1p(-nu * slope)) / nu
    g = (T + nu) * nodes.clock
    s = sigma * np.sqrt(g)
    f = omega * T + slope * g
    sign = np.where(k >= 0.0, 1.0, -1.0)[:, None]  # call or put, whichever is out of the money
    strike, forward = exp(k)[:, None], exp(f)
    d = (f - k[:, None]) / s + 0.5 * s
    delta = sign * forward * cdf(sign * d)  # dP/df
    price = delta - sign * strike * cdf(sign * (d - s))
    at_rest = float(exp(omega * T))
    inside = (sign * (omega * T - k[:, None]) > 0.0)[:, 0]
    price_0 = np.where(inside, (sign * (at_rest - strike))[:, 0], 0.0)
    delta_0 = np.where(inside, sign[:, 0] * at_rest, 0.0)
    # At fixed x, f moves by its part at g = 0 and by one that grows with g; s moves with sigma and, through g, with nu.
    whole = _sum(delta, nodes.w) + delta_0 * nodes.rest
    moved = _sum(delta, nodes.w * g)
    vega = _sum(density(d), nodes.w * s * forward)
    by_shape = _sum(price, nodes.by_shape) + price_0 * nodes.rest_by_shape
    out = np.empty((4, len(k)))
    out[0] = _sum(price, nodes.w) + price_0 * nodes.rest
    out[1] = (-sigma / left * T) * whole + sigma * moved + (1.0 / sigma) * vega
    out[2] = (-(slope / left + omega) / nu * T) * whole + (slope / (T + nu)) * moved + (0.5 / (T + nu)) * vega
    out[2] += (-T / nu / nu) * by_shape
    out[3] = (-1.0 / left * T) * whole + moved
    return out


def _sum(rows: Floats, weights: Floats) -> Floats:
    # Along the contiguous axis of nodes: a row's sum is then added in the same order whatever the number of rows.
    summed: Floats = np.add.reduce(np.ascontiguousarray(rows * weights), axis=1)
    return summed


def _frequency(a: float, haste: float) -> float:
    """Return where the Fourier transform, in x, of density times price has fallen to exp(-LEVEL), at the worst strike.

    At an angle t off the real line e^-g/nu is larger by exp((1 - cos t) g / nu), and the normal distribution in Black's
    formula by up to exp(haste sin(t)^2 / (2 cos t) g / nu). Averaged over the clock the two are the power below; a line
    at t is worth exp(-u t) at the frequency u.
    """
    widest = float(atan2(sqrt(2.0), sqrt(haste))) if haste > 0.0 else 0.5 * pi
    t = widest * ANGLES
    cosine, sine = cos(t), sin(t)
    shrunk = cosine - 0.5 * haste * (sine * sine) / cosine
    u = (LEVEL - a * log(shrunk)) / t
    return float(np.min(u, where=shrunk > 0.0, initial=inf))


def _root(excess: Callable[[float], float], a: float, b: float, *, from_below: bool) -> float:
    """Return where a log-density crosses -LEVEL, on one side of its peak near 0."""
    if from_below:
        inside = float(log((a + 0.5) / b))
        outside = inside - 4.0 * LEVEL / (a + 0.5) - 16.0 * sqrt(LEVEL / (a + 0.5))
    else:
        inside = float(log(a / b))
        outside = float(log((a + 8.0 * LEVEL + 16.0 * sqrt(LEVEL * a)) / b))
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if excess(middle) < -LEVEL else (middle, outside)
    return outside
