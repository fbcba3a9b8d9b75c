"""Heston priced the way the paper prices it: P1 and P2 by Simpson's rule, sensitivities by central differences.

Kept for comparison, not for use: the cut at U_max and the fixed mesh cost digits that `strikeout.Heston` does not lose
(U_max = 50, N_u = 180 is off by 9e-4 on a spot of 100 at the paper's own truth).

    symbol            meaning                                           unit
    kappa, vbar       mean reversion, long variance                     1/year, 1/year
    sigma, rho, v0    vol of vol, correlation, initial variance         1/year, -, 1/year
    F, K, T, D        forward, strike, expiry, discount                 currency, currency, years, -
    k                 ln(K / F)                                         -
    u                 frequency, 0 .. u_max in `nodes` equal steps      -
    phi_2(u)          E exp(i u X), X = ln(S_T / F)                     -
    phi_1(u)          the same under the share measure: phi_2(u - i)    -

    call = D (F P1 - K P2),   P_j = 1/2 + 1/pi int_0^u_max Re[exp(-i u k) phi_j(u) / (i u)] du

Source: S. Heston, Review of Financial Studies 6 (1993), as used in "Selective Forgetting in Option Calibration". The
paper leaves two things open. At u = 0 the integrand is 0/0; its limit E_j[X] - k is taken. The difference step is not
given; here it is `step` times the parameter (times 0.01 where the parameter is smaller than that).

Never raises: parameters or contracts that make no sense give not-a-number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats
from strikeout.models.heston import SLOWER
from strikeout.models.model import ParameterSpace, Theta
from strikeout.quotes.contracts import Contracts

Complexes = NDArray[np.complexfloating[Any, Any]]

SMALLEST_SCALE = 0.01
ROWS_AT_ONCE = 256


def columns_of(contracts: Contracts) -> tuple[Any, Any, Any, Any, Any]:
    """Return the columns that `price` takes."""
    return contracts.forward, contracts.strike, contracts.expiry, contracts.discount, contracts.is_call


def price(
    theta: ArrayLike,
    forward: ArrayLike,
    strike: ArrayLike,
    expiry: ArrayLike,
    discount: ArrayLike,
    is_call: ArrayLike,
    *,
    u_max: float,
    nodes: int,
) -> Floats:
    """Return prices of many options; the numbers of `price_one` to rounding, phi_j computed once per distinct expiry.

    A row's price does not depend on the other rows, to the last bit: sums run along the nodes of one row.
    """
    vector = np.asarray(theta, float)
    F, K, T, D, calls = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(column, float)) for column in (forward, strike, expiry, discount)),
        np.atleast_1d(np.asarray(is_call, bool)),
    )
    u, weight = simpson(u_max, nodes)
    out = np.full(F.shape, np.nan)
    if not out.size:
        return out
    with np.errstate(all="ignore"):
        k = np.log(K / F)
        order = np.argsort(T, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(T[order])) + 1):
            terms = [_terms(vector, float(T[rows[0]]), u, weight, shift) for shift in (-1j, 0j)]
            for some in np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE)):
                angle = k[some, None] * u[1:]
                cosine, sine = np.cos(angle), np.sin(angle)
                p1, p2 = (
                    # Reduced along the nodes with sum, never with `@`: BLAS blocks by the number of rows.
                    0.5 + (cosine * im - sine * re).sum(axis=1) + weight[0] * (mean - k[some])
                    for re, im, mean in terms
                )
                out[some] = _payoff(F[some], K[some], D[some], calls[some], p1, p2)
    return out


def price_one(
    theta: ArrayLike,
    forward: float,
    strike: float,
    expiry: float,
    discount: float,
    is_call: bool,
    *,
    u_max: float,
    nodes: int,
) -> float:
    """Return the price of one option, everything computed for it alone: what the paper's loop over quotes calls."""
    vector = np.asarray(theta, float)
    u, weight = simpson(u_max, nodes)
    above = u[1:]
    with np.errstate(all="ignore"):
        k = np.log(np.float64(strike) / forward)
        p1, p2 = (
            0.5
            + np.sum(weight[1:] * (np.exp(-1j * above * k) * phi(vector, above + shift, expiry) / (1j * above)).real)
            + weight[0] * (mean_log_return(vector, expiry, shift) - k)
            for shift in (-1j, 0j)
        )
        return float(_payoff(np.float64(forward), strike, discount, is_call, p1, p2))


def linearize(theta: ArrayLike, *contracts: ArrayLike, u_max: float, nodes: int, step: float) -> tuple[Floats, Floats]:
    """Return prices ``(n,)`` and their central differences ``(n, 5)``: eleven pricings.

    `contracts` are the columns that `price` takes.
    The j-th step is ``step * max(|theta_j|, 0.01)``; the error of the difference is of the order of its square.
    """
    vector = np.asarray(theta, float)
    prices = price(vector, *contracts, u_max=u_max, nodes=nodes)
    jacobian = np.empty((len(prices), len(vector)))
    for j, (up, down) in enumerate(shifted(vector, step)):
        above = price(up, *contracts, u_max=u_max, nodes=nodes)
        below = price(down, *contracts, u_max=u_max, nodes=nodes)
        # Divided by the step as it was rounded, not as it was asked for.
        jacobian[:, j] = (above - below) / (up[j] - down[j])
    return prices, jacobian


def linearize_one(theta: ArrayLike, *contract: Any, u_max: float, nodes: int, step: float) -> tuple[float, Floats]:
    """Return one option's price and central differences by eleven calls of `price_one`: a turn of the paper's loop."""
    vector = np.asarray(theta, float)
    centre = price_one(vector, *contract, u_max=u_max, nodes=nodes)
    gradient = np.array(
        [
            (price_one(up, *contract, u_max=u_max, nodes=nodes) - price_one(down, *contract, u_max=u_max, nodes=nodes))
            / (up[j] - down[j])
            for j, (up, down) in enumerate(shifted(vector, step))
        ]
    )
    return centre, gradient


def shifted(theta: Floats, step: float) -> list[tuple[Floats, Floats]]:
    """Return, per parameter, theta with that one moved up and moved down."""
    size = step * np.maximum(np.abs(theta), SMALLEST_SCALE)
    return [(theta + size * unit, theta - size * unit) for unit in np.eye(len(theta))]


def simpson(u_max: float, nodes: int) -> tuple[Floats, Floats]:
    """Return the nodes 0 .. u_max and Simpson's weights over pi; `nodes` counts sub-intervals and must be even."""
    u = np.linspace(0.0, u_max, nodes + 1)
    weight = np.full(nodes + 1, 2.0)
    weight[1::2] = 4.0
    weight[[0, -1]] = 1.0
    return u, weight * (u_max / nodes / 3.0 / np.pi)


def phi(theta: Floats, z: Complexes, T: float) -> Complexes:
    """``E exp(i z X)``, continuous in z and free of cancellation.

    With xi = kappa - i rho sigma z, q = z^2 + i z, d = sqrt(xi^2 + sigma^2 q) the closed form needs both d + xi and
    d - xi. Their product is sigma^2 q, so only the one that adds is summed and the other follows by division.
    """
    kappa, vbar, sigma, rho, v0 = theta
    q = z * z + 1j * z
    xi = kappa - 1j * rho * sigma * z
    d = np.sqrt(xi * xi + sigma * sigma * q)
    is_adding = xi.real >= 0.0
    large = np.where(is_adding, d + xi, d - xi)
    small = sigma * sigma * q / large
    plus, minus = np.where(is_adding, large, small), np.where(is_adding, small, large)
    E = np.exp(-d * T)
    P = plus + minus * E
    level = -(minus * T + 2.0 * np.log(P / (2.0 * d))) / (sigma * sigma)
    return np.asarray(np.exp(kappa * vbar * level - v0 * q * (1.0 - E) / P))


def mean_log_return(theta: Floats, T: float, shift: complex) -> float:
    """``E_j[X]``: minus half the expected variance to expiry, plus half of it under the share measure (shift = -i)."""
    kappa, vbar, sigma, rho, v0 = theta
    speed = kappa if shift == 0 else kappa - rho * sigma
    x = speed * T
    # (1 - exp(-x)) / x and (x - 1 + exp(-x)) / x^2, by series where they would cancel: kappa may equal rho sigma.
    if abs(x) < 1e-3:
        first, second = 1.0 - x / 2.0 + x * x / 6.0 - x**3 / 24.0, 0.5 - x / 6.0 + x * x / 24.0 - x**3 / 120.0
    else:
        first, second = -np.expm1(-x) / x, (x + np.expm1(-x)) / (x * x)
    variance = v0 * T * first + kappa * vbar * T * T * second
    return float(-variance / 2.0 if shift == 0 else variance / 2.0)


def _terms(theta: Floats, T: float, u: Floats, weight: Floats, shift: complex) -> tuple[Floats, Floats, float]:
    """Return Re and Im of weight * phi_j / u at the nodes above zero, and the mean that the node at zero needs."""
    scaled = phi(theta, u[1:] + shift, T) * (weight[1:] / u[1:])
    return np.array(scaled.real, float), np.array(scaled.imag, float), mean_log_return(theta, T, shift)


def _payoff(F: Any, K: Any, D: Any, is_call: Any, p1: Any, p2: Any) -> Any:
    return D * np.where(is_call, F * p1 - K * p2, K * (1.0 - p2) - F * (1.0 - p1))


@dataclass(frozen=True)
class Heston:
    """Heston by P1 and P2, Simpson's rule and central differences: the paper's scheme, for comparison only.

    The paper's large experiments use ``U_max=120, N_u=800`` (the default), its small ones ``U_max=50, N_u=180``,
    which errs by about 1e-3 on a spot of 100. For work, use ``strikeout.Heston``.

    Args:
        U_max: where the Fourier integral is cut off.
        N_u: sub-intervals of Simpson's rule, even.
        step: of the central differences, relative to each parameter.

    Raises:
        UsageError: `N_u` is odd or below 2, `U_max` or `step` not above zero.

    >>> at_the_money = Contracts(forward=100.0, strike=100.0, expiry=0.25, discount=1.0, is_call=True)
    >>> Heston().price([2.0, 0.06, 0.3, -0.6, 0.06], at_the_money).round(6)
    array([4.808056])
    """

    U_max: float = 120.0
    N_u: int = 800
    step: float = 1e-4

    def __post_init__(self) -> None:
        if self.N_u < 2 or self.N_u % 2:
            raise UsageError(
                f"paper.Heston: N_u is {self.N_u}; Simpson's rule needs an even number, at least 2.", N_u=self.N_u
            )
        for name, value in (("U_max", self.U_max), ("step", self.step)):
            if not (np.isfinite(value) and value > 0):
                raise UsageError(
                    f"paper.Heston: {name} is {value}; it must be finite and above zero.", name=name, value=value
                )

    @property
    def name(self) -> str:
        return f"paper-heston(U_max={self.U_max:.17g}, N_u={self.N_u}, step={self.step:.17g})"

    @property
    def parameters(self) -> ParameterSpace:
        """Those of ``strikeout.Heston``: one model, two ways to compute it."""
        return SLOWER

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract, in the currency of the forward.

        Raises:
            ParameterError: theta is not a point of the parameter space.
        """
        return price(self.parameters.vector(theta), *columns_of(contracts), u_max=self.U_max, nodes=self.N_u)

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices and their central differences: ``(n,)`` and ``(n, 5)``.

        Raises:
            ParameterError: theta is not a point of the parameter space.
        """
        at = self.parameters.vector(theta)
        return linearize(at, *columns_of(contracts), u_max=self.U_max, nodes=self.N_u, step=self.step)
