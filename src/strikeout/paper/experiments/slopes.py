"""How fast something grows: the slope of a straight line through logarithms, with its confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from strikeout.errors import UsageError

NORMAL = 1.959963984540054  # 97.5 % of a normal variable lie below


@dataclass(frozen=True)
class Slope:
    """The exponent of a power law and the interval that holds it 95 times in 100, if the scatter is normal."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def slope_of(x: ArrayLike, y: ArrayLike) -> Slope:
    """The least-squares slope of ``ln y`` against ``ln x``.

    Raises:
        UsageError: fewer than three points, all at one x, or a number that is not above zero.

    >>> round(slope_of([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]).value, 9)
    2.0
    """
    across, up = np.asarray(x, float), np.asarray(y, float)
    if len(across) < 3 or np.ptp(across) == 0.0:
        raise UsageError(f"slope_of: {len(across)} points at {len(set(across.tolist()))} places; three are needed.")
    if not (across > 0.0).all() or not (up > 0.0).all():
        raise UsageError("slope_of: a logarithm needs numbers above zero. Leave out the points that are not.")
    a, b = np.log(across), np.log(up)
    a = a - a.mean()
    value = float(a @ b / (a @ a))
    rest = b - b.mean() - value * a
    error = float(np.sqrt(rest @ rest / (len(a) - 2) / (a @ a)))
    reach = _student(len(a) - 2) * error
    return Slope(value, value - reach, value + reach)


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: exact for one and two degrees of freedom, else Cornish and Fisher's series.

    The series is good to 1 % from three degrees on.
    """
    if freedom <= 2:
        return 12.706 if freedom == 1 else 4.303
    z, n = NORMAL, float(freedom)
    series = (
        (z**3 + z) / (4 * n),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3),
    )
    return z + sum(series)
