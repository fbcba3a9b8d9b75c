"""The NumPy peer's quadrature in JAX: derivatives by forward mode, calibration by optimistix. Only if installed.

The formulas take the array module as an argument, so that they can be tested with NumPy where JAX is absent.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.peers import numpy_peer

Floats = NDArray[np.float64]


def is_installed() -> bool:
    return find_spec("jax") is not None and find_spec("optimistix") is not None


def prices(xp: Any, theta: Any, book: numpy_peer.Book) -> Any:
    """Prices in the sorted order of `book`; `xp` is numpy or jax.numpy."""
    kappa, vbar, sigma, rho, v0 = (theta[j] for j in range(5))
    z, T = book.z, book.expiries[:, None]
    q = z * z + 1j * z
    xi = kappa - 1j * rho * sigma * z
    d = xp.sqrt(xi * xi + sigma * sigma * q)
    E = xp.exp(-d * T)
    P = xi + d + (d - xi) * E
    level = -q * T / (xi + d) - 2.0 / (sigma * sigma) * xp.log(P / (2.0 * d))
    terms = xp.exp(kappa * vbar * level - v0 * q * (1.0 - E) / P) * book.weight
    width = 2 * numpy_peer.NODES
    parts = []
    for group in range(len(book.expiries)):
        a, b = int(book.starts[group]), int(book.starts[group + 1])
        table = book.phases[width * a : width * b].reshape(width, b - a)
        parts.append(terms[group].real @ table[0::2] + terms[group].imag @ table[1::2])
    return xp.concatenate(parts) + book.offset


def compile_pass(contracts: Any, observed: Floats) -> Callable[[ArrayLike], Floats]:
    """A jitted Gauss-Newton pass: theta in, the 6x6 sums over (residual, five sensitivities) out."""
    jax, jnp = _jax()
    book = numpy_peer.prepare(contracts)
    seen = jnp.asarray(observed[book.order])

    @jax.jit  # type: ignore[untyped-decorator]
    def sums(theta: Any) -> Any:
        rows = jnp.vstack([seen - prices(jnp, theta, book), jax.jacfwd(lambda at: prices(jnp, at, book))(theta).T])
        return rows @ rows.T

    return lambda theta: np.asarray(sums(jnp.asarray(theta)).block_until_ready())


def compile_calibrate(contracts: Any, observed: Floats) -> Callable[[ArrayLike], Floats]:
    """A jitted optimistix Levenberg-Marquardt: start in, parameters out."""
    jax, jnp = _jax()
    import optimistix

    book = numpy_peer.prepare(contracts)
    seen = jnp.asarray(observed[book.order])
    solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8)

    @jax.jit  # type: ignore[untyped-decorator]
    def solve(start: Any) -> Any:
        def residuals(at: Any, _: Any) -> Any:
            return seen - prices(jnp, at, book)

        return optimistix.least_squares(residuals, solver, start, max_steps=200, throw=False).value

    return lambda start: np.asarray(solve(jnp.asarray(start)).block_until_ready())


def _jax() -> tuple[Any, Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax, jax.numpy
