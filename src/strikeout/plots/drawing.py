"""A drawing: SVG with its table twin and alternative text, for a page or a notebook.

Elements are plain text; colours and fonts are classes of a style sheet.

No element has a style of its own, so a page may forbid inline styles, and the same drawing is light or dark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strikeout.plots.page import table_of
from strikeout.tables import Number, Table, cell_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_ROWS = 40  # of a table twin in a page; the whole table is in its files


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture for a browser or a notebook, the same numbers as a table, and what is to be seen in it in words.

    In a notebook it is interactive: cells and points have readouts, and chosen cells give the condition that selects
    their quotes. ``figure()`` is the same picture by matplotlib, for files and for notebooks without HTML.
    """

    svg: str
    table: Table
    title: str
    alternative: str
    draw: Callable[[], Figure] | None = field(default=None, compare=False)

    def drawn_by(self, draw: Callable[[], Figure]) -> Drawing:
        """Return this drawing with a function that draws it with matplotlib."""
        return replace(self, draw=draw)

    def figure(self) -> Figure:
        """Return the picture as a figure of matplotlib."""
        if self.draw is None:
            raise NotImplementedError(f"{self.title}: this picture is drawn as SVG only.")
        return self.draw()

    def to_html(self, *, interactive: bool = True) -> str:
        """Return the picture and its table as a part of a page, with the style and the script they need."""
        script = f"<script>{asset('drawing.js')}</script>" if interactive else ""
        return (
            f'<div class="so-figure"><style>{asset("drawing.css")}</style>'
            f"<strong>{escape(self.title)}</strong>{self.svg}"
            f"<p class=so-readout role=status></p>"
            f"<details><summary>Table</summary>{table_html(self.table)}</details>{script}</div>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        shown: dict[str, Any] = {"text/html": self.to_html(), "text/plain": repr(self)}
        if include is not None and "image/png" in include:
            from strikeout.plots.style import to_bytes

            shown["image/png"] = to_bytes(self.figure(), "png")
        return shown

    def __repr__(self) -> str:
        return f"<Drawing: {self.alternative}>"


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this one: the style or the script of drawings."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def table_html(table: Table) -> str:
    """Return the first rows of a table as HTML; every text is escaped."""
    rows = [tuple(map(cell_text, row)) for row in table.rows[:MOST_ROWS]]
    is_number = [
        n in table.numbers or bool(table.rows and isinstance(table.rows[0][n], Number))
        for n in range(len(table.headings))
    ]
    words = [n for n, number in enumerate(is_number) if not number]
    left = len(table.rows) - len(rows)
    return table_of(table.headings, rows, words=words) + (f"<p>and {left:,} more rows</p>" if left > 0 else "")


def element(name: str, *inside: str, **attributes: object) -> str:
    """Return an element; an underscore at the end of an attribute's name is dropped, others are hyphens.

    >>> element("rect", x=1.5, class_="cell", data_row=2)
    '<rect x="1.5" class="cell" data-row="2"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>" if inside else f"<{name}{written}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    """Return text at a place."""
    return element("text", escape(words), x=x, y=y, **attributes)


def tip(words: str) -> str:
    """Return the readout of the element around it."""
    return element("title", escape(words))


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Scale:
    """A linear map from values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, at_most: int) -> list[float]:
        """Return round values inside the scale."""
        return round_values(self.low, self.high, at_most)


def scale_over(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a scale that contains all finite values, with a margin on both sides."""
    known = [value for value in values if isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    wide = (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low - 0.05 * wide, high + 0.05 * wide, start, end)


def round_values(low: float, high: float, at_most: int) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten between two values.

    >>> round_values(0.0, 1.03, 5)
    [0.0, 0.5, 1.0]
    """
    rough = (high - low) / max(at_most - 1, 1)
    if not isfinite(rough) or rough <= 0.0:
        return []
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1.0 - 1e-9))
    first = floor(low / step) + (0 if floor(low / step) * step >= low else 1)
    found = []
    while first * step <= high * (1 + 1e-12) + 1e-300:
        found.append(first * step if first else 0.0)
        first += 1
    return found


def short(value: float, digits: int = 4) -> str:
    """Return a number of a few digits, with a minus sign that is as wide as a plus sign.

    >>> short(-0.15)
    '−0.15'
    """
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")


def path_of(places: Sequence[tuple[float, float]]) -> str:
    """Return the data of a path through places; a place that is not finite interrupts it."""
    parts, is_open = [], False
    for x, y in places:
        if isfinite(x) and isfinite(y):
            parts.append(f"{'L' if is_open else 'M'}{x:.1f} {y:.1f}")
            is_open = True
        else:
            is_open = False
    return "".join(parts)
