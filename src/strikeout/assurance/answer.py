"""What an operator found, and how: the thing a certificate is issued for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Answer:
    """Parameters once some quotes are gone, the operator that found them and the path to it.

    ``struck`` is how many quotes are gone; it is needed where not every quote counts in the objective. ``tolerance`` is
    the number of standard errors within which the answer is claimed to be the optimum. ``indicators`` are numbers that
    support this.
    """

    parameters: Mapping[str, float]
    operator: str
    path: Sequence[str] = ()
    struck: int | None = field(default=None, kw_only=True)
    tolerance: float | None = field(default=None, kw_only=True)
    indicators: Mapping[str, float] = field(default_factory=dict, kw_only=True)
