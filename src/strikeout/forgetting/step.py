"""One Gauss-Newton step at a reference, from an exact state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from strikeout.kernels.symmetric import solve
from strikeout.statistics.normal_equations import PAPER_RIDGE, NormalEquations, Ridge

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OneStep:
    """Where one Gauss-Newton step leads, and the exact state it was solved from: equal states give equal bits.

    ``free`` are the numbers of the parameters that may move; None where all may. A step is not a number where the
    state does not determine it.

    Raises:
        UsageError: a ridge that is no ridge, when the step is first looked at.
    """

    equations: NormalEquations
    ridge: Ridge = None
    free: tuple[int, ...] | None = None

    @cached_property
    def change(self) -> Floats:
        """By how much each parameter moves from the reference."""
        if self.free is None:
            return self.equations.step(ridge=self.ridge)
        change = np.zeros(len(self.equations.schema.parameters))
        change[list(self.free)] = _part(self.equations, self.free, self.ridge)
        return change

    @cached_property
    def parameters(self) -> dict[str, float]:
        """The reference and the change together, by name."""
        equations = self.equations
        schema = equations.schema
        change = equations.step() if self.free is None and self.ridge is None else self.change
        moved = zip(schema.parameters, schema.reference, change.tolist(), strict=True)
        return {name: reference + change for name, reference, change in moved}


def _part(equations: NormalEquations, free: Sequence[int], ridge: Ridge) -> list[float]:
    rows = equations.system().rows
    added = PAPER_RIDGE if ridge == "paper" else 0.0
    grown = 1.0 if ridge is None or isinstance(ridge, str) else 1.0 + ridge
    H = [[rows[i][j] * grown + added if i == j else rows[i][j] for j in free] for i in free]
    return solve(H, [rows[-1][i] for i in free])
