"""A section of the report: what is asked, and what was found, in numbers first; pictures are drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = float | int | str | None
Progress = Callable[[float, str], None]  # the share of the section that is done, and what is being done now


@dataclass(frozen=True)
class Scale:
    """How much work an experiment puts in: how many runs a point, which books, which fractions are forgotten."""

    name: str
    runs: int
    seeds: tuple[int, ...]
    fractions: tuple[float, ...] = (0.01, 0.02, 0.05, 0.10, 0.25)

    @property
    def is_quick(self) -> bool:
        """A first look, in about a minute for all sections together."""
        return self.name == "quick"


QUICK = Scale("quick", runs=3, seeds=(42,))
WHOLE = Scale("whole", runs=10, seeds=(42, 60, 7))


@dataclass(frozen=True)
class Section:
    """What is asked. ``question`` is a paragraph; ``command`` runs this section and no other."""

    name: str
    title: str
    question: str

    @property
    def command(self) -> str:
        """What to type to run this section alone."""
        return f"strikeout paper {self.name}"


@dataclass(frozen=True)
class Column:
    """A column of numbers or words. ``show`` is a format for one number; seconds choose their own unit."""

    name: str
    unit: str = ""
    show: str = ".3g"

    @property
    def heading(self) -> str:
        """Name and unit, for readers."""
        return f"{self.name} ({self.unit})" if self.unit not in ("", "s") else self.name

    @property
    def field(self) -> str:
        """Name and unit, for programs."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def text(self, value: Value) -> str:
        """Return one cell as it is read; a dash if there is no number."""
        if value is None or (isinstance(value, float) and not isfinite(value)):
            return "-"
        if isinstance(value, str):
            return value
        if value == 0:
            return "0"
        return time_text(value) if self.unit == "s" else format(value, self.show)


@dataclass(frozen=True)
class Table:
    """Numbers with their units. One that is not ``is_shown`` goes into the files but not onto the page."""

    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Value, ...]]
    is_shown: bool = True

    def column(self, name: str) -> list[Value]:
        """Return the values of one column.

        Raises:
            ValueError: no column has this name.
        """
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Picture:
    """What to draw, when it is wanted, and what to write below it."""

    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Finding:
    """What was found: tables and pictures by name, then what they show, a paragraph each."""

    paragraphs: tuple[str, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Picture] = field(default_factory=dict)


def time_text(seconds: float) -> str:
    """Return seconds in the unit that reads best, to three digits.

    >>> time_text(0.00000184), time_text(18.164)
    ('1.84 µs', '18.2 s')
    """
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * factor >= 1.0 or unit == "µs":
            return f"{_digits(seconds * factor)} {unit}"
    raise AssertionError("the last unit takes everything")


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
