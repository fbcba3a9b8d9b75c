"""How the variance of a panel moves from date to date by the model's own dynamics.

    symbol  meaning
    D       years between two dates
    kappa   mean_reversion, theta long_variance, sigma vol_of_vol: the shared parameters of the panel
    lambda  the strength: kappa and sigma are divided by it, so that the variance moves that many times as slowly
    a       exp(-kappa D / lambda): the mean of the next variance is theta + (v - theta) a
    u + w v its variance: w = sigma^2 a (1 - a) / (kappa lambda), u = theta sigma^2 (1 - a)^2 / (2 kappa lambda)

These are the first two moments of the transition density of Cox, Ingersoll and Ross (1985). Strength 0 lets every date
have any variance; an infinite one leaves a single variance for all dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strikeout.errors import UsageError
from strikeout.kernels import elementary
from strikeout.kernels.state_space import Transition
from strikeout.text import Argument

if TYPE_CHECKING:
    from strikeout.calibration.calibration import Calibration

Dates = NDArray[np.datetime64]

NAMES = ("mean_reversion", "long_variance", "vol_of_vol")
# Variance moves while markets are open: a year has 261 weekdays. If a date is not a weekday, every day counts.
WEEKDAYS, DAYS = 261.0, 365.25


@dataclass(frozen=True)
class VarianceSteps:
    """The dynamics of the variance of one panel."""

    mean_reversion: float
    long_variance: float
    vol_of_vol: float
    strength: float
    weekdays: bool  # the clock: weekdays, or all days

    @staticmethod
    def of(panel: Calibration, strength: float = 1.0) -> VarianceSteps:
        """Return the dynamics with the shared parameters of a panel."""
        if not strength >= 0.0:
            raise UsageError(Argument("strength", strength), ": give 0 (no prior), 1 (the model's), or more.")
        missing = [name for name in NAMES if name not in panel.parameters]
        if missing:
            raise UsageError(
                f"The variance of {panel.model.name} has no dynamics to filter with: {', '.join(NAMES)} are needed, "
                f"and it shares no {', '.join(missing)}."
            )
        weekdays = bool(np.is_busday(dates_of(panel)).all())
        kappa, theta, sigma = (panel.parameters[name] for name in NAMES)
        return VarianceSteps(kappa, theta, sigma, strength, weekdays)

    def between(self, first: Dates, second: Dates) -> list[Transition]:
        """Return the step from each first date to its second one."""
        count = np.busday_count(first, second) if self.weekdays else (second - first).astype(np.int64)
        years = count / (WEEKDAYS if self.weekdays else DAYS)
        kappa, theta, sigma, strength = self.mean_reversion, self.long_variance, self.vol_of_vol, self.strength
        with np.errstate(divide="ignore", invalid="ignore"):
            slow = np.where(years > 0.0, kappa * years / strength, 0.0)
            a, rest = elementary.exp(-slow), -elementary.expm1(-slow)
            scale = np.where(years > 0.0, np.divide(sigma * sigma / kappa, strength), 0.0)
            u = np.where(rest > 0.0, 0.5 * theta * scale * rest * rest, 0.0)
            w = np.where(a * rest > 0.0, scale * a * rest, 0.0)
        columns = (a, theta * rest, u, w)
        return [Transition(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def chain(self, dates: Dates) -> list[Transition]:
        """Return the step from each date to the next."""
        return self.between(dates[:-1], dates[1:])


def dates_of(panel: Calibration) -> Dates:
    """Return the dates of a panel."""
    if panel.panel is None:
        raise UsageError(
            "Only a panel has a path of variances. Calibrate with ", Argument("panel", "date"), " (a label of dates)."
        )
    return as_dates(panel.groups, panel.panel)


def as_dates(names: Sequence[object], label: str) -> Dates:
    """Return these names as dates."""
    try:
        return np.array([date.fromisoformat(str(name)) for name in names], "datetime64[D]")
    except ValueError as error:
        raise UsageError(
            f"Only dates such as 2024-01-02 have a distance, and {label} has {str(names[0])!r}. Give a label of dates.",
            label=label,
        ) from error
