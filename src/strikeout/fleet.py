"""One calibration for each underlying, day or other label, as one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from strikeout.assurance.groups import groups_of
from strikeout.calibration.calibrate import calibrate
from strikeout.calibration.calibration import Calibration
from strikeout.errors import RefusedError, StrikeoutError, UsageError
from strikeout.models.model import Model
from strikeout.quotes.frames import frame_from
from strikeout.quotes.quotes import Quotes
from strikeout.tables import Cell, Table, number
from strikeout.wording import many

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Fit:
    """The calibration of one group of quotes, or the error that replaces it.

    Attributes:
        group: the value of each label, in the order of ``Fleet.by``.
        count: the quotes of the group.
    """

    group: tuple[str, ...]
    count: int
    calibration: Calibration | None
    error: StrikeoutError | None = None

    @property
    def converged(self) -> bool:
        """Whether there is a calibration and its search converged."""
        return self.calibration is not None and self.calibration.converged

    @property
    def ended(self) -> str:
        """The name of the termination, or the code of the error."""
        if self.calibration is not None:
            return self.calibration.termination.name.lower()
        return "" if self.error is None else self.error.code


@dataclass(frozen=True, repr=False)
class Fleet:
    """One row per group, sorted by group; see ``calibrate_many``."""

    by: tuple[str, ...]
    fits: tuple[Fit, ...]

    @property
    def converged(self) -> bool:
        """Whether every calibration converged."""
        return all(fit.converged for fit in self.fits)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they first occur."""
        names = {name: None for fit in self.fits if fit.calibration for name in fit.calibration.parameters}
        return tuple(names)

    def to_table(self) -> Table:
        """Return groups, parameters, fit errors in volatility points and the end of each search."""
        heads = (*self.by, "quotes", *self.parameters, "vol points", "RMSE", "ended")
        places = range(len(self.by), len(heads) - 1)
        return Table(heads, [self._cells(fit) for fit in self.fits], numbers=places, whole=range(len(self.by)))

    def _cells(self, fit: Fit) -> list[Cell]:
        found = fit.calibration
        values = [None if found is None else found.parameters.get(name) for name in self.parameters]
        error = None if found is None else found.fit_errors.overall
        return [
            *fit.group,
            number(fit.count, ",d"),
            *(number(value) for value in values),
            number(None if error is None else error.vol_points, ".3g"),
            number(None if found is None else found.rmse, ".4g"),
            fit.ended,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: one object per group, with the calibration's own or the error's."""
        rows = []
        for fit in self.fits:
            row: dict[str, Any] = {"group": dict(zip(self.by, fit.group, strict=True)), "count": fit.count}
            if fit.calibration is not None:
                row |= fit.calibration.to_dict() | {"digest": fit.calibration.state.digest()}
            elif fit.error is not None:
                row |= {"converged": False, "error": {"code": fit.error.code, "message": str(fit.error)}}
            rows.append(row)
        return {"by": list(self.by), "converged": self.converged, "fits": rows}

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per group: labels, count, parameters, standard errors (``error_...``), fit errors, digest.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library, or one that is not installed.
        """
        columns: dict[str, Any] = {
            name: np.array([fit.group[place] for fit in self.fits]) for place, name in enumerate(self.by)
        }
        columns["count"] = np.array([fit.count for fit in self.fits])
        fits = [fit.calibration for fit in self.fits]
        for name in self.parameters:
            columns[name] = _numbers(None if fit is None else fit.parameters.get(name) for fit in fits)
            columns[f"error_{name}"] = _numbers(None if fit is None else fit.standard_errors.get(name) for fit in fits)
        columns["rmse"] = _numbers(None if fit is None else fit.rmse for fit in fits)
        columns["vol_points"] = _numbers(None if fit is None else fit.fit_errors.overall.vol_points for fit in fits)
        columns["converged"] = np.array([fit.converged for fit in self.fits])
        columns["ended"] = np.array([fit.ended for fit in self.fits])
        columns["digest"] = np.array(["" if fit is None else fit.state.digest() for fit in fits])
        return frame_from(columns, library)

    def summary(self) -> str:
        """Return the table as plain text."""
        return self.to_table().to_text()

    def __repr__(self) -> str:
        done = sum(fit.converged for fit in self.fits)
        return f"<Fleet of {many(len(self.fits), 'calibration')} by {', '.join(self.by)}; {done:,} converged>"


def calibrate_many(
    quotes: Quotes,
    model: Model,
    *,
    by: str | Sequence[str] = "underlying",
    progress: Progress | None = None,
    **settings: Any,
) -> Fleet:
    """Calibrate a model to each group of quotes separately.

    Each calibration has the bits of ``calibrate`` of its quotes alone. A group that is refused is a row with its error.

    Args:
        by: a label or several that make a group, such as "underlying" or ["underlying", "date"].
        progress: called with each group, the number of finished groups and of all groups.
        settings: as for ``calibrate``.

    Raises:
        UsageError: a label that the quotes do not have, or a setting that ``calibrate`` does not take.
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise UsageError('by: no label was given. Name one, such as by="underlying".')
    groups = groups_of(quotes, list(names))
    keys = [tuple(str(groups.keys[name][number]) for name in names) for number in range(groups.count)]
    fits = []
    for done, place in enumerate(sorted(range(groups.count), key=keys.__getitem__)):
        if progress is not None:
            progress(" ".join(keys[place]), done, groups.count)
        own = quotes[np.flatnonzero(groups.number == place)]
        try:
            fits.append(Fit(keys[place], len(own), calibrate(own, model, **settings)))
        except RefusedError as error:
            fits.append(Fit(keys[place], len(own), None, error))
    return Fleet(names, tuple(fits))


def _numbers(values: Any) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)
