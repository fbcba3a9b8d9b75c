"""What an operator found: the thing a certificate is issued for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Answer:
    """Parameters once some quotes are gone, and the operator that found them.

    ``struck`` is how many quotes are gone; it is needed where not every quote counts in the objective. ``tolerance`` is
    the number of standard errors within which the answer is claimed to be the optimum.
    """

    parameters: Mapping[str, float]
    operator: str
    struck: int | None = field(default=None, kw_only=True)
    tolerance: float | None = field(default=None, kw_only=True)
