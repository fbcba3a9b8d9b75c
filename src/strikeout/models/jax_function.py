"""A function written with ``jax.numpy``: values and derivatives in double precision, every row by the same program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.arrays import Floats
from strikeout.text import first_line

Function = Callable[..., Any]

VERSION = 1  # of how a function is evaluated here
# XLA compiles a program for every number of rows, and need not round alike in two of them. Here every program has this
# many rows: a book is cut into blocks, the last one filled up with copies of its last row. More rows would be faster
# for large books and take more memory where a row is a Monte Carlo of its own.
BLOCK = 64


@dataclass(frozen=True, eq=False)
class JaxFunction:
    """A function of named parameters and columns that JAX can trace. ``jax`` is the imported package."""

    name: str
    function: Function
    parameters: tuple[str, ...]
    jax: Any

    @property
    def version(self) -> str:
        """Version of the compiler. Another one may round otherwise, so it is part of the name of a model."""
        return str(import_module("jaxlib").__version__)

    def values(self, **named: Any) -> Floats:
        """Return one number per row."""
        return self._by_blocks(self._values, named, np.zeros(0))

    def derivatives(self, **named: Any) -> dict[str, Floats]:
        """Return the derivatives by every parameter, by name (``jacfwd``)."""
        found = self._by_blocks(self._derivatives, named, np.zeros((0, len(self.parameters))))
        return {name: found[..., i] for i, name in enumerate(self.parameters)}

    @cached_property
    def _values(self) -> Function:
        compiled: Function = self.jax.jit(self._traced)
        return compiled

    @cached_property
    def _derivatives(self) -> Function:
        compiled: Function = self.jax.jit(self.jax.jacfwd(self._traced))
        return compiled

    def _traced(self, theta: Any, columns: Mapping[str, Any]) -> Any:
        named = {name: theta[i] for i, name in enumerate(self.parameters)}
        found = self.jax.numpy.asarray(self.function(**named, **columns))
        rows = next((column.shape for column in columns.values()), ())
        if found.shape not in (rows, ()) or found.dtype != np.float64:
            raise UsageError(
                f"{self.name}: for {BLOCK} rows the function returned {found.dtype} of shape {found.shape}. Return one "
                "number per row, in double precision: make constants with NumPy, and cast nothing.",
                name=self.name,
            )
        return self.jax.numpy.broadcast_to(found, rows)

    def _by_blocks(self, compiled: Function, named: Mapping[str, Any], nothing: Floats) -> Floats:
        theta = np.array([named[name] for name in self.parameters], float)
        columns = {name: value for name, value in named.items() if name not in self.parameters}
        if not columns:  # one number for all rows
            return self._called(compiled, theta, {})
        count = min(len(column) for column in columns.values())
        blocks = [{name: _block(column, at) for name, column in columns.items()} for at in range(0, count, BLOCK)]
        return np.concatenate([nothing, *(self._called(compiled, theta, block) for block in blocks)])[:count]

    def _called(self, compiled: Function, theta: Floats, columns: Mapping[str, Floats]) -> Floats:
        try:
            # For this call alone: other code that uses JAX keeps its own precision and device.
            with self.jax.enable_x64(True), self.jax.default_device(self.jax.devices("cpu")[0]):
                return np.asarray(compiled(theta, columns), np.float64)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{self.name}: JAX cannot follow the function: {first_line(error)}. "
                "Write it with jax.numpy, and choose between values with jnp.where instead of if.",
                name=self.name,
            ) from error


def jax_function(name: str, function: Function, parameters: tuple[str, ...]) -> JaxFunction:
    """Return the function, ready to be called with NumPy arrays."""
    try:
        return JaxFunction(name, function, parameters, import_module("jax"))
    except ImportError as error:
        raise UsageError(
            f'{name}: jacobian="jax" needs JAX, which is not installed. Install it: pip install "strikeout[jax]".',
            name=name,
        ) from error


def is_jax(found: object) -> bool:
    """Return a function gave back JAX's numbers."""
    return type(found).__module__.partition(".")[0] in ("jax", "jaxlib")


def _block(column: Floats, at: int) -> Floats:
    rows = column[at : at + BLOCK]
    return rows if len(rows) == BLOCK else np.concatenate([rows, np.repeat(rows[-1:], BLOCK - len(rows))])
