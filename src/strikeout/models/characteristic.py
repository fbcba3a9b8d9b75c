"""Your own model, from its characteristic function and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from strikeout.errors import ParameterError, UsageError
from strikeout.kernels import derivatives, fourier_trapezoid
from strikeout.kernels.arrays import Complexes, Floats
from strikeout.kernels.compiled import Kernel, default_kernel
from strikeout.kernels.fourier_trapezoid import LogCf
from strikeout.models.model import ParameterSpace, Theta, linearized
from strikeout.quotes.contracts import Contracts

# With its derivatives (a pair), or as the logarithm alone.
Given = LogCf | Callable[[Complexes, float, Any], Any]

VERSION = 4  # of the rule in kernels/fourier_trapezoid.py: another one moves the last bits of a price
DUAL = 1  # of the derivatives in kernels/derivatives.py
MARTINGALE = 1e-10  # a larger |ln cf(-i)| would show in prices, which are good to about that much of the forward
PROBE = np.array([0.3 - 0.5j, 2.0 - 0.5j, 7.0 - 0.5j])  # where a gradient is held against differences
STEP = 1e-5  # of those differences, relative: their square is what a right gradient is off by


@dataclass(frozen=True, eq=False, init=False)
class CharacteristicModel:
    """European prices and sensitivities from ``ln E[exp(i z X)]``, ``X = ln(S_T / forward)``: to 1e-10 of the forward.

    ``log_cf(z, T, theta)`` gets complex frequencies (an array), one expiry in years and the parameters in the order of
    ``parameters.names``; it gives back the logarithm, an array like z. Its derivatives are then found by dual numbers,
    to rounding, as long as it is written with NumPy's functions. Or it gives back a pair, the logarithm and a tuple of
    its derivatives by each parameter, which is two to four times as fast.
    All must be analytic in z around the strip ``-1 <= Im z <= 0`` and continuous along it: no jumps between branches.
    Everything else - step, number of nodes, range of strikes - follows from it (see ``kernels/fourier_trapezoid.py``).

    Args:
        name: fingerprints the model: give another one whenever ``log_cf`` changes.
        parameters: names, bounds and starts. ``log_cf`` is tried out at the first start.

    Raises:
        UsageError: ``log_cf`` returns the wrong shapes, is not a martingale, has a wrong derivative, or returns none
            and uses what dual numbers cannot follow.

    >>> def black(z, T, theta):
    ...     return -0.5 * T * theta[0] ** 2 * (z * z + 1j * z)
    >>> space = ParameterSpace(("vol",), np.array([0.01]), np.array([3.0]), np.array([[0.2]]))
    >>> at_the_money = Contracts(forward=100.0, strike=100.0, expiry=1.0, discount=1.0, is_call=True)
    >>> CharacteristicModel("black", space, log_cf=black).price({"vol": 0.2}, at_the_money).round(6)
    array([7.965567])
    """

    name: str
    parameters: ParameterSpace
    log_cf: LogCf
    logarithm: LogCf  # without derivatives, if it was given so
    kernel: Kernel  # that sums over the nodes

    def __init__(self, name: str, parameters: ParameterSpace, *, log_cf: Given) -> None:
        # The function is NumPy's own, and so are its last bits; only the sum over nodes can be compiled.
        object.__setattr__(self, "kernel", default_kernel())
        object.__setattr__(self, "name", f"{name}/function-{self.kernel}-line-{VERSION}")
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "log_cf", log_cf)
        object.__setattr__(self, "logarithm", log_cf)
        with np.errstate(all="ignore"):
            start = np.array(parameters.starts[0], float)
            if not isinstance(self._called(PROBE, start), tuple | list):
                object.__setattr__(self, "name", f"{self.name}-dual-{DUAL}")
                object.__setattr__(self, "log_cf", _with_derivatives(log_cf, self.name))
                object.__setattr__(self, "logarithm", lambda z, T, theta: (log_cf(z, T, theta), ()))
            self._try_out(start)

    def price(self, theta: Theta, contracts: Contracts) -> Floats:
        """Return prices, one per contract. Not-a-number if the characteristic function decays too slowly to give
        one.

        Raises:
            ParameterError: a parameter is missing, unknown or not finite, or the model is not a martingale there.
        """
        return self.linearize(theta, contracts)[0]

    def linearize(self, theta: Theta, contracts: Contracts) -> tuple[Floats, Floats]:
        """Return prices ``(n,)`` and their derivatives by the parameters ``(n, p)``.

        Raises:
            ParameterError: a parameter is missing, unknown or not finite, or the model is not a martingale there.
        """
        vector, layout = self.parameters.vector(theta), contracts.slices
        values = np.empty((1 + len(vector), len(contracts)))
        for j, T in enumerate(layout.expiries.tolist()):
            rows = slice(layout.offsets[j], layout.offsets[j + 1])
            found = fourier_trapezoid.rule(self.log_cf, T, vector, logarithm=self.logarithm)
            if not found.defect <= MARTINGALE:
                raise ParameterError(
                    f"{self.name}: E[S_T] must be the forward, but |ln cf| at z = 0 or z = -i is {found.defect:.3g} "
                    f"for T = {T:g} and {self.parameters.named(vector)}. "
                    "Stay inside the model's domain, or mend its drift.",
                    defect=found.defect,
                    expiry=T,
                )
            values[:, rows] = fourier_trapezoid.values(found, layout.k[rows], self.kernel)
        return linearized(values, layout, contracts)

    def _try_out(self, theta: Floats) -> None:
        """Raise a UsageError where ``log_cf`` cannot be what it should be, at the first start and one year."""
        names, T = self.parameters.names, 1.0
        value, gradient = self._tried(PROBE, theta)
        if np.shape(value) != PROBE.shape or len(gradient) != len(names):
            raise UsageError(
                f"{self.name}: log_cf must give one array like z and {len(names)} derivatives ({', '.join(names)}); "
                f"for z of shape {PROBE.shape} it gave shape {np.shape(value)} and {len(gradient)} derivatives.",
                name=self.name,
                count=len(names),
            )
        for z, meaning in ((0j, "probabilities must add up to one"), (-1j, "E[S_T] must be the forward")):
            there = complex(self._tried(np.array([z]), theta)[0][0])
            if not abs(there) <= MARTINGALE:
                raise UsageError(
                    f"{self.name}: log_cf at z = {z:g} is {there:.6g} at the first start and T = {T:g}; it must be 0, "
                    f"because {meaning}. Give the characteristic function of ln(S_T / forward).",
                    value=there,
                )
        for i, name in enumerate(names):
            step = STEP * max(abs(theta[i]), 1e-2) * np.eye(len(names))[i]
            up, down = self._tried(PROBE, theta + step)[0], self._tried(PROBE, theta - step)[0]
            differences = (up - down) / (2.0 * step[i])
            given = np.broadcast_to(np.asarray(gradient[i]), PROBE.shape)
            worst = float(np.max(np.abs(differences - given)))
            rounding = 1e-12 * float(np.max(np.abs(value))) / step[i]
            if not worst <= 1e-5 * float(np.max(np.abs(differences))) + rounding:
                at = int(np.argmax(np.abs(differences - given)))
                raise UsageError(
                    f"{self.name}: log_cf's derivative by {name} is {given[at]:.6g} at z = {PROBE[at]:g}, the first "
                    f"start and T = {T:g}; differences of log_cf give {differences[at]:.6g}. Mend the derivative.",
                    parameter=name,
                )

    def _tried(self, z: Complexes, theta: Floats) -> tuple[Complexes, tuple[object, ...]]:
        try:
            value, gradient = self._called(z, theta)
            return value, tuple(gradient)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{self.name}: log_cf must give the logarithm, or a pair, the logarithm and a tuple of its "
                f"derivatives; at the first start it failed: {error}.",
                name=self.name,
            ) from error

    def _called(self, z: Complexes, theta: Floats) -> Any:
        try:
            return self.log_cf(z, 1.0, theta)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{self.name}: log_cf(z, T, theta) failed at the first start and T = 1: {error}."
            ) from error


def _with_derivatives(log_cf: Callable[[Complexes, float, Any], Any], name: str) -> LogCf:
    """Return the same function with its gradient, by dual numbers."""

    def both(z: Complexes, T: float, theta: Floats) -> tuple[Complexes, list[Complexes]]:
        try:
            value, slopes = derivatives.parts(log_cf(z, T, derivatives.variables(theta)), len(theta))
        except TypeError as error:
            raise UsageError(
                f"{name}: log_cf gives no derivatives, and dual numbers cannot follow it: {error}. Write it with "
                "NumPy's analytic functions (exp, log, sqrt, ** and so on, not math's, nor abs, conj or real of a "
                "parameter), or give back a pair, the logarithm and its derivatives."
            ) from error
        return value, list(slopes)

    return both
