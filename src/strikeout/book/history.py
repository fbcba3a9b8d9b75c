"""Parameters, standard errors and fit of a book over its entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from strikeout.book.records import Snapshot
from strikeout.quotes.frames import frame_from
from strikeout.tables import Cell, Table, number
from strikeout.text import many


@dataclass(frozen=True)
class Stage:
    """One calibration of a book: the entry that made it, and its results.

    Results that an erasure removed are not in a history: the book no longer contains them.
    """

    entry: int
    when: str
    who: str
    what: str
    count: int
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    rmse: float
    converged: bool


@dataclass(frozen=True, repr=False)
class History:
    """The calibrations of a book, the first one first; see ``Book.history``."""

    stages: tuple[Stage, ...]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they first occur."""
        return tuple({name: None for stage in self.stages for name in stage.parameters})

    def to_table(self) -> Table:
        """Return one row per calibration: entry, time, verb, quotes, parameters with standard errors, RMSE."""
        pairs = [head for name in self.parameters for head in (name, f"SE {name}")]
        heads = ("entry", "when", "what", "quotes", *pairs, "RMSE", "converged")
        rows = [self._cells(stage) for stage in self.stages]
        return Table(heads, rows, numbers=(0, *range(3, 5 + len(pairs))), whole=(1, 2), keys=1)

    def _cells(self, stage: Stage) -> list[Cell]:
        cells: list[Cell] = [number(stage.entry, "d"), stage.when[:16].replace("T", " "), stage.what]
        cells.append(number(stage.count, ",d"))
        for name in self.parameters:
            cells += [number(stage.parameters.get(name)), number(stage.standard_errors.get(name), ".2g")]
        return [*cells, number(stage.rmse, ".4g"), "yes" if stage.converged else "no"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a number that does not exist is None."""
        return {
            "stages": [
                {
                    **{name: getattr(stage, name) for name in ("entry", "when", "who", "what", "count", "converged")},
                    "parameters": stage.parameters,
                    "standard_errors": {name: _finite(value) for name, value in stage.standard_errors.items()},
                    "rmse": _finite(stage.rmse),
                }
                for stage in self.stages
            ]
        }

    def to_frame(self, library: str = "polars") -> Any:
        """Return one row per calibration.

        Args:
            library: "polars", "pandas" or "pyarrow".

        Raises:
            UsageError: another library, or one that is not installed.
        """
        columns = {
            name: np.array([getattr(stage, name) for stage in self.stages])
            for name in ("entry", "when", "who", "what", "count", "rmse", "converged")
        }
        for name in self.parameters:
            columns[name] = np.array([stage.parameters.get(name, np.nan) for stage in self.stages])
            columns[f"error_{name}"] = np.array([stage.standard_errors.get(name, np.nan) for stage in self.stages])
        return frame_from(columns, library)

    def summary(self) -> str:
        """Return the table as plain text."""
        return self.to_table().to_text()

    def __repr__(self) -> str:
        return f"<History of {many(len(self.stages), 'calibration')}>"


def history_of(snapshot: Snapshot) -> History:
    """Return the calibrations that a book contains, with the entries that made them."""
    entries = {entry.number: entry for entry in snapshot.ledger.entries}
    return History(
        tuple(
            Stage(
                entry=version.entry,
                when=entries[version.entry].at,
                who=entries[version.entry].who,
                what=entries[version.entry].what,
                count=version.count,
                parameters=dict(version.parameters),
                standard_errors=version.printed_errors,
                rmse=version.rmse,
                converged=version.converged,
            )
            for version in snapshot.versions
        )
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
