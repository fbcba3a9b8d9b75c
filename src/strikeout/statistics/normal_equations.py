"""Normal equations at a reference as exact integers, which are added and subtracted without rounding.

The grid on which quotes are counted: fixed by the model and the reference, never by a quote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from strikeout.errors import UsageError
from strikeout.kernels import exact, symmetric
from strikeout.kernels.arrays import Floats, Integers, Words
from strikeout.kernels.elementary import nearest_exponent
from strikeout.kernels.exact import Exponents
from strikeout.statistics.linearization import Linearization
from strikeout.text import many

if TYPE_CHECKING:
    from strikeout.models.model import Model, Theta
    from strikeout.statistics.footprints import Footprints


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
                f"got {len(self.reference)} and {len(self.exponents)}.",
                count=len(self.parameters),
            )
        if any(abs(exponent) > WIDEST for exponent in self.exponents):
            raise UsageError(
                f"Schema: exponents {self.exponents} go beyond +-{WIDEST}. State a coarser grid.",
                exponents=self.exponents,
            )

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
    derivatives (``exponents``) sets the whole grid itself.

    Args:
        weights: the name of the weighting.
        grid: residuals are rounded to ``2^-grid``; the model's own ``grid``, else 41, where not given.
    """
    space = model.parameters
    stated = getattr(model, "exponents", None) if grid is None else None
    preferred = getattr(model, "grid", None) if grid is None else grid
    finest = GRID if preferred is None else int(preferred)
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


Ridge = float | Literal["paper"] | None

PAPER_RIDGE = 1e-6  # the paper's lambda, added to every diagonal alike


@dataclass(frozen=True, eq=False, repr=False)
class NormalEquations:
    """Curvature, score, cost and count of some quotes at the reference of a schema, without a rounding error.

        sum over quotes of a a',    a = rint(sqrt(w) (J_1 .. J_p, r) * 2^exponents)

    The upper triangle row by row, every number in 192 bits (``words``). A group: sums do not depend on order, batches
    or shards, and what was added can be taken away exactly. Two that are equal contain the same of the quotes.

    Raises:
        UsageError: the words are not a triangle of the schema's columns.
    """

    schema: Schema
    words: Words
    count: int

    def __post_init__(self) -> None:
        needed = (self.schema.columns * (self.schema.columns + 1) // 2, 3)
        if self.words.shape != needed or self.words.dtype != np.uint64:
            raise UsageError(
                f"NormalEquations: words of {len(self.schema.parameters)} parameters are uint64 of shape {needed}; "
                f"got {self.words.dtype} of shape {self.words.shape}.",
                count=len(self.schema.parameters),
                needed=needed,
            )
        self.words.flags.writeable = False

    @staticmethod
    def zero(schema: Schema) -> NormalEquations:
        """Return what no quotes leave behind."""
        return NormalEquations(schema, exact.zero(schema.columns), 0)

    @staticmethod
    def total(parts: Iterable[NormalEquations]) -> NormalEquations:
        """Return what the quotes of one or more leave behind together.

        Raises:
            UsageError: there are none, or their schemas differ.
        """
        every = list(parts)
        if not every:
            raise UsageError("NormalEquations.total of nothing: use NormalEquations.zero(schema).")
        schema = every[0].schema
        for part in every:
            if part.schema is not schema:
                refuse_mixing(schema, part.schema)
        words = exact.total(np.concatenate([part.words for part in every]).reshape(len(every), -1, 3))
        return NormalEquations(schema, words, sum(part.count for part in every))

    def __add__(self, other: NormalEquations) -> NormalEquations:
        """Return what the quotes of both leave behind.

        Raises:
            UsageError: their schemas differ.
        """
        refuse_mixing(self.schema, other.schema)
        return NormalEquations(self.schema, exact.combine(self.words, other.words), self.count + other.count)

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        """Return what the quotes leave behind once the other's are taken away.

        Raises:
            UsageError: their schemas differ.
        """
        refuse_mixing(self.schema, other.schema)
        words = exact.combine(self.words, other.words, subtract=True)
        return NormalEquations(self.schema, words, self.count - other.count)

    def less(self, footprints: Footprints, places: Integers | None = None) -> NormalEquations:
        """``self - footprints.total()``, read out and solved in one call of the kernel.

        Args:
            places: rows of the footprints to take away (``footprints.places(ids)``); all if not given.

        Raises:
            UsageError: the schemas differ.
        """
        schema = self.schema
        if footprints.schema is not schema:
            refuse_mixing(schema, footprints.schema)
        words, solved = exact.downdate(self.words, footprints.rows, places, schema.grid)
        # Shapes and flags are the kernel's own: a call of three microseconds has no time to check them again.
        left = object.__new__(NormalEquations)
        known = left.__dict__
        known["schema"], known["words"], known["solved"] = schema, words, solved
        known["count"] = self.count - footprints.counted(places)
        return left

    @cached_property
    def solved(self) -> Floats:
        """The triangle of ``system()``, each number correctly rounded, then ``step()``, as one array."""
        columns = self.schema.columns
        return exact.downdate(self.words, np.empty((0, columns), np.int64), None, self.schema.grid)[1]

    @cached_property
    def _system(self) -> Linearization:
        return Linearization(tuple(self.solved[: len(self.words)].tolist()), self.count)

    def system(self) -> Linearization:
        """Return the same in floating point: curvature, score and cost, each the double nearest to the exact number."""
        return self._system

    def exact_step(self) -> Floats:
        """Return the Gauss-Newton step without a ridge, solved in integers: each number is the double nearest to the
        true one.

        ``step`` loses as many digits as the condition number of the curvature has; this loses none, and takes a hundred
        times as long. Not-a-number if H is not positive definite.
        """
        return np.array(symmetric.step(exact.to_integers(self.words), self.schema.exponents))

    def step(self, *, ridge: Ridge = None) -> Floats:
        """Return the Gauss-Newton step at the reference, ``H^-1 G``.

        Not-a-number if H, read out, is not positive definite. A state that hardly determines the parameters still
        gives numbers: judge it by the condition of ``system()``.

        Args:
            ridge: none; a number lambda for ``H + lambda diag(H)``; or "paper" for ``H + 1e-6 I``, which depends on
                the units of the parameters.

        Raises:
            UsageError: the ridge is negative, or no number and not "paper".
        """
        size = len(self.words)
        if ridge is None:
            return self.solved[size:]
        triangle = self.solved[:size].copy()
        diagonal = _diagonal(self.schema.columns)[:-1]
        if ridge == "paper":
            triangle[diagonal] += PAPER_RIDGE
        elif isinstance(ridge, str) or not 0.0 <= ridge < np.inf:
            raise UsageError(
                f'ridge={ridge!r}: give None, a number from 0 on that scales with the curvature, or "paper".',
                ridge=ridge,
            )
        else:
            triangle[diagonal] *= 1.0 + ridge
        return exact.solve(triangle)

    def digest(self) -> str:
        """Return 64 hexadecimal digits: the identity of what is known, the same whatever the history."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        head = f"strikeout normal equations 1\n{self.schema.digest()}\n{self.count}\n"
        return sha256(head.encode() + self.words.astype("<u8").tobytes()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NormalEquations):
            return NotImplemented
        return self.schema == other.schema and self.count == other.count and bool((self.words == other.words).all())

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        return f"<NormalEquations of {many(self.count, 'quote')}, {self.schema.model}, {self.digest()[:12]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return NormalEquations, (self.schema, self.words, self.count)


def refuse_mixing(a: Schema, b: Schema) -> None:
    """Raise UsageError if the schemas differ."""
    if a != b:
        what = [name for name in a.__dataclass_fields__ if getattr(a, name) != getattr(b, name)]
        shown = "; ".join(f"{name} {getattr(a, name)!r} and {getattr(b, name)!r}" for name in what)
        raise UsageError(
            f"States of different schemas cannot be combined: {shown}. Build both at one reference, with the same "
            "model, residual and weights.",
            differs=what,
        )


def _diagonal(columns: int) -> list[int]:
    return [i * columns - i * (i - 1) // 2 for i in range(columns)]
