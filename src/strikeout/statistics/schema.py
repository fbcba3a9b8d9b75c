"""The grid on which quotes are counted: fixed by the model and the reference, never by a quote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Literal

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels.elementary import nearest_exponent
from strikeout.kernels.exact import Exponents

if TYPE_CHECKING:
    from strikeout.models.model import Model, Theta

Residual = Literal["price", "implied_vol"]

# Residuals are rounded to 2^-41 of the currency, 4.5e-13: finer than any pricing kernel is accurate. Below 2^62 on that
# grid allows residuals up to 2^21, about two million. A model of other units states its own ``grid``.
GRID = 41
# Within +-400 every sum in 192 bits, but zero, is a normal double when read out, so it is rounded once.
WIDEST = 400


@dataclass(frozen=True)
class Schema:
    """What has to be equal for two states to be added: model, reference, residual, weighting, and the grid.

    Column c of a row is ``rint(x_c * 2^exponents[c])``: one column a parameter, then the residual.

    Raises:
        UsageError: the lengths do not match, or an exponent is beyond +-400.

    >>> Schema("line", ("slope",), reference=(0.0,), exponents=(40, 41), residual="price", weights="none").columns
    2
    """

    model: str
    parameters: tuple[str, ...]
    reference: tuple[float, ...]
    exponents: tuple[int, ...]
    residual: Residual
    weights: str

    def __post_init__(self) -> None:
        if len(self.reference) != len(self.parameters) or len(self.exponents) != self.columns:
            raise UsageError(
                f"Schema: {len(self.parameters)} parameters need as many numbers of reference and one exponent more; "
                f"got {len(self.reference)} and {len(self.exponents)}."
            )
        if any(abs(exponent) > WIDEST for exponent in self.exponents):
            raise UsageError(f"Schema: exponents {self.exponents} go beyond +-{WIDEST}. State a coarser grid.")

    @property
    def columns(self) -> int:
        """The number of columns of a row: the parameters and the residual."""
        return len(self.parameters) + 1

    @cached_property
    def grid(self) -> Exponents:
        """The exponents as the kernels take them; read-only."""
        array = np.array(self.exponents, np.int32)
        array.flags.writeable = False
        return array

    @cached_property
    def _digest(self) -> str:
        reference = ",".join(float(x).hex() for x in self.reference)
        exponents = ",".join(str(exponent) for exponent in self.exponents)
        fields = (self.model, ",".join(self.parameters), reference, exponents, self.residual, self.weights)
        return sha256("\n".join(("strikeout schema 1", *fields)).encode()).hexdigest()

    def digest(self) -> str:
        """Return 64 hexadecimal digits that name this schema; the reference enters by its bits."""
        return self._digest


def schema_of(
    model: Model, reference: Theta, *, residual: Residual = "price", weights: str = "given", grid: int | None = None
) -> Schema:
    """Return the schema of a model at a reference.

    The grid of a parameter's column follows the size of the parameter's first canonical start, so that a column times
    its parameter is on the grid of the residual, to a factor of two. A model that contains the sizes of its values and
    derivatives at the reference (``exponents``) sets the whole grid itself.

    Args:
        weights: the name of the weighting.
        grid: residuals are rounded to ``2^-grid``; the model's own ``grid``, else 41, where not given.

    Raises:
        ParameterError: the reference is not a point of the model.
        UsageError: the grid is too fine or too coarse for doubles.
    """
    space = model.parameters
    own = getattr(model, "exponents", None)
    stated = own(reference) if own is not None and grid is None else None
    finest = int(getattr(model, "grid", GRID)) if grid is None else int(grid)
    sizes = [abs(x) for x in space.starts[0].tolist()]
    return Schema(
        model=model.name,
        parameters=tuple(space.names),
        reference=tuple(space.vector(reference).tolist()),
        exponents=stated or (*(finest + _exponent(size) for size in sizes), finest),
        residual=residual,
        weights=weights,
    )


def _exponent(size: float) -> int:
    return nearest_exponent(size) if size > 0.0 and isfinite(size) else 0
